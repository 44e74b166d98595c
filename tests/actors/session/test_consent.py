"""Proves that a turn always gets its answer, whoever has gone meanwhile."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from actors import names
from actors.approvals.permissions import OpenApproval
from actors.config.limits import ApprovalConfig
from actors.messages.inbound import ToolCall, ToolSpec
from actors.protocol import ApprovalDecided, ApprovalResult, RequestApproval, StartTurn
from actors.services import Services
from actors.session.consent import DECIDED_WITHIN, GONE, MOST_LASTING, NOBODY
from actors.turn.steps import StepJournal
from actors.turn.tools import GRACE, LOST, ToolPermissions
from tests.fakes.actors.neighbours import ROOM, anna, make_services, probe, words
from tests.fakes.actors.room import Room, open_room
from tests.fakes.company.furnished import changed
from tests.fakes.store.in_memory import MemoryStore
from tests.support.puppet import virtual

Clock = trio.testing.MockClock

SHELL = ToolSpec("shell", "", b"{}")
CALL = ToolCall("c1", "shell", b"{}")
WHY = "the people here did not allow it"


def asking(room: Room, turn_id: str, number: int = 1, tool: str = "shell") -> Any:
    question = RequestApproval(
        turn_id=turn_id,
        call_id=f"c{number}",
        key=f"k{number}",
        tool=tool,
        effect="write",
        summary="",
    )
    return room.ref.ask(question, timeout=500)


def opened(approval_id: str) -> OpenApproval:
    return OpenApproval(
        id=approval_id,
        turn_id="t",
        key="k",
        agent="ben",
        asker="fake/sam",
        tool="x",
        effect="run",
        address=ROOM,
    )


async def test_a_turn_that_nobody_waits_for_is_told_so(autojump_clock: Clock) -> None:
    async with open_room(autojump_clock) as room:
        assert await asking(room, "t0") == GONE
        await room.hear(words())
        await room.grant()
        assert await asking(room, "other") == GONE
        assert room.said() == []


async def test_a_session_that_fails_takes_its_questions_down(
    autojump_clock: Clock,
) -> None:
    async with open_room(autojump_clock) as room:
        await room.hear(words())
        start = await room.grant()
        answer = asking(room, start.turn_id)
        await room.rest()
        assert len(room.said()) == 1
        room.ref.tell("nonsense")
        assert await answer == GONE
        await trio.sleep(5)
        await room.hear(words("yes", 2))
        await room.rest()
        assert len(room.said()) == 1  # an ordinary word now


async def test_what_is_decided_about_a_question_that_is_gone_changes_nothing(
    autojump_clock: Clock,
) -> None:
    async with open_room(autojump_clock) as room:
        gone = opened("3F")
        room.ref.tell(ApprovalDecided(gone, is_approved=True, by="fake/olga"))
        await room.hear(words())
        await room.answer()
        assert room.said() == ["yes"]


async def test_what_is_decided_about_a_question_counts_for_no_other_with_its_id(
    autojump_clock: Clock,
) -> None:
    async with open_room(autojump_clock) as room:
        await room.hear(words())
        start = await room.grant()
        answer = asking(room, start.turn_id)
        await room.rest()
        await room.look()
        (question,) = room.board.ids
        room.ref.tell(
            ApprovalDecided(opened(question), is_approved=True, by="fake/olga")
        )
        await room.rest()
        assert list(room.board.ids) == [question]
        await room.hear(words("no", 2))
        assert (await answer).outcome == "denied"


@pytest.mark.parametrize("arrives", [True, False])
async def test_a_decision_that_is_on_its_way_is_waited_for_a_moment(
    autojump_clock: Clock, *, arrives: bool
) -> None:
    async with open_room(autojump_clock) as room:
        await room.hear(words())
        start = await room.grant()
        answer = asking(room, start.turn_id)
        await room.look()
        (approval,) = room.board.open
        await trio.sleep(ApprovalConfig().timeout - 2)
        room.board.take(approval)  # another session heard it, and told its writer
        await trio.sleep(1 + DECIDED_WITHIN / 2)
        if arrives:
            room.ref.tell(ApprovalDecided(approval, is_approved=True, by="fake/olga"))
        assert (await answer).outcome == ("approved" if arrives else "timeout")


async def test_with_too_many_questions_open_the_next_is_a_no(
    autojump_clock: Clock,
) -> None:
    async with open_room(autojump_clock) as room:
        await room.hear(words())
        start = await room.grant()
        for number in range(1000):
            room.board.put(opened(f"X{number}"), room.ref, "")
        assert await asking(room, start.turn_id) == ApprovalResult(
            "unasked", why=NOBODY
        )


async def test_only_so_many_approvals_last(autojump_clock: Clock) -> None:
    async with open_room(autojump_clock) as room:
        await room.hear(words())
        start = await room.grant()
        for number in range(MOST_LASTING + 1):
            answer = asking(room, start.turn_id, number, f"tool{number}")
            await room.look()
            await room.hear(words("/approve always", 100 + number))
            assert (await answer).outcome == "approved"
        asked = len([text for text in room.said() if "wants to run" in text])
        assert (await asking(room, start.turn_id, 900, "tool1")).by == "always"
        answer = asking(room, start.turn_id, 901, "tool0")
        await room.look()
        again = len([text for text in room.said() if "wants to run" in text])
        assert again == asked + 1
        await room.hear(words("no", 999))
        assert await answer == ApprovalResult("denied", "fake/zoe", (await answer).why)


@asynccontextmanager
async def permits(
    clock: Clock, services: Services, answer: Callable[[Any], Any]
) -> AsyncGenerator[tuple[ToolPermissions, StepJournal]]:
    """Open what a turn asks with, before a session that answers so."""
    async with virtual(clock) as system:
        session = probe(system, names.sessions("anna"), answer)
        start = StartTurn(
            turn_id="t1",
            generation=1,
            session=session.actor_ref,
            inbound=words(),
            history=(),
            steps="anna/fake/room//zoe/m1",
            may_have_steps=True,
        )
        steps = StepJournal(start, services)
        await steps.read()
        made = ToolPermissions(start, anna(), services, steps)
        made.judge((SHELL,))
        yield made, steps


async def test_a_session_that_is_gone_is_a_no(autojump_clock: Clock) -> None:
    services = changed(make_services(), approvals=ApprovalConfig(timeout=30.0))

    async def never(_: object) -> None:
        await trio.sleep_forever()

    async with permits(autojump_clock, services, never) as (made, _):
        assert made.needing((CALL,)) == ("shell",)
        began = trio.current_time()
        assert await made.refusal(CALL, SHELL, "k") == LOST.why
        assert 30 + GRACE - 1 < trio.current_time() - began < 30 + GRACE + 1


async def test_a_decision_outlives_the_process(autojump_clock: Clock) -> None:
    store = MemoryStore()
    services = make_services(store)
    denied = ApprovalResult("denied", "fake/olga", WHY)
    async with permits(autojump_clock, services, lambda _: denied) as (made, _):
        assert await made.refusal(CALL, SHELL, "k") == WHY
    yes = ApprovalResult("approved", "fake/olga")
    async with permits(autojump_clock, services, lambda _: yes) as (made, steps):
        assert steps.leaves["c1"].by == "fake/olga"
        assert await made.refusal(CALL, SHELL, "k") == WHY
        other = ToolCall("c2", "shell", b"{}")
        assert await made.refusal(other, SHELL, "k2") == ""
    async with permits(autojump_clock, services, lambda _: denied) as (made, _):
        assert await made.refusal(other, SHELL, "k2") == ""
