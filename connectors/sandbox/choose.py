"""Finds the strongest sandbox that this machine has, by trying it.

Nothing is believed: a kernel may know Landlock and not have it switched on, bubblewrap
may be installed and not be allowed to make a namespace.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import trio

from connectors.sandbox.linux import landlock
from connectors.sandbox.linux.syscalls import ARCHITECTURES
from connectors.sandbox.orders import Means
from connectors.sandbox.plan import Confinement, SandboxError, Standing
from connectors.sandbox.process import LaunchingSandbox
from connectors.sandbox.territory import HERE, Territory, listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from connectors.config.tools import SandboxConfig

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


@dataclass(frozen=True)
class Machine:
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
        bare = replace(territory, readable=())
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
