"""What the kernel itself says to actors and supervisors.

The words for how an actor ended are OTP's exit reasons: normal, shutdown, a
failure, killed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, Protocol, runtime_checkable

import msgspec

from runtime.actor.reply import Reply

How = Literal["normal", "shutdown", "failed", "killed", "passivated"]


class Exit(msgspec.Struct, frozen=True):
    """How an incarnation of an actor ended."""

    how: How
    """`normal`: it stopped itself; `shutdown`: it was asked to; `failed`: a handler
    or hook raised; `killed`: it was not asked; `passivated`: it slept, being idle."""

    error: Exception | None = None
    """The exception, for `failed`; kept where a failed actor is killed as well. With
    `normal`: the `DeclineStart` by which it declined to run."""

    @property
    def reason(self) -> str:
        """One bounded word for metrics: the exception's class, or the kind of end."""
        return type(self.error).__name__ if self.error is not None else self.how


NORMAL = Exit("normal")
SHUTDOWN = Exit("shutdown")
KILLED = Exit("killed")
PASSIVATED = Exit("passivated")

SEVERITY: Final[dict[How, int]] = {"failed": 1, "killed": 2}
"""How grave an end is; all others are in order."""


def graver(before: Exit | None, after: Exit) -> Exit:
    """Give the one of two ends of an incarnation that counts.

    It is the graver; of two that are alike the first. An error is not forgotten.
    """
    if before is None:
        return after
    if SEVERITY.get(after.how, 0) <= SEVERITY.get(before.how, 0):
        return before
    return Exit(after.how, before.error or after.error)


class Stop(msgspec.Struct, frozen=True, eq=False):
    """Asks an actor to finish what it is handling and end."""

    exit: Exit
    """How it will have ended."""

    ended: Reply | None = None
    """Of a stop that waits behind messages, over restarts if need be: it ends the actor
    for good, and this is answered."""


class Passivate:
    """Asks an idle actor to save and end; it declines when it is not idle."""

    __slots__ = ()


class CommitDue(msgspec.Struct, frozen=True):
    """A note of an actor to itself: the disk refused a commit and may take it now.

    Every actor handles it; see `Committer`.
    """

    submit: Callable[[], None]


class Terminated(msgspec.Struct, frozen=True):
    """A watched actor has ended for good; restarts do not count."""

    ref: Any
    """The `ActorRef` that was watched."""

    exit: Exit


class ChildEnded(msgspec.Struct, frozen=True):
    """To a supervisor: an incarnation of its child has ended."""

    name: str
    generation: int
    """Which incarnation; an older one than the child's present one is no news."""

    exit: Exit


@runtime_checkable
class Weighed(Protocol):
    """A message that knows how many bytes it holds."""

    @property
    def weight(self) -> int:
        """Bytes, roughly; must not change while the message waits."""
        ...


def weight_of(message: object) -> int:
    """Tell the bytes a message counts for: its `weight`, or its length, or 0.

    A `weight` that raises, or is no number above 0, counts as 0: the kernel weighs
    messages where nobody could be given an error.
    """
    try:
        if isinstance(message, bytes | bytearray | str):
            return len(message)
        weight = int(message.weight) if isinstance(message, Weighed) else 0
    except BaseException:  # noqa: BLE001  a stranger's property
        return 0
    return max(0, weight)


class Keyed(msgspec.Struct, frozen=True):
    """A message for the child with this key, which is woken if it sleeps."""

    key: str
    message: Any
    may_wake: bool = True
    """False: only if it is awake; else nobody hears it, and an asker is answered
    False."""
