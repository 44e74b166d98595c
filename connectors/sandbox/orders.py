"""Writes down for the launcher what a `Confinement` means on this machine.

The variables that a confined program is given are a list of what is wanted, never of
what is not: a secret has any name. What its command names it may read: an operator who
writes `node dist/index.js` means that Node may read that file. Folders in arguments are
not given: they hold more than anybody has looked at.

bubblewrap makes a world of its own around the launcher. In it there are the paths that
were given and no others, no other processes, and no network unless it is asked for. The
launcher inside adds Landlock and the filter. Two traps: `--clearenv` hides nothing, as
the first process of the namespace is then bubblewrap with its own environment, so it is
started with an empty one and the launcher is that first process. And
`--die-with-parent` means the parent's *thread*, which ends while others go on, so the
launcher listens to a line instead.
"""

from __future__ import annotations

import marshal
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from connectors.sandbox.linux import landlock
from connectors.sandbox.linux.seccomp import ARCHITECTURES, program
from connectors.sandbox.plan import (
    DEVICES,
    HERE,
    STATE,
    Confinement,
    Grant,
    SandboxError,
    SandboxLimits,
    Territory,
    Use,
)

if TYPE_CHECKING:
    from connectors.sandbox.child.confine import Plan


TEMPORARY = "/tmp"  # noqa: S108  the private folder, as it is called inside


def arguments(
    program: str,
    grants: Sequence[Grant],
    needed: Iterable[Path],
    temporary: Path,
    *,
    has_network: bool,
) -> list[str]:
    """Write bubblewrap's command line, up to the command itself.

    Args:
        grants: the paths that exist inside.
        needed: what the launcher itself must read.
        temporary: folder that is `/tmp` inside.
        has_network: whether the machine's network is there.
    """
    line = [
        program, "--unshare-all", "--as-pid-1", "--cap-drop", "ALL", "--new-session",
        "--hostname", "sandbox", "--proc", "/proc", "--dev", "/dev",
    ]  # fmt: skip
    if has_network:
        line.append("--share-net")
    # First: what is given may lie below it.
    line += ["--bind", str(temporary), TEMPORARY]
    for link in links():
        line += ["--symlink", str(link.readlink()), str(link)]
    seen = {grant.path for grant in grants}
    extra = [str(path) for path in needed if str(path) not in seen]
    read = [grant.path for grant in grants if grant.use == "read"]
    for path in sorted([*read, *extra], key=depth):
        line += ["--ro-bind", path, path]
    for link in resolver():
        line += ["--ro-bind", str(link.resolve()), str(link)]
    for grant in grants:
        if grant.use in {"change", "remove"}:
            line += ["--bind", grant.path, grant.path]
    return [*line, "--remount-ro", "/", "--chdir", "/", "--"]


def links() -> list[Path]:
    """Give the folders of the system that are links, as `/bin` often is."""
    names = ("/bin", "/lib", "/lib32", "/lib64", "/libx32", "/sbin")
    return [path for path in map(Path, names) if path.is_symlink()]


def resolver() -> list[Path]:
    """Give single files of the system that are links, often to elsewhere."""
    names = ("/etc/resolv.conf", "/etc/localtime", "/etc/os-release")
    return [p for p in map(Path, names) if p.is_symlink() and p.exists()]


def depth(path: str) -> int:
    """Say how far down a path lies: the inner is mounted over the outer."""
    return path.count("/")


PASSED_ON = ("LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TERM", "TZ")
"""What is taken from Callboard's own."""

PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"

NEVER = frozenset({"CLAUDECODE"})
"""Not even if the caller says so: it would tell a model's program that it runs inside
another one of its kind."""


def scrubbed(
    own: Mapping[str, str],
    given: Mapping[str, str],
    home: str,
    temporary: str,
) -> dict[str, str]:
    """Choose a program's variables.

    Args:
        given: by the caller; they win.
        home: the folder that it works in.
        temporary: its own folder for temporary files.
    """
    chosen = {name: own[name] for name in PASSED_ON if name in own}
    chosen |= {
        "PATH": PATH,
        "HOME": home,
        "TMPDIR": temporary,
        # The C library then names hosts over TCP, as UDP is closed.
        "RES_OPTIONS": "use-vc",
    }
    chosen |= given
    return {name: value for name, value in chosen.items() if name not in NEVER}


