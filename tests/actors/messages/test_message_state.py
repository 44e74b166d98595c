"""Proves that a message is begun a bounded number of times, each in its own time."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from msgspec import structs

from actors.messages.state import (
    INBOX_STEPS,
    OUTBOX_STEPS,
    AttemptHistory,
    BeginAttempt,
    GiveUp,
    MessageState,
    Postpone,
    RetryPolicy,
    TurnCancelled,
    TurnDue,
    TurnFailed,
    WaitUntil,
    outcome_of,
)
from runtime.errors import DuplicateError
from runtime.store import rows
from runtime.store.port import Store
from runtime.store.rows import Commit, DeliveryState, InboxState
from tests.support.store.engines import NAMES, make_engine
from tests.support.store.rows import NOW, accepting, enqueueing
from tests.support.tiers import examples

POLICY = RetryPolicy()
POLICIES = st.builds(
    RetryPolicy,
    attempts=st.integers(1, 6),
    retries_failures=st.booleans(),
    first_wait=st.floats(0.1, 1000),
    longest_wait=st.floats(0.1, 5000),
    stuck_after=st.sampled_from([0.0, 10.0, 300.0]),
)


def busy(now: float) -> TurnFailed:
    return TurnFailed("model", may_retry=True, now=now)


def begun(state: MessageState, now: float) -> BeginAttempt:
    """Begin an attempt, after the wait of what may have ended the process."""
    effect = state.on(TurnDue(now))
    if isinstance(effect, WaitUntil):
        effect = state.on(TurnDue(effect.due_at))
    assert isinstance(effect, BeginAttempt)
    return effect


def test_a_new_message_is_begun_at_once_and_before_that_is_durable() -> None:
    state = MessageState(POLICY, AttemptHistory())
    assert state.on(TurnDue(0.0)) == BeginAttempt(1, must_be_stored=False)


@pytest.mark.parametrize(
    "past",
    [
        AttemptHistory(attempts=1, was_running=True),
        AttemptHistory(attempts=1),
        AttemptHistory(was_read=True),  # the claim may have been lost with its process
    ],
)
def test_what_an_earlier_process_knew_is_claimed_durably_first(
    past: AttemptHistory,
) -> None:
    state = MessageState(POLICY, past)
    assert state.on(TurnDue(0.0)) == BeginAttempt(
        past.attempts + 1, must_be_stored=True
    )
    assert state.may_have_steps == (past.was_read or past.attempts > 0)


def test_a_failure_that_cannot_end_better_is_told_and_not_tried_again() -> None:
    state = MessageState(POLICY, AttemptHistory())
    state.on(TurnDue(0.0))
    refused = TurnFailed("refused", may_retry=False, now=0.0)
    assert state.on(refused) == GiveUp("replied", "refused")


def test_where_failures_are_not_retried_the_writer_is_told() -> None:
    state = MessageState(RetryPolicy(retries_failures=False), AttemptHistory())
    state.on(TurnDue(0.0))
    assert state.on(busy(0.0)) == GiveUp("replied", "model")


def test_by_default_it_is_tried_after_two_and_four_minutes_and_then_dead() -> None:
    state = MessageState(POLICY, AttemptHistory())
    assert state.on(TurnDue(0.0)) == BeginAttempt(1, must_be_stored=False)
    assert state.on(busy(10.0)) == Postpone(1, 130.0, is_first=True)
    assert state.on(TurnDue(130.0)) == BeginAttempt(2, must_be_stored=False)
    assert state.on(busy(140.0)) == Postpone(2, 380.0)
    assert state.on(TurnDue(380.0)) == BeginAttempt(3, must_be_stored=False)
    assert state.on(busy(390.0)) == GiveUp("dead", "model")


@pytest.mark.parametrize(("not_before", "due_at"), [(20.0, 130.0), (500.0, 500.0)])
def test_it_is_not_tried_before_a_model_may_be_asked(
    not_before: float, due_at: float
) -> None:
    state = MessageState(POLICY, AttemptHistory())
    state.on(TurnDue(0.0))
    failed = TurnFailed("model", may_retry=True, now=10.0, not_before=not_before)
    assert state.on(failed) == Postpone(1, due_at, is_first=True)


def test_all_starts_used_up_by_crashes_it_is_dead_without_another() -> None:
    state = MessageState(POLICY, AttemptHistory(attempts=6, was_running=True))
    assert state.on(TurnDue(0.0)) == GiveUp("dead", "attempts")


@pytest.mark.parametrize(("attempts", "seconds"), [(2, 4), (3, 8), (5, 32)])
def test_what_may_have_ended_the_process_waits_and_is_then_begun_alone(
    attempts: int, seconds: float
) -> None:
    past = AttemptHistory(attempts=attempts, was_running=True, was_read=True)
    state = MessageState(POLICY, past)
    assert state.is_suspect
    assert state.on(TurnDue(100.0)) == WaitUntil(100.0 + seconds)
    assert state.on(TurnDue(101.0)) == WaitUntil(100.0 + seconds)
    begun = state.on(TurnDue(100.0 + seconds))
    assert begun == BeginAttempt(attempts + 1, must_be_stored=True)
    assert state.is_suspect
    state.on(TurnFailed("model", may_retry=True, now=200.0))
    assert not state.is_suspect


def test_once_cut_off_is_no_reason_to_wait() -> None:
    state = MessageState(POLICY, AttemptHistory(attempts=1, was_running=True))
    assert not state.is_suspect
    assert state.on(TurnDue(0.0)) == BeginAttempt(2, must_be_stored=True)


def test_three_times_cut_off_a_failure_is_the_end() -> None:
    state = MessageState(POLICY, AttemptHistory(attempts=3, was_running=True))
    assert isinstance(state.on(TurnDue(0.0)), WaitUntil)
    assert isinstance(state.on(TurnDue(8.0)), BeginAttempt)
    assert state.on(busy(9.0)) == GiveUp("dead", "model")


@pytest.mark.parametrize(
    ("age", "was_running", "ends"),
    [(300.0, True, True), (299.0, True, False), (300.0, False, False)],
)
def test_only_what_was_cut_off_long_ago_is_stuck(
    age: float, *, was_running: bool, ends: bool
) -> None:
    past = AttemptHistory(attempts=1, was_running=was_running, started_at=1000.0)
    state = MessageState(RetryPolicy(stuck_after=300.0), past)
    effect = state.on(TurnDue(1000.0 + age))
    assert effect == (
        GiveUp("dead", "crashed") if ends else BeginAttempt(2, must_be_stored=True)
    )


def test_a_failure_of_this_process_does_not_make_it_stuck() -> None:
    policy = RetryPolicy(attempts=9, stuck_after=300.0)
    state = MessageState(
        policy, AttemptHistory(attempts=1, was_running=True, started_at=0.0)
    )
    state.on(TurnDue(1.0))
    deferred = state.on(busy(2.0))
    assert isinstance(deferred, Postpone)
    assert deferred.due_at > 0
    assert isinstance(state.on(TurnDue(10_000.0)), BeginAttempt)


@given(policy=POLICIES, now=st.floats(0, 1e9))
def test_each_wait_is_twice_the_last_and_none_is_longer_than_the_longest(
    policy: RetryPolicy, now: float
) -> None:
    state = MessageState(policy, AttemptHistory())
    wanted = policy.first_wait
    for attempt in range(1, policy.attempts):
        assert isinstance(state.on(TurnDue(now)), BeginAttempt)
        effect = state.on(busy(now))
        if not policy.retries_failures:
            assert effect == GiveUp("replied", "model")
            return
        assert isinstance(effect, Postpone)
        assert effect.attempts == attempt
        wait = min(wanted, policy.longest_wait)
        assert effect.due_at == now + wait
        now, wanted = effect.due_at, wanted * 2
    state.on(TurnDue(now))
    last = state.on(busy(now))
    assert isinstance(last, GiveUp)
    assert last.state == ("dead" if policy.retries_failures else "replied")


@given(policy=POLICIES, attempts=st.integers(0, 8))
def test_being_called_off_takes_one_start_back(
    policy: RetryPolicy, attempts: int
) -> None:
    state = MessageState(policy, AttemptHistory(attempts=attempts))
    begun = state.on(TurnDue(0.0))
    effect = state.on(TurnCancelled())
    left = attempts if isinstance(begun, BeginAttempt) else max(0, attempts - 1)
    assert effect == Postpone(left, 0.0)
    assert state.attempts == state.past.attempts == left


class Lives(RuleBasedStateMachine):
    """One message through failures, crashes, restarts, orderly ends and time."""

    @initialize(policy=POLICIES)
    def accept(self, policy: RetryPolicy) -> None:
        self.policy = policy
        self.now = NOW
        self.row = AttemptHistory()  # what the store knows
        self.wait_began, self.due_at = 0.0, 0.0
        self.state = MessageState(policy, self.row)
        self.starts = self.returned = 0
        self.is_running = self.is_over = False

    @precondition(lambda self: not self.is_running and not self.is_over)
    @rule()
    def begin(self) -> None:
        effect = self.state.on(TurnDue(self.now))
        match effect:
            case BeginAttempt(attempt=attempt, must_be_stored=must_be_stored):
                assert self.now >= self.due_at
                assert must_be_stored or not self.row.was_read
                self.starts += 1
                self.is_running = True
                self.row = AttemptHistory(
                    attempt,
                    was_running=True,
                    started_at=self.now,
                    due_at=self.row.due_at,
                    was_read=self.row.was_read,
                )
                self.wait_began = self.now
            case WaitUntil(due_at=due_at):
                self.waits(due_at)
            case GiveUp():
                self.is_over = True
            case Postpone():
                pytest.fail("nothing to put off")

    def waits(self, due_at: float) -> None:
        """See that a clock that is set back has it wait as long again, at most."""
        if self.row.due_at == 0:  # it waits because it may have ended the process
            assert self.state.is_suspect
            assert 0 < due_at - self.now <= 60
            return
        if self.now < self.wait_began:
            self.due_at = self.now + max(0.0, self.due_at - self.wait_began)
            self.wait_began = self.now
        if self.state.is_suspect and self.now >= self.due_at:
            assert 0 <= due_at - self.now <= 60
        else:
            assert due_at == self.due_at >= self.now

    @precondition(lambda self: self.is_running)
    @rule(may_retry=st.booleans())
    def fail(self, *, may_retry: bool) -> None:
        self.is_running = False
        effect = self.state.on(TurnFailed("model", may_retry, self.now))
        if isinstance(effect, Postpone):
            assert self.policy.retries_failures
            assert may_retry
            assert effect.due_at > self.now
            self.put_off(effect)
        else:
            assert isinstance(effect, GiveUp)
            self.is_over = True

    @precondition(lambda self: self.is_running)
    @rule()
    def end_in_order(self) -> None:
        effect = self.state.on(TurnCancelled())
        assert isinstance(effect, Postpone)
        self.returned += 1
        self.is_running = False
        self.put_off(effect)
        self.crash()  # after that, all the same

    def put_off(self, effect: Postpone) -> None:
        self.row = structs.replace(
            self.row,
            attempts=effect.attempts,
            was_running=False,
            started_at=self.now,
            due_at=effect.due_at,
        )
        self.wait_began, self.due_at = self.now, effect.due_at

    @precondition(lambda self: not self.is_over)
    @rule()
    def crash(self) -> None:
        self.is_running = False
        self.row = structs.replace(self.row, was_read=True)
        self.state = MessageState(self.policy, self.row)
        self.wait_began, self.due_at = self.row.started_at, self.row.due_at

    @precondition(lambda self: not self.is_over and not self.is_running)
    @rule()
    def restart_the_session(self) -> None:
        self.state = MessageState(self.policy, self.state.past)

    @rule(seconds=st.sampled_from([-90_000.0, -60.0, 0.0, 1.0, 60.0, 5000.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @invariant()
    def no_more_starts_than_attempts(self) -> None:
        assert self.starts - self.returned <= 2 * self.policy.attempts
        assert self.row.attempts == self.starts - self.returned


TestLives = Lives.TestCase
TestLives.settings = settings(max_examples=examples(40, deep=400))


@pytest.fixture(params=NAMES)
async def store(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncGenerator[Store]:
    store = await make_engine(request.param, tmp_path).open()
    yield store
    await store.aclose()


def into_inbox(name: str, state: str) -> Commit:
    """Bring a message into a state."""
    match state:
        case "accepted":
            return Commit(at=NOW, defers=(rows.Defer(name, 1, NOW),))
        case "running":
            return Commit(at=NOW, claims=(rows.Claim(name, 1),))
        case "replied" | "dropped" | "cancelled" | "dead":
            return Commit(at=NOW, settles=(rows.Settle(name, state),))
        case _:
            raise AssertionError(state)


def into_outbox(name: str, state: str) -> Commit:
    """Bring a delivery into a state."""
    match state:
        case "pending":
            return Commit(at=NOW, not_said=(rows.NotSaid(name, "busy"),))
        case "sending":
            return Commit(at=NOW, send_attempts=(rows.SendAttempt(name, 1),))
        case "sent" | "unknown" | "dead":
            return Commit(at=NOW, receipts=(rows.Receipt(name, state),))
        case _:
            raise AssertionError(state)


async def takes(store: Store, commit: Commit) -> bool:
    try:
        await store.commit(commit)
    except DuplicateError:
        return False
    return True


@pytest.mark.parametrize("state", get_args(InboxState))
async def test_the_inbox_takes_exactly_the_steps_of_the_table(
    state: InboxState, store: Store
) -> None:
    steps = get_args(InboxState)
    assert set(INBOX_STEPS) == set(steps)
    for step in steps:
        await store.commit(accepting(step))
        assert await takes(store, into_inbox(step, state))
        assert await takes(store, into_inbox(step, step)) == (
            step in INBOX_STEPS[state]
        )


@pytest.mark.parametrize("state", get_args(DeliveryState))
async def test_the_outbox_takes_exactly_the_steps_of_the_table(
    state: DeliveryState, store: Store
) -> None:
    steps = get_args(DeliveryState)
    assert set(OUTBOX_STEPS) == set(steps)
    for step in steps:
        await store.commit(enqueueing(step))
        assert await takes(store, into_outbox(step, state))
        assert await takes(store, into_outbox(step, step)) == (
            step in OUTBOX_STEPS[state]
        )


def test_a_session_that_fails_again_and_again_gives_up() -> None:
    past = AttemptHistory()
    for attempt in range(1, 7):
        state = MessageState(POLICY, past)
        assert begun(state, float(attempt)).attempt == attempt
        past = state.past
    assert MessageState(POLICY, past).on(TurnDue(4.0)) == GiveUp("dead", "attempts")


def test_a_session_that_fails_at_once_is_not_stuck() -> None:
    policy = RetryPolicy(stuck_after=300.0)
    state = MessageState(policy, AttemptHistory())
    state.on(TurnDue(1_000_000.0))
    again = MessageState(policy, state.past)
    assert isinstance(again.on(TurnDue(1_000_001.0)), BeginAttempt)


def test_what_was_given_up_is_begun_as_often_again_by_hand() -> None:
    by_hand = AttemptHistory(attempts=3, was_read=True)
    state = MessageState(POLICY, by_hand)
    for attempt in (4, 5, 6):
        assert begun(state, 1e9) == BeginAttempt(attempt, must_be_stored=True)
        state = MessageState(POLICY, state.past)
    assert state.on(TurnDue(1e9)) == GiveUp("dead", "attempts")


@pytest.mark.parametrize(
    ("state", "reason", "outcome"),
    [
        ("replied", "ok", "replied"),
        ("replied", "silent", "replied"),
        ("replied", "command", "replied"),
        ("replied", "model_refused", "failed"),
        ("replied", "timeout", "failed"),
        ("dead", "attempts", "dead"),
        ("dropped", "not_addressed", "dropped"),
        ("cancelled", "stopped", "cancelled"),
    ],
)
def test_who_was_told_why_there_is_no_answer_was_not_answered(
    state: str, reason: str, outcome: str
) -> None:
    assert outcome_of(state, reason) == outcome
