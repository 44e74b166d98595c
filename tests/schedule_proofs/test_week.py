"""Proves I10 for a whole company: ten agents, 500 appointments, a week of them.

Everything is real but the platform, the model and the disk. On Wednesday the program
stands for five hours; one agent's model has no quota left.
"""

from __future__ import annotations

import itertools
import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock

from actors.config.agents import AgentConfig
from actors.errors import ModelRefusedError
from actors.journal.records import USAGE, UsageRecord
from actors.messages.inbound import Address, ModelRequest
from actors.schedule.appointments import Appointment
from actors.schedule.rows import KIND, SLOT, SlotRecord, as_entry, read
from actors.services import Services
from connectors.config.checks import find_zone
from runtime.store.rows import MAX_ROWS, Commit
from tests.fakes.company.company import EPOCH, Says, open_company
from tests.fakes.company.furnished import changed
from tests.fakes.models.accounts import Account, Pooled
from tests.fakes.store.in_memory import MemoryStore
from tests.schedule_proofs.edges import EDGES
from tests.schedule_proofs.reference import Entry, Reference
from tests.schedule_proofs.times import DAY, all_times
from tests.simulation.edges.clock import SimulatedClock

NAMES = ("anna", "ben", "carl", "dora", "emil", "fay", "gus", "hanna", "ivan", "judy")
BROKE = "judy"
"""Whose model refuses all."""

BEGIN = int(EPOCH)
EACH_CALL = 0.5
"""US dollars, by the prices of the cast."""

EACH = 50
HOUR = 3600
LOOKS_FOR = 58.0
STANDS_AT = 3 * DAY + 1000.5
STANDS_FOR = 5.0 * HOUR


class PatientStore(MemoryStore):
    """Takes a minute to tell whether others wrote: else half of the work is asking."""

    async def changes_outside(self) -> frozenset[str]:
        await trio.sleep(LOOKS_FOR)
        return await super().changes_outside()

    def reopened(self) -> MemoryStore:
        return PatientStore(epoch=self._epoch, beside=super().reopened())


class Wallet(Account):
    """An account that is not there for one of the agents."""

    def talk_or_fail(self, request: ModelRequest) -> Says:
        if request.agent == BROKE:
            return Says(error=ModelRefusedError("no quota"))
        return Says("all is quiet", after=0.01)


@dataclass
class Team(Pooled):
    """A company that knows all time zones."""

    @property
    def services(self) -> Services:
        return changed(super().services, find_zone=find_zone)


def wanted(number: int) -> tuple[str, str, int]:
    """Give kind, rule and beginning of the n-th appointment of an agent."""
    start = BEGIN - BEGIN % HOUR + HOUR + number * 660
    if number == 0:
        return "heartbeat", "beat 120", start
    if number < 5:
        return "task", "every 12h", start
    if number < 15:
        return "task", "daily", start
    if number < 20:
        minute, hour = number % 12 * 5, number % 24
        return "cron", f"{minute} {hour} * * *", start
    kind = "task" if number % 3 else "reminder"
    return kind, "", start + number * 3 * HOUR


def everything() -> Iterator[tuple[str, Appointment]]:
    """Make all 500."""
    zones = itertools.cycle(EDGES)
    for agent, number in itertools.product(NAMES, range(EACH)):
        kind, rule, anchor = wanted(number)
        zone = next(zones)
        it = msgspec.convert(
            {
                "kind": kind,
                "agent": agent,
                "address": Address("fake", f"{agent}{number % 5}"),
                "sender_id": f"{agent}'s",
                "text": f"{agent} does {number}",
                "repeat": rule,
                "zone": zone,
                "anchor": anchor,
            },
            Appointment,
        )
        found = find_zone(zone)
        assert found is not None
        due = it.rule(found).next_after(BEGIN)
        yield f"{agent}-{number:02}", msgspec.structs.replace(it, next_due=due)


