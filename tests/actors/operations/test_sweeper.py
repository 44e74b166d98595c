"""Proves that bytes of sent files are removed when nothing needs them any more."""

from __future__ import annotations

from collections.abc import Collection

import msgspec
import trio
from trio.testing import MockClock as Clock

from actors.journal import commits
from actors.operations.sweeper import SWEEP_EVERY, Sweeper
from runtime.store.rows import Commit, Receipt
from runtime.testing import open_test_system
from tests.fakes.actors.neighbours import saying
from tests.fakes.company.company import EPOCH, TrioClock
from tests.fakes.store.in_memory import MemoryStore
from tests.fakes.tools.sent_files import described

KEEP = 600.0


class Broom:
    """Notes what it is asked to leave."""

    def __init__(self) -> None:
        self.asked: list[tuple[set[str], float]] = []
        self.error: OSError | None = None

    async def sweep(self, needed: Collection[str], before: float) -> int:
        await trio.lowlevel.checkpoint()
        self.asked.append((set(needed), before))
        if self.error is not None:
            raise self.error
        return 1


async def test_what_is_still_to_go_out_is_left(autojump_clock: Clock) -> None:
    assert autojump_clock.autojump_threshold == 0
    store, broom = MemoryStore(), Broom()
    file = described(b"bytes", "a.txt")
    rows = (
        commits.as_enqueue(msgspec.structs.replace(saying(1), file=file), 0),
        commits.as_enqueue(saying(2), 0),
    )
    await store.commit(Commit(at=EPOCH, deliveries=rows))
    async with open_test_system() as system:
        system.spawn(Sweeper(store, broom, TrioClock(), KEEP))
        await trio.sleep(1)
        sent = Receipt("m1:0", "sent", "r", 1)
        await store.commit(Commit(at=EPOCH, receipts=(sent,)))
        await trio.sleep(SWEEP_EVERY)
    assert broom.asked == [
        ({file.digest}, EPOCH - KEEP),
        (set(), EPOCH + SWEEP_EVERY - KEEP),
    ]


async def test_what_only_another_release_can_read_is_left(
    autojump_clock: Clock,
) -> None:
    assert autojump_clock.autojump_threshold == 0
    store, broom = MemoryStore(), Broom()
    file = described(b"bytes", "a.txt")
    row = commits.as_enqueue(msgspec.structs.replace(saying(1), file=file), 0)
    body = row.body.replace(b'"text"', b'"words"')
    later = msgspec.structs.replace(row, body=body)
    await store.commit(Commit(at=EPOCH, deliveries=(later,)))
    async with open_test_system() as system:
        system.spawn(Sweeper(store, broom, TrioClock(), KEEP))
        await trio.sleep(1)
    assert broom.asked == [({file.digest}, EPOCH - KEEP)]


async def test_a_disk_that_fails_is_tried_again_an_hour_later(
    autojump_clock: Clock,
) -> None:
    assert autojump_clock.autojump_threshold == 0
    broom = Broom()
    broom.error = OSError(5, "Input/output error")
    async with open_test_system() as system:
        system.spawn(Sweeper(MemoryStore(), broom, TrioClock(), KEEP))
        await trio.sleep(SWEEP_EVERY * 2 + 1)
    assert len(broom.asked) == 3
