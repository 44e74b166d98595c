"""A turn that fails is begun again later; who wrote is told once, and at the end."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
import trio
import trio.testing

from actors.config.agents import AgentConfig
from actors.config.sessions import BufferingConfig
from actors.errors import ModelBusyError, ModelRefusedError
from actors.journal.records import UsageRecord
from actors.messages.deliveries import Abilities
from actors.messages.inbound import (
    ModelRequest,
    ToolCall,
    ToolContext,
    ToolResult,
    ToolSpec,
)
from actors.messages.state import RetryPolicy
from actors.turn.round import NOBODY
from runtime.testing import CrashError
from tests.fakes.company.company import (
    EPOCH,
    Cast,
    FakeModel,
    Says,
    at_rest,
    call,
    heard,
    open_company,
    until,
)

Clock = trio.testing.MockClock

NOTICE = (
    ": The model cannot answer now: overloaded\n\n"
    "I will try again in {wait}; /stop ends that."
)
TWO_MINUTES = NOTICE.format(wait="2 minutes")
SORRY = (
    ": The model cannot answer now: overloaded\n\nPlease ask again in a few minutes."
)

HOUR = 3600.0
DAY = 24 * HOUR

IN_ONE_TURN = 3
"""How often a turn asks a busy model."""


@pytest.fixture(autouse=True)
def few_looks() -> None:
    """Have the keeper look as often as ever: here, rows are changed from outside."""


class BusyModel(FakeModel):
    """A model that is overloaded for so many turns about `bad`.

    Args:
        turns: how many.
    """

    def __init__(self, turns: int) -> None:
        super().__init__(self.talk_or_fail)
        self.left = turns * IN_ONE_TURN
        self.asked_at: list[float] = []
        """Trio's time of each first question of a turn about it."""

    def talk_or_fail(self, request: ModelRequest) -> Says:
        if heard(request) != "bad":
            return Says(f"to {heard(request)}")
        if self.left <= 0:
            self.asked_at.append(trio.current_time())
            return Says("at last")
        if self.left % IN_ONE_TURN == 0:
            self.asked_at.append(trio.current_time())
        self.left -= 1
        return Says(error=ModelBusyError("overloaded"))


def make_cast(turns: int, policy: RetryPolicy | None = None) -> Cast:
    return Cast(model=BusyModel(turns), retries=policy or RetryPolicy())


async def wait_for_all(cast: Cast, seconds: float = 400) -> None:
    """Let the minutes pass in one jump, then see that all is at rest."""
    await trio.sleep(seconds)
    await at_rest(cast)


def waits(cast: Cast) -> list[int]:
    """Give the seconds between the turns, without those that a turn itself took."""
    assert isinstance(cast.model, BusyModel)
    times = cast.model.asked_at
    return [round(b - a - 1.5) for a, b in pairwise(times)]


