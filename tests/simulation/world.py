"""One run: a company that lives, dies and lives again, until all is at rest."""

from __future__ import annotations

import random  # noqa: TID251  the one place where a seed becomes dice
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import msgspec
import trio

from actors.metrics import LineMetrics
from actors.models.catalogue import Catalogue
from actors.models.limiter import Limiter
from actors.models.pool import ModelOffer
from actors.rules.groups.routes import routing_table
from actors.tree import Company
from runtime.ids import LENGTH, IdSource, millisecond_of
from runtime.supervision.child import ChildSpec
from tests.fakes.company.company import Cast, TrioClock
from tests.fakes.models.summing import Notebook
from tests.simulation.appointments import Appointments, has_appointments
from tests.simulation.chaos import Chaos
from tests.simulation.checks import verdicts
from tests.simulation.checks.checkers import Checkers
from tests.simulation.edges.counting import CountingMetrics
from tests.simulation.edges.disk import Disk, SimulatedStore
from tests.simulation.edges.edges import LookupTool, SimulatedModel
from tests.simulation.edges.platform import SimulatedPlatform
from tests.simulation.faults import FaultClass, Faults, swings
from tests.simulation.life import Life, SlipError
from tests.simulation.operator import Operator
from tests.simulation.rooms import plan_for
from tests.simulation.trace import Trace
from tests.simulation.workload import PLATFORMS, Plan

# Chosen: seconds of virtual time in which all must come to rest without faults.
# Three attempts with back-off in minutes fit in, and a wall clock that goes back.
LIVENESS = 14_400.0

# Chosen: couriers sleep after a minute, and are looked for every quarter of it.
QUIET = 120.0

# Chosen: longer than the longest pause between two looks of any actor, but for those
# that look once in an hour: by then all have found nothing more to do.
LOOKED = 65.0

# Chosen: how often it is seen whether all is forgotten.
LOOK_EVERY = 5.0

# Chosen: one run in so many waits as long as anything may take, whatever happened.
PATIENT = 100

# Chosen: what was dropped by hand is waited for as long as it would have waited; for
# retries and for a platform that is an hour.
FORGOTTEN = 3900.0

# Chosen: seconds until no supervisor remembers a restart of the safety phase.
CALM = 120.0


def as_it_is(company: Company) -> Company:
    """Change nothing."""
    return company


def as_planned(plan: Plan) -> Plan:
    """Change nothing."""
    return plan


class Parts(msgspec.Struct, frozen=True):
    """What a run is made of; `controls.py` replaces one by a broken one."""

    store: type[SimulatedStore] = SimulatedStore
    model: type[SimulatedModel] = SimulatedModel
    tamper: Callable[[Company], Company] = as_it_is
    """Given the company before it starts."""

    replan: Callable[[Plan], Plan] = as_planned
    """Given the plan of the seed."""

    limiter: type[Limiter] = Limiter

    liveness: float = LIVENESS
    """Seconds after the faults in which all must come to rest."""


@dataclass
class SimulatedCast(Cast):
    """A cast whose company may be tampered with."""

    tamper: Callable[[Company], Company] = as_it_is
    limiter: type[Limiter] = Limiter

    def company(self) -> Company:
        return self.tamper(super().company())

    def renewed(self) -> tuple[ChildSpec, ...]:
        """Say what takes the place of actors of the tree, before anybody writes."""
        if self.limiter is Limiter:
            return ()
        make = partial(self.limiter, self.limits.max_in_flight, connectors=lambda: 1)
        return (ChildSpec(name="limiter", start=make),)

    def catalogue(self) -> Catalogue:
        """Say which models there are: each with an account of its own."""
        models = {each.model: self.model for each in self.agents.values()}
        offers = {
            name: ModelOffer(name=name, model=name, accounts=(name,)) for name in models
        }
        return Catalogue(offers=offers, clients=models)


class JumpingClock(TrioClock):
    """The wall clock of the run, which may be set while it runs."""

    def __init__(self) -> None:
        self.offset = 0.0

    def wall(self) -> float:
        return super().wall() + self.offset


