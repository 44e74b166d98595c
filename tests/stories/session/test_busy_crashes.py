"""A process may end at any commit: shared turns are answered once, by every policy."""

from __future__ import annotations

from collections import Counter
from typing import get_args

import msgspec
import pytest
import trio
import trio.testing
from hypothesis import given, settings, strategies as st

from actors.config.agents import AgentConfig
from actors.config.sessions import BufferingConfig
from actors.journal.records import AuditRecord
from actors.messages.busy_policies import HEADER, BusyPolicy
from actors.messages.inbound import (
    ModelRequest,
    ToolCall,
    ToolContext,
    ToolResult,
    ToolSpec,
)
from actors.messages.state import RetryPolicy
from runtime.store.rows import Commit, Settle
from tests.fakes.company.company import (
    Cast,
    FakeModel,
    Says,
    at_rest,
    call,
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

POLICIES: tuple[BusyPolicy, ...] = get_args(BusyPolicy)
WORDS = ("one", "two", "three", "four")
DEATHS: st.SearchStrategy[Death] = st.tuples(
    st.integers(1, 30), st.sampled_from(("before", "after"))
)


class Pay:
    """A tool that must not be called twice for one call."""

    spec = ToolSpec("pay", "", b"{}", effect="read", is_own_words=True)

    def __init__(self) -> None:
        self.paid: list[str] = []

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        self.paid.append(f"{context.correlation_id}/{call.id}")
        await trio.sleep(3.0)
        return ToolResult("paid")


def talk(request: ModelRequest) -> Says:
    """Pay for each question, once or twice; then repeat what was said in its turn."""
    lines = request.lines
    own = [n for n, x in enumerate(lines) if x.role == "user" and ":)\n" not in x.text]
    turn = lines[own[-1] :]
    paid = sum(line.role == "tool" for line in turn)
    if request.tools and paid < 1 + ("twice" in turn[0].text):
        return Says(calls=(call("pay", paid + 1, paid=paid),), after=1.0)
    return Says(" ".join(x.text for x in turn if x.role == "user"), after=1.0)


class Bank:
    """One agent with a tool, and somebody who writes four times in a row."""

    def __init__(self, policy: BusyPolicy, *deaths: Death) -> None:
        self.pay = Pay()
        self.cast = Cast(
            agents={"anna": AgentConfig(tools=("pay",), autonomy="full")},
            model=FakeModel(talk),
            tools=(self.pay,),
            store=MortalStore(*deaths),
            retries=RetryPolicy(),
            buffering=BufferingConfig(policy=policy),
        )

    @property
    def store(self) -> MortalStore:
        store = self.cast.store
        assert isinstance(store, MortalStore)
        return store

    async def check(self) -> None:
        """See that each word is in one answer, and each message settled once."""
        said = [x for x in self.cast.platform.said() if x != ": "]
        found = Counter(word for text in said for word in WORDS if word in text)
        assert found == dict.fromkeys(WORDS, 1), said
        inbox = await self.cast.inbox()
        assert inbox.pop("replied") + inbox.pop("cancelled", 0) == len(WORDS)
        assert inbox == {}
        assert set(await self.cast.outbox()) == {"sent"}
        assert max(Counter(self.pay.paid).values(), default=0) <= 1
        rows = await self.cast.store.records_since("audit", 0.0, 0, 100)
        audit = [msgspec.json.decode(row.body, type=AuditRecord) for row in rows]
        assert len({row.id for row in rows}) == len(WORDS)
        assert all(any(word in x.input for x in audit) for word in WORDS)


def play(bank: Bank) -> int:
    """Let all be answered, however many processes it takes."""

    async def main() -> int:
        for word in WORDS:
            bank.cast.platform.write(word)
        processes = await run_through(clock, bank.cast)
        await bank.check()
        return processes

    clock = trio.testing.MockClock(autojump_threshold=0)
    return trio.run(main, clock=clock)


# The first tier tries each policy once, half of them before and half after the commit.
@pytest.mark.parametrize(
    ("policy", "moment"),
    [
        pytest.param(policy, each, marks=[pytest.mark.deep] * ((number + late) % 2))
        for number, policy in enumerate(POLICIES)
        for late, each in enumerate(("before", "after"))
    ],
)
def test_a_crash_at_any_commit_loses_nothing_and_says_nothing_twice(
    policy: BusyPolicy, moment: Moment
) -> None:
    bank = Bank(policy)
    assert play(bank) == 1
    count = len(bank.store.commits)
    for number in range(1, count + 1):
        assert play(Bank(policy, (number, moment))) <= 2, f"commit {number}"


@pytest.mark.deep
@settings(max_examples=examples(60))
@given(policy=st.sampled_from(POLICIES), first=DEATHS, second=DEATHS)
def test_two_crashes_anywhere_are_no_worse(
    policy: BusyPolicy, first: Death, second: Death
) -> None:
    assert play(Bank(policy, first, second)) <= 3


async def cut_off(clock: Clock, bank: Bank, requests: int) -> None:
    """Let the process die while the model answers its request of this number."""

    async def die() -> None:
        await until(lambda: len(bank.cast.model.requests) == requests)
        await trio.sleep(0.5)
        bank.store.die()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(die)
        assert not await run_until_death(clock, bank.cast)


async def test_a_merged_turn_is_resumed_with_the_same_messages(
    autojump_clock: Clock,
) -> None:
    bank = Bank("followup")
    for word in WORDS:
        bank.cast.platform.write(word)
    await cut_off(autojump_clock, bank, requests=4)
    paid = len(bank.pay.paid)
    bank.cast.platform.write("five")
    async with open_company(autojump_clock, bank.cast):
        await at_rest(bank.cast)
    question = f"{HEADER}\n---\n#1: two\n---\n#2: three\n---\n#3: four"
    resumed = bank.cast.model.requests[4].lines
    assert [line.role for line in resumed[2:]] == ["user", "assistant", "tool"]
    assert resumed[2].text == question
    assert bank.cast.platform.said() == [
        "anna: one",
        f"anna: {question}",
        "anna: five",
    ]
    assert len(bank.pay.paid) == paid + 1  # for five
    assert await bank.cast.inbox() == {"replied": 5}


async def test_a_steered_turn_is_resumed_with_the_words_in_their_place(
    autojump_clock: Clock,
) -> None:
    bank = Bank("steer")
    for word in ("one, twice", "two"):
        bank.cast.platform.write(word)
    await cut_off(autojump_clock, bank, requests=3)
    async with open_company(autojump_clock, bank.cast):
        await at_rest(bank.cast)
    before, after = (bank.cast.model.requests[n].lines for n in (2, 3))
    assert before == after
    roles = [line.role for line in after]
    assert roles == ["user", "assistant", "tool", "user", "assistant", "tool"]
    assert len(bank.cast.platform.said()) == 1
    assert len(bank.pay.paid) == 2
    assert await bank.cast.inbox() == {"replied": 2}


async def test_what_was_dropped_by_hand_meanwhile_is_left_out(
    autojump_clock: Clock,
) -> None:
    bank = Bank("followup")
    for word in WORDS:
        bank.cast.platform.write(word)
    async with open_company(autojump_clock, bank.cast):
        await until(lambda: len(bank.cast.model.requests) == 4)
        (three,) = [x.id for x in await bank.store.unsettled() if b'"three"' in x.body]
        await bank.store.commit(Commit(at=1.0, settles=(Settle(three, "dropped"),)))
        await at_rest(bank.cast)
    assert await bank.cast.inbox() == {"replied": 3, "dropped": 1}
    assert len(bank.cast.platform.said()) == 2


async def test_the_first_dropped_by_hand_takes_no_other_along(
    autojump_clock: Clock,
) -> None:
    bank = Bank("followup")
    for word in WORDS:
        bank.cast.platform.write(word)
    async with open_company(autojump_clock, bank.cast):
        await until(lambda: len(bank.cast.model.requests) == 4)
        (two,) = [x.id for x in await bank.store.unsettled() if b'"two"' in x.body]
        await bank.store.commit(Commit(at=1.0, settles=(Settle(two, "dropped"),)))
        await at_rest(bank.cast)
    assert await bank.cast.inbox() == {"replied": 3, "dropped": 1}
    last = bank.cast.platform.said()[-1]
    assert last == f"anna: {HEADER}\n---\n#1: three\n---\n#2: four"