ROOT = HERE.parent.parent
START = (
    "import sys; sys.path.append(sys.argv[1]);"
    " from connectors.sandbox.child.launcher import main; main(int(sys.argv[2]))"
)
"""Why appended: nothing beside our packages may stand in for a standard module."""

RIGHTS = {
    "read": landlock.READ,
    "change": landlock.CHANGE,
    "remove": landlock.REMOVE,
    "device": landlock.USE_DEVICE,
}
CHANGES: frozenset[Use] = frozenset({"change", "remove"})
GRACE = 2
"""Seconds between the processor time that a program is told of and its end."""


class Means(msgspec.Struct, frozen=True):
    """What is used to confine programs.

    Args:
        abi: Landlock's; 0: not used.
        bubblewrap: the program; empty: not used.
        is_filtered: whether system calls are filtered.
        is_brokered: whether changes of modes and times are checked; with bubblewrap,
            what may not be changed is not there or mounted read-only.
    """

    abi: int = 0
    bubblewrap: str = ""
    is_filtered: bool = False
    is_brokered: bool = False


class Job(msgspec.Struct, frozen=True):
    """What a caller wants run, and the folder for its temporary files."""

    command: Sequence[str]
    confinement: Confinement
    cwd: Path
    env: Mapping[str, str]
    temporary: Path


class Orders(msgspec.Struct, frozen=True):
    """How the launcher is started, and what it is told."""

    line: list[str]
    """Its command line; the descriptor's number comes last."""

    plan: bytes


def orders(means: Means, territory: Territory, job: Job) -> Orders:
    """Work out how a program is confined and started.

    Raises:
        SandboxError: it cannot be confined as asked for.
    """
    wanted = job.confinement
    grants = territory.grants(wanted)
    ports: list[int] | None = None if wanted.network == "tcp" else []
    if isinstance(wanted.network, frozenset):
        refuse_ports(means)
        ports = sorted(wanted.network)
    inside = Path(TEMPORARY) if means.bubblewrap else job.temporary.resolve()
    cwd = str(job.cwd.resolve())
    env = scrubbed(os.environ, job.env, cwd, str(inside))
    changed = [grant.path for grant in grants if grant.use in CHANGES]
    plan: Plan = {
        "abi": means.abi,
        "paths": [*rules(grants, inside, is_alone=bool(means.bubblewrap))],
        "ports": ports,
        "filter": filter_for(means, has_network=wanted.network != "none"),
        "is_brokered": means.is_brokered,
        "roots": [*changed, str(inside)],
        "limits": limits(wanted.limits),
        "processes": wanted.limits.processes,
        "memory": wanted.limits.memory,
        "command": [find(job.command[0], env["PATH"], cwd), *job.command[1:]],
        "env": env,
        "cwd": cwd,
    }
    return Orders(start_line(means, grants, job), packed(plan))


def packed(plan: Plan) -> bytes:
    """Write a plan as the launcher reads it."""
    body = marshal.dumps({**plan})
    return len(body).to_bytes(8, "big") + body


def start_line(means: Means, grants: Sequence[Grant], job: Job) -> list[str]:
    """Write the launcher's command line."""
    python = os.path.realpath(sys.executable)
    line = [python, "-I", "-S", "-X", "utf8", "-c", START, str(ROOT)]
    if not means.bubblewrap:
        return line
    needed = (HERE.parent / "__init__.py", HERE, Path(python))
    around = arguments(
        means.bubblewrap,
        grants,
        [path for path in needed if not is_given(path, grants)],
        job.temporary,
        has_network=job.confinement.network != "none",
    )
    return [*around, *line]


def is_given(path: Path, grants: Sequence[Grant]) -> bool:
    """Whether a path lies in one that is given."""
    return any(path.is_relative_to(grant.path) for grant in grants)


def refuse_ports(means: Means) -> None:
    """Refuse to limit ports where that cannot be done; with no sandbox, nothing is.

    Raises:
        SandboxError: it cannot.
    """
    if means.is_filtered and means.abi < 4:
        raise SandboxError(
            f"this kernel cannot limit a program to some ports (Landlock ABI"
            f" {means.abi}; since 4, Linux 6.7): allow all of TCP, or no network"
        )


