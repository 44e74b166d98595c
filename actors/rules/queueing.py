"""Whose turn it is in one session: one at a time, first come, first served.

Pure. The busy policy `serial` (F083-F088): what comes during a turn waits, what is
too much is refused, a stop ends the turn and forgets what waits, of those it is for.
The shell feeds events to `SessionQueue.on` and carries out the effects in order.
"""

from __future__ import annotations

from typing import Literal, assert_never

import msgspec


class Heard(msgspec.Struct, frozen=True):
    """A message for the session came in."""

    id: str
    """The message's own id, unique in the session."""

    is_owed: bool = False
    """Whether it was taken in before: then it waits however many wait already."""


class TurnEnded(msgspec.Struct, frozen=True):
    """A turn is over, well or badly; sent for cancelled ones too."""

    id: str
    generation: int
    """As in the `Start` of this turn."""


class StopAsked(msgspec.Struct, frozen=True):
    """Somebody said `/stop`."""

    ids: frozenset[str]
    """What may be stopped: one person's messages. All others go on, and keep their
    order."""


Event = Heard | TurnEnded | StopAsked


class Start(msgspec.Struct, frozen=True):
    """Begin the turn for this message."""

    id: str
    generation: int
    """Grows with every turn; tells a late result from one that is waited for."""


class Wait(msgspec.Struct, frozen=True):
    """Keep this message until its turn."""

    id: str
    ahead: int
    """How many turns come before it, the running one included."""


class Refuse(msgspec.Struct, frozen=True):
    """Do not take this message; say so to its sender."""

    id: str
    reason: Literal["busy"] = "busy"


class CancelCurrent(msgspec.Struct, frozen=True):
    """Cancel the running turn. Whatever it still reports is ignored."""

    id: str
    generation: int


class DropWaiting(msgspec.Struct, frozen=True):
    """Let these messages go, oldest first; their turns will not begin."""

    ids: tuple[str, ...]
    reason: Literal["stopped"] = "stopped"


Effect = Start | Wait | Refuse | CancelCurrent | DropWaiting


class SessionQueue:
    """At most one running turn, and at most `queue_cap` new messages behind it.

    Args:
        queue_cap: most messages that wait; 0 refuses everything during a turn.

    Raises:
        ValueError: `queue_cap` is negative.
    """

    __slots__ = ("_current", "_generation", "_queue_cap", "_waiting")

    def __init__(self, queue_cap: int) -> None:
        if queue_cap < 0:
            raise ValueError(f"queue_cap must be 0 or more, not {queue_cap}")
        self._queue_cap = queue_cap
        self._generation = 0
        self._current: str | None = None
        # Why no deque: an empty one is 600 bytes, an empty list 56, and most
        # conversations wait for none.
        self._waiting: tuple[str, ...] = ()

    @property
    def current(self) -> str | None:
        """Id of the message whose turn is running."""
        return self._current

    @property
    def generation(self) -> int:
        """As in the last `Start`."""
        return self._generation

    @property
    def waiting(self) -> tuple[str, ...]:
        """Ids of the messages that wait, oldest first."""
        return self._waiting

    @property
    def is_idle(self) -> bool:
        """True if the session may be put to sleep."""
        return self._current is None

    def on(self, event: Event) -> list[Effect]:
        """Take one event in; give back the effects it causes, in order."""
        match event:
            case Heard(id=message, is_owed=is_owed):
                return self._heard(message, is_owed=is_owed)
            case TurnEnded(id=message, generation=generation):
                # Why: after a stop the cancelled turn still reports; by then another
                # may be running, even for the same message.
                if (message, generation) != (self._current, self._generation):
                    return []
                return self._next()
            case StopAsked(ids=ids):
                return self._stop(ids)
            case _:
                assert_never(event)

    def _heard(self, message: str, *, is_owed: bool) -> list[Effect]:
        if message == self._current or message in self._waiting:
            return []  # handed in twice; it has its place already
        if self._current is None:
            return [self._start(message)]
        if len(self._waiting) >= self._queue_cap and not is_owed:
            return [Refuse(message)]
        self._waiting = (*self._waiting, message)
        return [Wait(message, ahead=len(self._waiting))]

    def _start(self, message: str) -> Start:
        self._generation += 1
        self._current = message
        return Start(message, self._generation)

    def _next(self) -> list[Effect]:
        self._current = None
        # Invariant: nothing waits while nothing runs.
        if not self._waiting:
            return []
        message, *rest = self._waiting
        self._waiting = tuple(rest)
        return [self._start(message)]

    def _stop(self, ids: frozenset[str]) -> list[Effect]:
        effects: list[Effect] = []
        is_cancelled = self._current in ids
        if self._current is not None and is_cancelled:
            effects.append(CancelCurrent(self._current, self._generation))
        dropped = tuple(each for each in self._waiting if each in ids)
        if dropped:
            effects.append(DropWaiting(dropped))
            self._waiting = tuple(each for each in self._waiting if each not in ids)
        if is_cancelled:
            effects += self._next()
        return effects
