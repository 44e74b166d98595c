"""Proves I10 by a machine that does anything, held against the reference.

The reference is asked as soon as something happens, so the machine knows what it has
done; the scheduler plays the same, in virtual time, when the machine has ended.
"""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from actors.schedule.appointments import CatchUp
from tests.schedule_proofs.bed import Act, Case, Deed, expected, played
from tests.schedule_proofs.times import DAY
from tests.support.tiers import examples

BEGIN = 1_774_695_600  # an hour and more before clocks go forward in Berlin

NAMES = ("a", "b", "c")
RULES = (
    "",
    "daily",
    "every 45m",
    "every 1h",
    "every 20m",
    "*/20 * * * *",
    "30 2 * * *",
    "*/30 * * * *",
    "beat 30",
)
ANCHORS = (BEGIN + 600, BEGIN + 3600, BEGIN + 5400, BEGIN - 5 * DAY)
# Why so odd: what falls on one instant, nobody has promised an order for.
JUMPS = (
    1.013,
    59.027,
    61.041,
    119.563,
    1805.079,
    3600.107,
    7261.131,
    86_400.151,
    30 * DAY + 0.173,
)


class Anything(RuleBasedStateMachine):
    """Three appointments; time that passes, stands, jumps; people who meddle."""

    @initialize(
        rules=st.lists(
            st.tuples(st.sampled_from(RULES), st.sampled_from(ANCHORS)),
            min_size=1,
            max_size=3,
        ),
        catch_up=st.sampled_from(get_args(CatchUp)),
    )
    def begin(self, rules: list[tuple[str, int]], catch_up: CatchUp) -> None:
        made = {
            name: (text, max(anchor, BEGIN + 600) if not text else anchor)
            for name, (text, anchor) in zip(NAMES, rules, strict=False)
        }
        self.case = Case(BEGIN, "Europe/Berlin", made, (), catch_up)
        self.away = 0.0
        """Seconds by which the clock is wrong."""

    def act(self, deed: Deed, seconds: float = 0.0, name: str = "") -> None:
        acts = (*self.case.acts, Act(deed, seconds, name))
        case = self.case
        self.case = Case(case.begin, case.zone, case.rules, acts, case.catch_up)

    @rule(seconds=st.sampled_from((0.5, 20.0, 59.9, 600.0, 1200.0, 1800.0, 7200.0)))
    def time_passes(self, seconds: float) -> None:
        self.act("pass", seconds)

    @rule(seconds=st.sampled_from(JUMPS))
    def the_clock_jumps_ahead(self, seconds: float) -> None:
        if abs(self.away + seconds) <= 31 * DAY:
            self.away += seconds
            self.act("jump", seconds)

    @rule(seconds=st.sampled_from(JUMPS))
    def the_clock_goes_back(self, seconds: float) -> None:
        if abs(self.away - seconds) <= 31 * DAY:
            self.away -= seconds
            self.act("jump", -seconds)

    @precondition(lambda self: self.away != 0.0)
    @rule()
    def the_clock_is_set_right(self) -> None:
        self.act("jump", -self.away)
        self.away = 0.0

    @rule(deed=st.sampled_from(("settle", "fail")))
    def all_is_done(self, deed: Deed) -> None:
        self.act(deed)

    @rule(seconds=st.sampled_from((0.0, 0.5, 600.0, 5000.0, 90_000.0)))
    def the_program_stands(self, seconds: float) -> None:
        self.act("restart", seconds)

    @rule(deed=st.sampled_from(("pause", "resume", "run")), name=st.sampled_from(NAMES))
    def somebody_meddles(self, deed: Deed, name: str) -> None:
        self.act(deed, name=name)

    def teardown(self) -> None:
        if hasattr(self, "case"):
            assert played(self.case) == expected(self.case)


@pytest.mark.property
def test_whatever_happens_each_slot_is_carried_out_once_per_policy() -> None:
    run_state_machine_as_test(
        Anything,
        settings=settings(
            max_examples=examples(50),
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )


def test_a_slot_at_the_instant_of_a_look_after_the_clock_was_set_right() -> None:
    """The machine found it: two clocks of this proof differed in their last bit."""
    away = 3600.107
    acts = (
        *(Act("pass", 59.9), Act("restart", 5000.0), Act("restart")),
        *(Act("pass", 7200.0), Act("pass", 600.0)),
        *(Act("jump", away), Act("pass", 600.0), Act("jump", -away)),
        *(Act("settle"), Act("pass", 7200.0), Act("settle"), Act("settle")),
    )
    made = {"a": ("every 45m", BEGIN + 5400), "b": ("", BEGIN + 600)}
    case = Case(BEGIN, "Europe/Berlin", made, acts, "skip")
    found = played(case)
    assert found == expected(case)
    assert found.fired["a"] == [BEGIN + 5400, BEGIN + 16_200]
