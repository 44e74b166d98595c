"""The port through which programs are started: confined, and never left behind.

Tools, hooks, model programs and servers of tools are started through it and by nothing
else. `process.py` implements it. `LateSandbox` tries which protection works on this
machine when the first program is started, and then hands over to `process.py`. Nothing
is believed untried: a kernel may know Landlock and not have it switched on, bubblewrap
may be installed and not be allowed to make a namespace.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import (
    AsyncGenerator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final, Literal, Protocol

import msgspec
import trio

from connectors.config.app import AppConfig
from connectors.config.tools import SandboxConfig
from connectors.sandbox.linux import landlock
from connectors.sandbox.linux.seccomp import ARCHITECTURES
from connectors.sandbox.orders import Means
from connectors.sandbox.plan import (
    HERE,
    Confinement,
    Finished,
    SandboxError,
    Standing,
    Territory,
    listed,
    territory,
)
from connectors.sandbox.process import LaunchingSandbox
from runtime.telemetry.logs import EventLog

FEATURES: Final = {
    "files": "files outside of what is given cannot be read or made",
    "truncation": "nor be emptied",
    "metadata": "nor have their modes and times changed",
    "device_commands": "devices take no commands",
    "sockets": "there are no sockets but those of TCP",
    "tcp_ports": "TCP can be limited to some ports",
    "signals": "processes outside get no signals",
    "system_calls": "no namespaces, tracing, keys, mounts, io_uring",
    "privileges": "no root's rights, and no way to gain some",
    "hidden_paths": "even the names of other files are hidden",
    "hidden_processes": "even the existence of other processes is hidden",
}
"""Each protection, and what it means."""

ESSENTIAL = ("files", "truncation", "sockets", "system_calls", "privileges")
"""Without one of these, it is no sandbox."""

CURES: Final = {
    "metadata": "install bubblewrap",
    "device_commands": "needs Landlock ABI 5 (Linux 6.10)",
    "tcp_ports": "needs Landlock ABI 4 (Linux 6.7)",
    "signals": "needs Landlock ABI 6 (Linux 6.12), or bubblewrap",
    "hidden_paths": "install bubblewrap",
    "hidden_processes": "install bubblewrap",
}

TRIAL_TIMEOUT = 20.0
PYTHON = os.path.realpath(sys.executable)


class Machine(msgspec.Struct, frozen=True):
    """What there is to confine programs with."""

    system: str
    processor: str
    abi: int
    """Landlock's; 0: there is none."""

    bubblewrap: str
    """The program's path; empty: it is not installed."""


def this_machine() -> Machine:
    """Look at what this machine has."""
    is_linux = sys.platform == "linux"
    return Machine(
        system=sys.platform,
        processor=os.uname().machine,
        abi=landlock.abi() if is_linux else 0,
        bubblewrap=shutil.which("bwrap") or "",
    )


async def open_sandbox(
    config: SandboxConfig, territory: Territory, machine: Machine | None = None
) -> LaunchingSandbox:
    """Make the sandbox that the settings ask for, once it was tried.

    Args:
        config: how strong it must be.
        territory: what no program may reach.
        machine: what there is; None looks.

    Raises:
        SandboxError: there is none, and the settings say that there must be.
    """
    reasons: list[str] = []
    for kind, means in candidates(config.mode, machine or this_machine(), reasons):
        # Without what the settings add: a folder that cannot be given must not look
        # like a sandbox that does not work, and so open the door.
        bare = msgspec.structs.replace(territory, readable=())
        sandbox = LaunchingSandbox(Standing(kind=kind, features={}), means, bare)
        try:
            features = await tried(sandbox)
        except SandboxError as error:
            reasons.append(f"{kind} does not work here: {error}")
            continue
        lacking = [name for name in ESSENTIAL if not features[name]]
        if not lacking:
            standing = Standing(
                kind=kind,
                abi=means.abi,
                features=features,
                missing=(*reasons, *shortcomings(features)),
            )
            return LaunchingSandbox(standing, means, territory)
        reasons.append(f"{kind} does not hold here: {', '.join(lacking)}")
    if config.mode != "none" and config.required:
        raise SandboxError(refusal(reasons))
    return LaunchingSandbox(unconfined(reasons), Means(), territory)


