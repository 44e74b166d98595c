"""A child as its supervisor knows it: how to start it, where it stands.

Knows nothing of strategies; `supervisor.py` decides by `restarts.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from runtime.actor import lifecycle
from runtime.actor.actor import Actor
from runtime.actor.cell import Cell
from runtime.actor.envelope import Envelope
from runtime.actor.kernel import Kernel
from runtime.actor.mailbox import MailboxConfig
from runtime.actor.messages import SHUTDOWN, Exit
from runtime.actor.reply import Reply
from runtime.errors import MisuseError, text_of, why_no_time
from runtime.supervision import restarts
from runtime.supervision.restarts import Failures, RestartKind


class ChildSpec(msgspec.Struct, frozen=True, kw_only=True):
    """How to start a child, and what to do when it ends."""

    name: str
    """Unique among its siblings; the child's full name is `supervisor/name`."""

    start: Callable[[], Actor]
    """Makes the actor of each incarnation."""

    restart: RestartKind = "permanent"
    shutdown: float | None = 5.0
    """Seconds it may take to stop before it is killed; None: as long as it likes
    and the deadline of its class allows; 0: killed at once."""

    start_timeout: float | None = 30.0
    """Seconds its `on_start` may take; None: as long as it likes."""

    mailbox: MailboxConfig | None = None
    """Bounds that replace those of the actor's class."""

    def __post_init__(self) -> None:
        """Refuse times that are none: the supervisor could not end the child.

        Raises:
            ValueError: `shutdown` or `start_timeout` is below 0 or not a number.
        """
        refuse_times(self.shutdown, self.start_timeout)


class Child:
    """A child as its supervisor knows it."""

    __slots__ = ("cell", "failures", "plan", "seen", "spec")

    def __init__(self, spec: ChildSpec, cell: Cell) -> None:
        self.spec = spec
        self.cell = cell
        self.failures = Failures()
        self.plan = 0
        """The last plan that is to start it again."""

        self.seen = cell.generation - 1
        """The last incarnation whose end has been dealt with."""

    @property
    def is_running(self) -> bool:
        """Whether an incarnation is up, or on its way up or down."""
        return self.cell.state not in {"down", "dead"}

    def see_end(self) -> None:
        """Count the end of the present, or else the last, incarnation as dealt with."""
        self.seen = self.cell.generation - (0 if self.is_running else 1)

    def as_rule(self) -> restarts.ChildPolicy:
        """Give what the decision needs to know."""
        return restarts.ChildPolicy(self.spec.name, self.spec.restart, self.is_running)


def new_cell(parent: Cell, spec: ChildSpec, before: Cell | None) -> Cell:
    """Make the place of a child, registered under its full name.

    Args:
        before: the place of its dead predecessor. Incarnations are numbered on from
            there, so that news of the old one cannot be taken for the new one's.

    Raises:
        MisuseError: the name is taken.
    """
    kernel: Kernel = parent.kernel
    name = f"{parent.name}/{spec.name}"
    if name in kernel.names:
        raise MisuseError(f"there is an actor {name!r} already")
    cell = Cell(kernel, name, spec.start, Actor, parent, spec.mailbox)
    if before is not None:
        cell.generation = before.generation
    kernel.names[name] = cell
    return cell


def kill(cell: Cell) -> Reply:
    """Kill an actor; the reply is answered when its incarnation has ended."""
    ended = Reply()
    if cell.state in {"down", "dead"}:
        ended.offer(value=True)
    else:
        cell.tell_end(ended)
        cell.kill()
    return ended


def kill_for_good(cell: Cell) -> Reply:
    """Kill an actor, or take it away if it waits for its restart; see `kill`."""
    cell.is_final = True
    if cell.state == "down":
        lifecycle.bury(cell, SHUTDOWN)
    return kill(cell)


def stop_for_good(cell: Cell) -> Reply:
    """Ask an actor to end; the reply is answered when it has."""
    reply = Reply()
    cell.stop(SHUTDOWN, reply)
    return reply


def was_asked(cell: Cell) -> bool:
    """Whether somebody waits for the answer to the present message."""
    return type(cell.current) is Envelope and cell.current.is_ask


def turn_down(cell: Cell, message: object) -> None:
    """Refuse a message that a supervisor does not know.

    Told, it becomes a dead letter and no more: a stranger's mistake must not end
    the children.

    Raises:
        MisuseError: it was asked.
    """
    if was_asked(cell):
        kind = cell.actor_class.__name__
        raise MisuseError(f"{kind} does not handle {type(message).__name__}")
    cell.give_up(message, "not_understood")


def as_rule(exit_: Exit) -> restarts.Ending:
    """Say an end in the words of the rules."""
    if exit_.error is not None:
        return restarts.Failed(text_of(exit_.error))
    if exit_.how == "killed":
        return restarts.Killed()
    return restarts.Normal() if exit_.how == "normal" else restarts.Shutdown()


def refuse_times(shutdown: float | None, start_timeout: float | None) -> None:
    """Refuse what is neither None nor 0 seconds or more.

    Raises:
        ValueError: one of them is.
    """
    for name, seconds in (("shutdown", shutdown), ("start_timeout", start_timeout)):
        if seconds is not None and (wrong := why_no_time(seconds, 0)):
            raise ValueError(f"{name} must be None or 0 s or more, {wrong}")


def in_trio(seconds: float | None) -> float:
    """Say 'as long as it likes' in trio's way."""
    return float("inf") if seconds is None else seconds
