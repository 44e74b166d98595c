"""The bounded queue of one actor: two lanes, first in first out.

Pure: no clock, no loop. System messages (stop, child ended, tick) overtake user
messages; inside a lane nothing overtakes. The first waiting message needs no
queue object, so an actor that is told one message at a time stays small.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from itertools import chain
from typing import Final, Literal

import msgspec

from runtime.actor.envelope import Envelope
from runtime.actor.messages import weight_of
from runtime.actor.reply import Reply

Overflow = Literal["wait", "reject", "drop_oldest"]


class Empty:
    """The class of `EMPTY`."""

    __slots__ = ()


EMPTY: Final = Empty()
"""What `get` gives when nothing waits."""


class MailboxConfig(msgspec.Struct, frozen=True):
    """How much a mailbox holds and what happens when it is full."""

    capacity: int = 256
    """Most user messages waiting. System messages are not counted."""

    max_bytes: int | None = None
    """Most bytes of user messages waiting; None: not weighed. Bytes and texts weigh
    their length, a message with a `weight` that much, any other nothing."""

    overflow: Overflow = "reject"
    """`wait`: `send` waits, `tell` raises; `reject`: both raise `MailboxFullError`;
    `drop_oldest`: the oldest message becomes a dead letter."""

    def __post_init__(self) -> None:
        """Refuse bounds that nothing fits into.

        Raises:
            ValueError: a bound is below 1.
        """
        if self.capacity < 1 or (self.max_bytes is not None and self.max_bytes < 1):
            raise ValueError(f"a mailbox must hold 1 message and byte or more: {self}")


class Mailbox:
    """The messages waiting for one actor."""

    __slots__ = (
        "_stash",
        "capacity",
        "config",
        "count",
        "first",
        "max_bytes",
        "rest",
        "senders",
        "system",
        "weight",
    )

    def __init__(self, config: MailboxConfig) -> None:
        self.config = config
        self.count = 0
        """User messages waiting or stashed: what the capacity bounds."""

        self.weight = 0
        self.capacity = config.capacity
        """Most user messages; 0 once it is closed."""

        self.max_bytes = config.max_bytes
        """Most that they may weigh; None: they are not weighed."""

        self.first: object = EMPTY
        """The oldest user message; `EMPTY` when none waits."""

        self.rest: deque[object] | None = None
        """User messages behind the first; None again once all were taken."""

        self.system: deque[object] | None = None
        """System messages, oldest first; None when none waits."""

        self.senders: OrderedDict[Reply, object] | None = None
        """What tells a sender that there is room, and the message that waits for it."""

        self._stash: deque[object] | None = None

    def adopt(self, config: MailboxConfig) -> None:
        """Take other bounds from now on; what waits already stays."""
        self.config = config
        self.capacity = config.capacity
        self.max_bytes = config.max_bytes
        self.weight = 0
        if config.max_bytes is not None:
            first = () if self.first is EMPTY else (self.first,)
            for item in chain(first, self.rest or (), self._stash or ()):
                self.weight += weight_of(_bare(item))
        if self.senders:
            self.admit()

    @property
    def stashed(self) -> int:
        """How many messages are set aside until `unstash`."""
        return len(self._stash) if self._stash is not None else 0

    @property
    def depth(self) -> int:
        """How many user messages wait, without the stash."""
        return self.count - self.stashed

    def empty(self) -> bool:
        """Whether nothing waits in either lane; the stash does not count."""
        if not self.rest:
            self.rest = None  # an empty deque takes more room than an idle actor
        return self.first is EMPTY and self.rest is None and not self.system

    def has_room(self, message: object) -> bool:
        """Whether one more user message would fit."""
        if self.count >= self.capacity:
            return False
        if self.max_bytes is None or self.count == 0:
            # Why even above the bound: one message larger than it must not wait
            # for ever.
            return True
        return self.weight + weight_of(_bare(message)) <= self.max_bytes

    def is_open_to(self, message: object) -> bool:
        """Whether it would fit now, and overtakes nobody who waits for room."""
        return not self.senders and self.has_room(message)

    def wait_for_room(self, item: object) -> Reply:
        """Have a user message wait for room; give what is answered when it has some.

        Whoever gives up waiting says so by `leave`.
        """
        if self.senders is None:
            self.senders = OrderedDict()
        admitted = Reply()
        self.senders[admitted] = item
        return admitted

    def leave(self, admitted: Reply) -> None:
        """Take a message back that waits for room."""
        if self.senders is not None:
            self.senders.pop(admitted, None)
        self.admit()  # it may have been the only one too large

    def turn_away(self, error: Callable[[], Exception]) -> None:
        """Tell all who wait for room that there will be none, each by its own error."""
        senders, self.senders = self.senders, None
        for admitted in senders or ():
            admitted.offer_error(error())

    def offer(self, item: object) -> bool:
        """Append a user message if there is room, which there is not while others wait.

        Returns:
            False if it is full; nothing was changed.
        """
        if self.max_bytes is not None:
            # Why only here: unless messages are weighed, who waits waits for a place.
            if not self.is_open_to(item):
                return False
            self.put(item)
            return True
        # Why not `put`: these are the kernel's hottest lines, and a call less is felt.
        if self.count >= self.capacity:
            return False
        self.count += 1
        if self.rest is not None:
            self.rest.append(item)
        elif self.first is EMPTY:
            self.first = item
        else:
            self.rest = deque((item,))
        return True

    def close(self) -> None:
        """Have no room from now on; what waits can still be taken."""
        self.capacity = 0

    def put(self, item: object, /) -> None:
        """Append a user message whether there is room or not."""
        self.count += 1
        if self.max_bytes is not None:
            self.weight += weight_of(_bare(item))
        rest = self.rest
        if rest is not None:
            rest.append(item)
        elif self.first is EMPTY:
            self.first = item
        else:
            self.rest = deque((item,))

    def put_back(self, item: object) -> None:
        """Put a message before all others, as if it had not been taken."""
        self.count += 1
        if self.max_bytes is not None:
            self.weight += weight_of(_bare(item))
        if self.first is not EMPTY:
            if self.rest is None:
                self.rest = deque()
            self.rest.appendleft(self.first)
        self.first = item

    def put_system_first(self, message: object) -> None:
        """Put a message before all others of the system lane."""
        if self.system is None:
            self.system = deque()
        self.system.appendleft(message)

    def get(self) -> object:
        """Take the oldest user message, or `EMPTY`."""
        item = self.first
        if item is not EMPTY:
            self.first = EMPTY
        elif self.rest:
            item = self.rest.popleft()
        else:
            self.rest = None
            return EMPTY
        if self.max_bytes is None and not self.senders:
            self.count -= 1  # as `_make_room` does: these lines are hot, too
        else:
            self._make_room(item)
        return item

    def get_system(self) -> object:
        """Take the oldest system message, or `EMPTY`."""
        system = self.system
        if not system:
            return EMPTY
        message = system.popleft()
        if not system:  # an empty deque takes more room than an idle actor
            self.system = None
        return message

    def stash(self, item: object) -> None:
        """Set a message aside until `unstash`; it keeps its room."""
        if self._stash is None:
            self._stash = deque()
        self.count += 1
        if self.max_bytes is not None:
            self.weight += weight_of(_bare(item))
        self._stash.append(item)

    def take_back(self, item: object) -> bool:
        """Take the message stashed last out of the stash.

        Returns:
            False if that is another one; nothing was changed.
        """
        if not self._stash or self._stash[-1] is not item:
            return False
        self._stash.pop()
        self._make_room(item)
        return True

    def unstash(self) -> int:
        """Put all stashed messages before the others, oldest first.

        Returns:
            How many there were.
        """
        stash, self._stash = self._stash, None
        if not stash:
            return 0
        count = len(stash)
        if self.first is not EMPTY:
            stash.append(self.first)
        stash.extend(self.rest or ())
        self.first = stash.popleft()
        self.rest = stash
        return count

    def admit(self) -> None:
        """Let waiting senders in while there is room."""
        senders = self.senders
        while senders and self.has_room(next(iter(senders.values()))):
            admitted, item = senders.popitem(last=False)
            self.put(item)
            admitted.offer(None)

    def _make_room(self, item: object) -> None:
        """Give up the room of a message; the one place where room is made."""
        self.count -= 1
        if self.max_bytes is not None:
            # Why: a message may weigh less, or more, than when it came.
            self.weight = max(0, self.weight - weight_of(_bare(item)))
            if not self.count:
                self.weight = 0
        if self.senders:
            self.admit()


def _bare(item: object) -> object:
    return item.message if type(item) is Envelope else item
