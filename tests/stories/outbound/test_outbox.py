"""What is stored is said: in order, at its pace, and in doubt as the settings say."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

import pytest
import trio
import trio.testing

from actors.errors import DeliveryBusyError, DeliveryUnknownError
from actors.messages.deliveries import Abilities, Delivery, Draft
from actors.outbound.retry import OnUnknown
from tests.fakes.company.company import (
    Cast,
    FakeModel,
    Platform,
    Says,
    at_rest,
    heard,
    open_company,
    until,
)
from tests.fakes.store.crashes import Moment, MortalStore, run_through, run_until_death
from tests.fakes.store.in_memory import MemoryStore

Clock = trio.testing.MockClock

PLAIN = Abilities()
ABLE = Abilities(can_look_up=True)


class Witness(Platform):
    """Says a thing, and then something happens before anybody hears of it.

    Attributes:
        then: `die`: the process ends; `lose`: the platform's answer gets lost.
        left: how often that still happens.
        states: how the outbox stood when the platform was asked.
        times: when it was asked, by chat.
    """

    def __init__(self, store: MemoryStore | None = None) -> None:
        super().__init__()
        self.store = store
        self.then: Literal["die", "lose"] = "die"
        self.left = 0
        self.states: list[str] = []
        self.times: list[tuple[str, float]] = []

    async def deliver(self, delivery: Delivery) -> str:
        if self.store is not None:
            self.states.append(self.store._rows.outbox[delivery.id].state)
        self.times.append((delivery.address.chat, trio.current_time()))
        receipt = await super().deliver(delivery)
        if self.left:
            self.left -= 1
            if self.then == "lose":
                raise DeliveryUnknownError("the line broke")
            assert isinstance(self.store, MortalStore)
            self.store.die()
            await trio.sleep_forever()
        return receipt

    def spoken(self) -> list[str]:
        """Give all that people saw, also what they saw twice."""
        return [each.text for each in self.shown if isinstance(each, Delivery)]


def watched(abilities: Abilities, on_unknown: OnUnknown = "resend") -> Cast:
    store = MortalStore()
    platform = Witness(store)
    platform.can = abilities
    return Cast(store=store, platform=platform, on_unknown=on_unknown)


def witness(cast: Cast) -> Witness:
    assert isinstance(cast.platform, Witness)
    return cast.platform


async def only_row(cast: Cast) -> tuple[str, int]:
    """Give how the one delivery ended, and how often it was asked for."""
    (row,) = cast.store._rows.outbox.values()
    return row.state, row.attempts


@pytest.mark.parametrize(
    ("abilities", "state"),
    [(PLAIN, "sending"), (ABLE, "sending"), (Abilities(is_idempotent=True), "pending")],
)
async def test_that_it_is_being_said_is_stored_before_the_platform_is_asked(
    abilities: Abilities, state: str, autojump_clock: Clock
) -> None:
    cast = watched(abilities)
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await at_rest(cast)
    assert witness(cast).states == [state]
    assert await only_row(cast) == ("sent", 1)


async def die_while_saying(clock: Clock, cast: Cast, text: str = "hello") -> None:
    """End the process between the platform's yes and the receipt, then start anew."""
    witness(cast).left = 1
    cast.platform.write(text)
    assert not await run_until_death(clock, cast)
    witness(cast).store = cast.store
    async with open_company(clock, cast):
        await at_rest(cast)


def in_doubt(cast: Cast) -> bool:
    line = 'callboard_deliveries_total{connector="fake",state="in_doubt"} 1'
    return line in cast.metrics.render().decode()


async def test_cut_off_it_is_said_again_and_counted_where_that_is_wanted(
    autojump_clock: Clock,
) -> None:
    cast = watched(PLAIN)
    await die_while_saying(autojump_clock, cast)
    assert witness(cast).spoken() == ["anna heard hello"] * 2
    assert await only_row(cast) == ("sent", 2)
    assert in_doubt(cast)


async def test_cut_off_and_held_it_is_left_for_a_person(autojump_clock: Clock) -> None:
    cast = watched(PLAIN, "hold")
    await die_while_saying(autojump_clock, cast)
    assert witness(cast).spoken() == ["anna heard hello"]
    assert await only_row(cast) == ("unknown", 1)
    assert in_doubt(cast)


