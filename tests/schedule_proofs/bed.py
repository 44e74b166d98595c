"""Plays the same happenings to the scheduler, in virtual time, and to the reference."""

from __future__ import annotations

import logging
import re
from collections import Counter
from datetime import tzinfo
from typing import Literal, NamedTuple

import msgspec
import trio
from trio.testing import MockClock

from actors import names
from actors.config.schedule import SchedulerConfig
from actors.messages.inbound import Address
from actors.protocol import Route
from actors.schedule.appointments import Appointment, CatchUp
from actors.schedule.messages import AppointmentsChanged
from actors.schedule.rows import KIND, as_entry, read
from actors.schedule.scheduler import Scheduler
from connectors.config.checks import find_zone
from runtime.actor.ref import ActorRef
from runtime.store.rows import MAX_ROWS, Commit, Settle, SettledState
from runtime.telemetry.metrics import Metrics
from runtime.testing import open_test_system
from tests.fakes.actors.neighbours import make_services, of_kind, probe
from tests.fakes.company.furnished import changed
from tests.fakes.store.in_memory import MemoryStore
from tests.schedule_proofs.reference import Entry, Reference, rounded
from tests.schedule_proofs.times import DAY, all_times

Deed = Literal["pass", "jump", "settle", "fail", "restart", "pause", "resume", "run"]

MOMENT = 0.001
"""Seconds that every deed takes, so that nothing else falls on the same instant."""

SPAN = 70 * DAY
"""Seconds before and after the beginning of which times are known."""

COUNTED = re.compile(
    r'callboard_appointments_due_total\{kind="[a-z]+",outcome="([a-z]+)"\} (.+)'
)
SETTLED: dict[str, tuple[SettledState, str]] = {
    "settle": ("replied", "ok"),
    "fail": ("replied", "model"),
}
ENDED = {"settle": "done", "fail": "failed"}


class Act(NamedTuple):
    """Something that happens."""

    deed: Deed
    seconds: float = 0.0
    """How long it takes, or by how much the clock jumps."""

    name: str = ""
    """Of the appointment, where it is about one."""


BORN = Act("pass")
"""Nothing happens to a scheduler before it has read what there is."""


class Case(msgspec.Struct, frozen=True):
    """A world, and what happens in it."""

    begin: int
    """Unix seconds."""

    zone: str
    rules: dict[str, tuple[str, int]]
    """By name: the rule, and where it begins in Unix seconds."""

    acts: tuple[Act, ...]
    catch_up: CatchUp = "once"


class Log(msgspec.Struct):
    """What was carried out, and how many were left out for which reason."""

    fired: dict[str, list[int]]
    """By appointment: which of two goes first at one instant, nobody has promised."""

    skipped: dict[str, int]
    kept: dict[str, tuple[str, int, int]]
    """By name of what is not over: why it rests, how often it failed and fired."""


def by_name(fired: list[tuple[str, int]]) -> dict[str, list[int]]:
    """Sort slots by their appointments."""
    found: dict[str, list[int]] = {}
    for name, due in fired:
        found.setdefault(name, []).append(due)
    return found


# --- the reference ------------------------------------------------------------------


def expected(case: Case) -> Log:
    """Tell what is to happen."""
    world = Reference(case.begin + 0.25, case.catch_up)
    for name, (rule, anchor) in case.rules.items():
        times = all_times(rule, case.zone, anchor, case.begin - SPAN, case.begin + SPAN)
        it = Entry(
            times,
            repeats=bool(rule),
            is_beat=rule.startswith("beat"),
            is_every=rule.startswith("every"),
        )
        it.next_due = float(next(at for at in times if not rule or at > case.begin))
        world.put(name, it)
    world.start()
    for act in (BORN, *case.acts):
        _tell(world, act)
        world.pass_time(MOMENT)
    found = world.entries.items()
    kept = {name: (it.paused, it.failures, it.fired) for name, it in found}
    return Log(by_name(world.fired), dict(+world.skipped), kept)


def _tell(world: Reference, act: Act) -> None:
    match act.deed:
        case "pass":
            world.pass_time(act.seconds)
        case "jump":
            world.jump(act.seconds)
        case "settle" | "fail":
            world.settle(ENDED[act.deed])
        case "restart":
            world.stop()
            world.pass_time(act.seconds)
            world.start()
        case _:
            if act.name in world.entries:
                _change(world, world.entries[act.name], act)


def _change(world: Reference, it: Entry, act: Act) -> None:
    """Do as the commands `pause`, `resume` and `run` do."""
    if act.deed == "pause":
        it.paused, it.run_at = "by hand", 0.0
    elif act.deed == "resume":
        it.paused, it.failures = "", 0
        if it.repeats and it.next_due < world.wall:
            it.next_due = world.following(it)
    else:
        it.run_at = float(int(world.wall))
    world.put(act.name, it)
    world.read()


# --- the scheduler ------------------------------------------------------------------


