"""Proves that sums kept by the hour are right, and that reading is paced."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.journal import records
from connectors.admin.usage import READS_FOR, UsageBook, sum_up
from connectors.web.page.views.base import SHARE, PacedReadings
from runtime.sqlite.database import SqliteDatabase
from tests.pictures import OnePast, fill

HOUR = 3_600.0


class SlowClock(OnePast):
    """A clock that goes on by some seconds at each look."""

    def __init__(self, step: float) -> None:
        super().__init__()
        self.step = step
        self.now = 0.0

    def monotonic(self) -> float:
        """Go on."""
        self.now += self.step
        return self.now


async def test_sums_by_the_hour_are_those_of_all_answers(tmp_path: Path) -> None:
    path = tmp_path / "page.db"
    await fill(path)
    with SqliteDatabase(path).inspect() as rows:
        newest = next(iter(rows.records(records.USAGE))).at
        span = (newest // HOUR * HOUR - 20 * HOUR, newest)
        book = UsageBook()
        for by in ("agent", "model"):
            wanted = sum_up(rows, by, span[0], pytest.fail)
            assert wanted[-1].runs > 20
            # The second time there is no time to read more than the last two hours.
            for step in (0.0, READS_FOR / 3):
                found = book.sum_up(rows, by, span, SlowClock(step), pytest.fail)
                assert found.unread == 0
                assert [x.name for x in found.sums] == [x.name for x in wanted]
                assert [x.runs for x in found.sums] == [x.runs for x in wanted]
                for one, other in zip(found.sums, wanted, strict=True):
                    assert one.cost == pytest.approx(other.cost)


async def test_a_long_past_is_added_up_in_several_looks(tmp_path: Path) -> None:
    path = tmp_path / "page.db"
    await fill(path)
    with SqliteDatabase(path).inspect() as rows:
        newest = next(iter(rows.records(records.USAGE))).at
        span = (newest - 20 * HOUR, newest)
        book, slow = UsageBook(), SlowClock(READS_FOR / 4)
        left = [book.sum_up(rows, "day", span, slow, pytest.fail).unread]
        while left[-1]:
            left.append(book.sum_up(rows, "day", span, slow, pytest.fail).unread)
    assert left == sorted(left, reverse=True)
    assert 1 < len(left) < 21


def test_what_takes_long_is_read_rarely_and_what_is_quick_each_time() -> None:
    clock = SlowClock(0.0)
    paced, seen = PacedReadings(), list[float]()

    def read() -> int:
        clock.now += took
        seen.append(clock.now)
        return len(seen)

    took = 0.0
    assert [paced.get("x", read, clock.monotonic) for _ in range(3)] == [1, 2, 3]
    took = 1.0
    assert paced.get("x", read, clock.monotonic) == 4
    clock.now += 0.9 / SHARE
    assert paced.get("x", read, clock.monotonic) == 4
    clock.now += 0.2 / SHARE
    assert paced.get("x", read, clock.monotonic) == 5
