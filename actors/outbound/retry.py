"""Decides how one delivery is sent: retried, looked up, or given up; pure.

A delivery in state `sending` at a crash may or may not have been sent. A platform that
knows our ids is asked again; where the transport can look a message up, it does; else
the account's `on_unknown` decides between sending it perhaps twice and holding it as
`unknown` for a person. A busy platform surely did not take it: it is retried for a day
and is not in doubt.

An operator may settle a delivery while it waits; then it must not be sent. So a
delivery that had to wait is marked in the store before it is sent, even where sending
twice does no harm: the store refuses the mark of a settled one. A delivery that did not
wait needs no mark there, which saves a commit.
"""

from __future__ import annotations

from typing import Literal, assert_never

import msgspec

from actors.messages.deliveries import Abilities

OnUnknown = Literal["resend", "hold"]

# Chosen: six calls whose answers got lost. Each may have sent the message, so a limit
# in time instead of a number could send it a thousand times.
TRIES = 6
FIRST_WAIT = 1.0

# Chosen: a minute. After an outage of any length people wait at most that much longer,
# and a chat calls a platform that is down no more than 1,440 times a day.
LONGEST_WAIT = 60.0

# Chosen: a day. A flood wait is hours at most and an outage is noticed within a day; an
# answer to yesterday's question helps nobody. A busy platform surely did not take it,
# so a retry sends nothing twice.
GIVE_UP_AFTER = 86_400.0
"""Seconds after the platform was busy for the first time."""

# Chosen: no person notices a delivery and drops it in less; one that did not wait that
# long needs no commit.
WAITED_AFTER = 1.0
"""Seconds since the handover after which an operator may have dropped the delivery."""

# Chosen: as many as wait in a courier's mailbox.
MOST_IN_LINE = 10_000


class DeliveryBegins(msgspec.Struct, frozen=True):
    """The delivery is next, or comes again."""


class AttemptStored(msgspec.Struct, frozen=True):
    """`StoreAttempt` is durable."""


class AttemptRefused(msgspec.Struct, frozen=True):
    """The store refused `StoreAttempt`: somebody has settled the delivery."""

    why: str


class PlatformTook(msgspec.Struct, frozen=True):
    """The platform took the message."""

    receipt: str


class PlatformBusy(msgspec.Struct, frozen=True):
    """The platform did not take the message now."""

    why: str
    retry_after: float | None = None


class PlatformRefused(msgspec.Struct, frozen=True):
    """The platform will never take the message."""

    why: str


class AnswerLost(msgspec.Struct, frozen=True):
    """The platform was asked, but it is unknown whether it took the message."""

    why: str


class TargetGone(msgspec.Struct, frozen=True):
    """The message that was to be edited does not exist any more."""


class DeliveryLookedUp(msgspec.Struct, frozen=True):
    """The result of `LookUpDelivery`."""

    receipt: str | None
    """The platform's id of the message; None: it was not sent."""


class PauseOver(msgspec.Struct, frozen=True):
    """The pause is over."""


Learned = PlatformRefused | AnswerLost | TargetGone | DeliveryLookedUp
Event = (
    DeliveryBegins
    | AttemptStored
    | AttemptRefused
    | PlatformTook
    | PlatformBusy
    | PauseOver
    | Learned
)


class StoreAttempt(msgspec.Struct, frozen=True):
    """Store that the platform is about to be asked, unless somebody has settled it."""

    attempt: int
    is_edit: bool = False
    """Whether the row's state does not change: an interrupted edit is not in doubt."""


class Send(msgspec.Struct, frozen=True):
    """Ask the platform to take the message."""


class LookUpDelivery(msgspec.Struct, frozen=True):
    """Ask the platform whether it has the message."""


class Pause(msgspec.Struct, frozen=True):
    """Wait before going on."""

    seconds: float
    unsaid: str = ""
    """Why the platform surely does not have the message; this is stored before the
    pause. Empty: store nothing."""


