"""Proves that a consultant answers once, keeps it, and leaves nobody waiting."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from actors import names
from actors.collaboration.consultant import (
    GONE,
    MOST_OPEN,
    SNAPSHOT_EVERY,
    Consultant,
)
from actors.delegation.messages import (
    CancelConsult,
    Consult,
    ConsultationResult,
    book_key,
)
from actors.messages.inbound import DelegationChain, TranscriptLine, Usage
from actors.messages.usage import Spent
from actors.protocol import (
    ApprovalResult,
    CancelTurn,
    Failed,
    Finished,
    PromptShortened,
    RequestApproval,
    ResumeTurn,
    ShortenPrompt,
    StartTurn,
    TurnEnded,
    TurnSpent,
)
from runtime.actor.ref import ActorRef
from runtime.actor.reply import Reply
from runtime.testing import Probe
from tests.fakes.actors.neighbours import anna, make_services, of_kind, probe, words
from tests.fakes.company.company import TrioClock
from tests.fakes.company.furnished import changed
from tests.fakes.store.in_memory import MemoryStore
from tests.support.puppet import virtual

Clock = trio.testing.MockClock

KEY = book_key(words(), "anna", "ben").text
SPENT = Spent(provider="p", model="m", account="a", usage=Usage(3, 2), cost=0.5)


def asked(number: int = 1, **fields: Any) -> Consult:
    chain = DelegationChain(agents=("ben", "anna"), deadline=100)
    inbound = words(f"question {number}", number, chain=chain)
    given: dict[str, Any] = {"session": "s", "is_new": True}
    return Consult(inbound=inbound, source="ben", **{**given, **fields})


class Desk:
    """A consultant, and its agent."""

    def __init__(self, ref: ActorRef, agent: Probe, store: MemoryStore) -> None:
        self.ref = ref
        self.agent = agent
        self.store = store
        self.ended = 0

    def ask(self, consult: Consult) -> Reply:
        reply: Reply = self.ref.ask(consult, timeout=500)
        return reply

    @property
    def starts(self) -> list[StartTurn]:
        return of_kind(self.agent, StartTurn)

    async def end(self, outcome: Finished | Failed) -> None:
        """End the oldest turn that runs."""
        await trio.testing.wait_all_tasks_blocked()
        self.ref.tell(TurnEnded(self.starts[self.ended].turn_id, outcome))
        self.ended += 1

    async def usage(self) -> list[dict[str, Any]]:
        rows = await self.store.records("usage")
        return [msgspec.json.decode(each.body) for each in rows]


@asynccontextmanager
async def open_desk(
    clock: Clock, store: MemoryStore | None = None
) -> AsyncGenerator[Desk]:
    store = store or MemoryStore()
    async with virtual(clock) as system:
        agent = probe(system, names.agent("anna"))
        ref = system.spawn(Consultant(KEY, anna, make_services(store)))
        yield Desk(ref, agent, store)


async def test_the_answer_comes_when_it_is_stored(autojump_clock: Clock) -> None:
    async with open_desk(autojump_clock) as desk:
        reply = desk.ask(asked())
        await desk.end(Finished("well [DONE]", spent=(SPENT,)))
        assert await reply == ConsultationResult("ok", "well", is_done=True)
        assert desk.starts[0].mode == "collaboration"
        assert desk.starts[0].inbound.text == "question 1"
        (row,) = await desk.usage()
        assert (row["agent"], row["sender_id"], row["cost"]) == ("anna", "zoe", 0.5)


@pytest.mark.parametrize("ahead", [-86_400.0, 0.0, 86_400.0])
async def test_a_wrong_clock_ends_no_question_early_or_late(
    autojump_clock: Clock, ahead: float
) -> None:
    clock = TrioClock()
    clock.ahead = ahead
    services = changed(make_services(MemoryStore()), clock=clock)
    async with virtual(autojump_clock) as system:
        probe(system, names.agent("anna"))
        ref = system.spawn(Consultant(KEY, anna, services))
        told = await ref.ask(asked(), timeout=100_000)
        assert (told.outcome, trio.current_time()) == ("late", 100)


async def test_asked_again_it_says_the_same(autojump_clock: Clock) -> None:
    async with open_desk(autojump_clock) as desk:
        desk.ask(asked())
        await desk.end(Finished("well"))
        while_it_is_stored = desk.ask(asked())
        assert (await while_it_is_stored).text == "well"
        assert (await desk.ask(asked())).text == "well"
        assert len(desk.starts) == 1


async def test_asked_again_whoever_is_done_stays_done_and_sends_the_same_files(
    autojump_clock: Clock,
) -> None:
    async with open_desk(autojump_clock) as desk:
        first = desk.ask(asked())
        await desk.end(Finished("well [DONE]"))
        assert await first == await desk.ask(asked())
        assert (await first).is_done
    store = desk.store
    async with open_desk(autojump_clock, store) as later:
        assert (await later.ask(asked())).is_done
        assert later.starts == []


async def test_who_is_gone_is_told_at_once(autojump_clock: Clock) -> None:
    async with virtual(autojump_clock) as system:
        ref = system.spawn(Consultant(KEY, anna, make_services(MemoryStore())))
        began = trio.current_time()
        told = await ref.ask(asked(), timeout=500)
        assert (told.outcome, told.text) == ("failed", GONE)
        assert trio.current_time() == began


async def test_asked_again_while_it_thinks_it_begins_nothing_anew(
    autojump_clock: Clock,
) -> None:
    async with open_desk(autojump_clock) as desk:
        desk.ask(asked())
        again = desk.ask(asked())
        await desk.end(Finished("well"))
        assert await again == ConsultationResult("ok", "well")
        assert len(desk.starts) == 1


async def test_what_was_said_is_there_when_it_goes_on(autojump_clock: Clock) -> None:
    async with open_desk(autojump_clock) as desk:
        first = desk.ask(asked(1))
        await desk.end(Finished("well"))
        await first
        reply = desk.ask(asked(2, is_new=False))
        await desk.end(Finished("so"))
        assert (await reply).text == "so"
        assert desk.starts[1].history == (
            TranscriptLine("user", "question 1", name="ben"),
            TranscriptLine("assistant", "well", name="anna"),
        )


async def test_nobody_goes_on_with_what_is_not_there(autojump_clock: Clock) -> None:
    async with open_desk(autojump_clock) as desk:
        told = await desk.ask(asked(is_new=False))
        assert told.outcome == "unknown_session"
        assert desk.starts == []


async def test_who_waits_is_told_when_it_ends_and_its_turn_ends_too(
    autojump_clock: Clock,
) -> None:
    async with open_desk(autojump_clock) as desk:
        reply = desk.ask(asked())
        await trio.testing.wait_all_tasks_blocked()
        desk.ref.stop()
        assert (await reply).outcome == "failed"
        await trio.testing.wait_all_tasks_blocked()
        assert of_kind(desk.agent, CancelTurn) == [CancelTurn(desk.starts[0].turn_id)]


async def test_a_cancelled_question_is_paid_for_and_forgotten(
    autojump_clock: Clock,
) -> None:
    async with open_desk(autojump_clock) as desk:
        reply = desk.ask(asked())
        await trio.testing.wait_all_tasks_blocked()
        turn_id = desk.starts[0].turn_id
        desk.ref.tell(TurnSpent(turn_id, (SPENT,)))
        desk.ref.tell(CancelConsult("m1"))
        assert (await reply).outcome == "cancelled"
        assert of_kind(desk.agent, CancelTurn) == [CancelTurn(turn_id)]
        (row,) = await desk.usage()
        assert (row["cost"], row["status"]) == (0.5, "stopped")
        told = await desk.ask(asked(2, is_new=False))
        assert told.outcome == "unknown_session"


async def test_asked_again_while_it_is_being_cancelled_it_thinks_anew(
    autojump_clock: Clock,
) -> None:
    async with open_desk(autojump_clock, MemoryStore(fails_at=(1,))) as desk:
        first = desk.ask(asked())
        await trio.testing.wait_all_tasks_blocked()
        desk.ref.tell(CancelConsult("m1"))
        again = desk.ask(asked(attempt=2))  # the disk is full: the first is not ended
        desk.ref.tell(TurnEnded(desk.starts[0].turn_id, Finished("too late")))
        desk.ended = 1
        await desk.end(Finished("anew"))
        assert (await first).outcome == "cancelled"
        assert await again == ConsultationResult("ok", "anew")
        assert [each.attempt for each in desk.starts] == [1, 2]


async def test_what_comes_too_late_is_late_at_once(autojump_clock: Clock) -> None:
    async with open_desk(autojump_clock) as desk:
        await trio.sleep(200)  # its deadline is at 100
        assert (await desk.ask(asked())).outcome == "late"
        assert trio.current_time() == 200


async def test_when_the_time_is_up_it_is_late(autojump_clock: Clock) -> None:
    async with open_desk(autojump_clock) as desk:
        assert (await desk.ask(asked())).outcome == "late"
        assert 99 < trio.current_time() < 101
        assert len(of_kind(desk.agent, CancelTurn)) == 1


async def test_a_turn_that_fails_is_told_and_its_cost_kept(
    autojump_clock: Clock,
) -> None:
    async with open_desk(autojump_clock) as desk:
        reply = desk.ask(asked())
        await desk.end(Failed("no money", "budget", spent=(SPENT,)))
        assert await reply == ConsultationResult("failed", "no money")
        assert [row["status"] for row in await desk.usage()] == ["budget"]


async def test_answers_at_the_same_time_are_stored_one_after_the_other(
    autojump_clock: Clock,
) -> None:
    async with open_desk(autojump_clock) as desk:
        replies = [desk.ask(asked(n, session=f"s{n}")) for n in range(5)]
        for number in range(5):
            await desk.end(Finished(f"answer {number}"))
        told = [(await each).text for each in replies]
        assert told == [f"answer {n}" for n in range(5)]
        assert len(await desk.store.read(KEY)) == 5


async def test_a_full_disk_is_waited_for(autojump_clock: Clock) -> None:
    async with open_desk(autojump_clock, MemoryStore(fails_at=(1, 2))) as desk:
        reply = desk.ask(asked())
        await desk.end(Finished("well"))
        assert (await reply).text == "well"
        assert trio.current_time() >= 2


async def test_who_else_wrote_to_its_book_ends_it_and_nobody_waits(
    autojump_clock: Clock,
) -> None:
    async with open_desk(autojump_clock) as desk:
        reply = desk.ask(asked())
        await trio.testing.wait_all_tasks_blocked()
        desk.store._rows.journal[KEY] = [object()]  # type: ignore[list-item]
        await desk.end(Finished("well"))
        assert (await reply).outcome == "failed"


async def test_too_many_at_once_are_refused(autojump_clock: Clock) -> None:
    async with open_desk(autojump_clock) as desk:
        for number in range(MOST_OPEN):
            desk.ask(asked(number, session=f"s{number}"))
        told = await desk.ask(asked(99, session="s99"))
        assert told.outcome == "busy"


async def test_a_turn_finds_no_people_behind_the_scenes(autojump_clock: Clock) -> None:
    async with open_desk(autojump_clock) as desk:
        desk.ask(asked())
        await trio.testing.wait_all_tasks_blocked()
        turn_id = desk.starts[0].turn_id
        wanted = RequestApproval(
            turn_id=turn_id, call_id="c", key="k", tool="t", effect="read", summary=""
        )
        leave: ApprovalResult = await desk.ref.ask(wanted)
        assert (leave.outcome, bool(leave.why)) == ("unasked", True)
        assert await desk.ref.ask(ResumeTurn(turn_id)) is True
        shorter: PromptShortened = await desk.ref.ask(
            ShortenPrompt(turn_id, "tokens", must=True)
        )
        assert shorter.outcome == "kept"


async def test_its_next_incarnation_reads_a_snapshot_and_what_came_after(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    count = SNAPSHOT_EVERY + 2
    async with open_desk(autojump_clock, store) as desk:
        for number in range(count):
            reply = desk.ask(asked(number, session=f"s{number}"))
            await desk.end(Finished(f"answer {number}"))
            await reply
    snapshot = await store.snapshot(KEY)
    assert snapshot is not None
    assert snapshot.sequence == SNAPSHOT_EVERY
    async with open_desk(autojump_clock, store) as desk:
        for number in (SNAPSHOT_EVERY - 1, count - 1):
            told = await desk.ask(asked(number, session=f"s{number}"))
            assert told.text == f"answer {number}"
        assert desk.starts == []
