"""Proves that a turn goes on where an earlier attempt was cut off, not before it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

import msgspec
import trio
import trio.testing

from actors import names
from actors.agents.persona import Persona
from actors.messages.inbound import (
    ModelRequest,
    ToolCall,
    ToolContext,
    ToolResult,
    ToolSpec,
    Usage,
)
from actors.messages.usage import Spent
from actors.protocol import (
    Failed,
    Finished,
    RunTurn,
    StartTurn,
    TurnEnded,
    TurnStreamed,
)
from actors.rules.markers.actions import Delegation
from actors.turn.machine import ModelReplied, Step, ToolReturned
from actors.turn.tools import IN_DOUBT
from actors.turn.turn import Turn
from runtime.errors import StoreUnavailableError
from runtime.store.rows import Append, Commit, NewEvent, StoredEvent
from runtime.testing import Probe
from tests.fakes.actors.neighbours import (
    anna,
    make_services,
    of_kind,
    open_accounts,
    probe,
    words,
)
from tests.fakes.company.company import FakeModel, Says, call
from tests.fakes.store.in_memory import MemoryStore
from tests.support.puppet import virtual

Clock = trio.testing.MockClock

STREAM = "anna/fake/room//zoe/m1"
PAY, LOOK = call("pay", 1), call("look", 2)
HAND = call("delegate", 3, agent="ben", task="x")
USED = Usage(10, 5)


class Tool:
    """Notes its calls."""

    def __init__(self, name: str) -> None:
        self.spec = ToolSpec(
            name,
            "",
            b"{}",
            is_repeatable=name != "pay",
            effect="read",
            is_own_words=True,
        )
        self.calls: list[str] = []

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        del context
        await trio.lowlevel.checkpoint()
        self.calls.append(call.id)
        return ToolResult(f"{call.name} done")


class Bench:
    """A turn with two tools and a journal."""

    def __init__(self, *steps: Step) -> None:
        self.steps = steps
        self.pay, self.look = Tool("pay"), Tool("look")
        self.model = FakeModel(lambda _: "Done.")
        self.store = MemoryStore()

    def persona(self) -> Persona:
        tools = {"pay": self.pay, "look": self.look}
        return replace(anna(delegates=("ben",)), tools=tools)

    async def recorded(self) -> list[StoredEvent]:
        return list(await self.store.read(STREAM))


def spent(usage: Usage, account: str = "scripted", calls: int = 1) -> Spent:
    return Spent(
        provider="scripted", model="fake-1", account=account, usage=usage, calls=calls
    )


def finished(usage: Usage, *parts: Spent) -> Finished:
    text, used = "Wait.\n\nDone.", ("pay", "look")
    return Finished(text, (), usage, rounds=2, spent=parts, used=used)


def event_of(step: Step) -> NewEvent:
    kind = "round" if isinstance(step, ModelReplied) else "tool"
    return NewEvent(kind, msgspec.json.encode(step))


@asynccontextmanager
async def resumed(clock: Clock, bench: Bench) -> AsyncGenerator[Probe]:
    """Start the turn again after its recorded steps; give its session."""
    if bench.steps:
        journal = Append(
            stream=STREAM, expected=0, part=0, events=tuple(map(event_of, bench.steps))
        )
        await bench.store.commit(Commit(at=1.0, appends=(journal,)))
    async with virtual(clock) as system:
        session = probe(system, "session")
        probe(system, names.agent("anna"))
        services = make_services(bench.store)
        open_accounts(system, services, bench.model)
        turn = system.spawn(Turn(bench.persona(), services))
        start = StartTurn(
            turn_id="t1",
            generation=1,
            session=session.actor_ref,
            inbound=words("what?"),
            history=(),
            steps=STREAM,
            may_have_steps=True,
        )
        turn.tell(RunTurn(start))
        yield session
        await trio.testing.wait_all_tasks_blocked()
        assert not turn.is_alive()


async def end_of(clock: Clock, bench: Bench) -> tuple[Finished | Failed, str]:
    """Give what became of the turn, and what it said meanwhile."""
    async with resumed(clock, bench) as session:
        ended = await session.wait_for(TurnEnded, within=1000)
    spoken = "".join(each.text for each in of_kind(session, TurnStreamed))
    return ended.outcome, spoken


async def test_each_step_is_recorded_before_the_next(autojump_clock: Clock) -> None:
    bench = Bench()
    at: list[int] = []

    def talk(_request: ModelRequest) -> Says:
        at.append(len(bench.store._rows.journal.get(STREAM, [])))
        return Says("Wait.", calls=(PAY, LOOK)) if len(at) == 1 else Says("Done.")

    bench.model = FakeModel(talk)
    outcome, _ = await end_of(autojump_clock, bench)
    assert outcome == finished(Usage(6, 4), spent(Usage(6, 4), calls=2))
    assert at == [0, 3]  # the answer to the second is stored with the reply
    kinds = [event.kind for event in await bench.recorded()]
    assert kinds == ["round", "tool", "tool"]


async def test_with_all_results_there_only_the_model_is_asked(
    autojump_clock: Clock,
) -> None:
    bench = Bench(
        ModelReplied("Wait.", (PAY, LOOK), USED),
        ToolReturned("call-2", "seen"),
        ToolReturned("call-1", "paid"),
    )
    outcome, spoken = await end_of(autojump_clock, bench)
    assert (bench.pay.calls, bench.look.calls) == ([], [])
    (request,) = bench.model.requests
    assert [line.text for line in request.lines] == ["what?", "Wait.", "paid", "seen"]
    # What was recorded does not say on which account.
    was = msgspec.structs.replace(spent(USED, account=""), model="scripted")
    each = (was, spent(Usage(3, 2)))
    assert outcome == finished(USED + Usage(3, 2), *each)
    assert spoken == "Wait.\n\nDone."


async def test_of_the_calls_without_a_result_only_the_repeatable_one_runs(
    autojump_clock: Clock,
) -> None:
    bench = Bench(ModelReplied("", (PAY, LOOK)))
    await end_of(autojump_clock, bench)
    assert (bench.pay.calls, bench.look.calls) == ([], ["call-2"])
    (request,) = bench.model.requests
    results = {line.tool_call_id: line.text for line in request.lines[2:]}
    assert results == {"call-1": f"Error: {IN_DOUBT}", "call-2": "look done"}
    recorded = [event.body for event in await bench.recorded()]
    assert len(recorded) == 3
    assert any(IN_DOUBT.encode() in body for body in recorded)


async def test_in_a_later_round_even_that_tool_runs_again(
    autojump_clock: Clock,
) -> None:
    bench = Bench(ModelReplied("", (PAY,)))
    again = call("pay", 7)
    answers = iter([Says(calls=(again,)), Says("Done.")])
    bench.model = FakeModel(lambda _: next(answers))
    await end_of(autojump_clock, bench)
    assert bench.pay.calls == ["call-7"]


async def test_what_was_handed_on_before_is_handed_on_once(
    autojump_clock: Clock,
) -> None:
    done = Bench(
        ModelReplied("", (HAND, LOOK)), ToolReturned("call-3", "Handed to ben.")
    )
    outcome, _ = await end_of(autojump_clock, done)
    assert isinstance(outcome, Finished)
    assert outcome.delegations == (Delegation("ben", "x"),)
    assert done.look.calls == ["call-2"]


async def test_what_was_to_be_handed_on_when_it_ended_is_handed_on_once(
    autojump_clock: Clock,
) -> None:
    open_call = Bench(ModelReplied("", (HAND,)))
    outcome, _ = await end_of(autojump_clock, open_call)
    assert isinstance(outcome, Finished)
    assert outcome.delegations == (Delegation("ben", "x"),)


async def test_what_could_not_be_handed_on_is_not(autojump_clock: Clock) -> None:
    refused = Bench(
        ModelReplied("", (HAND,)), ToolReturned("call-3", "no", is_error=True)
    )
    outcome, _ = await end_of(autojump_clock, refused)
    assert isinstance(outcome, Finished)
    assert outcome.delegations == ()


async def test_a_turn_that_another_took_over_ends_without_a_further_step(
    autojump_clock: Clock,
) -> None:
    bench = Bench()

    def talk(_request: ModelRequest) -> Says:
        other = event_of(ToolReturned("x", "theirs"))
        journal = Append(stream=STREAM, expected=0, part=0, events=(other,))
        bench.store._rows.apply(Commit(at=1.0, appends=(journal,)), 0)
        return Says(calls=(PAY,))

    bench.model = FakeModel(talk)
    outcome, _ = await end_of(autojump_clock, bench)
    assert isinstance(outcome, Failed)
    assert outcome.reason == "superseded"
    assert bench.pay.calls == []
    assert len(bench.model.requests) == 1


class Unreadable(MemoryStore):
    """Cannot be read."""

    async def read(
        self, stream: str, after: int = 0, limit: int = 1000
    ) -> tuple[StoredEvent, ...]:
        raise StoreUnavailableError(f"{stream} after {after}: no, {limit} times")


async def test_steps_that_cannot_be_read_may_be_readable_later(
    autojump_clock: Clock,
) -> None:
    bench = Bench()
    bench.store = Unreadable()
    outcome, _ = await end_of(autojump_clock, bench)
    assert isinstance(outcome, Failed)
    assert (outcome.reason, outcome.may_retry) == ("store", True)
    assert bench.model.requests == []
