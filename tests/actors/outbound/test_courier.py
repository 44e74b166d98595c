"""Proves that a chat is spoken to in order, and again while its platform is busy."""

from __future__ import annotations

import pytest
import trio.testing
from msgspec import structs

from actors.errors import (
    DeliveryBusyError,
    DeliveryError,
    DeliveryRefusedError,
    DeliveryUnknownError,
)
from actors.journal.commits import as_enqueue
from actors.messages.deliveries import Abilities, Delivery, Draft
from actors.outbound.courier import Courier
from actors.outbound.retry import OnUnknown
from actors.protocol import Deliver, Delivered, MessageSettled, ShowDraft
from runtime.store.port import Done
from runtime.store.rows import BY_HAND, Commit, Receipt
from tests.fakes.actors.neighbours import ROOM, make_services, saying, words
from tests.fakes.company.company import BrokenPlatformError, Platform
from tests.fakes.outbound.road import open_road
from tests.fakes.store.in_memory import MemoryStore
from tests.support.puppet import virtual

Clock = trio.testing.MockClock


async def test_what_was_said_has_a_receipt(autojump_clock: Clock) -> None:
    async with open_road(autojump_clock) as road:
        await road.deliver(1)
        assert await road.connector.wait_for(Delivered) == Delivered("m1:0")
        assert await road.outbox() == {"sent": 1}


@pytest.mark.parametrize(("asked", "least"), [(None, 3), (0.0, 0), (40, 80), (60, 120)])
async def test_a_busy_platform_is_asked_again_when_it_says(
    asked: float | None, least: float, autojump_clock: Clock
) -> None:
    async with open_road(autojump_clock) as road:
        error = DeliveryBusyError("x", retry_after=asked)
        road.platform.faults["room"].extend([error] * 2)
        await road.deliver(1, 2)
        await road.connector.wait_count(2, within=1000)
        assert least <= trio.current_time() < least + 1
        assert road.platform.attempts == ["m1:0"] * 3 + ["m2:0"]
        assert await road.outbox() == {"sent": 2}


@pytest.mark.parametrize("error", [DeliveryRefusedError("no"), DeliveryError("odd")])
async def test_what_cannot_be_said_is_dead_and_the_next_is_said(
    error: Exception, autojump_clock: Clock
) -> None:
    async with open_road(autojump_clock) as road:
        road.platform.faults["room"].append(error)
        await road.deliver(1, 2)
        await road.connector.wait_count(2)
        assert await road.outbox() == {"dead": 1, "sent": 1}
        assert road.platform.said() == ["anna: answer 2"]


async def test_a_receipt_waits_for_the_disk_and_nothing_is_said_again(
    autojump_clock: Clock,
) -> None:
    async with open_road(autojump_clock, MemoryStore(fails_at=range(2, 100))) as road:
        await road.deliver(1)
        await trio.sleep(1)
        road.tell(Deliver(saying(2)))  # said now, a crash would have both said again
        await trio.sleep(90)  # longer than an idle courier stays awake
        assert road.done() == []
        road.tell(Deliver(saying(1)))
        await road.connector.wait_for(Delivered, within=60)
        assert road.platform.attempts == ["m1:0"]
        assert await road.outbox() == {"sent": 1}


async def test_a_courier_that_crashes_says_nothing_twice_while_the_disk_is_full(
    autojump_clock: Clock,
) -> None:
    async with open_road(autojump_clock, MemoryStore(fails_at=range(2, 100))) as road:
        await road.deliver(1, 2)
        await trio.sleep(5)
        road.tell("nonsense")  # until it is a dead letter
        await trio.sleep(5)
        for number in (1, 2):
            road.tell(Deliver(saying(number)))  # out of the outbox: still pending
        await trio.sleep(5)
        assert road.done() == []
        await trio.sleep(200)
        assert set(road.done()) == {"m1:0", "m2:0"}
        assert road.platform.attempts == ["m1:0", "m2:0"]
        assert await road.outbox() == {"sent": 2}


async def test_handed_over_twice_it_is_said_once(autojump_clock: Clock) -> None:
    async with open_road(autojump_clock) as road:
        await road.deliver(1)
        road.tell(Deliver(saying(1)))
        await road.connector.wait_count(1)
        road.tell(Deliver(saying(1)))
        await road.connector.wait_count(2)
        assert road.done() == ["m1:0"] * 2
        assert road.platform.attempts == ["m1:0"]


