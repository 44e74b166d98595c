"""How one delivery is brought to its platform: tried again, looked up, or given up.

Pure. What a crash leaves in state `sending` may have been said or not. A platform
that knows our ids is simply told again; where the transport can look it up, it does;
else the account's policy decides between saying it perhaps twice and holding it as
`unknown` for a person to decide. A platform that is busy surely did not take it, and
is asked again for a day; meanwhile it is not in doubt.

What is settled by hand meanwhile must not be said. So what had to wait is marked before
it is said, also where saying it again does no harm: the mark is refused then. What
need not wait is rid of that there, for the sake of the disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, assert_never

import msgspec

if TYPE_CHECKING:
    from actors.deliveries import Abilities

OnUnknown = Literal["resend", "hold"]

# Chosen: six questions whose answers got lost. Each may be said once more, so a time
# instead of a number would let one reply be read a thousand times.
TRIES = 6
FIRST_WAIT = 1.0

# Chosen: a minute. After trouble of any length people wait at most that much longer,
# and a chat asks a platform that is down no more than 1,440 times a day.
LONGEST_WAIT = 60.0

# Chosen: a day. A flood wait is hours at most and an outage is noticed within a day;
# what answers yesterday's question helps nobody any more. A platform that is busy did
# surely not take it, so asking again says nothing twice.
GIVE_UP_AFTER = 86_400.0
"""Seconds after the first time the platform was busy."""

# Chosen: no person reads of a delivery and drops it in less; and what need not wait is
# rid of a commit.
WAITED_AFTER = 1.0
"""Seconds after it was handed over after which somebody may have dropped it."""

# Chosen: as many as wait in a courier's mailbox.
MOST_IN_LINE = 10_000


class Begins(msgspec.Struct, frozen=True):
    """It is this delivery's turn."""


class Marked(msgspec.Struct, frozen=True):
    """`Mark` is durable."""


class Settled(msgspec.Struct, frozen=True):
    """`Mark` is refused: somebody has settled it meanwhile, by hand for one."""

    why: str


class Said(msgspec.Struct, frozen=True):
    """The platform took it."""

    receipt: str


class Busy(msgspec.Struct, frozen=True):
    """The platform did not take it now."""

    why: str
    retry_after: float | None = None


class Refused(msgspec.Struct, frozen=True):
    """The platform will never take it."""

    why: str


class Lost(msgspec.Struct, frozen=True):
    """The platform was asked, and nobody knows whether it took it."""

    why: str


class Gone(msgspec.Struct, frozen=True):
    """The message that was to read it is not there any more."""


class LookedUp(msgspec.Struct, frozen=True):
    """What looking it up gave."""

    receipt: str | None
    """None: it was not said."""


class Waited(msgspec.Struct, frozen=True):
    """The pause is over."""


Learned = Refused | Lost | Gone | LookedUp
Event = Begins | Marked | Settled | Said | Busy | Waited | Learned


class Mark(msgspec.Struct, frozen=True):
    """Store that the platform is about to be asked, unless somebody has settled it."""

    attempt: int
    is_edit: bool = False
    """Whether it stays as it is otherwise: an edit that is cut off is not in doubt."""


class Say(msgspec.Struct, frozen=True):
    """Ask the platform to take it."""


class LookUp(msgspec.Struct, frozen=True):
    """Ask the platform whether it was said."""


class Pause(msgspec.Struct, frozen=True):
    """Wait before going on."""

    seconds: float
    unsaid: str = ""
    """Why the platform surely does not have it; then store first that it is so. Empty:
    nothing is stored that says otherwise, or nobody knows."""


class End(msgspec.Struct, frozen=True):
    """Store how it ended."""

    state: Literal["sent", "unknown", "dead"]
    receipt: str
    attempts: int


class LetGo(msgspec.Struct, frozen=True):
    """Do no more: what is stored of its end stays so."""

    why: str


Effect = Mark | Say | LookUp | Pause | End | LetGo


