"""How many turns run at once, over all agents (F083), and who comes first (F284)."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, ClassVar

import msgspec

from actors.protocol import Acquire, Granted, Release
from runtime.actor import Actor
from runtime.mailbox import MailboxConfig
from runtime.ref import ActorRef

if TYPE_CHECKING:
    from collections.abc import Callable

# Chosen: sessions give their permits back themselves; this is for those that were
# killed with their whole branch of the tree, or ended while their turn still ran.
LOOK_EVERY = 5.0


class Holding(msgspec.Struct, frozen=True):
    """A note to its next incarnation: these hold permits."""

    holders: dict[str, ActorRef]


class AtWork(msgspec.Struct, frozen=True):
    """Asked: does a turn run, or wait to, in a session whose name begins so?"""

    prefix: str


class LookForDead(msgspec.Struct, frozen=True):
    """A note to itself: see whether all who hold permits still live."""


class Limiter(Actor):
    """Grants turns to sessions: the most urgent first, then first come first served.

    Takes: `Acquire`, `Release`, `AtWork` (asked).
    Sends: `Granted` to the session whose turn it is.
    Keeps: who holds a permit and who waits for one.
    Fails: never by these messages; what it keeps goes to its next incarnation.
    Ends: with the system.

    Args:
        most: turns at once; called each time if it may change.
    """

    # Chosen: one message for each session awake, and its release.
    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=100_000)

    def __init__(self, most: int | Callable[[], int]) -> None:
        super().__init__()
        self._most = most if callable(most) else lambda: most
        self._holders: dict[str, ActorRef] = {}
        self._waiting: dict[int, OrderedDict[str, Acquire]] = {}  # by priority
        self._is_to_look = False
        """Whether a `LookForDead` is on its way; only while somebody holds a permit."""

    def on_failure(self, *_: object, **__: object) -> None:
        """Hand on who holds a permit and who waits, in their order."""
        for queue in self._waiting.values():
            for asked in reversed(queue.values()):
                self.requeue(asked)
        self.requeue(Holding(dict(self._holders)))

    def on_receive(self, message: object) -> object:
        """Grant, queue or take back."""
        match message:
            case AtWork(prefix=prefix):
                return self._is_at_work(prefix)
            case Acquire():
                self._leave(message.holder)
                queue = self._waiting.setdefault(message.priority, OrderedDict())
                queue[message.holder] = message
                if message.is_under_way:
                    queue.move_to_end(message.holder, last=False)
            case Release(holder=holder):
                self._leave(holder)
            case Holding(holders=holders):
                self._holders |= holders
            case LookForDead():
                self._is_to_look = False
                self._take_back()
            case _:
                return super().on_receive(message)
        self._grant()
        return None

    def _is_at_work(self, prefix: str) -> bool:
        waiting = (name for queue in self._waiting.values() for name in queue)
        return any(name.startswith(prefix) for name in (*self._holders, *waiting))

    def _grant(self) -> None:
        while self._waiting and len(self._holders) < self._most():
            asked = self._take_next()
            self._holders[asked.holder] = asked.session
            if not self.tell(asked.session, Granted(asked.turn_id)):
                del self._holders[asked.holder]
        self._look_later()

    def _look_later(self) -> None:
        if self._holders and not self._is_to_look:
            self._is_to_look = True
            self.after(LOOK_EVERY, LookForDead())

    def _take_back(self) -> None:
        """Take back the permits of sessions that were killed and could not say so."""
        for holder, session in tuple(self._holders.items()):
            if not session.is_alive():
                self._leave(holder)

    def _take_next(self) -> Acquire:
        priority = min(self._waiting)  # never more than ten of them
        queue = self._waiting[priority]
        _, asked = queue.popitem(last=False)
        if not queue:
            del self._waiting[priority]
        return asked

    def _leave(self, holder: str) -> None:
        self._holders.pop(holder, None)
        for priority, queue in tuple(self._waiting.items()):
            queue.pop(holder, None)
            if not queue:
                del self._waiting[priority]
