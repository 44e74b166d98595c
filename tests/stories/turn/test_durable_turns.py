"""A process may end at any commit: no step is repeated, all are answered once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import msgspec
import pytest
import trio
import trio.testing
from hypothesis import given, settings, strategies as st

from actors.config.agents import AgentConfig
from actors.messages.inbound import (
    ModelRequest,
    ToolCall,
    ToolContext,
    ToolResult,
    ToolSpec,
)
from actors.messages.state import RetryPolicy
from actors.turn.machine import ToolReturned
from actors.turn.tools import IN_DOUBT
from tests.fakes.company.company import (
    Cast,
    FakeModel,
    Says,
    at_rest,
    call,
    heard,
    open_company,
    until,
)
from tests.fakes.store.crashes import (
    Death,
    Moment,
    MortalStore,
    run_through,
    run_until_death,
)
from tests.support.tiers import examples

Clock = trio.testing.MockClock

DEATHS: st.SearchStrategy[Death] = st.tuples(
    st.integers(1, 40), st.sampled_from(("before", "after"))
)
GAVE_UP = ": ⚠️ I tried this 3 times and could not finish it. Please ask anew."


class Work:
    """A tool that takes its time, and knows what the journal says of its calls.

    Args:
        name: `pay` must not be repeated, anything else may be.
    """

    def __init__(self, name: str) -> None:
        self.spec = ToolSpec(
            name,
            "",
            b"{}",
            is_repeatable=name != "pay",
            effect="read",
            is_own_words=True,
        )
        self.began: list[str] = []
        self.ended: list[str] = []
        self.repeated: list[str] = []
        self.recorded: Callable[[str, str], bool] = lambda _message, _call: False
        self.at_work: Callable[[], object] = list
        self.takes = 0.1

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        if self.recorded(context.correlation_id, call.id):
            self.repeated.append(call.id)
        self.began.append(f"{context.correlation_id}/{call.id}")
        self.at_work()
        await trio.sleep(self.takes)
        self.ended.append(f"{context.correlation_id}/{call.id}")
        return ToolResult(f"{self.spec.name} done")


def talk(request: ModelRequest) -> Says:
    """Work in two rounds, hand something on, then tell what came of it."""
    if request.agent == "ben":
        return Says("ben is done", after=0.1)
    lines = request.lines
    asked = max(n for n, line in enumerate(lines) if line.role == "user")
    results = [line.text for line in lines[asked:] if line.role == "tool"]
    if lines[asked].text != "work":
        return Says(f"to {lines[asked].text}")
    if not results:
        return Says("First.", calls=(call("pay", 1), call("look", 2)), after=0.1)
    if len(results) == 2:
        handed = call("delegate", 4, agent="ben", task="x")
        return Says("Second.", calls=(call("look", 3), handed), after=0.1)
    return Says(f"Paid: {'pay done' in results[0]}.", pause=0.1)


class Office:
    """Two agents, two tools, and people who want work done."""

    def __init__(self, *deaths: Death, attempts: int = 3) -> None:
        self.pay, self.look = Work("pay"), Work("look")
        agents = {
            "anna": AgentConfig(tools=("pay", "look"), delegates=("ben",)),
            "ben": AgentConfig(),
        }
        self.cast = Cast(
            agents=agents,
            model=FakeModel(talk),
            tools=(self.pay, self.look),
            store=MortalStore(*deaths),
            retries=RetryPolicy(attempts=attempts),
        )
        for tool in (self.pay, self.look):
            tool.recorded = self.is_recorded

    def is_recorded(self, message: str, call_id: str) -> bool:
        """Whether the journal has the result of a call."""
        return any(
            msgspec.json.decode(event.body, type=ToolReturned).call_id == call_id
            for stream, events in self.cast.store._rows.journal.items()
            for event in events
            if stream.endswith(f"/{message}") and event.kind == "tool"
        )

    def write(self) -> None:
        for text, chat in (("work", "a"), ("two", "a"), ("work", "b"), ("two", "b")):
            self.cast.platform.write(text, chat=chat)

    async def check(self) -> None:
        """See that all is answered once and in order, whatever happened."""
        platform = self.cast.platform
        for chat in ("a", "b"):
            said = platform.said(chat)
            first, second = (s for s in said if s.startswith("anna: "))
            assert first.startswith("anna: First.\n\nSecond.\n\nPaid: ")
            assert second == "anna: to two"
            assert said.count("ben: ben is done") == 1
            assert len(said) == 3
        assert await self.cast.inbox() == {"replied": 6}
        assert await self.cast.outbox() == {"sent": 6}
        assert self.pay.repeated == self.look.repeated == []
        assert max(Counter(self.pay.began).values(), default=0) <= 1


def play(office: Office) -> int:
    """Let the work be done, however many processes it takes."""

    async def main() -> int:
        office.write()
        processes = await run_through(clock, office.cast)
        await office.check()
        return processes

    clock = trio.testing.MockClock(autojump_threshold=0)
    return trio.run(main, clock=clock)


def all_commits() -> int:
    office = Office()
    assert play(office) == 1
    store = office.cast.store
    assert isinstance(store, MortalStore)
    assert all("Paid: True" in s for s in said_first(office))
    return len(store.commits)


def said_first(office: Office) -> list[str]:
    everything = office.cast.platform.deliveries
    return [each.text for each in everything if each.text.startswith("First.")]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_crash_at_any_commit_repeats_nothing_and_loses_nothing(
    moment: Moment,
) -> None:
    count = all_commits()
    assert count > 30
    for number in range(1, count + 1):
        office = Office((number, moment))
        assert play(office) == 2, f"commit {number}"


@settings(max_examples=examples(100))
@given(first=DEATHS, second=DEATHS)
def test_two_crashes_anywhere_are_no_worse(first: Death, second: Death) -> None:
    office = Office(first, second)
    assert play(office) <= 3


async def cut_off_at_work(clock: Clock, name: str) -> Office:
    """Let the process die while a tool runs."""
    office = Office()
    tool: Work = getattr(office, name)
    tool.takes = 50.0
    other = office.look if name == "pay" else office.pay
    office.cast.platform.write("work")
    store = office.cast.store
    assert isinstance(store, MortalStore)

    async def die() -> None:
        await until(lambda: tool.began and other.ended)
        await trio.sleep(1)
        store.die()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(die)
        assert not await run_until_death(clock, office.cast)
    tool.takes = 0.1
    return office


async def test_a_call_that_must_not_be_repeated_is_reported_as_unknown(
    autojump_clock: Clock,
) -> None:
    office = await cut_off_at_work(autojump_clock, "pay")
    asked = len(office.cast.model.requests)
    async with open_company(autojump_clock, office.cast):
        await at_rest(office.cast)
    assert len(office.pay.began) == 1
    results = [
        line.text
        for line in office.cast.model.requests[asked].lines
        if line.role == "tool"
    ]
    assert results == [f"Error: {IN_DOUBT}", "look done"]
    assert "Paid: False" in office.cast.platform.said()[0]
    line = 'callboard_tool_call_seconds_count{outcome="unknown",tool="pay"} 1'
    assert line in office.cast.metrics.render().decode()


async def test_a_call_that_may_be_repeated_is_and_the_other_is_not(
    autojump_clock: Clock,
) -> None:
    office = await cut_off_at_work(autojump_clock, "look")
    async with open_company(autojump_clock, office.cast):
        await at_rest(office.cast)
    assert [each.rpartition("/")[2] for each in office.look.began] == [
        "call-2",
        "call-2",
        "call-3",
    ]
    assert len(office.pay.began) == 1
    assert office.cast.platform.said()[0] == "anna: First.\n\nSecond.\n\nPaid: True."


async def test_a_turn_cut_off_counts_the_rounds_it_had_paid_for(
    autojump_clock: Clock,
) -> None:
    office = await cut_off_at_work(autojump_clock, "look")
    async with open_company(autojump_clock, office.cast):
        await at_rest(office.cast)
    assert len(office.cast.model.requests) == 3 + 1  # ben's
    (ben, anna) = await office.cast.store.records("usage")
    assert b'"rounds":3' in anna.body
    assert b'"input_tokens":9' in anna.body
    assert b'"rounds":1' in ben.body


class Deadly:
    """A model that ends its process whenever it is asked about one word."""

    def __init__(self, word: str) -> None:
        self.word = word
        self.store = MortalStore()

    def __call__(self, request: ModelRequest) -> Says:
        if heard(request) == self.word:
            assert isinstance(self.store, MortalStore)
            self.store.die()
            return Says("never", after=600)
        return Says(f"to {heard(request)}")


async def test_a_message_that_ends_the_process_each_time_is_dead_and_takes_nobody_along(
    autojump_clock: Clock,
) -> None:
    deadly = Deadly("bad")
    cast = Cast(model=FakeModel(deadly), store=MortalStore())
    for text, chat in (("hello", "b"), ("bad", "a"), ("two", "a"), ("ho", "c")):
        cast.platform.write(text, chat=chat)
    lived: list[bool] = []
    while not any(lived) and len(lived) < 9:
        assert isinstance(cast.store, MortalStore)
        deadly.store = cast.store
        lived.append(await run_until_death(autojump_clock, cast))
    assert lived == [*[False] * 6, True]
    assert cast.platform.said("a") == [GAVE_UP.replace("3", "6"), "anna: to two"]
    assert cast.platform.said("b") == ["anna: to hello"]
    assert cast.platform.said("c") == ["anna: to ho"]
    (row,) = [r for r in cast.store._rows.inbox.values() if r.state == "dead"]
    assert (row.attempts, row.reason) == (6, "attempts")
    assert len([r for r in cast.model.requests if heard(r) == "bad"]) == 6


async def test_a_turn_is_not_begun_again_before_that_is_stored(
    autojump_clock: Clock,
) -> None:
    # The first claim is lost with its process, and the next ones, too.
    deaths: tuple[Death, ...] = ((2, "before"), (1, "before"), (1, "before"))
    cast = Cast(store=MortalStore(*deaths))
    cast.platform.write("hello")
    assert await run_through(autojump_clock, cast) == 4
    assert len(cast.model.requests) <= 2
    assert cast.platform.said() == ["anna: anna heard hello"]


async def test_an_orderly_end_in_mid_turn_is_no_attempt(autojump_clock: Clock) -> None:
    cast = Cast(model=FakeModel(lambda _: Says("yes", after=60)), store=MortalStore())
    cast.platform.write("hello")
    for _ in range(5):
        async with open_company(autojump_clock, cast):
            await until(lambda: cast.model.running)
            (row,) = await cast.store.unsettled()
            assert (row.state, row.attempts) == ("running", 1)
        (row,) = cast.store._rows.inbox.values()
        assert (row.state, row.attempts, row.reason) == ("accepted", 0, "stopped")
        cast.restart()
    async with open_company(autojump_clock, cast):
        await at_rest(cast)
    assert cast.platform.said() == ["anna: yes"]


@pytest.mark.parametrize(("pause", "state"), [(200.0, "dead"), (5.0, "replied")])
async def test_a_turn_cut_off_too_long_ago_is_given_up_if_settings_say_so(
    pause: float, state: str, autojump_clock: Clock
) -> None:
    cast = Cast(
        model=FakeModel(lambda _: Says("yes", after=60)),
        store=MortalStore(),
        retries=RetryPolicy(stuck_after=100.0),
    )
    cast.platform.write("hello")
    store = cast.store
    assert isinstance(store, MortalStore)

    async def die() -> None:
        await until(lambda: cast.model.running)
        store.die()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(die)
        assert not await run_until_death(autojump_clock, cast)
    await trio.sleep(pause)
    async with open_company(autojump_clock, cast):
        await at_rest(cast)
    assert await cast.inbox() == {state: 1}