@pytest.mark.parametrize("on_unknown", ["resend", "hold"])
async def test_cut_off_it_is_looked_up_where_that_is_possible(
    on_unknown: OnUnknown, autojump_clock: Clock
) -> None:
    cast = watched(ABLE, on_unknown)
    await die_while_saying(autojump_clock, cast)
    assert witness(cast).spoken() == ["anna heard hello"]
    assert cast.platform.looked_up == [cast.platform.deliveries[0].id]
    assert await only_row(cast) == ("sent", 1)


async def test_cut_off_where_ids_are_known_it_is_simply_said_again(
    autojump_clock: Clock,
) -> None:
    cast = watched(Abilities(is_idempotent=True))
    await die_while_saying(autojump_clock, cast)
    assert len(cast.platform.deliveries) == 1
    assert await only_row(cast) == ("sent", 1)
    assert not in_doubt(cast)


@pytest.mark.parametrize(
    ("abilities", "on_unknown", "count", "end"),
    [
        (PLAIN, "resend", 2, ("sent", 2)),
        (PLAIN, "hold", 1, ("unknown", 1)),
        (ABLE, "resend", 1, ("sent", 1)),
        (ABLE, "hold", 1, ("sent", 1)),
        (Abilities(is_idempotent=True), "hold", 2, ("sent", 2)),
    ],
)
async def test_a_platform_s_lost_answer_is_as_much_in_doubt(
    abilities: Abilities,
    on_unknown: OnUnknown,
    count: int,
    end: tuple[str, int],
    autojump_clock: Clock,
) -> None:
    cast = watched(abilities, on_unknown)
    witness(cast).then, witness(cast).left = "lose", 1
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await at_rest(cast)
    assert witness(cast).spoken() == ["anna heard hello"] * count
    assert await only_row(cast) == end
    assert in_doubt(cast)


async def test_what_is_held_keeps_no_other_waiting(autojump_clock: Clock) -> None:
    cast = watched(PLAIN, "hold")
    witness(cast).then, witness(cast).left = "lose", 1
    async with open_company(autojump_clock, cast):
        for text in ("one", "two"):
            cast.platform.write(text)
        await at_rest(cast)
    assert witness(cast).spoken() == ["anna heard one", "anna heard two"]
    assert await cast.outbox() == {"unknown": 1, "sent": 1}


LONG = " ".join(f"word{number}" for number in range(12))


def in_parts(cast: Cast) -> Cast:
    cast.model = FakeModel(lambda r: LONG if heard(r) == "long" else f"to {heard(r)}")
    return cast


PARTS = [
    "word0 word1",
    "word2 word3",
    "word4 word5",
    "word6 word7",
    "word8 word9",
    "word10",
    "word11",
]


async def test_a_long_reply_goes_out_in_parts_of_one_reply(
    autojump_clock: Clock,
) -> None:
    cast = in_parts(watched(Abilities(max_part_chars=12)))
    async with open_company(autojump_clock, cast):
        inbound = cast.platform.write("long")
        await at_rest(cast)
    said = cast.platform.deliveries
    assert [each.text for each in said] == PARTS
    assert {each.reply_id for each in said} == {inbound.id}
    assert [each.part for each in said] == list(range(7))
    assert [each.answers_left for each in said] == [6, 0, 0, 0, 0, 0, 0]
    (ended,) = cast.store._rows.journal["anna/fake/room//zoe"]
    assert LONG.encode() in ended.body  # one line of the history


async def test_parts_keep_their_order_while_the_platform_is_busy(
    autojump_clock: Clock,
) -> None:
    cast = in_parts(watched(Abilities(max_part_chars=12)))
    busy = DeliveryBusyError("later", retry_after=5)
    cast.platform.faults["room"].extend([busy, busy])
    async with open_company(autojump_clock, cast):
        cast.platform.write("long")
        cast.platform.write("two")
        await at_rest(cast)
    assert witness(cast).spoken() == [*PARTS, "to two"]


@pytest.mark.parametrize("on_unknown", ["resend", "hold"])
@pytest.mark.parametrize(
    "faults",
    [
        [DeliveryBusyError("flood", retry_after=7200)],
        [DeliveryBusyError("flood", retry_after=400)] * 5,
        [DeliveryBusyError("down")] * 300,
    ],
)
async def test_hours_of_trouble_lose_nothing_and_change_no_order(
    faults: list[Exception], on_unknown: OnUnknown, autojump_clock: Clock
) -> None:
    cast = in_parts(watched(Abilities(max_part_chars=12), on_unknown))
    async with open_company(autojump_clock, cast):
        cast.platform.faults["room"].extend(faults)
        cast.platform.write("long")
        cast.platform.write("two")
        await trio.sleep(1000)
        cast.platform.write("three")
        cast.platform.write("elsewhere", chat="b")
        await trio.sleep(20_000)
        await at_rest(cast)
    said = witness(cast).spoken()
    assert said.index("to elsewhere") == 0
    assert said[1:] == [*PARTS, "to two", "to three"]
    assert await cast.outbox() == {"sent": 10}
    assert not in_doubt(cast)


