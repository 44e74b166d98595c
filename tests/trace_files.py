"""Runs `callboard` and notes which of the project's functions run, in order.

`python tests/trace_files.py NOTES ARGUMENT…` writes one line `path function` to
NOTES for each call that goes from one file of the project to another.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from connectors.cli import main

if TYPE_CHECKING:
    from types import CodeType, FrameType

ROOT = Path(__file__).parent.parent
FLOORS = ("actors", "connectors")


class Notes:
    """The files visited so far; a stay in one file is noted once."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._file = ""
        self._names: dict[CodeType, str] = {}

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        """Take one event of `sys.setprofile` in."""
        code = frame.f_code
        # Importing a module late is not a visit.
        if event != "call" or code.co_name == "<module>":
            return
        name = self._names.get(code)
        if name is None:
            name = self._names[code] = project_name(code.co_filename)
        if name and name != self._file:
            self._file = name
            self.lines.append(f"{name} {code.co_name}")


def project_name(file: str) -> str:
    """Give the path inside the project; empty for a file of somebody else."""
    path = Path(file)
    if not path.is_relative_to(ROOT):
        return ""
    name = path.relative_to(ROOT)
    return name.as_posix() if name.parts[0] in FLOORS else ""


def run(notes_file: str, arguments: list[str]) -> None:
    """Run the program to its end and write the notes."""
    notes = Notes()
    sys.argv = ["callboard", *arguments]
    threading.setprofile(notes)
    sys.setprofile(notes)
    try:
        main()
    finally:
        sys.setprofile(None)
        Path(notes_file).write_text("\n".join(notes.lines))


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2:])
