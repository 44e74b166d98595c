"""Proves that no window of time lets more through than it may."""

from __future__ import annotations

from hypothesis import given, strategies as st

from actors.rules.text.limits import Quota


@given(
    most=st.integers(1, 5),
    period=st.integers(1, 20),
    gaps=st.lists(st.integers(0, 10), max_size=60),
)
def test_it_lets_through_what_fits_into_each_period(
    most: int, period: int, gaps: list[int]
) -> None:
    quota = Quota(most, period)
    now, taken = 0, [0][:0]
    for gap in gaps:
        now += gap
        inside = [at for at in taken if at > now - period]
        wait = quota.take(now)
        assert (wait == 0) == (len(inside) < most)
        if not wait:
            taken.append(now)
            continue
        assert wait == inside[0] + period - now


@given(most=st.integers(1, 5), now=st.integers(0, 1000))
def test_who_waits_as_told_is_let_through(most: int, now: int) -> None:
    quota = Quota(most, 60)
    for _ in range(most):
        assert quota.take(now) == 0
    wait = quota.take(now)
    assert wait == 60
    assert quota.take(now + wait) == 0
