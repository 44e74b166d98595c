"""The port through which programs are started: confined, and never left behind.

Tools, model programs and servers of tools are started through it and by nothing else.
Implemented by `process.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    import trio

    from connectors.sandbox.plan import Confinement, Finished


class Confined(Protocol):
    """A confined program that runs."""

    @property
    def stdin(self) -> trio.abc.SendStream:
        """What it reads."""
        ...

    @property
    def stdout(self) -> trio.abc.ReceiveStream:
        """What it writes; always has to be read, or it waits."""
        ...

    @property
    def stderr(self) -> trio.abc.ReceiveStream:
        """What it complains; likewise."""
        ...

    async def wait(self) -> int:
        """Wait for its end; give its exit code, or minus the signal's number."""
        ...

    def kill(self) -> None:
        """End it, with everything it has started."""
        ...


class Sandbox(Protocol):
    """Starts programs confined.

    `connectors/sandbox/lazy.py` makes it from `[sandbox]`, once for all.
    """

    async def run(  # noqa: PLR0913  what a program is started with
        self,
        command: Sequence[str],
        *,
        confinement: Confinement,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout: float,  # noqa: ASYNC109  part of the result, not only of the wait
        max_output: int,
        owner: str = "",
    ) -> Finished:
        """Run a program to its end.

        Args:
            command: program and arguments; no shell reads them.
            confinement: what it may do.
            cwd: its current folder, and `HOME`.
            env: added to the few variables it is given (`PATH`, `LANG`, ...).
            stdin: what it reads.
            timeout: seconds until it is killed with everything it has started.
            max_output: most bytes kept of each of stdout and stderr.
            owner: whose share of the places it takes: a person, or a model; empty:
                nobody's in particular.

        Raises:
            SandboxError: it cannot be confined so, or not be started; it has not run.
        """
        ...

    def open_process(
        self,
        command: Sequence[str],
        *,
        confinement: Confinement,
        cwd: Path,
        env: Mapping[str, str] | None = None,
    ) -> AbstractAsyncContextManager[Confined]:
        """Run a program with pipes for as long as the block; arguments as above.

        At the block's end it is killed with everything it has started, and awaited.
        """
        ...
