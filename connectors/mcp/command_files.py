"""What a server's program may read because its command names it.

An operator who writes `node dist/index.js` means that Node may read that file. Folders
in arguments are not given: they hold more than anybody has looked at.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from connectors.sandbox.orders import PATH

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

OF_INSTALLATIONS = ("pyvenv.cfg", "lib/python3*", "lib/node_modules")
"""One of these lies in a folder with a language of its own, beside its `bin`."""


def command_files(
    command: str, arguments: Sequence[str], folder: Path
) -> tuple[Path, ...]:
    """Find the program, what it was installed with, and files among its arguments.

    Args:
        command: the program.
        arguments: what follows it.
        folder: where it runs.
    """
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
