"""Runs `callboard` and notes which of the project's functions run, in order.

`python tests/support/trace_files.py NOTES ARGUMENT…` writes one line `why path
function` to NOTES for each call from one file of the project to another. Why: `actor`,
an actor is handed a message; `port`, the domain uses an edge; else `call`.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import CodeType, FrameType

from connectors.cli import main

ROOT = Path(__file__).parents[2]
FLOORS = ("actors", "connectors")
HANDLER = "on_receive"
PORT_METHODS = {"answer", "deliver", "listen", "run", "show_draft"}
"""What the domain asks of models, transports and tools."""


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
        if not name:
            return
        why = self._why(frame, name)
        if name != self._file or why != "call":
            self._file = name
            self.lines.append(f"{why} {name} {code.co_name}")

    def _why(self, frame: FrameType, name: str) -> str:
        """Tell a message's delivery and the use of a port from other calls."""
        function = frame.f_code.co_name
        if function == HANDLER and name.startswith("actors/"):
            return "actor"
        if function in PORT_METHODS and name.startswith("connectors/"):
            caller = frame.f_back
            while caller is not None and not project_name(caller.f_code.co_filename):
                caller = caller.f_back
            from_actors = caller is not None and "/actors/" in caller.f_code.co_filename
            return "port" if from_actors else "call"
        return "call"


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
