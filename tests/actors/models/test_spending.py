"""Proves that budgets count as a person with a pencil would, whatever clocks do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import UTC, datetime
from itertools import count

import trio
import trio.testing
from hypothesis import example, given, strategies as st

from actors import names
from actors.messages.inbound import Usage
from actors.messages.usage import Spent
from actors.models.accounts import Accounts
from actors.models.budget import Budget, Limit, Spender
from actors.models.messages import (
    CallEnded,
    CallLater,
    OverBudget,
    ReplaceCatalogue,
    Reserve,
    Reserved,
    Ruling,
)
from actors.models.spending import CALL, Spending
from runtime.actor.ref import ActorRef
from runtime.store.rows import Commit, Record
from runtime.supervision.child import ChildSpec
from runtime.supervision.restarts import Backoff
from runtime.supervision.supervisor import Supervisor, SupervisorConfig
from runtime.system import ActorSystem
from runtime.testing import Probe, wait_settled
from tests.fakes.actors.neighbours import probe
from tests.fakes.models.accounts import Pooled
from tests.support.puppet import virtual

Step = tuple[str, int]

HOUR = 3600.0
WHO = (Spender("anna", "http/sam"), Spender("ben", "http/mia"))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["begin", "begin", "end"]), st.integers(0, 1)),
        st.tuples(st.just("jump"), st.integers(-60, 60)),
        st.tuples(st.just("reload"), st.integers(1, 5)),
        st.tuples(st.sampled_from(["sick", "fail", "kill", "restart"]), st.just(0)),
        st.tuples(st.sampled_from(["refuse", "leave", "rot"]), st.just(0)),
    ),
    max_size=40,
)


def budgets(most: int) -> tuple[Budget, ...]:
    """Let all call so often in a day, and each person twice as often in a month."""
    a_day = Budget(scope="all", period="day", hard=Limit(tokens=most))
    a_month = Budget(scope="user", period="month", hard=Limit(tokens=2 * most))
    return (a_day, a_month)


class Pencil:
    """Counts the calls of each day, and of each person in each month."""

    def __init__(self) -> None:
        self.most = 3
        self._days: Counter[str] = Counter()
        self._months: Counter[tuple[str, str]] = Counter()

    def note(self, who: Spender, at: float) -> None:
        day = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")
        self._days[day] += 1
        self._months[who.user, day[:7]] += 1

    def rules(self, who: Spender, at: float, held: Collection[Spender]) -> type[Ruling]:
        """Say what is to become of a call while others, each of one, are under way."""
        day = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")
        today, month = self._days[day], self._months[who.user, day[:7]]
        if today >= self.most or month >= 2 * self.most:
            return OverBudget
        own = sum(each == who for each in held)
        is_held = today + len(held) >= self.most or month + own >= 2 * self.most
        return CallLater if is_held else Reserved


class Play:
    """The accounts of several processes, one after the other, and who counts along."""

    def __init__(self) -> None:
        self.cast = Pooled(budgets=budgets(3))
        self.pencil = Pencil()
        self.begun: list[tuple[Reserved, Spender]] = []
        self.held: dict[str, Spender] = {}
        """What a call may cost is held back until it is over."""

        self.turns = count()
        self.system: ActorSystem
        self.turn: Probe

    async def run(self, steps: list[Step]) -> None:
        while "restart" in (words := [word for word, _ in steps]):
            cut = words.index("restart")
            await self._process(steps[:cut])
            self.cast.restart()
            steps = steps[cut + 1 :]
        await self._process(steps)

    async def _process(self, steps: list[Step]) -> None:
        def make() -> Accounts:
            return Accounts(self.cast.services, self.cast.catalogue())

        config = SupervisorConfig(intensity=50, backoff=Backoff(maximum=5.0))
        root = Supervisor((ChildSpec(name="models", start=make),), config)
        clock = trio.lowlevel.current_clock()
        assert isinstance(clock, trio.testing.MockClock)
        async with virtual(clock) as self.system:
            self._new_turn()
            await self.system.start_root(root, names.ROOT)
            for word, number in steps:
                await getattr(self, f"_{word}")(number)
                await wait_settled(self.system)
            await self._leave(0)
            await self._well()

    def _new_turn(self) -> None:
        self.turn = probe(self.system, f"turn {next(self.turns)}")

    async def _begin(self, number: int) -> None:
        who, at = WHO[number], self.cast.clock.wall()
        asked = Reserve(
            turn=self.turn.actor_ref, who=who, model="smart", estimate=Usage(1, 0)
        )
        ruling: Ruling = await self._models.ask(asked)
        assert isinstance(ruling, self.pencil.rules(who, at, self.held.values()))
        if isinstance(ruling, Reserved):
            self.begun.append((ruling, who))
            self.held[ruling.call] = who

    async def _end(self, _: int) -> None:
        if not self.begun:
            return
        call, who = self.begun.pop(0)
        self.held.pop(call.call, None)
        self.pencil.note(who, self.cast.clock.wall())
        ended = CallEnded(
            call=call.call,
            backend=call.backend,
            who=who,
            outcome="ok",
            spent=call.spent(Usage(1, 0)),
        )
        self._models.tell(ended)

    async def _refuse(self, _: int) -> None:
        """Let a provider refuse a call, which costs nothing."""
        if not self.begun:
            return
        call, who = self.begun.pop(0)
        self.held.pop(call.call, None)
        ended = CallEnded(
            call=call.call, backend=call.backend, who=who, outcome="bad_request"
        )
        self._models.tell(ended)

    async def _leave(self, _: int) -> None:
        """Let the turn end with its calls under way."""
        self.turn.actor_ref.kill()
        self.begun.clear()
        self.held.clear()
        self._new_turn()

    async def _rot(self, _: int) -> None:
        """Put a row in the ledger that nobody can read."""
        if not self.cast.store._fails_at:
            row = Record(
                kind=CALL,
                id=f"rot {next(self.turns)}",
                owner="anna",
                part=0,
                body=b'{"who": 1}',
            )
            commit = Commit(at=self.cast.clock.wall(), records=(row,))
            await self.cast.store.commit(commit)

    async def _jump(self, hours: int) -> None:
        self.cast.clock.ahead += hours * HOUR

    async def _reload(self, most: int) -> None:
        self.pencil.most = most
        self.cast.budgets = budgets(most)
        await self._models.ask(ReplaceCatalogue(self.cast.catalogue()))

    async def _sick(self, _: int) -> None:
        """Let the disk refuse whatever is written, until `_well`."""
        self.cast.store._fails_at = range(1_000_000)

    async def _well(self) -> None:
        self.cast.store._fails_at = ()
        await trio.sleep(5)

    async def _fail(self, _: int) -> None:
        self._models.tell("nonsense")
        await trio.sleep(20)

    async def _kill(self, _: int) -> None:
        await self._well()  # what is not stored would be lost
        self._models.kill()
        self.held.clear()  # nobody knows of them any more
        await trio.sleep(20)

    @property
    def _models(self) -> ActorRef:
        found = self.system.find(names.MODELS)
        assert found is not None
        return found


ONE: list[Step] = [("begin", 0), ("end", 0)]


TWO: list[Step] = [("begin", 0), ("begin", 1)]
AHEAD, BACK = ("jump", 60), ("jump", -60)
TOMORROW = ("jump", 24)


@given(STEPS)
@example([AHEAD, *ONE, BACK, *ONE * 3, ("begin", 0)])
@example([AHEAD, *ONE * 3, BACK, *ONE, TOMORROW, *ONE, ("jump", 36), ("begin", 1)])
@example([*ONE * 3, ("begin", 0), ("reload", 4), *ONE, ("begin", 1)])
@example([("sick", 0), *ONE * 3, ("reload", 2), ("begin", 1), ("fail", 0), *ONE])
@example([*TWO, ("reload", 2), ("begin", 0), ("end", 0), ("begin", 0)])
@example([*TWO, ("fail", 0), ("reload", 2), ("begin", 0), ("leave", 0), *TWO])
@example([*ONE, ("rot", 0), ("restart", 0), *TWO, ("refuse", 0), *ONE * 3, *TWO])
@example([*ONE * 3, ("jump", 30), *ONE, ("jump", -30), ("restart", 0), ("begin", 1)])
def test_each_call_counts_once_in_its_day_and_month(steps: list[Step]) -> None:
    clock = trio.testing.MockClock(autojump_threshold=0)
    trio.run(Play().run, steps, clock=clock)


async def test_a_call_whose_row_is_just_being_stored_counts_once() -> None:
    cast = Pooled(budgets=budgets(2))
    spending = Spending(cast.services, cast.catalogue(), {})
    spent = Spent(provider="smart", model="smart-1", account="work", usage=Usage(1, 0))
    paid = spending.enter("call", WHO[0], spent)
    await cast.store.commit(paid.commit())
    await cast.store.commit(paid.commit())  # nobody knew that it was stored
    await spending.read()
    assert spending.verdict(WHO[0]).stop is None
    spending.unstored.clear()
    spending = Spending(cast.services, cast.catalogue(), {})
    await spending.read()
    assert spending.verdict(WHO[0]).stop is None
    spending.enter("another", WHO[0], spent)
    assert spending.verdict(WHO[1]).stop is not None


async def test_calls_of_another_node_count_once_however_often_they_are_read() -> None:
    cast = Pooled(budgets=budgets(3))
    here, there = (Spending(cast.services, cast.catalogue(), {}) for _ in "ab")
    await here.read()
    await there.read()
    spent = Spent(provider="smart", model="smart-1", account="work", usage=Usage(1, 0))
    for node, call in ((here, "ours"), (there, "theirs")):
        await cast.store.commit(node.enter(call, WHO[0], spent).commit())
        node.unstored.clear()
    for _ in range(3):
        await here.read_on()
        await there.read_on()
    assert here.verdict(WHO[1]).stop is there.verdict(WHO[1]).stop is None
    await cast.store.commit(there.enter("third", WHO[0], spent).commit())
    assert here.verdict(WHO[1]).stop is None
    await here.read_on()
    assert here.verdict(WHO[1]).stop is not None