class World:
    """All of one run.

    Args:
        seed: of everything.
        parts: what it is made of.
        only: the fault classes that are on; None: the seed says.
    """

    def __init__(
        self,
        seed: int,
        parts: Parts | None = None,
        only: frozenset[FaultClass] | None = None,
    ) -> None:
        self._parts = parts = parts or Parts()
        self.plan = plan = parts.replan(plan_for(seed, _dice(seed, "people")))
        self.dice = _dice(seed, "world")
        self.trace = trace = Trace(trio.current_time)
        self.faults = faults = Faults(
            _dice(seed, "faults"), plan.span, only, swings=swings(seed)
        )
        table = routing_table(plan.agents, default_agent="anna")
        self.checkers = checkers = Checkers(plan, table, trace)
        self.disk = Disk(faults, checkers, trace)
        self.platforms = [
            SimulatedPlatform(name, faults, checkers, trace) for name in PLATFORMS
        ]
        for platform in self.platforms:
            platform.can = plan.abilities[platform.name]
            platform.is_hooked = platform.name in plan.hooked
            platform.present = plan.present
            platform.crash = self.crash
        first, *others = self.platforms
        self.clock = JumpingClock()
        self.operator = Operator(self)
        for platform in self.platforms:
            platform.put_off = self.operator.seize
        self.metrics = CountingMetrics(self._slip)
        model = parts.model(faults, checkers, trace, tuple(plan.agents))
        model.habits = plan.habits
        self.cast = SimulatedCast(
            agents=plan.agents,
            tamper=parts.tamper,
            limiter=parts.limiter,
            collaboration=plan.collaboration,
            model=model,
            tools=(LookupTool(faults, checkers, trace),),
            limits=plan.limits,
            sessions=plan.sessions,
            buffering=plan.buffering,
            watchdog=plan.watchdog,
            compaction=plan.compaction,
            remember=Notebook(),
            retries=plan.retries,
            on_unknown=plan.on_unknown,
            platform=first,
            others=tuple(others),
            store=parts.store(self.disk),
            metrics=self.metrics,
            receipt_key=b"simulated",  # else the frames of results are random
        )
        self.cast.clock = self.clock
        self.appointments: Appointments | None = None
        if has_appointments(seed):
            self.appointments = Appointments(self, _dice(seed, "appointments"))
        checkers.appointments = self.appointments
        self.life: Life | None = None
        self._before: Counter[tuple[str, str]] = verdicts.ended(checkers)
        self._hits_before = 0
        self._is_ending = False
        self.is_patient = _dice(seed, "patience").randrange(PATIENT) == 0
        """Whether it waits for an hour at the end, whatever happened."""

    # --- the run ----------------------------------------------------------------------

    async def run(self) -> None:
        """Play safety phase and liveness phase, and judge."""
        classes = " ".join(sorted(self.faults.on))
        self.trace.note("phase", "", f"safety, with {classes or 'no faults'}")
        if self.appointments is not None:
            self.appointments.put()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._live)
            nursery.start_soon(self._people)
            await Chaos(self).run()
            self.faults.is_over = True
            self.disk.heal()
            if self.appointments is not None:
                self.appointments.rest()
            self.trace.note("phase", "", "liveness")
            if await self._rest():
                await self._judge()
            self._is_ending = True
            nursery.cancel_scope.cancel()

    async def _live(self) -> None:
        """Be one process after the other."""
        while True:
            self._begin()
            life = self.life = Life(
                self.cast, self.trace, self.dice, self._died, self.cast.renewed()
            )
            await life.run()
            self._end(life)
            await trio.sleep(self.dice.choice((0.05, 0.3, 3.0)))
            self.cast.restart()

    def _begin(self) -> None:
        """Prepare what a new process makes anew."""
        cast = self.cast
        self.metrics = CountingMetrics(self._slip)
        cast.metrics, cast.line = self.metrics, LineMetrics(self.metrics)
        names = [each[:LENGTH] for each in cast.store._rows.inbox]
        newest = max((x for x in names if millisecond_of(x) >= 0), default="")
        cast.ids = IdSource(self.clock, self.dice.randbytes, after=newest)
        self._before = verdicts.ended(self.checkers)
        self._hits_before = len(self.faults.hits)
        for platform in self.platforms:
            platform.is_cut_off = False

    def _end(self, life: Life) -> None:
        if life.how == "ended" and not self._is_ending:
            self.trace.note("fault", "", "the root supervisor gave up")
            # The last faults may have used up nearly all restarts of a period.
            if trio.current_time() > self.plan.span + CALM:
                self.trace.violate("I7", "the root supervisor gave up without a fault")
        if life.how != "crashed":
            self._cut(life.how)
        if life.how == "stopped":
            self._judge_metrics()

    async def _people(self) -> None:
        """Have people write when their time comes."""
        by_name = {each.name: each for each in self.platforms}
        for act in self.plan.acts:
            await trio.sleep_until(act.at)
            by_name[act.platform].post(act)
            self.sample()

    # --- faults -----------------------------------------------------------------------

    def crash(self, why: str) -> None:
        """End the process in this very moment."""
        life = self.life
        if life is None or life.is_over:
            return
        self.trace.note("fault", "", f"the process is killed {why}")
        self._cut("crashed")
        life.crash()

    def _cut(self, how: str) -> None:
        """Take the process away from what is outside of it."""
        self.trace.note("life", "", how)
        self.checkers.cut_at = trio.current_time()
        self.checkers.cuts += 1
        self.disk_store.crash()
        for platform in self.platforms:
            platform.is_cut_off = True
            platform.lose_connection()

    @property
    def disk_store(self) -> SimulatedStore:
        """The store of the present life, or of the one before."""
        store = self.cast.store
        assert isinstance(store, SimulatedStore)
        return store

    def _died(self) -> None:
        self.checkers.died_at = trio.current_time()

    def _slip(self) -> None:
        if not self.disk.is_telling and self.faults.hit("slip", 0.01):
            self.trace.note("fault", "", "an actor slips while it counts")
            raise SlipError("to order")

    # --- the end ----------------------------------------------------------------------

    async def _rest(self) -> bool:
        """Wait until all is settled; False if that takes too long."""
        pause = 0.1
        with trio.move_on_after(self._parts.liveness):
            while not await self._is_at_rest():
                await trio.sleep(pause)
                self.sample()
                pause = min(pause * 1.5, 20.0)
            return True
        if self.appointments is not None:
            self.appointments.tell_what_is_open()
        self._tell_what_is_open()
        return False

    async def _is_at_rest(self) -> bool:
        life = self.life
        if life is None or not life.is_up:
            return False
        counts = await self.cast.store.counts()
        is_heard = all(each.is_heard for each in self.platforms)
        waiting = [] if self.appointments is None else self.appointments.waiting
        return is_heard and not verdicts.open_rows(counts) and not waiting

    def _tell_what_is_open(self) -> None:
        ledger = self.checkers.ledger
        for inbox_id, message in ledger.messages.items():
            if not message.ends:
                self.trace.violate("I1", f"{inbox_id} is never settled", inbox_id)
        for delivery_id, said in ledger.said.items():
            if not said.receipts:
                text = f"{delivery_id} is never delivered"
                self.trace.violate("I1", text, delivery_id)
        for platform in self.platforms:
            if not platform.is_heard:
                self.trace.violate("I1", f"{platform.name} is never heard out")
        if not self.trace.violations:
            self.trace.violate("I1", "the run does not come to rest")

    async def _judge(self) -> None:
        life = self.life
        assert life is not None
        counts = await self.cast.store.counts()
        verdicts.judge_rows(self.checkers, counts, self.trace)
        if self.appointments is not None:
            self.appointments.judge()
        self._judge_metrics()
        await self._wait_forgotten(life)
        await self._wait_timers(life)
        if life.is_over:  # the last faults had used up its restarts; judge the next
            if await self._rest():
                await self._judge()
            return
        # An actor that died in the middle of a handler may have left an entry behind.
        blame = self.trace.tolerate if self._has_slipped else self.trace.violate
        verdicts.judge_growth(life.sizes, verdicts.sizes(life.kernel), blame)
        life.judge_poison()
        self.trace.note("phase", "", "over")

    async def _wait_forgotten(self, life: Life) -> None:
        """Let what is not needed any more be put away, for as long as that may take.

        Ends when the last of it has gone: nothing is left that could do anything but
        look again. What comes back in spite of that, the patient runs see.
        """
        longest = QUIET + 1.5 * self.plan.sessions.idle_after
        if self.checkers.ledger.by_hand or self.is_patient:
            longest += FORGOTTEN
        with trio.move_on_after(longest):
            await trio.sleep(LOOKED)
            while self.is_patient or self._keeps_more(life):  # noqa: ASYNC110
                await trio.sleep(LOOK_EVERY)

    def _keeps_more(self, life: Life) -> bool:
        """Whether a verdict of now would find anything that is not yet forgotten."""
        found: list[str] = []
        now = verdicts.sizes(life.kernel)
        verdicts.judge_growth(life.sizes, now, lambda _, text: found.append(text))
        return bool(found) or not life.has_given_up_poison

    async def _wait_timers(self, life: Life) -> None:
        """Let what is looked for regularly be found; that takes a second."""
        for _ in range(4):
            if len(life.kernel.timers) <= life.sizes["timers"][""]:
                return
            await trio.sleep(1.3)

    @property
    def _has_slipped(self) -> bool:
        """Whether an actor slipped in the present life."""
        return "slip" in self.faults.hits[self._hits_before :]

    def _judge_metrics(self) -> None:
        is_exact = len(self.faults.hits) == self._hits_before
        verdicts.judge_metrics(
            self._before, self.checkers, self.metrics, self.trace, is_exact=is_exact
        )

    def sample(self) -> None:
        if self.life is not None:
            self.checkers.sample(self.life.kernel)


def _dice(seed: int, name: str) -> random.Random:
    return random.Random(f"{seed}/{name}")  # noqa: S311  to repeat, not to hide
