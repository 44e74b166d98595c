"""Proves that what is dropped by hand is not said, and what is retried is, once."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
import trio
from hypothesis import given, settings, strategies as st
from trio.testing import MockClock

from actors.errors import DeliveryBusyError, DeliveryRefusedError, DeliveryUnknownError
from actors.journal.commits import as_enqueue
from actors.messages.deliveries import Abilities
from actors.outbound.retry import TRIES, WAITED_AFTER
from actors.protocol import Deliver
from runtime.actor.messages import Keyed
from runtime.errors import DuplicateError
from runtime.store.rows import Commit, Committed, SendAttempt
from tests.fakes.actors.neighbours import saying
from tests.fakes.outbound.lane import Lane, open_lane
from tests.fakes.store.in_memory import MemoryStore
from tests.support.tiers import examples

Clock = trio.testing.MockClock

KNOWS_IDS, PLAIN = Abilities(is_idempotent=True), Abilities()
KINDS = pytest.mark.parametrize("abilities", [KNOWS_IDS, PLAIN], ids=["ids", "plain"])
REFUSED, LOST = DeliveryRefusedError("no"), DeliveryUnknownError("gone")
SOON = DeliveryBusyError("flood", retry_after=3.0)
LATER = DeliveryBusyError("flood", retry_after=200.0)


@KINDS
async def test_what_is_dropped_while_it_waits_is_not_said(
    abilities: Abilities, autojump_clock: Clock
) -> None:
    async with open_lane(autojump_clock, abilities) as lane:
        lane.platform.faults["room"].append(SOON)
        await lane.say(1, 2)
        await trio.sleep(0.5)
        assert lane.drop(1)
        assert lane.drop(2)
        await trio.sleep(5)
        await lane.say(3)
        await trio.sleep(0.5)
        assert lane.platform.said() == ["anna: answer 3"]
        assert lane.states == ["dead", "dead", "sent"]
        assert lane.row().receipt == "by hand"


@KINDS
async def test_what_was_dropped_before_it_was_asked_for_is_said_when_retried(
    abilities: Abilities, autojump_clock: Clock
) -> None:
    async with open_lane(autojump_clock, abilities) as lane:
        lane.platform.faults["room"].append(SOON)
        await lane.say(1, 2)
        await trio.sleep(0.5)
        assert lane.drop(2)
        await trio.sleep(5)
        assert lane.row(2).attempts == 0
        assert lane.retry(2)
        await trio.sleep(0.5)
        assert lane.platform.said() == ["anna: answer 1", "anna: answer 2"]
        await lane.say(3)
        await trio.sleep(90)
        assert lane.platform.attempts == ["m1:0", "m1:0", "m2:0", "m3:0"]
        assert lane.states == ["sent"] * 3


@KINDS
@pytest.mark.parametrize("fault", [REFUSED, LOST, LATER])
async def test_whatever_its_end_was_it_is_said_once_when_retried(
    abilities: Abilities, fault: Exception, autojump_clock: Clock
) -> None:
    async with open_lane(autojump_clock, abilities, "hold") as lane:
        lane.platform.faults["room"].extend([fault] * TRIES)
        await lane.say(1)
        await trio.sleep(100)
        assert lane.drop(1) or fault is REFUSED  # what is unknown may be dropped, too
        lane.platform.faults.clear()
        assert lane.retry(1)
        await trio.sleep(500)
        await lane.say(2)
        await trio.sleep(90)
        assert lane.platform.said() == ["anna: answer 1", "anna: answer 2"]
        assert [what for what, _ in lane.log["m1:0"]][-2:] == ["retry", "shown"]
        assert lane.states == ["sent"] * 2


@KINDS
async def test_what_is_dropped_and_retried_in_one_pause_is_said_once(
    abilities: Abilities, autojump_clock: Clock
) -> None:
    async with open_lane(autojump_clock, abilities) as lane:
        lane.platform.faults["room"].append(SOON)
        await lane.say(1, 2)
        await trio.sleep(0.5)
        assert all(lane.drop(each) and lane.retry(each) for each in (1, 2))
        await trio.sleep(100)
        assert lane.platform.attempts == ["m1:0", "m1:0", "m2:0"]
        assert lane.states == ["sent"] * 2


class Interrupted(MemoryStore):
    """Lets something happen while somebody hears that a row is settled."""

    then: Callable[[], object] | None = None

    async def commit(self, commit: Commit) -> Committed:
        try:
            return await super().commit(commit)
        except DuplicateError:
            if self.then is not None:
                self.then()
            raise


async def test_what_is_retried_while_it_is_being_let_go_is_said(
    autojump_clock: Clock,
) -> None:
    store = Interrupted()
    async with open_lane(autojump_clock, PLAIN, store=store) as lane:
        store.then = lambda: lane.retry(1)
        lane.platform.faults["room"].append(SOON)
        await lane.say(1)
        await trio.sleep(0.5)
        assert lane.drop(1)
        await trio.sleep(60)
        assert lane.platform.attempts == ["m1:0"] * 2
        assert lane.states == ["sent"]


async def test_handed_over_twice_what_is_wanted_once_more_is_said_once_more(
    autojump_clock: Clock,
) -> None:
    async with open_lane(autojump_clock, PLAIN) as lane:
        lane.platform.faults["room"].append(REFUSED)
        await lane.say(1)
        await trio.sleep(1)
        after = lane.store._commits + 2  # the next one says that it is asked for
        lane.store._fails_at = range(after, after + 9)
        assert lane.retry(1)
        await trio.sleep(1)
        again = Deliver(saying(1), 1, is_by_hand=True, is_again=True)
        lane.couriers.tell(Keyed("room/", again))
        await trio.sleep(60)
        assert lane.platform.attempts == ["m1:0"] * 2
        assert lane.states == ["sent"]


async def test_what_need_not_wait_costs_one_commit_where_its_id_is_known(
    autojump_clock: Clock,
) -> None:
    async with open_lane(autojump_clock, KNOWS_IDS) as lane:
        for number in range(1, 4):
            await lane.say(number)
            await trio.sleep(2)
        assert lane.states == ["sent"] * 3
        assert lane.store._commits == 2 * len(
            lane.states
        )  # it is enqueued, and has its receipt


@KINDS
async def test_what_may_have_been_said_after_a_wait_is_not_dropped(
    abilities: Abilities, autojump_clock: Clock
) -> None:
    async with open_lane(autojump_clock, abilities) as lane:
        lane.platform.faults["room"].extend([SOON, LOST])
        await lane.say(1)
        await trio.sleep(3.5)
        assert (lane.row().state, lane.row().attempts) == ("sending", 2)
        assert not lane.drop(1)
        await trio.sleep(1)
        assert lane.states == ["sent"]


async def test_what_was_cut_off_is_said_again_where_its_id_is_known(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    rows = (as_enqueue(saying(1), 0),)
    attempts = (SendAttempt("m1:0", 2),)
    await store.commit(Commit(at=1.0, deliveries=rows, send_attempts=attempts))
    async with open_lane(autojump_clock, KNOWS_IDS, "hold", store) as lane:
        assert lane.platform.said() == ["anna: answer 1"]
        assert (lane.row().state, lane.row().attempts) == ("sent", 3)


# --- whatever happens -----------------------------------------------------------------


class Step(msgspec.Struct, frozen=True):
    """Something that happens in a chat or beside it."""

    what: str
    number: int = 0
    """Of a delivery."""

    seconds: float = 0.0


WHATS = ["say", "say", "refuse", "lose", "busy", "busy", "fall", "wait", "wait"]
PAUSES = st.sampled_from([3.0, 5.0, 20.0, 0.3, 800.0])
STEPS = st.lists(
    st.builds(Step, st.sampled_from(WHATS), seconds=PAUSES)
    | st.builds(Step, st.sampled_from(["drop", "retry"]), st.integers(1, 3)),
    min_size=5,
    max_size=30,
)


async def live(steps: list[Step], abilities: Abilities, clock: Clock) -> Lane:
    async with open_lane(clock, abilities) as lane:
        for step in steps:
            await take(step, lane)
        lane.platform.faults.clear()
        await trio.sleep(2000)
        return lane


async def take(step: Step, lane: Lane) -> None:
    faults = lane.platform.faults["room"]
    match step.what:
        case "say":
            await lane.say(len(lane.states) + 1)
        case "refuse":
            faults.append(REFUSED)
        case "lose":
            faults.append(LOST)
        case "busy":
            faults.append(DeliveryBusyError("flood", retry_after=step.seconds))
        case "fall":
            lane.break_courier()
        case "wait":
            await trio.sleep(step.seconds)
        case _ if step.number <= len(lane.states):
            (lane.drop if step.what == "drop" else lane.retry)(step.number)
        case _:
            pass


@settings(max_examples=examples(100, deep=1200))
@given(steps=STEPS, abilities=st.sampled_from([KNOWS_IDS, PLAIN]))
def test_it_is_said_once_for_each_time_that_somebody_wants_it(
    steps: list[Step], abilities: Abilities
) -> None:
    clock = MockClock(autojump_threshold=0)
    lane = trio.run(live, steps, abilities, clock, clock=clock)
    for row in lane.rows:
        shown = is_dropped = False
        since = 0.0
        for what, at in lane.log[row.id]:
            if what != "shown":
                shown, is_dropped, since = False, what == "drop", at
                continue
            # It was on its way already, and its platform is told but once.
            assert not is_dropped or (
                abilities.is_idempotent and at - since <= WAITED_AFTER
            )
            assert not shown
            shown = not is_dropped
        assert (row.state == "sent") == shown
        assert shown or row.receipt in ({"by hand"} if is_dropped else {"no", "gone"})
