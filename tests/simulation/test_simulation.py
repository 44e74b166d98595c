"""Proves the invariants over many seeds, and that the simulation can fail."""

from __future__ import annotations

import logging
import os
import random  # noqa: TID251  seeded
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from trio.testing import MockClock

from actors.schedule.rows import SLOT, SlotRecord
from tests.simulation.appointments import has_appointments
from tests.simulation.controls import CONTROLS
from tests.simulation.faults import Faults, swings
from tests.simulation.hangs import has_hang, play, with_hang
from tests.simulation.passing import crowded_out, held_up
from tests.simulation.rooms import CHATS, EVERY, FIRST, HABITS, plan_for
from tests.simulation.run import Outcome, run_seed
from tests.simulation.world import FORGOTTEN, World

ROOT = Path(__file__).parents[2]

# Chosen: ten seconds, of which the first tier takes two; CI plays a thousand besides.
CHUNKS = 10
CHUNKS_OF_THE_FIRST_TIER = 2
SEEDS_OF_A_CHUNK = 8

# Chosen: enough that each mistake has several chances to show.
CONTROL_SEEDS = 30

# Chosen: the first that throw the dice of a hundred sides right.
PATIENT_SEEDS = (61, 217)

# Chosen: all kinds of appointments are there, and all that may become of them.
APPOINTED_SEEDS = [seed for seed in range(120) if has_appointments(seed)][:14]

# Chosen: about a second each; CI plays a hundred and more.
HANGING_SEEDS = [seed for seed in range(120) if has_hang(seed)]
HANGING_SEEDS_OF_THE_FIRST_TIER = 3

# Chosen: the tests above play the company without a mistake far more often.
RIGHT_SEEDS = 3


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Write no log: what is wrong is in the trace, and a thousand lines help nobody."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def explain(outcome: Outcome) -> str:
    """Say what was violated, how to see it again, and what happened."""
    lines = [
        f"again: python -m tests.simulation --seed {outcome.seed}",
        *map(str, outcome.violations),
        *outcome.trace,
    ]
    return "\n".join(lines)


@pytest.mark.parametrize(
    "chunk",
    [
        *range(CHUNKS_OF_THE_FIRST_TIER),
        *(
            pytest.param(chunk, marks=pytest.mark.deep)
            for chunk in range(CHUNKS_OF_THE_FIRST_TIER, CHUNKS)
        ),
    ],
)
def test_every_invariant_holds_in_every_run(chunk: int) -> None:
    first = chunk * SEEDS_OF_A_CHUNK
    for seed in range(first, first + SEEDS_OF_A_CHUNK):
        outcome = run_seed(seed)
        assert not outcome.violations, explain(outcome)


@pytest.mark.parametrize("seed", [0, 4, 14])
def test_one_persons_trouble_holds_up_nobody_else(seed: int) -> None:
    assert held_up(seed) == []


@pytest.mark.parametrize("seed", range(2))
def test_one_key_with_many_authors_holds_up_nobody_else(seed: int) -> None:
    assert crowded_out(seed) == []


def test_in_every_third_seed_of_each_kind_the_clock_jumps_both_ways() -> None:
    both: list[int] = []
    for seed in range(9):
        dice = random.Random(seed)  # noqa: S311
        faults = Faults(dice, 30.0, swings=swings(seed))
        jumps = {each.jump > 0 for each in faults.strikes if each.kind == "wall"}
        if swings(seed):
            assert jumps == {True, False}
            both.append(seed % 3)
    assert sorted(both) == [0, 1, 2]


@pytest.mark.parametrize("seed", [1, 7, 23])
def test_one_seed_gives_one_run(seed: int) -> None:
    assert run_seed(seed).digest == run_seed(seed).digest


@pytest.mark.parametrize("seed", [1, 7, 23, 50])
def test_the_clock_gives_the_runs_that_the_one_of_trio_gives(seed: int) -> None:
    of_trio = run_seed(seed, clock=MockClock(autojump_threshold=0))
    assert run_seed(seed).digest == of_trio.digest


def test_a_patient_run_waits_an_hour_and_is_right() -> None:
    ends: list[float] = []

    def look(world: World) -> None:
        if world.is_patient:
            ends.append(world.trace.events[-1].at)

    for seed in PATIENT_SEEDS:
        outcome = run_seed(seed, look=look)
        assert not outcome.violations, explain(outcome)
    assert len(ends) == len(PATIENT_SEEDS)
    assert min(ends) > FORGOTTEN