async def test_a_busy_model_is_asked_again_after_two_and_four_minutes(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(2)
    async with open_company(autojump_clock, cast):
        cast.platform.write("bad")
        await wait_for_all(cast)
    assert waits(cast) == [120, 240]
    assert cast.platform.said() == [TWO_MINUTES, "anna: at last"]
    assert await cast.inbox() == {"replied": 1}


async def test_after_three_turns_it_is_dead_and_the_writer_is_told(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(99)
    async with open_company(autojump_clock, cast):
        cast.platform.write("bad")
        await wait_for_all(cast)
    assert waits(cast) == [120, 240]
    assert cast.platform.said() == [TWO_MINUTES, SORRY]
    (row,) = cast.store._rows.inbox.values()
    assert (row.state, row.reason, row.attempts) == ("dead", "model", 3)


async def test_who_is_told_to_ask_again_is_told_when_that_can_help(
    autojump_clock: Clock,
) -> None:
    busy = ModelBusyError("overloaded", retry_after=1800.0)
    cast = Cast(model=FakeModel(lambda _: Says(error=busy)), retries=RetryPolicy())
    async with open_company(autojump_clock, cast):
        cast.platform.write("bad")
        await wait_for_all(cast, 2 * HOUR)
    assert cast.platform.said()[-1] == SORRY.replace("a few", "30")


async def test_who_waits_for_a_model_is_told_when_it_may_be_asked(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(0, RetryPolicy(first_wait=2.0))
    busy = [Says(error=ModelBusyError("overloaded", retry_after=900.0))]
    cast.model = FakeModel(lambda _: busy.pop() if busy else Says("at last"))
    async with open_company(autojump_clock, cast):
        cast.platform.write("bad")
        await trio.sleep(880)
        (told,) = cast.platform.said()
        await at_rest(cast)
    assert "15 minutes" in told
    assert cast.platform.said() == [told, "anna: at last"]


async def test_the_notice_says_that_more_is_to_come(autojump_clock: Clock) -> None:
    cast = make_cast(1)
    async with open_company(autojump_clock, cast):
        inbound = cast.platform.write("bad")
        await wait_for_all(cast)
    notice, answer = cast.platform.deliveries
    assert notice.id.startswith(f"{inbound.id}:waiting")
    assert notice.reply_id == answer.reply_id == inbound.id
    assert (notice.kind, notice.trouble) == ("notice", "waiting")
    assert (notice.is_root, notice.answers_left) == (False, 1)
    assert (answer.id, answer.is_root, answer.answers_left) == (
        f"{inbound.id}:0",
        True,
        0,
    )


@pytest.mark.parametrize(
    ("first_wait", "words", "gap"),
    [(40.0, "40 seconds", 40), (5000.0, "50 minutes", 3000), (2.0, "2 seconds", 2)],
)
async def test_settings_say_how_long_it_waits_and_at_most(
    first_wait: float, words: str, gap: int, autojump_clock: Clock
) -> None:
    cast = make_cast(1, RetryPolicy(first_wait=first_wait, longest_wait=3000.0))
    async with open_company(autojump_clock, cast):
        cast.platform.write("bad")
        await wait_for_all(cast, 3100)
    assert waits(cast) == [gap]
    assert cast.platform.said() == [NOTICE.format(wait=words), "anna: at last"]


async def test_messages_behind_it_wait_and_are_answered_in_order(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(1)
    async with open_company(autojump_clock, cast):
        # First, for while a model says that it is overloaded nobody asks it.
        cast.platform.write("hello", chat="other")
        for text in ("one", "bad", "two", "three"):
            cast.platform.write(text)
        await until(lambda: cast.platform.said("other"))
        assert trio.current_time() < 5  # nobody else waits
        assert cast.platform.said("other") == ["anna: to hello"]
        await wait_for_all(cast)
    assert cast.platform.said() == [
        "anna: to one",
        TWO_MINUTES,
        "anna: at last",
        "anna: to two",
        "anna: to three",
    ]
    texts = [line.text for line in cast.model.requests[-1].lines]
    assert texts == ["one", "to one", "bad", "at last", "two", "to two", "three"]


async def test_stop_ends_the_waiting(autojump_clock: Clock) -> None:
    cast = make_cast(1)
    async with open_company(autojump_clock, cast):
        cast.platform.write("bad")
        cast.platform.write("two")
        await until(cast.platform.said)
        cast.platform.write("/stop")
        await at_rest(cast, within=10)
        cast.platform.write("three")
        await wait_for_all(cast)
    stopped = ": (stopped)"
    assert cast.platform.said() == [
        TWO_MINUTES,
        stopped,
        stopped,
        ": Stopped.",
        "anna: to three",
    ]
    assert await cast.inbox() == {"cancelled": 2, "replied": 2}


@pytest.mark.parametrize("gone", [5.0, 60.0, 500.0])
async def test_a_restart_keeps_the_time_and_does_not_repeat_the_notice(
    gone: float, autojump_clock: Clock
) -> None:
    cast = make_cast(1)
    async with open_company(autojump_clock, cast):
        cast.platform.write("bad")
        cast.platform.write("two")
        await until(cast.platform.said)
    (row, _) = await cast.store.unsettled()
    assert (row.state, row.attempts, row.reason) == ("accepted", 1, "model")
    assert row.due_at == pytest.approx(EPOCH + 121.5, abs=1)
    await trio.sleep(gone)
    cast.restart()
    async with open_company(autojump_clock, cast):
        await wait_for_all(cast)
    assert waits(cast)[0] == pytest.approx(max(120, gone), abs=3)
    assert cast.platform.said() == [TWO_MINUTES, "anna: at last", "anna: to two"]


async def test_restarts_do_not_give_it_further_turns(autojump_clock: Clock) -> None:
    cast = make_cast(99)
    cast.platform.write("bad")
    for _ in range(2):
        async with open_company(autojump_clock, cast):
            await trio.sleep(30)
        cast.restart()
        await trio.sleep(400)
    async with open_company(autojump_clock, cast):
        await wait_for_all(cast)
    assert isinstance(cast.model, BusyModel)
    assert len(cast.model.asked_at) == 3
    assert cast.platform.said() == [TWO_MINUTES, SORRY]


async def test_a_refusal_is_not_tried_again(autojump_clock: Clock) -> None:
    cast = make_cast(0)
    error = ModelRefusedError("bad key")
    cast.model = FakeModel(lambda _: Says(error=error))
    async with open_company(autojump_clock, cast):
        cast.platform.write("bad")
        await at_rest(cast, within=10)
    assert cast.platform.said() == [f": The model refused to answer: {NOBODY}"]
    assert await cast.inbox() == {"replied": 1}
    assert len(cast.model.requests) == 1


WHAT_IT_SAID = "api.example (gpt): the key was not accepted (HTTP 401)"


@pytest.mark.parametrize(
    ("can", "told"),
    [(Abilities(is_operators=True), WHAT_IT_SAID), (Abilities(), NOBODY)],
)
async def test_operators_alone_read_what_the_provider_said(
    autojump_clock: Clock, can: Abilities, told: str
) -> None:
    cast = make_cast(0)
    cast.platform.can = can
    error = ModelRefusedError("words", kind="auth", plain=WHAT_IT_SAID)
    cast.model = FakeModel(lambda _: Says(error=error))
    async with open_company(autojump_clock, cast):
        cast.platform.write("bad")
        cast.platform.write("again")
        await at_rest(cast, within=10)
    assert cast.platform.said() == [f": The model refused to answer: {told}"] * 2


async def test_where_nothing_is_retried_the_writer_is_told_at_once(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(99, RetryPolicy(retries_failures=False))
    async with open_company(autojump_clock, cast):
        cast.platform.write("bad")
        await at_rest(cast, within=10)
    assert cast.platform.said() == [SORRY]
    assert await cast.inbox() == {"replied": 1}


async def test_what_each_turn_took_is_on_record(autojump_clock: Clock) -> None:
    cast = make_cast(1)
    async with open_company(autojump_clock, cast):
        inbound = cast.platform.write("bad")
        await wait_for_all(cast)
    rows = await cast.store.records("usage")
    assert [row.id for row in rows] == [f"{inbound.id}#2", f"{inbound.id}#1"]
    assert b'"status":"model"' in rows[1].body
    assert b'"attempt":2' in rows[0].body


class BrokenTool:
    """A tool with a bug, which shows once."""

    def __init__(self) -> None:
        self.spec = ToolSpec("lamp", "", b"{}", is_repeatable=True, effect="read")
        self.calls = 0

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        del call, context
        await trio.lowlevel.checkpoint()
        self.calls += 1
        if self.calls == 1:
            raise CrashError("to order")
        return ToolResult("on")


async def test_what_a_broken_turn_took_is_in_the_ledger_of_the_next(
    autojump_clock: Clock,
) -> None:
    def talk(request: ModelRequest) -> str | Says:
        is_asked = request.lines[-1].role == "user"
        return Says(calls=(call("lamp"),)) if is_asked else "It is on."

    cast = Cast(
        agents={"anna": AgentConfig(tools=("lamp",), autonomy="full")},
        model=FakeModel(talk),
        tools=(BrokenTool(),),
        retries=RetryPolicy(),
    )
    async with open_company(autojump_clock, cast):
        cast.platform.write("light")
        await wait_for_all(cast)
    assert cast.platform.said()[-1] == "anna: It is on."
    rows = await cast.store.records("usage")
    runs = [msgspec.json.decode(row.body, type=UsageRecord) for row in rows]
    assert len(cast.model.requests) == 2
    assert [(run.attempt, run.rounds) for run in runs] == [(2, 2), (1, 0)]
    assert sum(run.input_tokens for run in runs) == 2 * 3


@pytest.mark.parametrize("restarts", [False, True])
async def test_a_clock_that_is_set_back_keeps_nobody_waiting(
    *, restarts: bool, autojump_clock: Clock
) -> None:
    cast = Cast(model=BusyModel(1), retries=RetryPolicy())
    cast.clock.ahead = DAY
    async with open_company(autojump_clock, cast):
        cast.platform.write("bad")
        await trio.sleep(60)
        cast.clock.ahead = 0.0
        if not restarts:
            cast.platform.write("hello")
            await trio.sleep(HOUR)
    if restarts:
        cast.restart()
        async with open_company(autojump_clock, cast):
            cast.platform.write("hello")
            await trio.sleep(HOUR)
    assert cast.platform.said()[-2:] == ["anna: at last", "anna: to hello"]


class Overloaded(FakeModel):
    """A model that is overloaded until it is no longer, but for `one`."""

    def __init__(self) -> None:
        super().__init__(self.talk)
        self.is_busy = True

    def talk(self, request: ModelRequest) -> Says:
        if heard(request) == "one":
            return Says("to one", after=5)
        if self.is_busy:
            return Says(error=ModelBusyError("overloaded"))
        return Says("at last")


async def test_any_message_of_a_turn_that_waits_hurries_it(
    autojump_clock: Clock,
) -> None:
    followup = BufferingConfig(policy="followup")
    model = Overloaded()
    cast = Cast(model=model, retries=RetryPolicy(), buffering=followup)
    async with open_company(autojump_clock, cast):
        for text in ("one", "two", "three"):
            cast.platform.write(text)
            await trio.sleep(1)
        await trio.sleep(40)
        model.is_busy = False
        rows = cast.store._rows.inbox
        last = [*rows.values()][-1]
        assert last.due_at > cast.clock.wall() + 10
        rows[last.id] = msgspec.structs.replace(last, due_at=0.0)  # by hand
        cast.store.changed_outside = True
        await trio.sleep(10)
        assert cast.platform.said()[-1] == "anna: at last"