class StoreEnd(msgspec.Struct, frozen=True):
    """Store how the delivery ended."""

    state: Literal["sent", "unknown", "dead"]
    receipt: str
    attempts: int


class LetGo(msgspec.Struct, frozen=True):
    """Stop, and leave the stored state as it is."""

    why: str


Effect = StoreAttempt | Send | LookUpDelivery | Pause | StoreEnd | LetGo


class DeliveryProgress:
    """The state machine of one delivery.

    Args:
        on_unknown: what to do with a delivery that may have been sent.
        attempts: how often the platform was asked before, as far as is known.
        was_sending: whether the last of these attempts may have succeeded.
        is_edit: whether it edits a message; that can be repeated on every platform.
        has_waited: whether somebody may have settled it since it was handed over.
    """

    __slots__ = (
        "_abilities",
        "_attempts",
        "_busy",
        "_give_up_at",
        "_has_waited",
        "_is_edit",
        "_is_marked",
        "_may_be_said",
        "_on_unknown",
        "_tries",
        "_was_sending",
    )

    def __init__(
        self,
        abilities: Abilities,
        on_unknown: OnUnknown,
        *,
        attempts: int = 0,
        was_sending: bool = False,
        is_edit: bool = False,
        has_waited: bool = False,
    ) -> None:
        self._is_edit = is_edit
        self._has_waited = has_waited
        self._is_marked = False  # whether the last attempt is stored
        self._abilities = abilities
        self._on_unknown = on_unknown
        self._attempts = attempts
        self._was_sending = was_sending
        # Unlike `_was_sending`, this stays true when it is sent once more.
        self._may_be_said = was_sending
        self._tries = 0  # without those for which the platform was busy
        self._busy = 0
        self._give_up_at = 0.0  # set by the first `PlatformBusy`

    @property
    def attempts(self) -> int:
        """How often the platform was asked."""
        return self._attempts

    def on(self, event: Event, now: float) -> Effect:
        """Take in one event and return the next effect.

        Args:
            event: the result of the last effect.
            now: seconds on the caller's monotonic clock; must not go backwards.
        """
        match event:
            case DeliveryBegins() | PauseOver():
                self._has_waited |= isinstance(event, PauseOver)
                return self._begin()
            case AttemptStored():
                return Send()
            case AttemptRefused(why=why):
                return LetGo(why)
            case PlatformTook(receipt=receipt):
                return StoreEnd("sent", receipt, self._attempts)
            case PlatformBusy():
                return self._wait(event, now)
            case _:
                return self._learn(event)

    def _begin(self) -> Effect:
        if self._was_sending and not self._is_repeatable:
            return self._resolve("the process ended while it was being said")
        return self._ask()

    @property
    def _is_repeatable(self) -> bool:
        return self._is_edit or self._abilities.is_idempotent

    def _learn(self, event: Learned) -> Effect:
        match event:
            case PlatformRefused(why=why):
                return StoreEnd("dead", why, self._attempts)
            case TargetGone():
                self._is_edit = self._was_sending = self._may_be_said = False
                return self._ask()
            case AnswerLost(why=why) if self._is_repeatable:
                self._may_be_said = True
                return self._pause(why)
            case AnswerLost(why=why):
                self._was_sending = self._may_be_said = True
                return self._resolve(why)
            case DeliveryLookedUp(receipt=receipt) if receipt is not None:
                return StoreEnd("sent", receipt, self._attempts)
            case DeliveryLookedUp():
                self._was_sending = self._may_be_said = False
                return self._ask()
            case _:
                assert_never(event)

    def _resolve(self, why: str) -> Effect:
        """Decide about a delivery that may have been sent."""
        if self._abilities.can_look_up:
            self._tries += 1
            return LookUpDelivery() if self._tries <= TRIES else self._end_unsaid(why)
        if self._on_unknown == "hold":
            return StoreEnd("unknown", why, self._attempts)
        self._was_sending = False
        return self._ask() if self._tries == 0 else self._pause(why)

    def _ask(self) -> Effect:
        self._tries += 1
        self._attempts += 1
        needs_mark = self._has_waited or not self._is_repeatable
        self._is_marked = needs_mark and not self._is_edit
        return StoreAttempt(self._attempts, self._is_edit) if needs_mark else Send()

    def _wait(self, busy: PlatformBusy, now: float) -> Effect:
        """Pause for a busy platform, which did not take the message."""
        self._tries -= 1
        self._busy += 1
        if self._busy == 1:
            self._give_up_at = now + GIVE_UP_AFTER
        left = self._give_up_at - now
        if left <= 0:
            return self._end_unsaid(busy.why)
        seconds = _doubled(self._busy)
        if busy.retry_after is not None:
            # Why not always: a platform that keeps naming too short a time, such as 0,
            # would be called without end.
            least = 0.0 if self._busy < TRIES else seconds
            seconds = max(least, busy.retry_after)
        is_unsaid = self._is_marked and not self._may_be_said
        return Pause(min(seconds, left), busy.why if is_unsaid else "")

    def _pause(self, why: str) -> Effect:
        if self._tries >= TRIES:
            return self._end_unsaid(why)
        return Pause(_doubled(self._tries))

    def _end_unsaid(self, why: str) -> StoreEnd:
        return StoreEnd("unknown" if self._may_be_said else "dead", why, self._attempts)


