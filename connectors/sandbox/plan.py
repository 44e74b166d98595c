"""What a confined program may do, in words that no kernel knows, and its paths.

Pure. A `Confinement` is all that a caller says; `runner.py` carries it out with the
strongest means that this machine has.

Neither Landlock nor a mount can take a file out of a folder that is given. So a folder
with something hidden in it is given as all that lies beside the hidden. `territory`
hides what no program may reach, by the settings: the database and the secrets.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from runtime.errors import KernelError

if TYPE_CHECKING:
    from connectors.config.app import AppConfig
    from runtime.telemetry.metrics import Gauge, Metrics


Network = Literal["none", "tcp"] | frozenset[int]
"""`none`; `tcp`, to any port; or TCP to these ports only. Never UDP, and nobody may
listen. Names of hosts are looked up over TCP, so a name server has to answer there,
and its port, 53, to be among the ports."""

MIB = 1024 * 1024

KILLED = -9
"""The exit code of what was killed."""


class SandboxError(KernelError):
    """A program could not be confined as asked for, and so was not started."""


class SandboxLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much a confined program may use."""

    memory: int = 2048 * MIB
    """Bytes of address space of each process, more is refused to it; and of memory in
    use by all of them together. 0: no bound, as some virtual machines reserve more
    than anybody has."""

    addresses: int = 0
    """Bytes of address space of each process where that is another bound; `memory` is
    only what is in use by all of them then. 0: as `memory`."""

    cpu: float = 120.0
    """Seconds of processor time of each process; then it is killed."""

    processes: int = 128
    """Processes at once, all those that it starts included."""

    file_size: int = 256 * MIB
    """Bytes of the largest file it may write."""

    open_files: int = 1024
    """Descriptors of each process."""


# Source: Node and Bun reserve tens of gigabytes of addresses that they never use, and
# end at once where they may not ("MemoryExhaustion" with 2 GiB).
LONG_RUNNING = SandboxLimits(
    memory=128 * 1024 * MIB,
    cpu=10_000_000.0,
    processes=256,
    file_size=1024 * MIB,
)
"""For programs of the settings that run for long: tool servers, and models of the
command line. Their time is bounded by the clock, not by the processor's."""


class Confinement(msgspec.Struct, frozen=True, kw_only=True):
    """What one program may see, change and use.

    Paths are absolute; those that do not exist are an error, except hidden ones. What
    programs need anyway (`/usr`, Python, certificates, ...) is readable always, a
    private folder for temporary files writable always. The innermost path that is
    named decides: a hidden file inside a readable folder stays hidden.
    """

    readable: tuple[Path, ...] = ()
    """Files and folders, with all below, that may be read and executed."""

    writable: tuple[Path, ...] = ()
    """Likewise, that may be read, changed and executed."""

    removable: tuple[Path, ...] = ()
    """Likewise, that may be read, executed and removed; nothing is made there, and
    where Landlock is in force nothing written."""

    hidden: tuple[Path, ...] = ()
    """What may not be reached; the database and the settings are hidden always."""

    network: Network = "none"
    limits: SandboxLimits = msgspec.field(default_factory=SandboxLimits)


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """How a confined program ended, and what it said."""

    returncode: int
    """Its exit code; minus the number of the signal that ended it."""

    stdout: bytes
    """With `was_cut`: beginning and end, and a line between that says how much is
    missing."""

    stderr: bytes
    was_cut: bool
    """Whether `stdout` or `stderr` is not whole."""

    timed_out: bool
    flooded: bool = False
    """Whether it was killed because it wrote without end."""

    overran: bool = False
    """Whether it was killed because it had too many processes, or too much memory in
    all of them together."""

    seconds: float


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What protects this machine from confined programs, as tried out on it."""

    kind: Literal["bubblewrap", "landlock", "none"]
    abi: int = 0
    """Landlock's version in this kernel; 0: it has none."""

    features: Mapping[str, bool]
    """By name of a protection (`FEATURES`), whether it is in force."""

    missing: tuple[str, ...] = ()
    """Why something is not in force, and what to do about it; sentences."""