def rules(
    grants: Sequence[Grant], temporary: Path, *, is_alone: bool
) -> list[tuple[str, int]]:
    """Say in Landlock's words what may be done where.

    Args:
        grants: the paths that are given.
        is_alone: whether it sees no processes but its own.
    """
    found = [(grant.path, RIGHTS[grant.use]) for grant in grants]
    found.append((str(temporary), landlock.CHANGE))
    found += [(path, landlock.USE_DEVICE) for path in DEVICES]
    if is_alone:
        found += [("/proc", landlock.READ), ("/dev/shm", landlock.CHANGE)]  # noqa: S108
    else:
        # The child's own folder: its number stays the same when it becomes the
        # program.
        found += [(path, landlock.READ) for path in ("/proc/self", *STATE[:-1])]
        found.append((STATE[-1], landlock.READ))
    return [(path, rights) for path, rights in found if is_alone or Path(path).exists()]


def filter_for(means: Means, *, has_network: bool) -> bytes:
    """Write the filter of system calls; nothing if they are not filtered."""
    machine = os.uname().machine
    if not means.is_filtered or machine not in ARCHITECTURES:
        return b""
    return program(
        machine,
        tcp=has_network,
        may_truncate=means.abi >= 3,
        is_brokered=means.is_brokered,
    )


def limits(wanted: SandboxLimits) -> dict[str, int]:
    """Name the limits as `resource` does."""
    cpu = max(1, round(wanted.cpu))
    named = {
        "RLIMIT_CORE": 0,
        "RLIMIT_AS": wanted.addresses or wanted.memory,
        "RLIMIT_CPU": cpu,
        "RLIMIT_FSIZE": wanted.file_size,
        "RLIMIT_NOFILE": wanted.open_files,
    }
    if os.getuid():
        # The kernel counts what the user has already; root it does not hold to it.
        named["RLIMIT_NPROC"] = running(os.getuid()) + wanted.processes
    return {name: value for name, value in named.items() if value or name.endswith("E")}


def running(user: int) -> int:
    """Count the threads of a user."""
    count = 0
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                if place.stat().st_uid == user:
                    count += sum(1 for _ in (place / "task").iterdir())
            except OSError:
                continue  # it has ended meanwhile
    return count


def find(name: str, path: str, cwd: str) -> str:
    """Find a program as a shell would, by its name or path.

    Raises:
        SandboxError: there is none.
    """
    folders = [cwd] if "/" in name else [each for each in path.split(":") if each]
    for folder in folders:
        found = Path(folder) / name
        if os.access(found, os.X_OK) and found.is_file():
            return str(found)
    raise SandboxError(
        f"there is no program {name!r}; give its path, or put it into {path}"
    )


OF_INSTALLATIONS = ("pyvenv.cfg", "lib/python3*", "lib/node_modules")
"""One of these lies in a folder with a language of its own, beside its `bin`."""


def command_files(
    command: str, arguments: Sequence[str], folder: Path
) -> tuple[Path, ...]:
    """Find the program, what it was installed with, and files among its arguments."""
    found = [path for each in arguments if is_file(path := folder / each)]
    if os.sep in command:
        found += installed(folder / command)
    elif program := shutil.which(command, path=PATH):
        found += installed(Path(program))
    return tuple(dict.fromkeys(found))


def search_path(command: str) -> dict[str, str]:
    """Give the variable by which a program finds those it was installed with."""
    # Why: `npx` of a Node in somebody's own folder is a script that looks for `node`.
    is_path = os.sep in command
    return {"PATH": f"{Path(command).parent}:{PATH}"} if is_path else {}


def installed(program: Path) -> Iterator[Path]:
    """Find what a program needs of the folders around it, also behind its links."""
    if not is_file(program):
        return
    for path in (program, program.resolve()):
        prefix = path.parent.parent
        is_language = path.parent.name == "bin" and any(
            any(prefix.glob(each)) for each in OF_INSTALLATIONS
        )
        yield prefix if is_language and not is_personal(prefix) else path


def is_personal(folder: Path) -> bool:
    """Whether a folder holds what has nothing to do with any one program."""
    home = Path(os.path.expanduser("~"))  # noqa: PTH111  `Path.home` may raise
    return home.is_relative_to(folder) or folder == home / ".local"


def is_file(path: Path) -> bool:
    """Whether a path is a file's, as far as one may look."""
    try:
        return path.is_file()
    except OSError:
        return False
