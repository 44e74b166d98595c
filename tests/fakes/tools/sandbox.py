"""A sandbox that confines nothing; programs run with a bare environment."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import trio

from connectors.sandbox.plan import Confinement, Finished, SandboxError


class OpenProgram:
    """A program that runs."""

    def __init__(self, process: trio.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.process = process
        self.stdin: trio.abc.SendStream = process.stdin
        self.stdout: trio.abc.ReceiveStream = process.stdout
        self.stderr: trio.abc.ReceiveStream = process.stderr

    async def wait(self) -> int:
        return await self.process.wait()

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


class FakeSandbox:
    """Starts programs, and notes how they were to be confined.

    Args:
        is_missing: whether nothing can be confined here.
    """

    def __init__(self, *, is_missing: bool = False) -> None:
        self._is_missing = is_missing
        self.confinements: list[Confinement] = []
        self.owners: list[str] = []
        self.programs: list[OpenProgram] = []

    async def run(  # noqa: PLR0913  the port's
        self,
        command: Sequence[str],
        *,
        confinement: Confinement,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout: float,  # noqa: ASYNC109  the port's
        max_output: int,
        owner: str = "",
    ) -> Finished:
        self.confinements.append(confinement)
        self.owners.append(owner)
        if self._is_missing:
            raise SandboxError("there is no sandbox on this machine")
        given = {"PATH": os.environ["PATH"], "HOME": str(cwd), **(env or {})}
        ended = subprocess.CompletedProcess(list(command), -9, b"", b"")
        with trio.move_on_after(timeout) as scope:
            ended = await trio.run_process(
                list(command),
                cwd=cwd,
                env=given,
                stdin=stdin,
                capture_stdout=True,
                capture_stderr=True,
                check=False,
            )
        return Finished(
            returncode=ended.returncode,
            stdout=ended.stdout[:max_output],
            stderr=ended.stderr[:max_output],
            was_cut=len(ended.stdout) > max_output,
            timed_out=scope.cancelled_caught,
            seconds=0.0,
        )

    @asynccontextmanager
    async def open_process(
        self,
        command: Sequence[str],
        *,
        confinement: Confinement,
        cwd: Path,
        env: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[OpenProgram]:
        self.confinements.append(confinement)
        try:
            process = await trio.lowlevel.open_process(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=cwd,
                env={"PATH": os.environ["PATH"], "HOME": str(cwd), **(env or {})},
                start_new_session=True,
            )
        except OSError as error:
            raise SandboxError(str(error)) from error
        program = OpenProgram(process)
        self.programs.append(program)
        try:
            yield program
        finally:
            program.kill()
            with trio.CancelScope(shield=True):
                await process.wait()
                for stream in (program.stdin, program.stdout, program.stderr):
                    await stream.aclose()