async def test_a_receipt_that_cannot_be_is_not_waited_for(
    autojump_clock: Clock,
) -> None:
    async with open_road(autojump_clock) as road:
        road.tell(Deliver(saying(1)))  # never enqueued
        await road.connector.wait_for(Delivered)


async def test_drafts_answers_and_settlements_keep_their_order(
    autojump_clock: Clock,
) -> None:
    draft = Draft(
        correlation_id="m1", turn_id="t", address=ROOM, agent="anna", text="w"
    )
    async with open_road(autojump_clock) as road:
        road.tell(ShowDraft(draft))
        await road.deliver(1)
        road.tell(MessageSettled(words(number=2), "dropped:x"))
        await road.connector.wait_for(Delivered)
        await trio.sleep(1)
        assert road.platform.shown == [draft, saying(1)]
        assert road.platform.settled == [("m2", "dropped:x")]


PLAIN = Abilities()
ABLE = Abilities(can_look_up=True)


async def test_that_it_is_asked_is_stored_each_time(autojump_clock: Clock) -> None:
    async with open_road(autojump_clock, abilities=PLAIN) as road:
        road.platform.faults["room"].extend([DeliveryUnknownError("gone")] * 2)
        await road.deliver(1)
        await trio.sleep(0.5)
        assert await road.row() == ("sending", 1)
        await trio.sleep(1)
        assert await road.row() == ("sending", 2)
        await road.connector.wait_for(Delivered)
        assert await road.row() == ("sent", 3)


class PatientStore(MemoryStore):
    """Notes which receipts may wait for another commit."""

    def __init__(self) -> None:
        super().__init__()
        self.may_wait: list[bool] = []

    def submit(self, commit: Commit, done: Done) -> None:
        self.may_wait += [commit.may_wait for _ in commit.receipts]
        super().submit(commit, done)


@pytest.mark.parametrize("is_idempotent", [True, False])
async def test_a_receipt_may_wait_where_saying_it_again_does_no_harm(
    is_idempotent: bool,  # noqa: FBT001
    autojump_clock: Clock,
) -> None:
    abilities, store = Abilities(is_idempotent=is_idempotent), PatientStore()
    async with open_road(autojump_clock, store, abilities) as road:
        await road.deliver(1)
        await road.connector.wait_for(Delivered)
        assert store.may_wait == [is_idempotent]


@pytest.mark.parametrize("abilities", [PLAIN, ABLE, Abilities(is_idempotent=True)])
async def test_a_long_wait_is_handed_back_and_the_chat_keeps_its_order(
    abilities: Abilities, autojump_clock: Clock
) -> None:
    async with open_road(autojump_clock, None, abilities, "hold") as road:
        road.platform.faults["room"].append(DeliveryBusyError("x", retry_after=900))
        await road.deliver(1, 2)
        await road.connector.wait_count(2)
        await road.deliver(3)
        await road.connector.wait_count(3)
        assert road.handed_back() == ["m1:0", "m2:0", "m3:0"]
        await trio.sleep(500)
        await road.hand_over_again(1, 2, 3)
        await road.connector.wait_count(6)
        assert road.platform.attempts == ["m1:0"]
        await trio.sleep(350)
        await road.deliver(4)
        await road.hand_over_again(1, 2, 3, 4)
        await road.connector.wait_count(11, within=1000)
        assert trio.current_time() == 900
        assert road.platform.attempts == ["m1:0", "m1:0", "m2:0", "m3:0", "m4:0"]
        assert await road.row() == ("sent", 2)


async def test_a_courier_that_crashes_knows_what_it_handed_back(
    autojump_clock: Clock,
) -> None:
    async with open_road(autojump_clock, None, PLAIN, "hold") as road:
        road.platform.faults["room"].append(DeliveryBusyError("x", retry_after=900))
        await road.deliver(1, 2)
        await road.connector.wait_count(2)
        road.tell("nonsense")
        await trio.sleep(100)
        await road.deliver(3)
        await road.connector.wait_count(3)
        assert road.handed_back() == ["m1:0", "m2:0", "m3:0"]
        await trio.sleep(750)
        await road.hand_over_again(1, 2, 3)
        await road.connector.wait_count(6, within=1000)
        assert road.platform.said() == [f"anna: answer {each}" for each in (1, 2, 3)]
        assert await road.outbox() == {"sent": 3}


