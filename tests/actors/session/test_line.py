"""Proves that a session answers commands while the disk does not say what it owes."""

from __future__ import annotations

import trio
import trio.testing

from actors.journal.commits import as_accept
from actors.messages.state import AttemptHistory
from actors.protocol import Hear, StartTurn
from runtime.errors import StoreUnavailableError
from runtime.store.rows import Commit, StoredEvent
from tests.fakes.actors.neighbours import of_kind, words
from tests.fakes.actors.room import Room, open_room
from tests.fakes.store.in_memory import MemoryStore

Clock = trio.testing.MockClock


class AwayStore(MemoryStore):
    """A disk that cannot be read while it is away."""

    is_away = False

    async def read(
        self, stream: str, after: int = 0, limit: int = 1000
    ) -> tuple[StoredEvent, ...]:
        if self.is_away:
            raise StoreUnavailableError("the disk is away")
        return await super().read(stream, after, limit)


async def owe(room: Room, *numbers: int) -> None:
    """Have the session hear what an earlier process took in."""
    for number in numbers:
        inbound = words(f"owed {number}", number)
        await room.store.commit(Commit(at=1.0, accepts=(as_accept(inbound, 1.0),)))
        room.ref.tell(Hear(inbound, AttemptHistory(was_read=True)))
    await room.rest()


def begun(room: Room) -> list[str]:
    return [each.inbound.text for each in of_kind(room.agent, StartTurn)]


async def test_nobody_waits_for_a_disk_that_is_away_but_what_it_must_say(
    autojump_clock: Clock,
) -> None:
    store = AwayStore()
    async with open_room(autojump_clock, store) as room:
        store.is_away = True
        await owe(room, 1, 2)
        await room.hear(words("new", 3), words("/who", 4))
        assert len(room.said()) == 1
        await trio.sleep(5.0)
        assert begun(room) == []
        store.is_away = False
        await trio.sleep(1.0)
        for _ in range(3):
            await room.answer()
        assert begun(room) == ["owed 1", "owed 2", "new"]


async def test_what_waits_for_the_disk_can_be_stopped(autojump_clock: Clock) -> None:
    store = AwayStore()
    async with open_room(autojump_clock, store) as room:
        store.is_away = True
        await owe(room, 1, 2)
        await room.hear(words("his", 3, sender_id="yan"), words("/stop", 4))
        assert room.said() == ["(stopped)", "(stopped)", "Stopped."]
        store.is_away = False
        await trio.sleep(2.0)
        await room.answer()
        assert begun(room) == ["his"]
        assert (await store.counts()).inbox == {"cancelled": 2, "replied": 2}