class Sending:
    """One delivery on its last step.

    Args:
        abilities: what the transport can do.
        on_unknown: what to do with a delivery that may have been said.
        attempts: how often the platform was asked before, as far as is known.
        was_sending: whether the last of these attempts may have succeeded.
        is_edit: whether a message that is there is to read it: done twice, that is
            done once, on every platform.
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
        self._is_marked = False  # before it was asked for last
        self._abilities = abilities
        self._on_unknown = on_unknown
        self._attempts = attempts
        self._was_sending = was_sending
        # Unlike the above it stays so when it is said once more.
        self._may_be_said = was_sending
        self._tries = 0  # without those the platform was too busy for
        self._busy = 0
        self._give_up_at = 0.0  # set by the first `Busy`

    @property
    def attempts(self) -> int:
        """How often the platform was asked."""
        return self._attempts

    def on(self, event: Event, now: float) -> Effect:
        """Take one event in; give back the one effect it causes.

        Args:
            event: what came of the last effect.
            now: seconds on the caller's monotonic clock; must not go backwards.
        """
        match event:
            case Begins() | Waited():
                self._has_waited |= isinstance(event, Waited)
                return self._begin()
            case Marked():
                return Say()
            case Settled(why=why):
                return LetGo(why)
            case Said(receipt=receipt):
                return End("sent", receipt, self._attempts)
            case Busy():
                return self._wait(event, now)
            case _:
                return self._learn(event)

    def _begin(self) -> Effect:
        if self._is_in_doubt:
            return self._resolve("the process ended while it was being said")
        return self._ask()

    @property
    def _is_in_doubt(self) -> bool:
        return self._was_sending and not self._is_repeatable

    @property
    def _is_repeatable(self) -> bool:
        return self._is_edit or self._abilities.is_idempotent

    def _learn(self, event: Learned) -> Effect:
        match event:
            case Refused(why=why):
                return End("dead", why, self._attempts)
            case Gone():
                self._is_edit = self._was_sending = self._may_be_said = False
                return self._ask()
            case Lost(why=why) if self._is_repeatable:
                self._may_be_said = True
                return self._pause(why)
            case Lost(why=why):
                self._was_sending = self._may_be_said = True
                return self._resolve(why)
            case LookedUp(receipt=receipt) if receipt is not None:
                return End("sent", receipt, self._attempts)
            case LookedUp():
                self._was_sending = self._may_be_said = False
                return self._ask()
            case _:
                assert_never(event)

    def _resolve(self, why: str) -> Effect:
        """Decide about a delivery that may have been said."""
        if self._abilities.can_look_up:
            self._tries += 1
            return LookUp() if self._tries <= TRIES else self._end_unsaid(why)
        if self._on_unknown == "hold":
            return End("unknown", why, self._attempts)
        self._was_sending = False
        return self._ask() if self._tries == 0 else self._pause(why)

    def _ask(self) -> Effect:
        self._tries += 1
        self._attempts += 1
        needs_mark = self._has_waited or not self._is_repeatable
        self._is_marked = needs_mark and not self._is_edit
        return Mark(self._attempts, self._is_edit) if needs_mark else Say()

    def _wait(self, busy: Busy, now: float) -> Effect:
        """Give a busy platform time: it did not take it, whatever was asked."""
        self._tries -= 1
        self._busy += 1
        if self._busy == 1:
            self._give_up_at = now + GIVE_UP_AFTER
        left = self._give_up_at - now
        if left <= 0:
            return self._end_unsaid(busy.why)
        seconds = _doubled(self._busy)
        if busy.retry_after is not None:
            # Why not always: one that keeps naming too short a time, 0 for one, would
            # be asked without end.
            least = 0.0 if self._busy < TRIES else seconds
            seconds = max(least, busy.retry_after)
        is_unsaid = self._is_marked and not self._may_be_said
        return Pause(min(seconds, left), busy.why if is_unsaid else "")

    def _pause(self, why: str) -> Effect:
        if self._tries >= TRIES:
            return self._end_unsaid(why)
        return Pause(_doubled(self._tries))

    def _end_unsaid(self, why: str) -> End:
        return End("unknown" if self._may_be_said else "dead", why, self._attempts)


def _doubled(count: int) -> float:
    """Give the seconds to wait after trouble for the `count`th time, from 1."""
    return min(FIRST_WAIT * 2.0 ** min(count - 1, TRIES), LONGEST_WAIT)


class Line:
    """Deliveries of one chat that were turned away, in the order they must go.

    Who turns them away is handed them again, all that are left, in the outbox's order;
    new ones come in between. One that somebody dropped meanwhile does not come again.
    """

    __slots__ = ("_count", "_handed", "_overtaken")

    def __init__(self) -> None:
        self._count = 0
        # By delivery: when it was handed over last; in the order in which they go.
        self._handed: dict[str, int] = {}
        self._overtaken: set[str] = set()
        """Those who had not come in a round when who stood behind them did."""

    def __len__(self) -> int:
        """Give how many stand in line."""
        return len(self._handed)

    @property
    def deliveries(self) -> tuple[str, ...]:
        """Those in line, the next one first."""
        return tuple(self._handed)

    def may_go(self, delivery_id: str, *, is_new: bool) -> bool:
        """Tell whether it is this one's turn; if not, it stands in line.

        Args:
            delivery_id: of the one that was handed over.
            is_new: whether that is for the first time, between two rounds.
        """
        if is_new:
            # The round is over: who has not come in it does not come again.
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
        """Have it stand in line, at the end unless it does already."""
        self._count += 1
        self._overtaken.discard(delivery_id)
        # One too many for the line is turned away all the same, and comes again.
        if delivery_id in self._handed or len(self._handed) < MOST_IN_LINE:
            self._handed[delivery_id] = self._count

    def leave(self, delivery_id: str) -> None:
        """Have it stand in line no longer: it has reached its end."""
        self._handed.pop(delivery_id, None)
        self._overtaken.discard(delivery_id)

    def _overtaken_by(self, delivery_id: str) -> list[str]:
        """Give those before it if none of them has come in this round.

        Each is gone, or the outbox has it behind this one: what an operator says in a
        chat stands in the outbox before an answer that was handed over sooner.
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
