"""Proves that what is new waits behind what is taken up of its chat, and not longer."""

from __future__ import annotations

from collections.abc import Collection

import msgspec
import pytest
import trio
import trio.testing

from actors.inbound.recovery import RECOVER_AFTER, ROUTED_AT_ONCE, SWEEP_EVERY
from actors.messages.inbound import Address, DelegationChain, Inbound
from actors.protocol import (
    CheckHeard,
    NotHeard,
    Route,
    RouteArrived,
    RouteUnanswered,
    StopDelegated,
)
from runtime.actor.messages import Keyed
from runtime.errors import StoreUnavailableError
from runtime.store.rows import Commit, MessageKey, Settle, StoredMessage
from tests.actors.inbound.test_router import Crossing, open_crossing, stored
from tests.fakes.actors.neighbours import of_kind, words
from tests.fakes.company.company import EPOCH
from tests.fakes.store.in_memory import MemoryStore

Clock = trio.testing.MockClock


class Counting(MemoryStore):
    """Counts how often it is looked at for messages; may be unreadable."""

    looks = 0
    is_readable = True

    async def unsettled(
        self, after: int = 0, limit: int = 1000
    ) -> tuple[StoredMessage, ...]:
        self._look()
        return await super().unsettled(after, limit)

    async def unsettled_keys(
        self, after: int = 0, limit: int = 1000
    ) -> tuple[MessageKey, ...]:
        self._look()
        return await super().unsettled_keys(after, limit)

    def _look(self) -> None:
        self.looks += 1
        if not self.is_readable:
            raise StoreUnavailableError("unreadable, to order")


async def come(crossing: Crossing, store: MemoryStore, *inbounds: Inbound) -> None:
    await stored(store, *inbounds)
    for inbound in inbounds:
        crossing.router.tell(Route(inbound))


def in_rooms(count: int) -> list[Inbound]:
    return [
        words(number=n, address=Address("fake", f"room {n}")) for n in range(1, count)
    ]


async def test_what_is_handed_on_meanwhile_changes_no_order(
    autojump_clock: Clock,
) -> None:
    store, left = MemoryStore(), in_rooms(250)
    room = left[-1].address
    await stored(store, *left)
    async with open_crossing(autojump_clock, store) as crossing:
        await crossing.heard()
        crossing.router.tell(RouteUnanswered())
        await crossing.heard()
        await come(crossing, store, words("one", 1001, address=room))
        await trio.sleep(RECOVER_AFTER / 2)  # by now the room's row is handed out
        await come(crossing, store, words("two", 1002, address=room))
        await trio.sleep(3 * RECOVER_AFTER)
        heard = (await crossing.heard())["anna"]
    mine = [each.text for each in heard if each.address == room]
    assert mine[-2:] == ["one", "two"]
    assert mine.index("one") < mine.index("two")


