"""Proves that each event is tried again in time, and no more than it may be."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from actors.webhooks.retry import (
    SPREAD,
    PostResult,
    WebhookRetryPolicy,
    judge,
    wait_after,
)

HOUR = 3600.0
POLICY = WebhookRetryPolicy()

policies = st.builds(
    WebhookRetryPolicy,
    attempts=st.integers(1, 30),
    first_wait=st.floats(1, 1000),
    longest_wait=st.floats(1, 86_400),
    keep=st.floats(1, 1e6),
)
failures = st.sampled_from([0, 301, 400, 401, 404, 408, 425, 429, 500, 502, 503, 599])


@given(policy=policies, status=failures, chance=st.floats(0, 1), asks=st.floats(0, 1e9))
def test_every_event_comes_to_an_end(
    policy: WebhookRetryPolicy, status: int, chance: float, asks: float
) -> None:
    now, tries = 0.0, 0
    while True:
        tries += 1
        posted = PostResult(status, "", asks)
        verdict = judge(posted, tries, 0.0, policy, now=now, chance=chance)
        if verdict.kind == "dead":
            break
        assert verdict.kind == "later"
        wait = verdict.due_at - now
        assert 0.999 <= wait <= policy.longest_wait * (1 + SPREAD) + 0.001
        now = verdict.due_at
        assert now <= policy.keep
    assert tries <= policy.attempts


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_what_was_taken_is_sent(status: int) -> None:
    last = judge(PostResult(status), 10, 0.0, POLICY, now=1e9, chance=0)
    assert last.kind == "sent"


def test_a_receiver_that_is_gone_is_not_asked_again() -> None:
    assert judge(PostResult(410), 1, 0.0, POLICY, now=0, chance=0).kind == "dead"


@pytest.mark.parametrize(
    ("status", "is_receivers"),
    [
        *((each, True) for each in (0, 408, 429, 500, 503)),
        *((each, False) for each in (301, 400, 401, 404, 422)),
    ],
)
def test_only_a_receiver_in_trouble_keeps_other_events_waiting(
    status: int, *, is_receivers: bool
) -> None:
    verdict = judge(PostResult(status), 1, 0.0, POLICY, now=0, chance=0)
    assert (verdict.kind, verdict.is_receivers) == ("later", is_receivers)


def test_it_waits_longer_each_time_up_to_a_limit() -> None:
    waits = [wait_after(n, POLICY, 0.0) for n in range(1, 10)]
    assert waits[:4] == [10, 40, 160, 640]
    assert waits[-1] == 6 * HOUR == wait_after(10_000, POLICY, 0.0)


def test_it_waits_as_long_as_it_is_asked_to_within_its_limit() -> None:
    for asked, waited in ((5, 10), (100, 100), (1e9, 6 * HOUR)):
        verdict = judge(PostResult(429, "", asked), 1, 0.0, POLICY, now=0, chance=0)
        assert verdict.due_at == waited
