"""Proves that every slot is carried out once or skipped, against counting by hand."""

from __future__ import annotations

from datetime import tzinfo
from typing import get_args
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from actors.messages.inbound import Address
from actors.schedule.appointments import (
    Appointment,
    CatchUp,
    Obstacles,
    Previous,
    SlotPolicy,
    part_name,
    slot_name,
    turned_back,
    wake,
)
from actors.schedule.recurrence import RecurrenceRule
from tests.support.tiers import examples

BERLIN = ZoneInfo("Europe/Berlin")
START = 1_774_700_000.0  # a few hours before clocks go forward, March 2026
REPEATS = ("daily", "every 90m", "30 2 * * *", "*/20 * * * *", "weekly")


def make(repeat: str = "every 1h", **fields: object) -> Appointment:
    anchor = START + 3600
    due = RecurrenceRule(repeat, anchor, BERLIN).next_after(START)
    given = {
        "kind": "task",
        "agent": "anna",
        "address": Address("fake", "room"),
        "sender_id": "zoe",
        "repeat": repeat,
        "zone": "Europe/Berlin",
        "anchor": anchor,
        "next_due": due,
    }
    return msgspec.convert({**given, **fields}, Appointment)


def policy(catch_up: CatchUp = "once", most: int = 10, failures: int = 3) -> SlotPolicy:
    return SlotPolicy(catch_up, most, 60.0, failures)


def slots_between(it: Appointment, zone: tzinfo, until: float) -> list[float]:
    """Count by hand."""
    found: list[float] = []
    at = it.rule(zone).next_after(it.next_due - 1)
    while at is not None and at <= until:
        found.append(at)
        at = it.rule(zone).next_after(at)
    return found


def test_before_its_time_nothing_is_done() -> None:
    it = make()
    woken = wake(it, it.next_due - 1, BERLIN, policy(), "none")
    assert (woken.slots, woken.skipped, woken.after) == ((), (), it)


def test_once_is_over_after_it_was_carried_out_however_late() -> None:
    it = make("", next_due=START + 3600)
    woken = wake(it, START + 9e6, BERLIN, policy("skip"), "none")
    assert woken.slots == (START + 3600,)
    assert woken.after is None


@given(
    repeat=st.sampled_from(REPEATS),
    late=st.floats(0, 10 * 86_400),
    catch_up=st.sampled_from(get_args(CatchUp)),
    most=st.integers(1, 12),
)
def test_what_was_missed_is_made_up_for_as_the_settings_say(
    repeat: str, late: float, catch_up: CatchUp, most: int
) -> None:
    it = make(repeat)
    now = it.next_due + late
    passed = slots_between(it, BERLIN, now)
    woken = wake(it, now, BERLIN, policy(catch_up, most), "none")
    kept = most if catch_up == "all" else 1
    wanted = passed[-kept:]
    if catch_up == "skip" and now - passed[-1] > 60:
        wanted = []
    assert list(woken.slots) == wanted
    assert dict(woken.skipped).get("missed", 0) == len(passed) - len(wanted)
    assert woken.after is not None
    assert woken.after.next_due == it.rule(BERLIN).next_after(now)


@given(seconds=st.integers(1, 90), late=st.integers(0, 3 * 86_400))
def test_what_comes_every_few_seconds_is_counted_to_the_last(
    seconds: int, late: int
) -> None:
    it = make(f"every {seconds}s")
    woken = wake(it, it.next_due + late, BERLIN, policy("all", 1), "none")
    assert dict(woken.skipped).get("missed", 0) == late // seconds


def test_a_heartbeat_is_never_made_up_for() -> None:
    it = make("beat 30", kind="heartbeat", items=("oven",))
    woken = wake(it, it.next_due + 600, BERLIN, policy("all"), "none")
    assert (woken.slots, woken.skipped) == ((), (("missed", 1),))
    woken = wake(it, it.next_due, BERLIN, policy("all"), "none")
    assert woken.slots == (it.next_due,)


def test_nothing_is_begun_that_is_not_done_yet_or_has_no_purpose() -> None:
    it = make()
    woken = wake(it, it.next_due, BERLIN, policy(), "open")
    assert (woken.slots, woken.skipped) == ((), (("busy", 1),))
    it = make("beat 30", kind="heartbeat")
    woken = wake(it, it.next_due, BERLIN, policy(), "none")
    assert (woken.slots, woken.skipped) == ((), (("empty", 1),))


def test_after_enough_failures_it_rests() -> None:
    it = make(failures=2, last_due=START)
    woken = wake(it, it.next_due, BERLIN, policy(), "failed")
    assert (woken.slots, woken.is_given_up) == ((), True)
    assert woken.after is not None
    assert (woken.after.paused, woken.after.wakes) == ("failures", 0.0)
    woken = wake(it, it.next_due, BERLIN, policy(failures=0), "failed")
    assert len(woken.slots) == 1


def test_by_hand_it_is_carried_out_beside_its_times() -> None:
    it = make(paused="by hand", run_at=START)
    assert it.wakes == START
    woken = wake(it, START + 1, BERLIN, policy(), "open")
    assert woken.slots == (START,)
    assert woken.after is not None
    assert (woken.after.run_at, woken.after.next_due) == (0.0, it.next_due)


