"""What becomes of a message: its states, and when its turn is tried again.

Pure. A message goes

    received → accepted → running → reply_ready → sending → sent | unknown | dead

where `reply_ready` is the one commit that settles it as `replied` and puts the
reply's parts into the outbox as `pending`. Its other ends are `dropped` (with the
policy's reason), `cancelled` and `dead`. A turn that fails may be tried again: the
message is `accepted` once more, and waits. Each start counts, also one that the end
of the process cut off (F286, F289-F291).

The connector stores `accepted`, the session carries out the effects of
`MessageState`, and the store keeps the tables here (tests compare the two).
"""

from __future__ import annotations

from typing import Literal, assert_never

import msgspec

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
"""Which state of a message may follow which."""

OUTBOX_STEPS: dict[str, frozenset[str]] = {
    "pending": frozenset({"pending", "sending", "sent", "unknown", "dead"}),
    "sending": frozenset({"pending", "sending", "sent", "unknown", "dead"}),
    "sent": frozenset(),
    "unknown": frozenset(),
    "dead": frozenset(),
}
"""Which state of a delivery may follow which; by hand, `unknown` and `dead` may
become `pending`."""


class RetryPolicy(msgspec.Struct, frozen=True):
    """How often a turn is begun, and how long it waits in between."""

    attempts: int = 3
    """Most starts of one message's turn, cut off ones included; at least 1."""

    retries_failures: bool = True
    """Whether a turn that failed is begun again; else only one that was cut off is."""

    first_wait: float = 120.0
    """Seconds before the second start; doubled for each one after it."""

    longest_wait: float = 3600.0
    """Seconds that no wait is longer than."""

    stuck_after: float = 0.0
    """Seconds after its start at which a turn that the end of the process cut off is
    given up instead of begun again; 0: never."""


class Past(msgspec.Struct, frozen=True):
    """What the store knows of a message's earlier starts."""

    attempts: int = 0
    """How many turns were begun."""

    was_running: bool = False
    """Whether the last one was cut off."""

    started_at: float = 0.0
    """Unix seconds of the last start, or of when it was put off after that."""

    due_at: float = 0.0
    """Unix seconds before which no turn is to begin."""

    was_read: bool = False
    """Whether it was read back from the store."""


class Begins(msgspec.Struct, frozen=True):
    """It is this message's turn."""

    now: float
    """Unix seconds."""


class Fails(msgspec.Struct, frozen=True):
    """The turn ended without an answer."""

    reason: str
    may_retry: bool
    """Whether another turn could end better."""

    now: float
    not_before: float = 0.0
    """Unix seconds before which it could not."""


class Returns(msgspec.Struct, frozen=True):
    """The turn is called off because the runtime ends; it does not count."""


Event = Begins | Fails | Returns


class BeginAttempt(msgspec.Struct, frozen=True):
    """Store that an attempt begins, then ask."""

    attempt: int
    """From 1."""

    must_be_stored: bool
    """Whether the model is not to be asked before that is durable: for messages that
    an earlier process knew, one of which may have ended it."""


class WaitUntil(msgspec.Struct, frozen=True):
    """Begin again at this time."""

    due_at: float
    """Unix seconds."""


class PutOff(msgspec.Struct, frozen=True):
    """Store that the message waits; begin again at that time, should there be one."""

    attempts: int
    due_at: float
    """Unix seconds; 0: whenever somebody takes it up."""

    is_first: bool = False
    """Whether the writer does not know yet that it is tried again."""


class GiveUp(msgspec.Struct, frozen=True):
    """Settle it without an answer."""

    state: Literal["replied", "dead"]
    """`replied`: the writer is told why and may ask again; `dead`: all attempts are
    used up, and it is listed for the operator."""

    reason: str


Effect = BeginAttempt | WaitUntil | PutOff | GiveUp


class MessageState:
    """One message between its acceptance and its end.

    Args:
        policy: how often its turn may be begun.
        past: what happened before this process, or this session, knew it.
    """

    __slots__ = ("_attempts", "_limit", "_past", "_policy")

    def __init__(self, policy: RetryPolicy, past: Past) -> None:
        self._policy = policy
        self._past = past
        self._attempts = past.attempts
        # Mostly a message that was given up has used all its attempts; one that waits
        # or was cut off has not. So who tries one again by hand grants it as many more.
        used = past.attempts - 1 if past.was_running else past.attempts
        self._limit = policy.attempts * (1 + max(0, used) // policy.attempts)

    @property
    def attempts(self) -> int:
        """How many turns were begun."""
        return self._attempts

    @property
    def may_have_steps(self) -> bool:
        """Whether an earlier attempt may have recorded steps."""
        return self._past.was_read or self._attempts > 1

    @property
    def past(self) -> Past:
        """What a next incarnation of the session must know of it."""
        return msgspec.structs.replace(self._past, attempts=self._attempts)

    def hurry(self, past: Past) -> bool:
        """Learn what the store says now; whether its wait is over.

        That is so when a person ended it (`callboard queue retry`), and not when the
        row was read before the wait itself was stored.
        """
        is_newer = not past.was_running and past.attempts >= self._attempts
        if not (is_newer and past.due_at < self._past.due_at):
            return False
        self._past = msgspec.structs.replace(self._past, due_at=past.due_at)
        return True

    def on(self, event: Event) -> Effect:
        """Take one event in; give back what follows from it."""
        match event:
            case Begins(now=now):
                return self._begin(now)
            case Fails():
                return self._failed(event)
            case Returns():
                self._attempts = max(0, self._attempts - 1)
                self._past = msgspec.structs.replace(self._past, was_running=False)
                return PutOff(self._attempts, self._past.due_at)
            case _:
                assert_never(event)

    def _begin(self, now: float) -> Effect:
        past, policy = self._past, self._policy
        if self._attempts >= self._limit:
            return GiveUp("dead", "attempts")
        is_stuck = past.was_running and now - past.started_at >= policy.stuck_after > 0
        if is_stuck and self._attempts == past.attempts:
            return GiveUp("dead", "crashed")
        if past.due_at > now:
            return WaitUntil(self._due(now))
        self._attempts += 1
        # Read back without an attempt that counts: its first claim may have been lost
        # with the process that it ended.
        is_known = past.was_read or past.attempts > 0
        # Should the session fail now, the next incarnation knows it for cut off: one
        # that merely waits with all its attempts used was tried again by hand.
        self._past = msgspec.structs.replace(past, was_running=True, started_at=now)
        return BeginAttempt(self._attempts, must_be_stored=is_known)

    def _due(self, now: float) -> float:
        """Say until when it waits: for no longer than was meant.

        Should the clock have been set back behind the moment at which the wait began,
        it begins now.
        """
        past = self._past
        if now < past.started_at:
            due_at = now + max(0.0, past.due_at - past.started_at)
            self._past = msgspec.structs.replace(past, started_at=now, due_at=due_at)
        return self._past.due_at

    def _failed(self, event: Fails) -> Effect:
        policy = self._policy
        if not (event.may_retry and policy.retries_failures):
            return GiveUp("replied", event.reason)
        if self._attempts >= self._limit:
            return GiveUp("dead", event.reason)
        made = (self._attempts - 1) % policy.attempts
        wait = min(policy.first_wait * 2**made, policy.longest_wait)
        due_at = max(event.now + wait, event.not_before)
        is_first = self._past.due_at == 0.0
        self._past = msgspec.structs.replace(
            self._past, was_running=False, started_at=event.now, due_at=due_at
        )
        return PutOff(self._attempts, due_at, is_first)