def test_rooms_are_as_large_as_they_may_be_and_as_small() -> None:
    plans = [plan_for(seed, random.Random(seed)) for seed in range(2, 900, EVERY)]  # noqa: S311
    agents = {len(plan.agents) for plan in plans}
    people = {len({act.sender for act in plan.acts}) for plan in plans}
    assert (min(agents), max(agents)) == (2, 8)
    assert min(people) == 1
    assert max(people) > 15
    assert all(act.chat in CHATS for plan in plans for act in plan.acts)
    habits = {habit for plan in plans for habit in plan.habits.values()}
    assert habits == {*HABITS}


@pytest.mark.deep
def test_in_rooms_happens_what_is_judged_there() -> None:
    seen: Counter[str] = Counter()

    def look(world: World) -> None:
        limits = world.plan.limits
        for message in world.checkers.ledger.messages.values():
            inbound, (end, *_) = message.inbound, message.ends
            seen["reply"] += inbound.quoted is not None
            seen["long"] += len(inbound.chain.agents) == limits.max_hops + 1
            seen["open"] += inbound.chain.turns > 0
            seen["copy"] += inbound.copy_of > 0
            seen[":".join(end)] += 1

    for seed in range(FIRST, 40, EVERY):
        assert not run_seed(seed, only=frozenset(), look=look).violations
    wanted = {"reply", "long", "open", "copy"}
    wanted |= {"dropped:not_addressed", "replied:silent"}
    assert not wanted - {what for what, count in seen.items() if count > 5}, seen


@pytest.mark.deep
def test_with_appointments_happens_what_is_judged_there() -> None:
    seen: Counter[str] = Counter()

    def look(world: World) -> None:
        for message in world.checkers.ledger.messages.values():
            seen[message.inbound.occasion] += 1
        for row in world.cast.store._rows.records.values():
            if row.kind == SLOT:
                body = msgspec.json.decode(row.body, type=SlotRecord)
                seen[body.reason or body.outcome] += body.count

    for seed in APPOINTED_SEEDS:
        outcome = run_seed(seed, look=look)
        assert not outcome.violations, explain(outcome)
    wanted = {"said", "task", "cron", "heartbeat", "fired", "busy", "missed"}
    assert not wanted - {what for what, count in seen.items() if count > 5}, seen


def test_different_seeds_give_different_runs() -> None:
    assert len({run_seed(seed).digest for seed in range(5)}) == 5


@pytest.mark.deep
def test_a_run_is_the_same_in_every_process() -> None:
    code = (
        "import logging; logging.disable(logging.CRITICAL);"
        "from tests.simulation.run import run_seed;"
        "print([run_seed(seed).digest for seed in (3, 11, 42)])"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for hash_seed in ("0", "1", "4242")
    }
    assert printed == {f"{[run_seed(seed).digest for seed in (3, 11, 42)]}\n"}


@pytest.mark.parametrize(
    "seed",
    [
        *HANGING_SEEDS[:HANGING_SEEDS_OF_THE_FIRST_TIER],
        *(
            pytest.param(seed, marks=pytest.mark.deep)
            for seed in HANGING_SEEDS[HANGING_SEEDS_OF_THE_FIRST_TIER:]
        ),
    ],
)
def test_a_model_that_hangs_keeps_nobody_waiting_who_asks_another(seed: int) -> None:
    outcome = with_hang(seed)
    assert not outcome.violations, explain(outcome)


def test_beside_a_hang_many_wait_for_it_and_many_for_others() -> None:
    hits: Counter[str] = Counter()
    for seed in HANGING_SEEDS[:HANGING_SEEDS_OF_THE_FIRST_TIER]:
        outcome, waits = play(seed, frozenset({"model_hang"}))
        hits.update(outcome.faults)
        hits["others"] += len(waits)
    assert hits["model_hang"] == HANGING_SEEDS_OF_THE_FIRST_TIER
    assert hits["others"] > 5 * HANGING_SEEDS_OF_THE_FIRST_TIER


@pytest.mark.deep
@pytest.mark.parametrize("mistake", CONTROLS)
def test_a_deliberate_mistake_is_found(mistake: str) -> None:
    control = CONTROLS[mistake]
    found: set[str] = set()
    for seed in range(CONTROL_SEEDS):
        outcome = control.play(seed)
        found |= {violation.invariant for violation in outcome.violations}
        if control.found_by in found:
            break
    assert control.found_by in found


@pytest.mark.deep
@pytest.mark.parametrize("mistake", CONTROLS)
def test_the_same_runs_without_the_mistake_are_right(mistake: str) -> None:
    control = CONTROLS[mistake]
    for seed in range(RIGHT_SEEDS):
        outcome = control.play(seed, is_right=True)
        assert not outcome.violations, explain(outcome)
