"""Which time has surely come: a clock that goes ahead is believed after a day."""

from __future__ import annotations

from hypothesis import given, strategies as st

from actors.journal.clock import DAY, LEAP, LONG_ENOUGH, KnownTime, SureTime

HOUR = 3600.0
START = 1_700_000_000.0

far = st.integers(int(LEAP) + 1, 10_000 * int(DAY))
"""Seconds that nothing explains."""

gaps = st.lists(st.integers(0, 5 * int(HOUR)), max_size=60)
"""Seconds of running from one look to the next."""


class Stage:
    """A rule, and the two clocks that it is shown."""

    def __init__(self) -> None:
        self.wall = START
        self.monotonic = 50.0
        self.time = SureTime(self.wall, self.monotonic)
        self.changes: list[str] = []

    @property
    def now(self) -> float:
        return self.time.now(self.wall, self.monotonic)

    def run(self, seconds: float) -> None:
        """Let time pass, and look."""
        self.wall += seconds
        self.monotonic += seconds
        change = self.time.look(self.wall, self.monotonic)
        self.changes += [change] if change else []

    def restart(self, off: float = 0.0, monotonic: float = 7.0) -> None:
        """End the process, and start another one that long afterwards."""
        self.wall += off
        self.monotonic = monotonic
        before, self.time = self.time, SureTime(self.wall, monotonic)
        self.time.go_on(before.known, monotonic)


def test_what_an_earlier_process_stored_counts_from_when_it_is_read() -> None:
    time = SureTime(START, 50.0)
    time.go_on(KnownTime(START + 100), 80.0)  # half a minute later
    ahead = START + 10 * DAY
    assert time.now(ahead, 80.0) == START + 100
    assert time.now(ahead, 95.0) == START + 115


@given(gaps, st.lists(st.integers(-(10**9), int(LEAP)), max_size=60))
def test_a_clock_that_goes_back_or_a_little_ahead_is_believed(
    passing: list[int], jumps: list[int]
) -> None:
    stage = Stage()
    for seconds, jump in zip(passing, jumps, strict=False):
        stage.wall += jump
        assert stage.now == stage.wall
        stage.run(seconds)
        assert stage.now == stage.wall
    assert stage.changes == []


@given(st.integers(0, 10**7), far, gaps, st.sets(st.integers(0, 59)))
def test_a_clock_far_ahead_is_believed_after_a_day_of_running(
    before: int, jump: int, passing: list[int], restarts: set[int]
) -> None:
    stage = Stage()
    stage.run(before)
    stage.wall += jump
    assert stage.now == stage.wall - jump
    stage.run(0)
    ran = 0.0
    for number, seconds in enumerate(passing):
        stage.run(seconds)
        ran += seconds
        is_believed = ran >= LONG_ENOUGH
        assert stage.now == (stage.wall if is_believed else stage.wall - jump)
        if number in restarts:
            stage.restart()
    changes = ["doubted", "believed"] if ran >= LONG_ENOUGH else ["doubted"]
    assert stage.changes == changes


@given(far, st.integers(0, int(LONG_ENOUGH) - 1), st.integers(0, int(LEAP)))
def test_a_clock_that_is_set_right_is_believed_at_once(
    jump: int, after: int, rest: int
) -> None:
    stage = Stage()
    stage.wall += jump
    stage.run(0)
    stage.run(after)
    stage.wall -= jump - rest
    assert stage.now == stage.wall
    stage.run(0)
    assert stage.changes == ["doubted", "believed"]


@given(st.integers(0, int(LEAP)))
def test_a_program_that_was_off_for_a_night_believes_its_clock(off: int) -> None:
    stage = Stage()
    stage.restart(off)
    assert stage.now == stage.wall
    stage.run(HOUR)
    assert stage.changes == []


@given(far, far)
def test_jumps_while_a_clock_is_not_believed_do_not_put_it_off(
    first: int, second: int
) -> None:
    stage = Stage()
    stage.wall += first
    stage.run(0)
    stage.run(LONG_ENOUGH / 2)
    stage.restart(second)
    stage.run(LONG_ENOUGH / 2)
    assert stage.now == stage.wall
    assert stage.changes == ["doubted", "believed"]


def test_who_knows_nothing_waits_and_does_not_complain() -> None:
    stage = Stage()
    stage.time.go_on(KnownTime(0.0, 0.0), stage.monotonic)
    stage.run(HOUR)
    assert stage.now == HOUR
    stage.run(LONG_ENOUGH)
    assert stage.now == stage.wall
    assert stage.changes == ["believed"]