def _doubled(count: int) -> float:
    """Give the seconds to wait after the `count`th failure, from 1."""
    return min(FIRST_WAIT * 2.0 ** min(count - 1, TRIES), LONGEST_WAIT)


class DeliveryLine:
    """Deliveries of one chat that were handed back, in the order they must go.

    The connector hands over all that are left again, in the outbox's order; new ones
    come in between. One that an operator dropped meanwhile does not come again.
    """

    __slots__ = ("_count", "_handed", "_overtaken")

    def __init__(self) -> None:
        self._count = 0
        # By delivery: when it was handed over last; in the order of sending.
        self._handed: dict[str, int] = {}
        self._overtaken: set[str] = set()
        """Deliveries that had not come in a round when one behind them did."""

    def __len__(self) -> int:
        """Count the deliveries in line."""
        return len(self._handed)

    @property
    def deliveries(self) -> tuple[str, ...]:
        """Ids of the deliveries in line, the next one first."""
        return tuple(self._handed)

    def may_go(self, delivery_id: str, *, is_new: bool) -> bool:
        """Tell whether a delivery is next; if not, put it in line.

        Args:
            delivery_id: of the one that was handed over.
            is_new: whether it is handed over for the first time, between two rounds.
        """
        if is_new:
            # The round is over: one that has not come in it was dropped.
            for gone in tuple(self._overtaken):
                self.leave(gone)
        if not self._handed:
            return True
        if before := self._overtaken_by(delivery_id):
            place = self._handed.pop(delivery_id)
            self._handed = {delivery_id: place, **self._handed}
            self._overtaken.update(before)
        self.join(delivery_id)
        return next(iter(self._handed)) == delivery_id

    def join(self, delivery_id: str) -> None:
        """Put a delivery at the end of the line, unless it is in line already."""
        self._count += 1
        self._overtaken.discard(delivery_id)
        # With a full line it is handed back all the same, and comes again.
        if delivery_id in self._handed or len(self._handed) < MOST_IN_LINE:
            self._handed[delivery_id] = self._count

    def leave(self, delivery_id: str) -> None:
        """Remove a delivery that has ended."""
        self._handed.pop(delivery_id, None)
        self._overtaken.discard(delivery_id)

    def _overtaken_by(self, delivery_id: str) -> list[str]:
        """Give those before it if none of them has come in this round.

        Each is gone, or the outbox has it behind this one: what an operator sends into
        a chat is in the outbox before an answer that was handed over sooner.
        """
        last = self._handed.get(delivery_id, 0)
        before: list[str] = []
        for each, handed in self._handed.items():
            if each == delivery_id:
                return before
            if handed >= last:
                break
            before.append(each)
        return []
