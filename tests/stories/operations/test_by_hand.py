"""What was given up is tried again by hand, as `callboard queue retry` does."""

from __future__ import annotations

from functools import partial

import msgspec
import pytest
import trio
import trio.testing

from actors.messages.inbound import ModelRequest
from actors.messages.state import RetryPolicy
from runtime.store.rows import BY_HAND
from tests.fakes.company.arranging import arrange
from tests.fakes.company.company import (
    EPOCH,
    Cast,
    FakeModel,
    Says,
    at_rest,
    open_company,
    until,
)
from tests.stories.schedule.test_beside import DUE, TASK
from tests.stories.session.test_retries import SORRY, BusyModel

Clock = trio.testing.MockClock


@pytest.fixture(autouse=True)
def few_looks() -> None:
    """Have the keeper look as often as ever: here, rows are changed from outside."""


def make_cast(turns: int, attempts: int = 1) -> Cast:
    return Cast(model=BusyModel(turns), retries=RetryPolicy(attempts=attempts))


def retry_by_hand(cast: Cast) -> None:
    """Do to the rows in memory what `queue retry` does to those in a file."""
    (row,) = [
        each
        for each in cast.store._rows.inbox.values()
        if each.state in {"dead", "accepted"}
    ]
    row = msgspec.structs.replace(
        row, state="accepted", reason=BY_HAND, due_at=0.0, settled_at=0.0
    )
    cast.store._rows.inbox[row.id] = row
    cast.store.changed_outside = True


async def test_what_was_given_up_is_answered_when_tried_again(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(turns=1)
    async with open_company(autojump_clock, cast):
        cast.platform.write("bad")
        await at_rest(cast)
        retry_by_hand(cast)
        await at_rest(cast)
    assert cast.platform.said() == [SORRY, "anna: at last"]
    usage = await cast.store.records("usage")
    assert [row.id for row in usage] == ["fake-1#2", "fake-1#1"]


async def test_a_retry_by_hand_outlives_an_orderly_stop(autojump_clock: Clock) -> None:
    cast = make_cast(turns=1)
    async with open_company(autojump_clock, cast):
        cast.platform.write("bad")
        await at_rest(cast)
    cast.model = SlowAtLast()
    retry_by_hand(cast)
    cast.restart()
    async with open_company(autojump_clock, cast):
        await until(lambda: cast.model.running)
    cast.restart()
    async with open_company(autojump_clock, cast):
        await at_rest(cast)
    assert cast.platform.said() == [SORRY, "anna: at last"]


async def test_a_task_that_was_given_up_and_told_of_is_carried_out_by_hand(
    autojump_clock: Clock,
) -> None:
    model = FakeModel(partial(_fail_before, DUE + 100))
    cast = Cast(model=model, retries=RetryPolicy(attempts=1))
    async with open_company(autojump_clock, cast) as system:
        await arrange(system, cast, TASK)
        await trio.sleep(DUE + 60)
        retry_by_hand(cast)
        await trio.sleep(60)
        retry_by_hand(cast)
        await trio.sleep(60)
        await at_rest(cast)
        cast.platform.write("what came of it?")
        await at_rest(cast)
    broke, again, done, _ = cast.platform.said()
    assert broke == again
    assert done == "anna: done"
    lines = [line.text for line in cast.model.requests[-1].lines]
    assert lines[1::2] == ["[Task failed]", "[Task failed]", "done"]


def _fail_before(until: float, _: ModelRequest) -> Says:
    error = RuntimeError("to order") if trio.current_time() < until else None
    return Says("done", error=error)


class SlowAtLast(BusyModel):
    """Answers, but not before the stop."""

    def __init__(self) -> None:
        super().__init__(turns=0)

    def talk_or_fail(self, request: ModelRequest) -> Says:
        return Says("at last" if request.lines else "", after=20.0)


async def test_a_retry_by_hand_that_fails_is_told_of_and_outlives_a_restart(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(turns=3, attempts=2)
    async with open_company(autojump_clock, cast):
        cast.platform.write("bad")
        await trio.sleep(200)
        await at_rest(cast)
        retry_by_hand(cast)
        await trio.sleep(30)
    waits = "I will try again in 2 minutes"
    assert [waits in each for each in cast.platform.said()] == [True, False, True]
    cast.restart()
    async with open_company(autojump_clock, cast):
        await trio.sleep(400)
        await at_rest(cast)
    assert cast.platform.said()[-1] == "anna: at last"
    usage = await cast.store.records("usage")
    assert len({row.id for row in usage}) == len(usage) == 4


async def test_a_wait_is_ended_by_hand(autojump_clock: Clock) -> None:
    cast = make_cast(turns=1, attempts=3)
    async with open_company(autojump_clock, cast):
        cast.platform.write("bad")
        await trio.sleep(20)
        retry_by_hand(cast)
        began = trio.current_time()
        await until(lambda: "anna: at last" in cast.platform.said())
        assert trio.current_time() - began < 10


def drop_by_hand(cast: Cast) -> None:
    """Do to the rows in memory what `queue drop` does to what waits for a retry."""
    inbox = cast.store._rows.inbox
    (row,) = [each for each in inbox.values() if each.due_at and not each.settled_at]
    inbox[row.id] = msgspec.structs.replace(row, state="dropped", settled_at=EPOCH)
    cast.store.changed_outside = True


@pytest.mark.parametrize("comes_later", [False, True])
async def test_what_waits_behind_a_message_that_is_dropped_begins_at_once(
    *, comes_later: bool, autojump_clock: Clock
) -> None:
    cast = make_cast(turns=3, attempts=3)
    async with open_company(autojump_clock, cast):
        cast.platform.write("bad")
        await trio.sleep(20)
        if not comes_later:
            cast.platform.write("good")
        drop_by_hand(cast)
        if comes_later:
            cast.platform.write("good")
        began = trio.current_time()
        await until(lambda: "anna: to good" in cast.platform.said())
        assert trio.current_time() - began < 10
        await at_rest(cast)
    assert [word for word in cast.platform.said() if "at last" in word] == []
