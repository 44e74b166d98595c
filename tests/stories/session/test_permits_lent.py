"""A turn that only waits for people lets others run, and never two for one permit."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import example, given, settings, strategies as st

from actors.config.limits import LimitsConfig
from actors.messages.inbound import ModelRequest
from runtime.system import ActorSystem
from tests.fakes.company.company import (
    FakeModel,
    Says,
    at_rest,
    call,
    heard,
    open_company,
)
from tests.fakes.company.shell import Office
from tests.support.tiers import examples

Clock = trio.testing.MockClock

MOST = 2


def office_of(clock: Clock, most: int, **cast: Any) -> Office:
    return Office(clock, limits=LimitsConfig(max_in_flight=most), **cast)


def busy(request: ModelRequest) -> str | Says:
    """Take a second for each round; ask for as many calls as the words say."""
    line = request.lines[-1]
    if line.role == "tool":
        return Says("It says so.", after=1.0)
    if "run" in line.text:
        count = int(line.text.split()[-1])
        calls = tuple(call("shell", n, command="ls") for n in range(1, count + 1))
        return Says("Wait.", calls=calls, after=1.0)
    return Says(f"to {heard(request)}", after=1.0)


async def test_who_waits_for_leave_keeps_nobody_else_waiting(
    autojump_clock: Clock,
) -> None:
    office = office_of(autojump_clock, 1)
    async with open_company(autojump_clock, office.cast):
        office.platform.write("run ls")
        approval_id = await office.asked()
        office.platform.write("hello", chat="other", sender="sam")
        await trio.sleep(1)
        assert office.said("other") == ["anna: to hello"]
        office.platform.write(f"/approve {approval_id}", sender="olga")
        await at_rest(office.cast)
    assert office.said()[-1] == "anna: Wait.\n\nIt says: done"


async def test_what_was_approved_runs_when_there_is_a_permit_again(
    autojump_clock: Clock,
) -> None:
    office = office_of(autojump_clock, 1, model=FakeModel(busy))
    async with open_company(autojump_clock, office.cast):
        office.platform.write("run 1")
        approval_id = await office.asked()
        for number in range(3):
            office.platform.write("hello", chat=f"{number}", sender="sam")
        await trio.sleep(0.1)
        office.platform.write(f"/approve {approval_id}", sender="olga")
        await trio.sleep(0.1)
        assert office.shell.ran == []
        await trio.sleep(1)
        assert office.shell.ran == ["zoe call-1"]  # before those that had not begun
        await at_rest(office.cast)
    assert office.cast.model.most_running == 1


async def test_a_turn_that_still_runs_something_keeps_its_permit(
    autojump_clock: Clock,
) -> None:
    office = office_of(autojump_clock, 1, model=FakeModel(busy))
    office.shell.takes = 20.0
    async with open_company(autojump_clock, office.cast):
        office.platform.write("run 2")
        approval_id = await office.asked(2)
        office.platform.write(f"/approve {approval_id}", sender="olga")
        await trio.sleep(1)
        office.platform.write("hello", chat="other", sender="sam")
        await trio.sleep(10)
        assert office.said("other") == []
        await trio.sleep(15)
        assert office.said("other") == ["anna: to hello"]
        await at_rest(office.cast)


ACTS = st.tuples(
    st.sampled_from(["run 1", "run 2", "approve", "deny", "/stop", "hello", "kill"]),
    st.integers(0, 4),
    st.sampled_from([0.0, 0.0, 0.4, 1.0, 2.0, 40.0]),
)

KILLED_AS_IT_ANSWERED = [
    ("hello", 0, 1.0),
    ("run 1", 1, 0.0),
    ("run 1", 4, 0.0),
    ("kill", 0, 0.0),
]


@pytest.mark.parametrize("takes", [0.0, 3.0])
@settings(max_examples=examples(4, deep=40))
@given(acts=st.lists(ACTS, max_size=25))
@example(acts=KILLED_AS_IT_ANSWERED)
def test_no_permit_is_lost_or_given_twice(
    takes: float, acts: list[tuple[str, int, float]]
) -> None:
    clock = trio.testing.MockClock(autojump_threshold=0)
    office = office_of(clock, MOST, model=FakeModel(busy))
    office.shell.takes = takes

    async def main() -> None:
        async with open_company(clock, office.cast) as company:
            for act, chat, pause in acts:
                play(office, company, act, f"chat{chat}")
                await trio.sleep(pause)
            await at_rest(office.cast, within=4000)
            assert office.cast.model.most_running <= MOST
            office.cast.model.most_running = 0
            for number in range(2 * MOST):
                new = f"new{number}"
                office.platform.write("hello", chat=new, sender=new)
            await at_rest(office.cast)
            assert office.cast.model.most_running == MOST

    trio.run(main, clock=clock)


def play(office: Office, company: ActorSystem, act: str, chat: str) -> None:
    questions = [each for each in office.said(chat) if "/approve" in each]
    if act == "kill":
        for each in company.actors():
            session = company.find(each.name)
            if session is not None and each.name.endswith(f"fake/{chat}//zoe"):
                session.kill()
    elif act not in {"approve", "deny"}:
        office.platform.write(act, chat=chat)
    elif questions:
        approval_id = questions[-1].split("/approve ")[1][:2]
        office.platform.write(f"/{act} {approval_id}", chat=chat, sender="olga")