def predicted() -> Reference:
    """Tell what is to happen in this week."""
    world = Reference(BEGIN)
    for name, it in everything():
        times = all_times(
            it.repeat, it.zone, int(it.anchor), BEGIN - DAY, BEGIN + 9 * DAY
        )
        entry = Entry(times, repeats=bool(it.repeat), is_beat=it.kind == "heartbeat")
        entry.next_due = it.next_due
        entry.ends = "failed" if it.agent == BROKE else "done"
        world.put(name, entry)
    world.start()
    world.pass_time(STANDS_AT)
    world.stop()
    world.pass_time(STANDS_FOR)
    world.start()
    world.pass_time(7 * DAY - STANDS_AT - STANDS_FOR)
    return world


async def live(cast: Team) -> None:
    """Let the company live through it."""
    clock: Any = MockClock(autojump_threshold=0)
    entries = tuple(
        as_entry(name, f"person:fake/{it.sender_id}", it, 7, None)
        for name, it in everything()
    )
    await cast.store.commit(Commit(at=BEGIN, entries=entries))
    begin = trio.current_time()
    async with open_company(clock, cast):
        await trio.sleep_until(begin + STANDS_AT)
    await trio.sleep_until(begin + STANDS_AT + STANDS_FOR)
    cast.restart()
    async with open_company(clock, cast):
        await trio.sleep_until(begin + 7 * DAY)


async def records(store: MemoryStore, kind: str, shape: type[Any]) -> list[Any]:
    found = await store.records(kind, limit=MAX_ROWS)
    assert len(found) < MAX_ROWS
    return [(row, msgspec.json.decode(row.body, type=shape)) for row in found][::-1]


pytestmark = pytest.mark.deep  # a week of 500 appointments takes half a minute

Week = tuple[Team, Reference]


@pytest.fixture(scope="module")
def week() -> Week:
    """Live through the week once."""
    # So many lines that no conversation is summed up, which would cost further calls.
    usual = AgentConfig(model="smart", max_history=5_000)
    agents: dict[str, AgentConfig] = dict.fromkeys(NAMES, usual)
    cast = Team(agents=agents, work=Wallet("work"), home=Wallet("home"))
    cast.store = PatientStore()
    logging.disable(logging.CRITICAL)
    try:
        trio.run(live, cast, clock=SimulatedClock())
    finally:
        logging.disable(logging.NOTSET)
    return cast, predicted()


async def test_each_slot_is_carried_out_once_when_it_is_due(week: Week) -> None:
    cast, world = week
    slots = await records(cast.store, SLOT, SlotRecord)
    fired = [(x.appointment, int(x.due)) for _, x in slots if x.outcome == "fired"]
    assert sorted(fired) == sorted(world.fired)
    assert len(set(fired)) == len(fired) > 2000
    up = STANDS_AT + STANDS_FOR + BEGIN
    late = [row.at - x.due for row, x in slots if x.outcome == "fired" and row.at > up]
    assert max(late) < 0.01


async def test_what_was_left_out_has_its_reason(week: Week) -> None:
    cast, world = week
    left: Counter[str] = Counter()
    for _, body in await records(cast.store, SLOT, SlotRecord):
        if body.outcome == "skipped":
            left[body.reason] += body.count
    assert left == +world.skipped
    assert set(left) == {"missed"}


async def test_nobody_is_asked_twice_and_nothing_is_left(week: Week) -> None:
    cast, world = week
    inbox = cast.store._rows.inbox.values()
    states = Counter(row.state for row in inbox if row.reason != "told")
    assert states == {"replied": len(world.fired)}
    assert set(await cast.outbox()) == {"sent"}


async def test_the_costs_are_as_predicted(week: Week) -> None:
    cast, world = week
    spent: Counter[str] = Counter()
    for _, body in await records(cast.store, USAGE, UsageRecord):
        spent[body.agent] += body.cost
    kinds = dict(everything())
    asked = Counter(
        kinds[name].agent for name, _ in world.fired if kinds[name].kind != "reminder"
    )
    predicted_ = {n: EACH_CALL * count for n, count in asked.items() if n != BROKE}
    assert dict(+spent) == predicted_


async def test_what_always_fails_is_paused_after_three_times(week: Week) -> None:
    cast, world = week
    rows = await cast.store.entries(KIND)
    found = {row.id: read(row) for row in rows}
    paused = {name for name, it in found.items() if it is not None and it.paused}
    assert paused == {name for name, it in world.entries.items() if it.paused}
    assert {name.partition("-")[0] for name in paused} == {BROKE}
    assert len(paused) == 20