async def test_a_disk_that_is_full_for_long_loses_nothing_and_kills_nobody(
    autojump_clock: Clock,
) -> None:
    cast = in_parts(watched(Abilities(max_part_chars=12), "hold"))
    async with open_company(autojump_clock, cast):
        cast.platform.faults["room"].append(DeliveryBusyError("later", retry_after=30))
        cast.platform.write("long")
        await until(lambda: cast.platform.attempts)
        healthy, cast.store._fails_at = cast.store._fails_at, range(10**9)
        await trio.sleep(5 * 3600)
        cast.store._fails_at = healthy
        await at_rest(cast)
    assert witness(cast).spoken() == PARTS
    assert await cast.outbox() == {"sent": 7}
    assert not in_doubt(cast)


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("on_unknown", ["resend", "hold"])
async def test_parts_keep_their_order_over_a_crash_at_any_commit(
    moment: Moment, on_unknown: OnUnknown, autojump_clock: Clock
) -> None:
    number, processes = 0, 2
    while processes > 1:
        number += 1
        cast = in_parts(watched(Abilities(max_part_chars=12), on_unknown))
        cast.store = MortalStore((number, moment))
        witness(cast).store = None
        cast.platform.write("long")
        cast.platform.write("two")
        processes = await run_through(autojump_clock, cast)
        spoken = witness(cast).spoken()
        assert in_order(spoken, [*PARTS, "to two"]), f"commit {number}"
        assert len(spoken) <= 8 + (on_unknown == "resend")
        assert set(await cast.outbox()) <= {"sent", "unknown"}
    assert number > 20


def in_order(spoken: list[str], wanted: list[str]) -> bool:
    """Whether all was said in order; one may be there twice in a row, or missing."""
    numbers = [wanted.index(text) for text in spoken]
    return numbers == sorted(numbers) and len(set(numbers)) >= len(wanted) - 1


async def test_messages_of_a_chat_keep_a_pace_that_other_chats_do_not_feel(
    autojump_clock: Clock,
) -> None:
    cast = in_parts(watched(Abilities(max_part_chars=12, pace=2.0)))
    async with open_company(autojump_clock, cast):
        cast.platform.write("long", chat="a")
        cast.platform.write("hello", chat="b")
        await until(lambda: cast.platform.said("b"))
        assert trio.current_time() < 1
        await at_rest(cast)
    times = [at for chat, at in witness(cast).times if chat == "a"]
    gaps = [b - a for a, b in pairwise(times)]
    assert len(gaps) == 6
    assert min(gaps) >= 2.0


@pytest.mark.parametrize(("paces_threads", "least"), [(True, 2.0), (False, 0.0)])
async def test_threads_share_the_pace_of_their_chat_if_the_platform_says_so(
    *, paces_threads: bool, least: float, autojump_clock: Clock
) -> None:
    cast = watched(Abilities(pace=2.0, paces_threads=paces_threads))
    async with open_company(autojump_clock, cast):
        for thread in ("t1", "t2", "t3"):
            cast.platform.write("hello", chat=f"room/{thread}")
        await at_rest(cast)
    gaps = [b - a for (_, a), (_, b) in pairwise(witness(cast).times)]
    assert len(gaps) == 2
    assert least <= min(gaps) < least + 1


async def test_drafts_and_the_reply_they_become_share_an_id(
    autojump_clock: Clock,
) -> None:
    says = Says("one two", pieces=("one ", "two"), pause=1)
    cast = watched(Abilities(max_part_chars=4))
    cast.model = FakeModel(lambda _: says)
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        cast.platform.write("hello")
        await at_rest(cast)
    shown = [(type(each), each.reply_id) for each in cast.platform.shown]
    first, second = "fake-1", "fake-2"
    assert shown == [
        (kind, reply)
        for reply in (first, second)
        for kind in (Draft, Draft, Delivery, Delivery)
    ]
