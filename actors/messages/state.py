"""States of a message, and when its turn is retried.

Pure. A message goes

    received → accepted → running → reply_ready → sending → sent | unknown | dead

where `reply_ready` is the one commit that settles the message as `replied` and stores
the reply's parts in the outbox as `pending`. The other final states are `dropped` (with
the policy's reason), `cancelled` and `dead`. A failed turn may be retried: the message
becomes `accepted` again and waits. Every start counts as an attempt, also one that the
end of the process interrupted.

A message whose attempts were interrupted twice is a suspect: it may have ended the
process. Suspects wait, longer each time, and then have their turns one at a time, so
that whatever ends the process takes no other message with it. They have twice as many
attempts.

The connector stores `accepted`, and the session carries out the effects of
`MessageState`. The store enforces the same tables (tests compare the two).
"""

from __future__ import annotations

from typing import Annotated, Literal, assert_never

import msgspec
from msgspec import Meta

INBOX_STEPS: dict[str, frozenset[str]] = {
    "accepted": frozenset(
        {"accepted", "running", "replied", "dropped", "cancelled", "dead"}
    ),
    "running": frozenset(
        {"accepted", "running", "replied", "dropped", "cancelled", "dead"}
    ),
    "replied": frozenset(),
    "dropped": frozenset(),
    "cancelled": frozenset(),
    "dead": frozenset(),
}
"""Allowed transitions of a message's state."""

OUTBOX_STEPS: dict[str, frozenset[str]] = {
    "pending": frozenset({"pending", "sending", "sent", "unknown", "dead"}),
    "sending": frozenset({"pending", "sending", "sent", "unknown", "dead"}),
    "sent": frozenset(),
    "unknown": frozenset(),
    "dead": frozenset(),
}
"""Allowed transitions of a delivery's state. By hand, `unknown` and `dead` may become
`pending`.
"""


ANSWERED = frozenset(
    {
        "ok",
        "silent",
        "reminder",
        "command",
        "consumed",
        "withheld",
        "told",
        "idle",
        "decided",
        "merged",
        "steered",
    }
)
"""Reasons for which a message was answered as was wanted. With all others the writer
was told why there is no answer."""

SUSPECT_AFTER = 2
"""Interrupted attempts after which a message may have ended the process."""

# Chosen: the third attempt waits 4 s, the sixth 32 s.
LONGEST_SUSPENSE = 60.0
"""Most seconds that a suspect waits after a start."""


def outcome_of(state: str, reason: str) -> str:
    """Name the outcome of a settled message, as audit, counts, queue and pages do.

    `failed`: its writer was told why there is no answer, and may ask again. `dead`: it
    was given up after all its attempts, and an operator may retry it. The others are
    called as the state: `replied`, `dropped`, `cancelled`.
    """
    is_excuse = state == "replied" and reason not in ANSWERED
    return "failed" if is_excuse else state


Seconds = Annotated[float, Meta(gt=0, le=86_400)]


class RetryConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Retries of messages whose turn failed or was interrupted."""

    attempts: Annotated[int, Meta(ge=1, le=20)] = 3
    """Most attempts for one message; twice as many where the end of the process
    interrupted all of them. After that it is given up and listed by `callboard queue
    list`.
    """

    first_wait: Seconds = 120.0
    """Seconds until a failed turn is retried; doubled for each further attempt."""

    longest_wait: Seconds = 3600.0
    """Longest such wait in seconds."""

    stuck_after: Annotated[float, Meta(ge=0, le=86_400)] = 0.0
    """Age in seconds above which an interrupted turn is given up at the next start
    instead of resumed; 0 resumes all.
    """


class RetryPolicy(RetryConfig, frozen=True):
    """The same for the messages of one connector."""

    retries_failures: bool = True
    """Whether failed turns are retried. False: only interrupted turns are."""


class AttemptHistory(msgspec.Struct, frozen=True):
    """Earlier attempts of a message, as stored."""

    attempts: int = 0
    """How many turns were begun."""

    was_running: bool = False
    """Whether the last attempt was interrupted."""

    started_at: float = 0.0
    """Unix seconds of the last attempt's start, or of its postponement after that."""

    due_at: float = 0.0
    """Unix seconds before which no attempt may start."""

    was_read: bool = False
    """Whether this was read from the store."""


class TurnDue(msgspec.Struct, frozen=True):
    """Event: the message's turn may start."""

    now: float
    """Unix seconds."""


class TurnFailed(msgspec.Struct, frozen=True):
    """Event: the turn ended without an answer."""

    reason: str
    may_retry: bool
    """Whether another attempt could succeed."""

    now: float
    not_before: float = 0.0
    """Earliest time at which it could, in Unix seconds."""


class TurnCancelled(msgspec.Struct, frozen=True):
    """Event: the runtime stops and cancels the turn; the attempt does not count."""


Event = TurnDue | TurnFailed | TurnCancelled


class BeginAttempt(msgspec.Struct, frozen=True):
    """Effect: store the start of an attempt, then run the turn."""

    attempt: int
    """Number of the attempt, from 1."""

    must_be_stored: bool
    """Whether the claim must be durable before the model is called: for messages that
    an earlier process knew, since one of them may have crashed it.
    """


class WaitUntil(msgspec.Struct, frozen=True):
    """Effect: start again at this time."""

    due_at: float
    """Unix seconds."""