class SandboxFigures:
    """What is in force, as it was tried last.

    Args:
        metrics: where it is shown, from the first try on.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._gauge: Gauge | None = None
        self._shown: set[tuple[str, str]] = set()

    def show(self, standing: Standing) -> None:
        """Show each protection as 1 or 0, by the kind of sandbox and its name."""
        if self._gauge is None:
            self._gauge = self._metrics.gauge(
                "callboard_sandbox_in_force",
                "Whether a protection from programs that agents start is in force,"
                " as tried.",
                ("kind", "feature"),
            )
        for labels in self._shown:  # settings may want another kind by now
            self._gauge.set(0, *labels)
        for name, holds in standing.features.items():
            self._gauge.set(int(holds), standing.kind, name)
            self._shown.add((standing.kind, name))


HERE = Path(__file__).resolve().parent

Use = Literal["read", "change", "remove", "device"]

MOST_GRANTS = 4096

SYSTEM = (
    "/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin",
    "/etc/alternatives", "/etc/ca-certificates", "/etc/crypto-policies", "/etc/fonts",
    "/etc/gai.conf", "/etc/host.conf", "/etc/hosts", "/etc/ld.so.cache",
    "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/locale.alias", "/etc/localtime",
    "/etc/magic", "/etc/mime.types", "/etc/nsswitch.conf", "/etc/os-release",
    "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted", "/etc/protocols",
    "/etc/resolv.conf", "/etc/services", "/etc/ssl", "/etc/terminfo", "/etc/timezone",
)  # fmt: skip
"""What programs need to start, name hosts and check certificates. No names of people
(`/etc/passwd`), no settings of services."""

STATE = (
    "/proc/cpuinfo", "/proc/filesystems", "/proc/loadavg", "/proc/meminfo",
    "/proc/stat", "/proc/uptime", "/proc/version",
    "/proc/sys/kernel/ngroups_max", "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/pid_max", "/proc/sys/kernel/random/uuid",
    "/proc/sys/vm/overcommit_memory", "/sys/devices/system/cpu",
)  # fmt: skip
"""What programs ask about the machine; of processes, each sees itself only."""

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")

NEVER = ("/etc/ssl/private", "/etc/pki/tls/private")


def python_folders() -> tuple[Path, ...]:
    """Give where this Python lives, its packages, and the trial of the sandbox."""
    found = {Path(sys.prefix), Path(sys.base_prefix), HERE}
    return tuple(sorted(each for each in found if each.is_dir()))


class Grant(msgspec.Struct, frozen=True):
    """One path that is given, and what for."""

    path: str
    use: Use


class Territory(msgspec.Struct, frozen=True):
    """What holds for every confined program of this process.

    Args:
        kept: what no program may reach: the database and its folder, the settings,
            files with secrets.
        open_inside: folders that may be given although they lie in a kept one: where
            agents work.
        readable: given to all programs besides what the system needs.
    """

    kept: tuple[Path, ...] = ()
    open_inside: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    python: tuple[Path, ...] = msgspec.field(default_factory=python_folders)
    """Likewise, and found by itself."""

    def grants(self, confinement: Confinement) -> list[Grant]:
        """Work out the paths for one program, links followed.

        Raises:
            SandboxError: a path does not exist, or would give away what is kept.
        """
        system = [Path(each) for each in SYSTEM if Path(each).exists()]
        hidden = [*confinement.hidden, *self.kept, *(Path(each) for each in NEVER)]
        real_hidden = {each.resolve() for each in hidden}
        grants: list[Grant] = []
        for path in (*system, *self.python):
            grants += self._beside(path.resolve(), real_hidden)
        for path in (*self.readable, *confinement.readable):
            self._refuse_kept(path)
            grants += self._beside(real(path), real_hidden)
        changed: tuple[tuple[Path, Use], ...] = (
            *((path, "change") for path in confinement.writable),
            *((path, "remove") for path in confinement.removable),
        )
        for path, use in changed:
            self._refuse_kept(path)
            refuse_around(path, real_hidden)
            grants.append(Grant(str(real(path)), use))
        if len(grants) > MOST_GRANTS:
            raise SandboxError(
                f"what is hidden leaves more than {MOST_GRANTS} paths beside it; keep"
                " the database in a folder of its own"
            )
        return list(dict.fromkeys(grants))

    def _refuse_kept(self, path: Path) -> None:
        """Refuse a path that is kept from programs, or that lies inside one."""
        found = real(path)
        if any(found.is_relative_to(each.resolve()) for each in self.open_inside):
            return
        for kept in self.kept:
            if found.is_relative_to(kept.resolve()):
                raise SandboxError(
                    f"{path} lies in {kept}, which no program may reach; give it"
                    " another folder"
                )

    def _beside(self, path: Path, hidden: set[Path]) -> Iterator[Grant]:
        if not any(each.is_relative_to(path) for each in hidden):
            yield Grant(str(path), "read")
        elif path not in hidden and path.is_dir():
            for child in listed(path):
                if not child.is_symlink():
                    yield from self._beside(child, hidden)


def listed(folder: Path) -> list[Path]:
    """List a folder; one that cannot be read has nothing to give.

    Raises:
        SandboxError: it holds too much to be given piece by piece.
    """
    try:
        found = sorted(folder.iterdir())
    except OSError:
        return []
    if len(found) > MOST_GRANTS:
        raise SandboxError(
            f"{folder} holds something hidden and more than {MOST_GRANTS} other paths;"
            " keep the hidden in a folder of its own"
        )
    return found


def real(path: Path) -> Path:
    """Follow a path's links.

    Raises:
        SandboxError: there is nothing.
    """
    if not path.is_absolute():
        raise SandboxError(f"the path {path} must be absolute")
    try:
        return path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise SandboxError(f"the path {path} cannot be given: {error}") from error


def refuse_around(path: Path, hidden: Iterable[Path]) -> None:
    """Refuse a writable folder with something hidden in it.

    Why not what lies beside: who may make new files in a folder may move others.

    Raises:
        SandboxError: there is something.
    """
    found = path.resolve()
    for each in hidden:
        if each.is_relative_to(found):
            raise SandboxError(
                f"{path} cannot be written to by a program: it holds {each}, which no"
                " program may reach; put one of the two elsewhere"
            )


SQLITE = ("", "-wal", "-shm", "-journal")
BESIDE = (*SQLITE, ".receipts.key", ".settings.json", ".nodes", ".socket", ".history")
"""What SQLite adds to the database's name, and what else stands beside it: the key of
receipts, the settings in use (of nodes in a folder), the socket of terminals, what was
typed there."""


def territory(config: AppConfig, files: Iterable[Path]) -> Territory:
    """Keep the database with its folder, and the files of settings and secrets.

    Raises:
        SandboxError: the folder that agents work in holds what must be kept.
    """
    database = Path(config.store.path).absolute()
    names = [database.with_name(database.name + end) for end in BESIDE]
    # A folder that is everybody's cannot be kept from programs; its files can.
    folder = [] if is_common(database.parent) else [database.parent]
    kept = (*folder, *names, *(path.absolute() for path in files))
    refuse_around(workspace_of(config), [each.resolve() for each in kept])
    return Territory(
        kept=kept,
        open_inside=(workspace_of(config),),
        readable=tuple(path.absolute() for path in config.sandbox.readable),
    )


def is_common(folder: Path) -> bool:
    """Whether a folder is too high up to belong to one program."""
    return len(folder.resolve().parts) <= 2


def workspace_of(config: AppConfig) -> Path:
    """Give the folder in which each agent has one of its own."""
    return Path(config.workspace.path).absolute()
