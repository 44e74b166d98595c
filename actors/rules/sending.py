"""How one delivery is brought to its platform: tried again, looked up, or given up.

Pure. What a crash leaves in state `sending` may have been said or not. A platform
that knows our ids is simply told again; where the transport can look it up, it does;
else the account's policy decides between saying it perhaps twice and holding it as
`unknown` for a person to decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, assert_never

import msgspec

if TYPE_CHECKING:
    from actors.messages import Abilities

OnUnknown = Literal["resend", "hold"]

# Chosen: six tries over about half a minute, unless the platform says how long to
# wait; then the delivery is dead and says so in the outbox.
TRIES = 6
FIRST_WAIT = 1.0
LONGEST_WAIT = 60.0


class Begins(msgspec.Struct, frozen=True):
    """It is this delivery's turn."""


class Marked(msgspec.Struct, frozen=True):
    """`Mark` is durable."""


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


class LookedUp(msgspec.Struct, frozen=True):
    """What looking it up gave."""

    receipt: str | None
    """None: it was not said."""


class Waited(msgspec.Struct, frozen=True):
    """The pause is over."""


Event = Begins | Marked | Said | Busy | Refused | Lost | LookedUp | Waited


class Mark(msgspec.Struct, frozen=True):
    """Store that the platform is about to be asked."""

    attempt: int


class Say(msgspec.Struct, frozen=True):
    """Ask the platform to take it."""


class LookUp(msgspec.Struct, frozen=True):
    """Ask the platform whether it was said."""


class Pause(msgspec.Struct, frozen=True):
    """Wait before going on."""

    seconds: float


class End(msgspec.Struct, frozen=True):
    """Store how it ended."""

    state: Literal["sent", "unknown", "dead"]
    receipt: str
    attempts: int


Effect = Mark | Say | LookUp | Pause | End


class Sending:
    """One delivery on its last step.

    Args:
        abilities: what the transport can do.
        on_unknown: what to do with a delivery that may have been said.
        attempts: how often the platform was asked before, as far as is known.
        was_sending: whether the last of these attempts may have succeeded.
    """

    __slots__ = (
        "_abilities",
        "_attempts",
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
    ) -> None:
        self._abilities = abilities
        self._on_unknown = on_unknown
        self._attempts = attempts
        self._was_sending = was_sending
        # Unlike the above it stays so when it is said once more.
        self._may_be_said = was_sending
        self._tries = 0

    @property
    def attempts(self) -> int:
        """How often the platform was asked."""
        return self._attempts

    def on(self, event: Event) -> Effect:
        """Take one event in; give back the one effect it causes."""
        match event:
            case Begins() | Waited():
                return self._begin()
            case Marked():
                return Say()
            case Said(receipt=receipt):
                return End("sent", receipt, self._attempts)
            case Busy():
                return self._pause(event.why, event.retry_after)
            case _:
                return self._learn(event)

    def _begin(self) -> Effect:
        if self._is_in_doubt:
            return self._resolve("the process ended while it was being said")
        return self._ask()

    @property
    def _is_in_doubt(self) -> bool:
        return self._was_sending and not self._abilities.is_idempotent

    def _learn(self, event: Refused | Lost | LookedUp) -> Effect:
        match event:
            case Refused(why=why):
                return End("dead", why, self._attempts)
            case Lost(why=why) if self._abilities.is_idempotent:
                self._may_be_said = True
                return self._pause(why, None)
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
        return self._ask() if self._tries == 0 else self._pause(why, None)

    def _ask(self) -> Effect:
        self._tries += 1
        self._attempts += 1
        return Say() if self._abilities.is_idempotent else Mark(self._attempts)

    def _pause(self, why: str, retry_after: float | None) -> Effect:
        if self._tries >= TRIES:
            return self._end_unsaid(why)
        wait = FIRST_WAIT * 2 ** (self._tries - 1) if self._tries else FIRST_WAIT
        asked = retry_after if retry_after is not None else wait
        return Pause(min(max(asked, 0.0), LONGEST_WAIT))

    def _end_unsaid(self, why: str) -> End:
        return End("unknown" if self._may_be_said else "dead", why, self._attempts)
