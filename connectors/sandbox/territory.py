"""Which paths a confined program is given, worked out from what is asked for.

Neither Landlock nor a mount can take a file out of a folder that is given. So a folder
with something hidden in it is given as all that lies beside the hidden. `territory`
hides what no program may reach, by the settings: the database and the secrets.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from connectors.sandbox.plan import Confinement, SandboxError

if TYPE_CHECKING:
    from connectors.config.app import AppConfig

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


@dataclass(frozen=True)
class Grant:
    """One path that is given, and what for."""

    path: str
    use: Use


@dataclass(frozen=True)
class Territory:
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
    python: tuple[Path, ...] = field(default_factory=python_folders)
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
        """Refuse to give what is kept, or lies in it.

        Raises:
            SandboxError: it is.
        """
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
BESIDE = (*SQLITE, ".receipts.key", ".settings.json", ".socket", ".history")
"""What SQLite adds to the database's name, and what else stands beside it: the key of
receipts, the settings in use, the socket of terminals, what was typed there."""


def territory(config: AppConfig, files: Iterable[Path]) -> Territory:
    """Keep the database with its folder, and the files of settings and secrets.

    Args:
        config: says where the database and the workspaces are.
        files: of settings and secrets.

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
