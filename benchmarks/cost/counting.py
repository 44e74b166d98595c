"""Counts what the program does between two moments, exactly and without a clock.

A function counts when it begins: a generator or coroutine that goes on does not count
again. The program's own functions are counted apart from those of libraries, whose
number changes with their release. Comprehensions never count: since Python 3.12 they
are no functions any more.
"""

from __future__ import annotations

import dis
import gc
import random
import sys
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, Literal

import msgspec
import trio

from runtime.actor.cell import Cell
from runtime.sql.write import write_own
from runtime.sqlite.store import transact

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import CodeType, FrameType

ROOT = Path(__file__).parents[2]
OURS = tuple(f"{ROOT / floor}/" for floor in ("runtime", "actors", "connectors"))
MEASURING = f"{ROOT / 'benchmarks'}/"
COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>"})
RECEIVING = frozenset({"on_receive", "_handle_receive"})
RESUME = dis.opmap["RESUME"]
BEGINS = 0
"""Argument of `RESUME` where a function begins; where it goes on, it is another."""

TOOL = 3
"""Number under which `sys.monitoring` knows the counter."""

Whose = Literal["ours", "library", "nobody"]


class Counts(msgspec.Struct):
    """What was done in one stage of one message."""

    calls: int = 0
    """Functions of the program that began."""

    library_calls: int = 0
    """Functions of libraries, written in Python, that began."""

    deliveries: int = 0
    """Messages that actors took out of their mailboxes; what an idle one passes on in
    its sender's turn is a call like others."""

    spawns: int = 0
    """Tasks that were started."""

    commits: int = 0
    """Units that were stored."""

    transactions: int = 0
    """Groups of them."""

    syncs: int = 0
    """Flushes to the disk."""

    waits: int = 0
    """Flushes that the message waited for, one after the other."""

    bytes_written: int = 0
    """To the files of the database."""

    log_lines: int = 0

    copies: int = 0
    """Sequences that held the history while the model was asked."""

    modules: int = 0
    """Modules of the program that are loaded; counted for a start alone."""

    library_modules: int = 0
    """Modules of Python and of libraries."""


class Ledger:
    """Counts by stage, between the beginning and the end of `counting`."""

    def __init__(self) -> None:
        self.stages: dict[str, Counts] = {}
        self.functions: dict[str, Counter[CodeType]] = {}
        """By stage: which functions began, and how often."""

        self._now = Counts()
        self._began: Counter[CodeType] = Counter()
        self._whose: dict[CodeType, Whose] = {}
        self._first: dict[CodeType, bytes] = {}
        self._thread = get_ident()
        self._is_on = False

    @property
    def now(self) -> Counts:
        """Counts of the present stage; thrown away while nothing is counted."""
        return self._now if self._is_on else Counts()

    def enter(self, stage: str) -> None:
        """Count for this stage from now on."""
        self._now = self.stages.setdefault(stage, Counts())
        self._began = self.functions.setdefault(stage, Counter())

    @contextmanager
    def counting(self, stage: str) -> Generator[None]:
        """Count while the block runs, at first for this stage."""
        gc.collect()
        gc.disable()  # what it frees may call functions, at any moment
        self.stages.clear()
        self.functions.clear()
        self.enter(stage)
        self._is_on = True
        self._watch()
        try:
            yield
        finally:
            self._unwatch()
            self._is_on = False
            gc.enable()
            self._sum_up()

    def _watch(self) -> None:
        if sys.version_info >= (3, 12):
            watch = sys.monitoring
            watch.use_tool_id(TOOL, "cost")
            watch.register_callback(TOOL, watch.events.PY_START, self._started)
            watch.set_events(TOOL, watch.events.PY_START)
        else:
            sys.setprofile(self._profile)

    def _unwatch(self) -> None:
        if sys.version_info >= (3, 12):
            sys.monitoring.set_events(TOOL, 0)
            sys.monitoring.free_tool_id(TOOL)
        else:
            sys.setprofile(None)

    def _started(self, code: CodeType, _at: int) -> None:
        if get_ident() == self._thread:
            caller = sys._getframe(1).f_back  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  as fast as can be
            self._count(code, caller)

    def _profile(self, frame: FrameType, event: str, _arg: object) -> None:
        if event != "call":
            return
        code = frame.f_code
        known = self._first.get(code)
        if known is None:
            known = self._first[code] = code.co_code
        at = frame.f_lasti
        if known[at] == RESUME and known[at + 1] == BEGINS:
            self._count(code, frame.f_back)

    def _count(self, code: CodeType, caller: FrameType | None) -> None:
        self._began[code] += 1
        if (
            caller is not None
            and caller.f_code is Cell.step.__code__
            and code.co_name in RECEIVING
        ):
            self._now.deliveries += 1

    def _sum_up(self) -> None:
        for stage, began in self.functions.items():
            counts = self.stages[stage]
            for code, times in began.items():
                owner = whose(code)
                counts.calls += times * (owner == "ours")
                counts.library_calls += times * (owner == "library")
                counts.spawns += times * (code.co_name == "spawn_impl")
                counts.commits += times * (code is write_own.__code__)
                counts.transactions += times * (code is transact.__code__)


def whose(code: CodeType) -> Whose:
    """Tell whose function it is; what only measures is nobody's."""
    if code.co_name in COMPREHENSIONS or code.co_filename.startswith(MEASURING):
        return "nobody"
    return "ours" if code.co_filename.startswith(OURS) else "library"


def place(code: CodeType) -> str:
    """Name a function: its file, from the floor on, and its name."""
    name = code.co_filename.removeprefix(f"{ROOT}/")
    return f"{name}:{code.co_qualname}"


class Unshuffled(random.Random):
    """Dice that leave every order as it is."""

    def random(self) -> float:
        """Say that nothing is turned around."""
        return 1.0


@contextmanager
def first_come() -> Generator[None]:
    """Have trio run its tasks in the order in which they became ready.

    Why not in a seeded order: one task more would change all that come after it.
    """
    dice = trio._core._run._r  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    trio._core._run._r = Unshuffled()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    try:
        yield
    finally:
        trio._core._run._r = dice  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
