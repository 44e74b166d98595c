"""The port through which programs are started: confined, and never left behind.

Tools, hooks, model programs and servers of tools are started through it and by nothing
else. `process.py` implements it. `LateSandbox` tries which protection works on this
machine when the first program is started, and then hands over to `process.py`.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

import trio

from connectors.sandbox.choose import open_sandbox
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from connectors.config.tools import SandboxConfig
    from connectors.sandbox.plan import Confinement, Finished, Standing
    from connectors.sandbox.process import LaunchingSandbox
    from connectors.sandbox.territory import Territory


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

    The app makes one from `[sandbox]`, for all that start programs.
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


LOG = EventLog("sandbox")


class LateSandbox:
    """Starts programs confined, as `Sandbox` says.

    Args:
        config: which kind there must be.
        territory: what no program may reach.
        on_open: is told what is in force, each time it was tried.
    """

    def __init__(
        self,
        config: SandboxConfig,
        territory: Territory,
        on_open: Callable[[Standing], None],
    ) -> None:
        self._config = config
        self.territory = territory
        """What programs that are started now cannot reach."""

        self._on_open = on_open
        self._opened: LaunchingSandbox | None = None
        self._opening = trio.Lock()

    async def open(self) -> LaunchingSandbox:
        """Try the sandbox, unless it was tried already.

        Raises:
            SandboxError: there is none, and the settings say that there must be.
        """
        async with self._opening:
            if self._opened is None:
                opened = await open_sandbox(self._config, self.territory)
                self._on_open(opened.standing)
                if opened.standing.kind == "none":
                    missing = "; ".join(opened.standing.missing) or "as set"
                    LOG.error("programs run without a sandbox", why=missing)
                self._opened = opened
            return self._opened

    async def keep(
        self, territory: Territory, config: SandboxConfig | None = None
    ) -> None:
        """Keep programs that are started from now on from another territory.

        Args:
            territory: what they cannot reach.
            config: which kind there must be; None: as before.
        """
        config = config or self._config
        async with self._opening:
            if (territory, config) != (self.territory, self._config):
                self.territory, self._config, self._opened = territory, config, None

    async def run(  # noqa: PLR0913  as `Sandbox` has it
        self,
        command: Sequence[str],
        *,
        confinement: Confinement,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout: float,  # noqa: ASYNC109  as `Sandbox` has it
        max_output: int,
        owner: str = "",
    ) -> Finished:
        """Run a program to its end; see `Sandbox.run`."""
        sandbox = await self.open()
        return await sandbox.run(
            command,
            confinement=confinement,
            cwd=cwd,
            env=env,
            stdin=stdin,
            timeout=timeout,
            max_output=max_output,
            owner=owner,
        )

    @asynccontextmanager
    async def open_process(
        self,
        command: Sequence[str],
        *,
        confinement: Confinement,
        cwd: Path,
        env: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[Confined]:
        """Run a program with pipes; see `Sandbox.open_process`."""
        sandbox = await self.open()
        async with sandbox.open_process(
            command, confinement=confinement, cwd=cwd, env=env
        ) as process:
            yield process
