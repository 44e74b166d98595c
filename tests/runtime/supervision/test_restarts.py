"""Proves that restarts are counted, delayed and planned as OTP does it."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from runtime.supervision.restarts import (
    Backoff,
    ChildPolicy,
    Ending,
    Escalate,
    Failed,
    Failures,
    Forget,
    Killed,
    Leave,
    Normal,
    Plan,
    Restart,
    RestartKind,
    RestartRequest,
    RestartWindow,
    Shutdown,
    Strategy,
    decide,
    wants_restart,
)

gaps = st.lists(st.integers(0, 10), max_size=40)
kinds = st.sampled_from(list[RestartKind](["permanent", "transient", "temporary"]))
strategies = st.sampled_from(
    list[Strategy](["one_for_one", "rest_for_one", "one_for_all"])
)
endings = st.sampled_from(
    list[Ending]([Normal(), Shutdown(), Failed("boom"), Killed()])
)


@st.composite
def ends(draw: st.DrawFn) -> RestartRequest:
    count = draw(st.integers(1, 6))
    children = tuple(
        ChildPolicy(f"c{number}", draw(kinds), is_running=draw(st.booleans()))
        for number in range(count)
    )
    ended = draw(st.sampled_from(children)).name
    return RestartRequest(draw(strategies), children, ended, draw(endings))


def open_window() -> RestartWindow:
    return RestartWindow(intensity=1, period=1)


def shut_window() -> RestartWindow:
    return RestartWindow(intensity=0, period=1)


@given(gaps=gaps, intensity=st.integers(0, 5), period=st.integers(1, 20))
def test_allows_exactly_the_restarts_inside_the_period(
    gaps: list[int], intensity: int, period: int
) -> None:
    window = RestartWindow(intensity, period)
    now = 0
    past: list[int] = []
    for gap in gaps:
        now += gap
        past.append(now)
        inside = [t for t in past if t >= now - period]
        assert window.allow(now) == (len(inside) <= intensity)
        assert len(window._past) <= intensity + 1


@pytest.mark.parametrize(
    ("intensity", "period"), [(-1, 1.0), (1, 0.0), (1, -2.0), (1, float("nan"))]
)
def test_a_window_without_sense_is_refused(intensity: int, period: float) -> None:
    with pytest.raises(ValueError, match="must be"):
        RestartWindow(intensity, period)


def test_delays_grow_from_nothing_to_the_maximum() -> None:
    backoff = Backoff(then=0.5, factor=2, maximum=3, jitter=0)
    delays: list[float] = []
    failures = Failures()
    for _ in range(6):
        delay, failures = backoff.delay(failures, now=failures.up_at, random01=0.7)
        delays.append(delay)
    assert delays == [0.0, 0.5, 1.0, 2.0, 3.0, 3.0]


def test_a_delay_never_falls_when_the_first_is_longer_than_then() -> None:
    backoff = Backoff(first=1, then=0.1, factor=3, jitter=0)
    delay, failures = backoff.delay(Failures(), now=0, random01=0)
    assert (delay, backoff.delay(failures, now=2, random01=0)[0]) == (1, 3)


@pytest.mark.parametrize(("up_for", "delay"), [(9.9, 0.5), (10.0, 0.0)])
def test_the_row_begins_anew_after_calm_counted_from_the_restart(
    up_for: float, delay: float
) -> None:
    backoff = Backoff(then=0.5, calm_after=10, jitter=0)
    failures = Failures(delay=0.25, up_at=100)
    assert backoff.delay(failures, now=100 + up_for, random01=0)[0] == delay


def test_waiting_for_a_restart_does_not_pass_for_calm() -> None:
    backoff = Backoff(first=20, then=0, factor=1, calm_after=10, jitter=0)
    _, failures = backoff.delay(Failures(), now=100, random01=0)
    assert failures == Failures(delay=20, up_at=120)
    with_jitter = Backoff(first=20, jitter=0.5).delay(Failures(), 100, random01=1)
    assert with_jitter == (10, Failures(delay=20, up_at=110))


@given(
    first=st.floats(0, 10),
    then=st.floats(0, 10),
    factor=st.floats(1, 1e300),
    jitter=st.floats(0, 1),
    chances=st.lists(st.floats(0, 1), min_size=1, max_size=30),
)
def test_chance_only_shortens_and_nothing_exceeds_the_maximum(
    first: float, then: float, factor: float, jitter: float, chances: list[float]
) -> None:
    backoff = Backoff(first, then, factor, maximum=8, jitter=jitter)
    failures = Failures()
    for chance in chances:
        delay, failures = backoff.delay(failures, failures.up_at, chance)
        assert failures.delay is not None
        least = failures.delay * (1 - jitter)
        assert least - 1e-9 <= delay <= failures.delay <= 8


@pytest.mark.parametrize(
    "settings",
    [
        {"first": -1.0},
        {"then": -0.1},
        {"maximum": float("inf")},
        {"calm_after": float("nan")},
        {"factor": 0.5},
        {"jitter": 1.5},
    ],
)
def test_a_backoff_without_sense_is_refused(settings: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be"):
        Backoff(**settings)


@pytest.mark.parametrize(
    ("kind", "ending", "expected"),
    [
        ("permanent", Normal(), True),
        ("permanent", Shutdown(), True),
        ("permanent", Failed("x"), True),
        ("permanent", Killed(), True),
        ("transient", Normal(), False),
        ("transient", Shutdown(), False),
        ("transient", Failed("x"), True),
        ("transient", Killed(), True),
        ("temporary", Normal(), False),
        ("temporary", Shutdown(), False),
        ("temporary", Failed("x"), False),
        ("temporary", Killed(), False),
    ],
)
def test_each_kind_wants_what_otp_says(
    kind: RestartKind, ending: Ending, *, expected: bool
) -> None:
    assert wants_restart(kind, ending) is expected


FAMILY = (
    ChildPolicy("a"),
    ChildPolicy("b", "temporary"),
    ChildPolicy("c", "transient"),
    ChildPolicy("d", "temporary", is_running=False),
    ChildPolicy("e", "transient", is_running=False),
    ChildPolicy("f"),
)


@pytest.mark.parametrize(
    ("strategy", "child", "plan"),
    [
        ("one_for_one", "c", Restart((), (), ("c",))),
        ("rest_for_one", "f", Restart((), (), ("f",))),
        ("rest_for_one", "c", Restart(("f",), ("d",), ("c", "e", "f"))),
        (
            "one_for_all",
            "c",
            Restart(("f", "b", "a"), ("b", "d"), ("a", "c", "e", "f")),
        ),
        ("one_for_all", "b", Forget("b")),
        ("rest_for_one", "gone", Leave("gone")),
    ],
)
def test_a_failed_child_takes_with_it_whom_the_strategy_says(
    strategy: Strategy, child: str, plan: Plan
) -> None:
    ended = RestartRequest(strategy, FAMILY, child, Failed("boom"))
    assert decide(ended, open_window(), now=0) == plan


@pytest.mark.parametrize(
    ("ending", "words"),
    [
        (Normal(), "'a' ended by itself and"),
        (Shutdown(), "'a' was stopped and"),
        (Failed("no disk"), "'a' failed (no disk) and"),
        (Killed(), "'a' was killed and"),
    ],
)
def test_one_restart_too_many_stops_everybody_and_says_why(
    ending: Ending, words: str
) -> None:
    ended = RestartRequest("one_for_one", FAMILY, "a", ending)
    plan = decide(ended, shut_window(), now=0)
    assert isinstance(plan, Escalate)
    assert plan.stop == ("f", "c", "b")
    assert words in plan.text


@given(ended=ends())
def test_every_end_gets_the_plan_its_kind_calls_for(ended: RestartRequest) -> None:
    child = next(each for each in ended.children if each.name == ended.child)
    plan = decide(ended, open_window(), now=0)
    if child.restart == "temporary":
        assert plan == Forget(child.name)
    elif wants_restart(child.restart, ended.ending):
        assert isinstance(plan, Restart)
    else:
        assert plan == Leave(child.name)


@given(ended=ends())
def test_a_restart_keeps_the_order_and_loses_nobody(ended: RestartRequest) -> None:
    plan = decide(ended, open_window(), now=0)
    if not isinstance(plan, Restart):
        return
    names = [each.name for each in ended.children]
    temporary = {each.name for each in ended.children if each.restart == "temporary"}
    running = {each.name for each in ended.children if each.is_running}
    assert list(plan.start) == [name for name in names if name in plan.start]
    assert list(plan.stop) == [name for name in names[::-1] if name in plan.stop]
    assert ended.child in plan.start
    assert ended.child not in plan.stop
    assert set(plan.start).isdisjoint(temporary)
    assert set(plan.forget) <= temporary
    assert set(plan.stop) <= running
    assert set(plan.stop) <= set(plan.start) | set(plan.forget)


@given(ended=ends())
def test_the_window_counts_only_ends_that_call_for_a_restart(
    ended: RestartRequest,
) -> None:
    window = open_window()
    decide(ended, window, now=0)
    child = next(each for each in ended.children if each.name == ended.child)
    is_counted = wants_restart(child.restart, ended.ending)
    assert window.allow(0) is not is_counted
