"""How bubblewrap is asked for a world of its own around the launcher.

In it there are the paths that were given and no others, no other processes, and
no network unless it is asked for. The launcher inside adds Landlock and the filter.

Two traps: `--clearenv` hides nothing, as the first process of the namespace is then
bubblewrap with its own environment, so it is started with an empty one and the
launcher is that first process. And `--die-with-parent` means the parent's *thread*,
which ends while others go on, so the launcher listens to a line instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from connectors.sandbox.plan import Grant

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
        program: bubblewrap.
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