def candidates(
    mode: str, machine: Machine, reasons: list[str]
) -> Iterator[tuple[Literal["bubblewrap", "landlock"], Means]]:
    """Give what could be used, strongest first; say of the others why not."""
    if mode == "none":
        return
    if machine.system != "linux" or machine.processor not in ARCHITECTURES:
        where = f"{machine.system} on {machine.processor}"
        reasons.append(
            f"there is no sandbox for {where}, only for Linux on x86_64 and aarch64"
        )
        return
    abi = machine.abi
    if mode in {"auto", "bubblewrap"}:
        if machine.bubblewrap:
            yield "bubblewrap", Means(abi, machine.bubblewrap, is_filtered=True)
        else:
            reasons.append("bubblewrap is not installed: apt install bubblewrap")
    if mode in {"auto", "landlock"}:
        if abi:
            yield "landlock", Means(abi, is_filtered=True, is_brokered=True)
            yield "landlock", Means(abi, is_filtered=True)
        else:
            reasons.append(
                "this kernel has no Landlock: Linux 5.13 or newer, with landlock in"
                " its list of security modules (lsm=)"
            )


async def tried(sandbox: LaunchingSandbox) -> dict[str, bool]:
    """Try every protection, from inside.

    Raises:
        SandboxError: nothing can be started in it.
    """
    folder = await trio.to_thread.run_sync(make_scene)
    canary, work = folder / "canary", folder / "work"
    try:
        finished = await sandbox.run(
            [
                PYTHON,
                "-I",
                "-S",
                str(HERE / "child" / "self_test.py"),
                str(canary),
                str(os.getpid()),
            ],
            confinement=Confinement(writable=(work,), network=sandbox.narrowest_tcp),
            cwd=work,
            timeout=TRIAL_TIMEOUT,
            max_output=10_000,
        )
        is_untouched = {path.name for path in listed(folder)} == {"canary", "work"}
    finally:
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(shutil.rmtree, folder)
    seen = dict(line.split() for line in finished.stdout.decode().splitlines())
    if finished.returncode or seen.keys() != FEATURES.keys():
        said = finished.stderr.decode(errors="replace").strip().splitlines()
        why = said[-1] if said else f"exit code {finished.returncode}"
        raise SandboxError(f"its trial failed: {why}")
    features = {name: seen[name] == "1" for name in FEATURES}
    return features | {"files": features["files"] and is_untouched}


def make_scene() -> Path:
    """Make a folder with a file that is not given, and one to work in."""
    folder = Path(tempfile.mkdtemp(prefix="callboard-trial-"))
    (folder / "canary").write_text("not yours")
    (folder / "work").mkdir()
    return folder


def shortcomings(features: dict[str, bool]) -> list[str]:
    """Say what is not in force, and what would change that."""
    return [
        f"{name} is not in force; {CURES[name]}"
        for name, holds in features.items()
        if not holds and name in CURES
    ]


def refusal(reasons: list[str]) -> str:
    """Say why no program is started."""
    return (
        "programs are not run without a sandbox, and there is none: "
        + "; ".join(dict.fromkeys(reasons))
        + ". Mend one of these, take the tools that run programs from the agents, or"
        " set [sandbox] required = false and know that programs may then do whatever"
        " this user may"
    )


def unconfined(reasons: list[str]) -> Standing:
    """Say that nothing is in force but limits, and few variables."""
    return Standing(
        kind="none", features=dict.fromkeys(FEATURES, False), missing=tuple(reasons)
    )


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


def sandbox_of(config: AppConfig, private: Iterable[Path]) -> LateSandbox:
    """Make the sandbox in which programs of agents and operators run.

    Args:
        private: files of settings and secrets, which no program may reach.

    Raises:
        SandboxError: the folder that agents work in holds what must be kept.
    """
    return LateSandbox(config.sandbox, territory(config, private))


class LateSandbox:
    """Starts programs confined, as `Sandbox` says.

    Args:
        config: which kind there must be.
        territory: what no program may reach.
        on_open: is told what is in force, each time it was tried; None: nobody is.
    """

    def __init__(
        self,
        config: SandboxConfig,
        territory: Territory,
        on_open: Callable[[Standing], None] | None = None,
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
                if self._on_open is not None:
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