class JumpingClock:
    """Trio's clock, and one on the wall that may be set."""

    def __init__(self, begin: float) -> None:
        self.offset = begin

    def monotonic(self) -> float:
        return trio.current_time()

    def wall(self) -> float:
        return rounded(trio.current_time() + self.offset)


class Bed:
    """A scheduler with a probe for its router, from one process to the next."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._clock = JumpingClock(case.begin + 0.25)
        self._store = MemoryStore()
        self._metrics = Metrics()
        self._services = changed(
            make_services(metrics=self._metrics),
            clock=self._clock,
            scheduler=SchedulerConfig(catch_up=case.catch_up),
            find_zone=find_zone,
        )
        self._fired: list[tuple[str, int]] = []
        self._scheduler: ActorRef

    async def play(self) -> Log:
        """Do all that is to happen; tell what came of it."""
        for name, (rule, anchor) in self._case.rules.items():
            await self._put(name, self._made(rule, anchor), None)
        acts = [BORN, *self._case.acts]
        while True:
            end = next((n for n, act in enumerate(acts) if act.deed == "restart"), None)
            await self._live(acts[:end])
            if end is None:
                break
            self._store = self._store.reopened()
            await trio.sleep(acts[end].seconds)
            acts = [BORN, *acts[end + 1 :]]
        rows = await self._store.entries(KIND)
        found = [(row.id, it) for row in rows if (it := read(row)) is not None]
        kept = {name: (it.paused, it.failures, it.fired) for name, it in found}
        return Log(by_name(self._fired), self._skipped(), kept)

    def _made(self, rule: str, anchor: int) -> Appointment:
        it = Appointment(
            kind="heartbeat" if rule.startswith("beat") else "task",
            agent="anna",
            address=Address("fake", "room"),
            sender_id="zoe",
            text="do it",
            repeat=rule,
            zone=self._case.zone,
            anchor=float(anchor),
        )
        due = it.rule(self._zone).next_after(self._case.begin if rule else 0)
        assert due is not None
        return msgspec.structs.replace(it, next_due=due)

    @property
    def _zone(self) -> tzinfo:
        zone = find_zone(self._case.zone)
        assert zone is not None
        return zone

    async def _live(self, acts: list[Act]) -> None:
        """Be one process."""
        services = changed(self._services, store=self._store)
        async with open_test_system() as system:
            router = probe(system, names.ROUTER)
            probe(system, names.connector("fake"))
            scheduler = Scheduler(services, frozenset({"fake"}))
            self._scheduler = system.spawn(scheduler, name=names.SCHEDULER)
            for act in acts:
                await self._do(act)
                await trio.sleep(MOMENT)
        for route in of_kind(router, Route):
            name, _, due = route.inbound.platform_id.partition("@")
            self._fired.append((name, int(due)))

    async def _do(self, act: Act) -> None:
        match act.deed:
            case "pass":
                await trio.sleep(act.seconds)
            case "jump":
                self._clock.offset += act.seconds
            case "settle" | "fail":
                await self._settle(*SETTLED[act.deed])
            case _:
                await self._change(act)

    async def _settle(self, state: SettledState, reason: str) -> None:
        rows = await self._store.unsettled(limit=MAX_ROWS)
        settles = tuple(Settle(row.id, state, reason) for row in rows)
        await self._store.commit(Commit(at=self._clock.wall(), settles=settles))

    async def _change(self, act: Act) -> None:
        """Do as the commands `pause`, `resume` and `run` do."""
        row = await self._store.entry(KIND, act.name)
        it = None if row is None else read(row)
        if row is None or it is None:
            return
        now = self._clock.wall()
        change = msgspec.structs.replace
        if act.deed == "pause":
            it = change(it, paused="by hand", run_at=0.0)
        elif act.deed == "run":
            it = change(it, run_at=float(int(now)))
        else:
            if it.repeat and it.next_due and it.next_due < now:
                it = change(it, next_due=it.rule(self._zone).next_after(now) or 0.0)
            it = change(it, paused="", failures=0)
        await self._put(act.name, it, row.version)
        self._scheduler.tell(AppointmentsChanged())

    async def _put(self, name: str, it: Appointment, expected: int | None) -> None:
        entry = as_entry(name, "person:fake/zoe", it, 7, expected)
        await self._store.commit(Commit(at=self._clock.wall(), entries=(entry,)))

    def _skipped(self) -> dict[str, int]:
        """Read what was counted."""
        found: Counter[str] = Counter()
        for line in self._metrics.render().decode().splitlines():
            counted = COUNTED.fullmatch(line)
            if counted:
                found[counted[1]] += int(float(counted[2]))
        del found["fired"], found["paused"]
        return dict(+found)


def played(case: Case) -> Log:
    """Tell what happens, in virtual time."""
    logging.disable(logging.CRITICAL)  # a thousand lines for each case help nobody
    try:
        return trio.run(Bed(case).play, clock=MockClock(autojump_threshold=0))
    finally:
        logging.disable(logging.NOTSET)
