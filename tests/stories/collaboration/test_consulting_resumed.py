"""A process may end at any commit: nobody is asked twice who has answered."""

from __future__ import annotations

import msgspec
import pytest
import trio
import trio.testing
from hypothesis import given, settings, strategies as st

from actors.collaboration import questions as asking_round
from actors.config.agents import AgentConfig
from actors.journal.history import Conversation
from actors.journal.rebuild import Fold
from actors.messages.inbound import ModelRequest
from actors.messages.state import RetryPolicy
from actors.rules.prompt.untrusted import unframe
from actors.rules.text.secrets import AuditRedaction
from tests.fakes.company.company import (
    Cast,
    FakeModel,
    Says,
    at_rest,
    call,
    open_company,
)
from tests.fakes.store.crashes import Death, Moment, MortalStore, run_through
from tests.support.tiers import examples

Clock = trio.testing.MockClock

DEATHS: st.SearchStrategy[Death] = st.tuples(
    st.integers(1, 20), st.sampled_from(("before", "after"))
)


class Office:
    """Anna asks ben three things in two rounds; who was answered is not asked again."""

    def __init__(self, *deaths: Death) -> None:
        self.asked_again: list[str] = []
        self.cast = Cast(
            agents={"anna": AgentConfig(delegates=("ben",)), "ben": AgentConfig()},
            model=FakeModel(self.talk),
            store=MortalStore(*deaths),
            retries=RetryPolicy(attempts=4),
        )

    def answered(self) -> set[str]:
        """Give the questions whose answers are stored."""
        journal = self.cast.store._rows.journal
        return {
            msgspec.json.decode(event.body)["asked"]
            for events in journal.values()
            for event in events
            if event.kind == "consulted" and b'"said"' in event.body
        }

    def talk(self, request: ModelRequest) -> Says:
        if request.agent == "ben":
            question = request.lines[-1].text
            if question in self.answered():
                self.asked_again.append(question)
            return Says(f"{question}: yes", after=0.1)
        results = [x for x in request.lines if x.role == "tool"]
        if not results:
            first = call("collaborate", 1, agent="ben", message="one")
            second = call("collaborate", 2, agent="ben", message="two")
            return Says(calls=(first, second), after=0.1)
        if len(results) == 2:
            third = call("consult", 3, agents=["ben"], message="three")
            return Says(calls=(third,), after=0.1)
        return Says(" ".join(map(told, results)), after=0.1)

    async def check(self) -> None:
        assert self.cast.platform.said() == ["anna: one: yes two: yes three: yes"]
        assert self.asked_again == []
        assert await self.cast.inbox() == {"replied": 1}


def told(line: object) -> str:
    text = unframe(getattr(line, "text", ""))
    try:
        return msgspec.json.decode(text, type=asking_round.ColleagueAnswer).answer
    except msgspec.ValidationError:
        found = msgspec.json.decode(text, type=asking_round.ColleagueAnswers)
        return found.answers[0].answer


def play(office: Office) -> int:
    async def main() -> int:
        office.cast.platform.write("go")
        processes = await run_through(clock, office.cast)
        await office.check()
        return processes

    clock = trio.testing.MockClock(autojump_threshold=0)
    return trio.run(main, clock=clock)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_crash_at_any_commit_asks_nobody_again_who_has_answered(
    moment: Moment,
) -> None:
    office = Office()
    assert play(office) == 1
    store = office.cast.store
    assert isinstance(store, MortalStore)
    count = len(store.commits)
    assert count >= 10
    for number in range(1, count + 1):
        assert play(Office((number, moment))) == 2, f"commit {number}"


@pytest.mark.deep
@settings(max_examples=examples(60))
@given(first=DEATHS, second=DEATHS)
def test_two_crashes_anywhere_are_no_worse(first: Death, second: Death) -> None:
    assert play(Office(first, second)) <= 3


async def test_the_rows_of_ledger_and_audit_follow_from_the_journal(
    autojump_clock: Clock,
) -> None:
    office = Office()
    async with open_company(autojump_clock, office.cast):
        office.cast.platform.write("go")
        await at_rest(office.cast)
        fold = Fold(AuditRedaction())
        made = [
            each.record
            for events in office.cast.store._rows.journal.values()
            for event in events
            for each in fold.take(event)
        ]
        made += [each.record for each in fold.end()]
        for kind in ("usage", "audit"):
            stored = {x.id: x.body for x in await office.cast.store.records(kind)}
            assert {x.id: x.body for x in made if x.kind == kind} == stored
            assert len(stored) == 4
    assert fold._counted == Conversation()