async def test_what_was_handed_back_and_dropped_by_hand_is_not_waited_for(
    autojump_clock: Clock,
) -> None:
    async with open_road(autojump_clock) as road:
        road.platform.faults["room"].append(DeliveryBusyError("x", retry_after=900))
        await road.deliver(1, 2)
        await road.connector.wait_count(2)
        dropped = (Receipt("m1:0", "dead", "by hand"),)
        await road.store.commit(Commit(at=1.0, receipts=dropped))
        await road.hand_over_again(1, 2)
        await road.connector.wait_count(3)
        assert road.platform.attempts == ["m1:0"], "the platform wants to be left alone"
        await trio.sleep(900)
        await road.hand_over_again(1, 2)
        await road.connector.wait_for(Delivered)
        assert road.platform.attempts == ["m1:0", "m2:0"]


async def test_what_does_not_come_again_keeps_no_courier_awake_for_ever(
    autojump_clock: Clock,
) -> None:
    async with open_road(autojump_clock, None, PLAIN, "hold") as road:
        road.platform.faults["room"].append(DeliveryBusyError("x", retry_after=900))
        await road.deliver(1)
        await trio.sleep(9000)
        await road.hand_over_again(1)
        await road.connector.wait_for(Delivered)
        assert await road.row() == ("sent", 2), "somebody new is sure of it, too"


