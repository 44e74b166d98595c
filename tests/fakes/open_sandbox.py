"""Runs programs without any confinement, for tests of who starts them."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any

import trio

from connectors.sandbox.plan import Confinement, Finished, SandboxError, Standing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path


class OpenSandbox:
    """A sandbox with its door open.

    Args:
        is_missing: whether nothing can be confined here.
    """

    def __init__(self, *, is_missing: bool = False) -> None:
        self._is_missing = is_missing
        self.asked: list[Confinement] = []

    @property
    def standing(self) -> Standing:
        return Standing(kind="none", features={})

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
    ) -> Finished:
        self.asked.append(confinement)
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

    def open_process(
        self,
        command: Sequence[str],
        *,
        confinement: Confinement,
        cwd: Path,
        env: Mapping[str, str] | None = None,
    ) -> AbstractAsyncContextManager[Any]:
        raise NotImplementedError
