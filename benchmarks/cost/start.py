"""Counts what `callboard serve` does until it is ready, in a process of its own.

Run by `ledger.py`. What a start loads stays as long as the server does: its modules are
memory, its calls are time. The few modules that the counter itself needs are loaded
before it counts calls, and are counted as modules all the same.
"""

from __future__ import annotations

# A thread loads it, sometimes only after the end: loaded here, it always counts.
import encodings.idna  # noqa: F401  # pyright: ignore[reportUnusedImport]
import os
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import msgspec

from benchmarks.cost.counting import Counts, Ledger, first_come, place
from benchmarks.stage.serving import SCRIPT, SETTINGS

if TYPE_CHECKING:
    from types import CodeType, FrameType

STAGE = "until it is ready"
READY = "log_start"
"""The function that is called when it is; found in `SERVE`."""

SERVE = "connectors/commands/serve.py"
OURS = frozenset({"actors", "connectors", "runtime"})
MEASURING = "benchmarks"


class StartLedger(Ledger):
    """Counts, and ends the process with what it counted when the server is ready.

    Args:
        folder: where the server runs; it is removed.
        output: the descriptor to which the counts are written.
    """

    def __init__(self, folder: Path, output: int) -> None:
        super().__init__()
        self._folder = folder
        self._output = output

    def _count(self, code: CodeType, caller: FrameType | None) -> None:
        if code.co_name == READY and place(code) == f"{SERVE}:{READY}":
            self._end()
        super()._count(code, caller)

    def _end(self) -> NoReturn:
        self._unwatch()
        self._sum_up()
        floors = Counter(name.partition(".")[0] for name in sys.modules)
        ours = sum(floors[floor] for floor in OURS)
        # Not those of libraries, deliveries and tasks: threads have a part in them.
        counts = Counts(
            calls=self.stages[STAGE].calls,
            modules=ours,
            library_modules=floors.total() - ours - floors[MEASURING],
        )
        os.write(self._output, msgspec.json.encode({STAGE: counts}))
        shutil.rmtree(self._folder)
        os._exit(0)


def main() -> None:
    """Start the server in an empty folder."""
    folder = Path(tempfile.mkdtemp(prefix="callboard-start-"))
    (folder / "callboard.toml").write_text(SETTINGS, encoding="utf-8")
    (folder / "script.toml").write_text(SCRIPT, encoding="utf-8")
    os.chdir(folder)
    ledger = StartLedger(folder, os.dup(1))
    os.dup2(2, 1)  # what the server says on its output is no count
    with first_come(), ledger.counting(STAGE):
        from connectors import cli  # noqa: PLC0415  loading it is what is counted

        sys.exit(cli.run(["serve", "--config", "callboard.toml"]))


if __name__ == "__main__":
    main()