async def test_a_full_disk_hands_back_what_is_not_said_yet(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore(fails_at=range(2, 100))
    async with open_road(autojump_clock, store, PLAIN) as road:
        await road.deliver(1)
        while not road.done():
            await trio.sleep(15)
            await road.hand_over_again(1)
        assert set(road.handed_back()) == {"m1:0"}
        assert road.platform.attempts == ["m1:0"]
        assert await road.row() == ("sent", 1)


async def test_nothing_overtakes_what_was_handed_back_for_the_disk(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore(fails_at=range(2, 100))
    async with open_road(autojump_clock, store) as road:
        rows = tuple(as_enqueue(saying(number), 0) for number in (1, 2, 3))
        await store.commit(Commit(at=1.0, deliveries=rows))
        for number in (1, 2):
            road.tell(Deliver(saying(number)))
            await trio.sleep(1)
        assert road.handed_back() == ["m2:0"], "the receipt before it is not stored"
        store._fails_at = ()
        await road.connector.wait_for(Delivered)
        road.tell(Deliver(saying(3)))
        await trio.sleep(1)
        await road.hand_over_again(2, 3)
        await trio.sleep(1)
        assert road.platform.attempts == ["m1:0", "m2:0", "m3:0"]


async def test_nothing_is_said_before_the_disk_knows(autojump_clock: Clock) -> None:
    store = MemoryStore(fails_at=(2, 3, 4))
    async with open_road(autojump_clock, store, PLAIN) as road:
        await road.deliver(1)
        await trio.sleep(2.5)
        assert road.platform.attempts == []
        await road.connector.wait_for(Delivered)
        assert road.platform.attempts == ["m1:0"]
        assert await road.row() == ("sent", 1)


async def test_what_was_dropped_by_hand_meanwhile_is_not_said(
    autojump_clock: Clock,
) -> None:
    async with open_road(autojump_clock, abilities=PLAIN) as road:
        rows = tuple(as_enqueue(saying(number), 0) for number in (1, 2))
        dropped = (Receipt("m1:0", "dead", "by hand"),)
        await road.store.commit(Commit(at=1.0, deliveries=rows, receipts=dropped))
        for number in (1, 2):
            road.tell(Deliver(saying(number)))
        await road.connector.wait_count(2)
        assert road.platform.attempts == ["m2:0"]
        assert road.store._rows.outbox["m1:0"].receipt == "by hand"


async def test_what_a_person_wants_said_again_is(autojump_clock: Clock) -> None:
    async with open_road(autojump_clock, abilities=PLAIN) as road:
        await road.deliver(1)
        await road.connector.wait_for(Delivered)
        row = road.store._rows.outbox["m1:0"]
        again = structs.replace(row, state="pending", receipt=BY_HAND)
        road.store._rows.outbox["m1:0"] = again
        await road.hand_over_again(1)
        await road.connector.wait_count(2)
        assert road.platform.attempts == ["m1:0"] * 2
        assert await road.row() == ("sent", 2)


@pytest.mark.parametrize(
    ("abilities", "on_unknown", "end"),
    [(PLAIN, "hold", ("unknown", 1)), (ABLE, "hold", ("sent", 2))],
)
async def test_what_a_broken_transport_may_have_said_is_in_doubt(
    abilities: Abilities,
    on_unknown: OnUnknown,
    end: tuple[str, int],
    autojump_clock: Clock,
) -> None:
    async with open_road(autojump_clock, None, abilities, on_unknown) as road:
        road.platform.faults["room"].append(BrokenPlatformError("once"))
        await road.deliver(1)
        await road.connector.wait_for(Delivered)
        assert await road.row() == end
        assert len(road.platform.looked_up) == abilities.can_look_up


@pytest.mark.parametrize("asked", [2.0, 4000.0])
async def test_what_a_busy_platform_did_not_take_is_not_in_doubt(
    asked: float, autojump_clock: Clock
) -> None:
    async with open_road(autojump_clock, None, PLAIN, "hold") as road:
        road.platform.faults["room"].append(DeliveryBusyError("x", retry_after=asked))
        await road.deliver(1)
        await trio.sleep(1)
        assert await road.row() == ("pending", 1)
        await trio.sleep(asked)
        await road.hand_over_again(1)
        await trio.sleep(1)
        assert await road.row() == ("sent", 2)
        await road.hand_over_again(1)
        assert road.platform.attempts == ["m1:0"] * 2


async def test_what_was_lost_once_is_in_doubt_also_when_its_platform_is_busy(
    autojump_clock: Clock,
) -> None:
    async with open_road(autojump_clock, None, PLAIN, "resend") as road:
        faults = [
            DeliveryUnknownError("gone"),
            DeliveryBusyError("x", retry_after=4000),
        ]
        road.platform.faults["room"].extend(faults)
        await road.deliver(1)
        await trio.sleep(60)
        assert await road.row() == ("sending", 2)


async def test_a_look_up_that_must_wait_is_made_again(autojump_clock: Clock) -> None:
    class Shy(Platform):
        busy = 3

        async def look_up(self, delivery: Delivery) -> str | None:
            self.busy -= 1
            if self.busy >= 0:
                raise DeliveryBusyError("later")
            return await super().look_up(delivery)

    async with open_road(autojump_clock, abilities=ABLE) as road:
        road.platform.__class__ = Shy
        await road.deliver(1)
        await road.connector.wait_count(1)
        rows = (as_enqueue(saying(2), 0),)
        await road.store.commit(Commit(at=1.0, deliveries=rows))
        road.tell(Deliver(saying(2), attempts=1, was_sending=True))
        await road.connector.wait_count(2)
        assert road.platform.looked_up == ["m2:0"]
        assert await road.row(2) == ("sent", 2)


async def test_a_chat_s_messages_keep_their_pace(autojump_clock: Clock) -> None:
    async with open_road(autojump_clock, abilities=Abilities(pace=3.0)) as road:
        await road.deliver(1, 2, 3)
        for count in (1, 2, 3):
            await trio.sleep(1)
            assert len(road.platform.attempts) == count
            await trio.sleep(1.9)
            assert len(road.platform.attempts) == count
            await trio.sleep(0.1)


async def test_a_stranger_s_message_is_a_mistake(autojump_clock: Clock) -> None:
    async with virtual(autojump_clock) as system:
        courier = system.spawn(Courier("fake", Platform(), make_services()))
        courier.tell("nonsense")
        await trio.testing.wait_all_tasks_blocked()
        assert not courier.is_alive()


@pytest.mark.parametrize("counts_answers", [False, True])
async def test_silence_goes_only_to_who_counts_answers(
    autojump_clock: Clock, *, counts_answers: bool
) -> None:
    abilities = Abilities(counts_answers=counts_answers)
    async with open_road(autojump_clock, abilities=abilities) as road:
        silent = structs.replace(saying(1), text="", kind="silence")
        await road.store.commit(Commit(at=0.0, deliveries=(as_enqueue(silent, 0),)))
        road.tell(Deliver(silent))
        await road.connector.wait_for(Delivered)
        assert road.platform.attempts == (["m1:0"] if counts_answers else [])
        assert await road.outbox() == {"sent": 1}