async def test_what_is_stopped_is_stopped_behind_what_waits(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    async with open_crossing(autojump_clock, store) as crossing:
        await crossing.heard()
        asked = words()
        await come(crossing, store, asked)
        await crossing.heard()
        crossing.router.tell(RouteUnanswered())
        await crossing.heard()
        chain = DelegationChain(agents=("anna", "ben"))
        handed_on = msgspec.structs.replace(
            words(number=2), agent="ben", chain=chain, correlation_id="m1"
        )
        await come(crossing, store, handed_on)
        crossing.router.tell(StopDelegated(asked, "anna"))
        await trio.sleep(2 * RECOVER_AFTER)
        await trio.testing.wait_all_tasks_blocked()
        told = of_kind(crossing.sessions["ben"], Keyed)
    assert isinstance(told[-1].message, StopDelegated)


async def test_who_writes_then_does_not_wait_for_the_chats_of_others(
    autojump_clock: Clock,
) -> None:
    store, left = MemoryStore(), in_rooms(20 * ROUTED_AT_ONCE)
    async with open_crossing(autojump_clock, store) as crossing:
        await crossing.heard()
        await stored(store, *left)
        crossing.router.tell(RouteUnanswered())
        await crossing.heard()
        stop = words("/stop", 9999, address=left[-1].address)
        await come(crossing, store, stop)
        await trio.sleep(RECOVER_AFTER)
        assert stop in (await crossing.heard())["anna"]


@pytest.mark.parametrize("minutes", [1, 5])
async def test_while_nothing_can_be_read_it_is_looked_once_a_second(
    minutes: int, autojump_clock: Clock
) -> None:
    store = Counting()
    async with open_crossing(autojump_clock, store) as crossing:
        await crossing.heard()
        store.is_readable = False
        await trio.sleep(minutes * SWEEP_EVERY + 0.5)
        before = store.looks
        await trio.sleep(SWEEP_EVERY)
        assert store.looks - before <= SWEEP_EVERY / RECOVER_AFTER + 1
        store.is_readable = True


class Reading(MemoryStore):
    """Notes of which messages the bodies were read."""

    def __init__(self) -> None:
        super().__init__()
        self.read_bodies: list[str] = []

    async def unsettled(
        self, after: int = 0, limit: int = 1000
    ) -> tuple[StoredMessage, ...]:
        return self._note(await super().unsettled(after, limit))

    async def messages(
        self, keys: Collection[tuple[str, str]]
    ) -> tuple[StoredMessage, ...]:
        return self._note(await super().messages(keys))

    def _note(self, rows: tuple[StoredMessage, ...]) -> tuple[StoredMessage, ...]:
        self.read_bodies += [row.id for row in rows]
        return rows


async def test_a_look_reads_only_what_no_session_was_handed(
    autojump_clock: Clock,
) -> None:
    store = Reading()
    async with open_crossing(autojump_clock, store) as crossing:
        await crossing.heard()
        await come(crossing, store, words(number=1), words(number=2))
        await stored(store, words(number=3), words(number=4))
        await store.commit(Commit(at=EPOCH, settles=(Settle("m2", "replied"),)))
        await trio.sleep(SWEEP_EVERY + 1)
        assert await numbers_heard(crossing) == ["m1", "m2", "m3", "m4"]
        await trio.sleep(10 * SWEEP_EVERY)
        assert await numbers_heard(crossing) == ["m1", "m2", "m3", "m4"]
        told = of_kind(crossing.sessions["anna"], Keyed)
    assert store.read_bodies == ["m3", "m4"]
    checked = {x.message.message_id for x in told if isinstance(x.message, CheckHeard)}
    assert checked == {"m1", "m3", "m4"}


async def numbers_heard(crossing: Crossing) -> list[str]:
    return [inbound.id for inbound in (await crossing.heard())["anna"]]


async def test_what_sessions_do_not_know_is_handed_to_them_again_at_one_more_look(
    autojump_clock: Clock,
) -> None:
    store = Reading()
    async with open_crossing(autojump_clock, store) as crossing:
        await crossing.heard()
        await come(crossing, store, *(words(number=n) for n in range(1, 6)))
        await trio.sleep(SWEEP_EVERY)
        for number in (2, 4, 2):
            crossing.router.tell(NotHeard(f"m{number}"))
        await trio.sleep(RECOVER_AFTER + 1)
        heard = await numbers_heard(crossing)
        drains = len(crossing.connector.received)
        await trio.sleep(10 * RECOVER_AFTER)
        assert len(crossing.connector.received) == drains
    assert heard == ["m1", "m2", "m3", "m4", "m5", "m2", "m4"]
    assert store.read_bodies == ["m2", "m4"]


async def test_a_look_that_another_one_made_needless_is_not_the_last_soon(
    autojump_clock: Clock,
) -> None:
    store = Counting()
    async with open_crossing(autojump_clock, store) as crossing:
        await crossing.heard()
        store.is_readable = False
        crossing.router.tell(RouteArrived())
        crossing.router.tell(RouteUnanswered())
        await trio.sleep(3.5 * RECOVER_AFTER)
        store.is_readable = True
        await trio.sleep(3.5 * RECOVER_AFTER)
        store.is_readable = False
        await stored(store, words())
        crossing.router.tell(RouteArrived())
        await trio.testing.wait_all_tasks_blocked()
        store.is_readable = True
        await trio.sleep(3 * RECOVER_AFTER)
        assert await numbers_heard(crossing) == ["m1"]


async def test_what_a_session_had_that_is_gone_is_routed_again(
    autojump_clock: Clock,
) -> None:
    store = Reading()
    async with open_crossing(autojump_clock, store) as crossing:
        await crossing.heard()
        await come(crossing, store, words())
        await crossing.heard()
        await crossing.sessions["anna"].actor_ref.stop()
        await trio.sleep(SWEEP_EVERY + 1)
        assert crossing.router.is_alive()
        assert store.read_bodies == ["m1"]