def test_a_clock_that_went_back_brings_the_next_slot_nearer_never_further() -> None:
    it = make(next_due=START + 30 * 86_400)
    near = turned_back(it, START + 7200, BERLIN)
    assert near.next_due == START + 10_800
    assert turned_back(near, START + 7200, BERLIN) == near
    once = make("", next_due=START + 9e6)
    assert turned_back(once, START, BERLIN) == once


class Clockwork(RuleBasedStateMachine):
    """An appointment through jumps and stops; slots are told apart by their names."""

    @initialize(
        repeat=st.sampled_from(REPEATS), catch_up=st.sampled_from(get_args(CatchUp))
    )
    def begin(self, repeat: str, catch_up: CatchUp) -> None:
        self.it = make(repeat)
        self.policy = policy(catch_up)
        self.now = START
        self.seen = START
        self.accepted: dict[str, float] = {}
        self.went_back = False

    def wake_now(self, previous: Previous = "none") -> None:
        if self.it.wakes and self.it.wakes <= self.now:
            woken = wake(self.it, self.now, BERLIN, self.policy, previous)
            for due in woken.slots:
                # After the clock went back, the index of the inbox refuses it.
                name = slot_name("a", due)
                assert self.went_back or name not in self.accepted
                self.accepted.setdefault(name, self.now)
                assert due <= self.now
            assert woken.after is not None
            self.it = woken.after
        self.seen = max(self.seen, self.now)

    @rule(seconds=st.floats(0, 30 * 86_400))
    def time_passes(self, seconds: float) -> None:
        """Also: the program stood, the machine slept, the clock jumped ahead."""
        self.now += seconds
        self.wake_now()

    @rule(previous=st.sampled_from(get_args(Previous)))
    def it_comes_due(self, previous: Previous) -> None:
        self.now = max(self.now, self.it.next_due)
        if self.it.failures < 2 or previous != "failed":
            self.wake_now(previous)

    @rule(seconds=st.floats(61, 30 * 86_400))
    def the_clock_goes_back(self, seconds: float) -> None:
        self.now = max(START, self.now - seconds)
        self.it = turned_back(self.it, self.now, BERLIN)
        self.seen = self.now
        self.went_back = True

    @invariant()
    def the_next_slot_is_the_rules_next(self) -> None:
        if hasattr(self, "it") and self.seen == self.now:
            assert self.it.next_due > self.now
            following = self.it.rule(BERLIN).next_after(self.now)
            assert following is not None
            assert self.it.next_due == following


@pytest.mark.property
def test_jumps_of_the_clock_leave_no_slot_out_for_ever() -> None:
    run_state_machine_as_test(
        Clockwork, settings=settings(max_examples=examples(60), stateful_step_count=30)
    )


def test_what_stands_in_the_way_skips_a_slot_with_its_reason() -> None:
    it = make()
    woken = wake(it, it.next_due, BERLIN, policy(), "done", Obstacles("tokens"))
    assert (woken.slots, woken.skipped) == ((), (("tokens", 1),))
    assert woken.after is not None
    assert woken.after.next_due == it.next_due + 3600


def test_what_is_put_off_comes_once_at_the_end() -> None:
    it, until = make(), START + 6 * 3600 + 600
    woken = wake(it, it.next_due, BERLIN, policy(), "done", Obstacles("quiet", until))
    assert woken.slots == ()
    assert woken.skipped == (("quiet", 5),)
    assert woken.after is not None
    assert woken.after.next_due == until
    later = wake(woken.after, until, BERLIN, policy(), "none")
    assert later.slots == (until,)
    assert later.after is not None
    assert later.after.next_due == START + 7 * 3600


def test_what_happens_once_is_put_off_and_not_lost() -> None:
    it = make("", next_due=START + 60)
    bar = Obstacles("quiet", START + 7200)
    woken = wake(it, START + 61, BERLIN, policy(), "none", bar)
    assert (woken.slots, woken.skipped) == ((), ())
    assert woken.after is not None
    assert woken.after.next_due == START + 7200


def test_by_hand_it_is_carried_out_whatever_stands_in_the_way() -> None:
    it = make(run_at=START + 10)
    woken = wake(it, START + 20, BERLIN, policy(), "done", Obstacles("tokens"))
    assert woken.slots == (START + 10,)


def test_a_heartbeat_of_the_settings_may_have_its_list_elsewhere() -> None:
    it = make("beat 30", kind="heartbeat")
    empty = wake(it, it.next_due, BERLIN, policy(), "none")
    assert empty.skipped == (("empty", 1),)
    ours = msgspec.structs.replace(it, by_settings="beat 30")
    assert wake(ours, it.next_due, BERLIN, policy(), "none").slots == (it.next_due,)


def test_each_message_of_a_slot_has_a_name_the_first_the_slots_own() -> None:
    assert part_name("a@7", 1) == "a@7"
    assert [part_name("a@7", n) for n in (2, 3)] == ["a@7#2", "a@7#3"]