class Postpone(msgspec.Struct, frozen=True):
    """Effect: store that the message is postponed, and start again at `due_at`."""

    attempts: int
    due_at: float
    """Unix seconds; 0: when the next process or session takes the message up."""

    is_first: bool = False
    """Whether the writer has not been told of a retry before."""


class GiveUp(msgspec.Struct, frozen=True):
    """Effect: settle the message without an answer."""

    state: Literal["replied", "dead"]
    """`replied`: the writer is told the reason and may ask again. `dead`: all attempts
    are used up; the operator sees it in the queue.
    """

    reason: str


Effect = BeginAttempt | WaitUntil | Postpone | GiveUp


class MessageState:
    """State machine of one message between acceptance and settlement.

    Args:
        policy: how often its turn may be attempted.
    """

    __slots__ = (
        "_limit",
        "_past",
        "_policy",
        "_resume_at",
        "attempts",
        "is_suspect",
        "was_read",
    )

    def __init__(self, policy: RetryPolicy, past: AttemptHistory) -> None:
        self._policy = policy
        self._past = past
        self.attempts: int = past.attempts
        """How many turns were begun."""

        self.was_read = past.was_read
        """Whether an earlier process accepted it."""

        # A message that was given up has used all its attempts. A retry by hand grants
        # as many new ones.
        used = past.attempts - 1 if past.was_running else past.attempts
        self._limit = policy.attempts * (1 + max(0, used) // policy.attempts)
        self.is_suspect = past.was_running and past.attempts >= SUSPECT_AFTER
        """Whether it may have ended the process, and must have its turn alone."""

        self._resume_at = 0.0

    @property
    def may_have_steps(self) -> bool:
        """Whether earlier attempts may have recorded steps."""
        return self.was_read or self.attempts > 1

    @property
    def past(self) -> AttemptHistory:
        """What the session's next incarnation must know."""
        return msgspec.structs.replace(self._past, attempts=self.attempts)

    def hurry(self, past: AttemptHistory) -> bool:
        """Take over the stored attempts; return whether the wait has ended.

        It has ended if an operator ended it (`callboard queue retry`). A row that was
        read before the wait was stored changes nothing.
        """
        is_newer = not past.was_running and past.attempts >= self.attempts
        if not (is_newer and past.due_at < self._past.due_at):
            return False
        self._past = msgspec.structs.replace(self._past, due_at=past.due_at)
        return True

    def on(self, event: Event) -> Effect:
        """Process one event and return its effects."""
        match event:
            case TurnDue(now=now):
                return self._begin(now)
            case TurnFailed():
                return self._failed(event)
            case TurnCancelled():
                self.attempts = max(0, self.attempts - 1)
                self._past = msgspec.structs.replace(self._past, was_running=False)
                return Postpone(self.attempts, self._past.due_at)
            case _:
                assert_never(event)

    def _begin(self, now: float) -> Effect:
        past, policy = self._past, self._policy
        if self.attempts >= self._most():
            return GiveUp("dead", "attempts")
        is_stuck = past.was_running and now - past.started_at >= policy.stuck_after > 0
        if is_stuck and self.attempts == past.attempts:
            return GiveUp("dead", "crashed")
        if past.due_at > now:
            return WaitUntil(self._due(now))
        if self.is_suspect and self.attempts == past.attempts:
            self._resume_at = self._resume_at or now + self._suspense()
            # Beyond the longest wait the clock was set back.
            if 0 < self._resume_at - now <= LONGEST_SUSPENSE:
                return WaitUntil(self._resume_at)
        self.attempts += 1
        # Stored without a counted attempt: the first claim may have been lost with the
        # process that the message crashed.
        is_known = past.was_read or past.attempts > 0
        # If the session fails now, the next incarnation must see it as interrupted. A
        # waiting message with all attempts used would count as retried by hand.
        self._past = msgspec.structs.replace(past, was_running=True, started_at=now)
        return BeginAttempt(self.attempts, must_be_stored=is_known)

    def _most(self) -> int:
        """Return how many attempts it may have, given how the last one ended."""
        past, doubled = self._past, 2 * self._policy.attempts
        is_cut_off = past.was_running and self.attempts == past.attempts
        return max(self._limit, doubled) if is_cut_off else self._limit

    def _suspense(self) -> float:
        """Return how many seconds a suspect waits after a start."""
        return min(2.0 ** min(self.attempts, 10), LONGEST_SUSPENSE)

    def _due(self, now: float) -> float:
        """Return when the wait ends; never later than intended.

        If the clock was set back to before the start of the wait, the wait starts now.
        """
        past = self._past
        if now < past.started_at:
            due_at = now + max(0.0, past.due_at - past.started_at)
            self._past = msgspec.structs.replace(past, started_at=now, due_at=due_at)
        return self._past.due_at

    def _failed(self, event: TurnFailed) -> Effect:
        policy, self.is_suspect = self._policy, False
        if not (event.may_retry and policy.retries_failures):
            return GiveUp("replied", event.reason)
        if self.attempts >= self._limit:
            return GiveUp("dead", event.reason)
        made = (self.attempts - 1) % policy.attempts
        wait = min(policy.first_wait * 2**made, policy.longest_wait)
        due_at = max(event.now + wait, event.not_before)
        is_first = self._past.due_at == 0.0
        self._past = msgspec.structs.replace(
            self._past, was_running=False, started_at=event.now, due_at=due_at
        )
        return Postpone(self.attempts, due_at, is_first)
