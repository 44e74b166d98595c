"""Whose turn it is in one session: at most one at a time, by a busy policy.

Pure. What comes during a turn waits, joins a later turn, is put into the running one,
or ends it, as `busy_policies.py` says (F075-F092); what is too much goes by the
overflow policy; a stop ends the turn and forgets what waits, of those it is for. Only
messages of one sender ever join, interrupt, or push each other out: nobody loses
anything by what somebody else writes. The shell feeds events to `SessionQueue.on` and
carries out the effects in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import msgspec

from actors.rules import lining
from actors.rules.busy_policies import SERIAL, Buffering, Style
from actors.rules.queue_events import (
    CancelCurrent,
    DropWaiting,
    Effect,
    Event,
    Gather,
    GatherOver,
    Gone,
    Heard,
    Inject,
    Refuse,
    RoundBegins,
    Start,
    StopAsked,
    TurnEnded,
    Wait,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_IN_A_ROW = 3
"""Turns that one sender may interrupt in a row while others wait; then the next waits,
too, or nobody else would ever be answered."""

__all__ = [
    "CancelCurrent",
    "DropWaiting",
    "Effect",
    "Event",
    "Gather",
    "GatherOver",
    "Gone",
    "Heard",
    "Inject",
    "Refuse",
    "RoundBegins",
    "SessionQueue",
    "Start",
    "StopAsked",
    "TurnEnded",
    "Wait",
]


class Gathering(msgspec.Struct, frozen=True):
    """The first in line waits for more of its sender's words."""

    number: int
    until_latest: float
    """Seconds on the caller's clock; no message puts it off any further."""


class SessionQueue:
    """At most one running turn, and at most so many new messages behind it.

    Args:
        queue_cap: most messages that wait; 0 refuses everything during a turn. As many
            again may wait of those of whose sender nothing waits yet, and, with the
            overflow policy `summarise`, cut short.
        buffering: what is done with them.

    Raises:
        ValueError: `queue_cap` is negative.
    """

    __slots__ = (
        "_buffering",
        "_current",
        "_gathered",
        "_gathering",
        "_generation",
        "_in_a_row",
        "_injected",
        "_is_ending",
        "_queue_cap",
        "_waiting",
    )

    def __init__(self, queue_cap: int, buffering: Buffering = SERIAL) -> None:
        if queue_cap < 0:
            raise ValueError(f"queue_cap must be 0 or more, not {queue_cap}")
        self._queue_cap = queue_cap
        self._buffering = buffering
        self._generation = 0
        self._current: Heard | None = None
        self._injected: tuple[str, ...] = ()  # into the running turn
        self._is_ending = False
        self._in_a_row = 0
        self._gathering: Gathering | None = None
        self._gathered = 0
        # Why no deque: an empty one is 600 bytes, an empty tuple none, and most
        # conversations wait for none.
        self._waiting: tuple[Heard, ...] = ()

    def adopt(self, queue_cap: int, buffering: Buffering) -> None:
        """Go by other settings from now on; what runs and what waits stays."""
        self._queue_cap, self._buffering = queue_cap, buffering

    @property
    def current(self) -> str | None:
        """Id of the message whose turn is running, the first of those it answers."""
        return None if self._current is None else self._current.id

    @property
    def buffering(self) -> Buffering:
        """What is done with messages."""
        return self._buffering

    @property
    def members(self) -> tuple[str, ...]:
        """Ids of all messages that the running turn answers."""
        if self._current is None:
            return ()
        return (self._current.id, *self._current.also, *self._injected)

    @property
    def generation(self) -> int:
        """As in the last `Start`."""
        return self._generation

    @property
    def waiting(self) -> tuple[str, ...]:
        """Ids of the messages that wait, oldest first."""
        return tuple(each.id for each in self._waiting)

    @property
    def is_idle(self) -> bool:
        """True if the session may be put to sleep."""
        return self._current is None and not self._waiting

    @property
    def is_ending(self) -> bool:
        """Whether the running turn was interrupted, and its end is not stored yet."""
        return self._is_ending

    @property
    def most_waiting(self) -> int:
        """Most new messages that ever wait at once."""
        is_cut = self._buffering.overflow == "summarise" and self._joins
        return self._queue_cap * (3 if is_cut else 2)

    def buffer_by(self, buffering: Buffering) -> None:
        """Treat messages otherwise from now on; what waits keeps its place."""
        self._buffering = buffering

    def on(self, event: Event) -> list[Effect]:
        """Take one event in; give back the effects it causes, in order."""
        match event:
            case Heard():
                return self._heard(event)
            case TurnEnded():
                return self._ended(event)
            case StopAsked(ids=ids):
                return self._stop(ids)
            case RoundBegins(generation=generation):
                return self._inject() if generation == self._generation else []
            case GatherOver(number=number):
                return self._gathered_enough(number)
            case Gone(ids=ids):
                self._forget(ids)
                return []
            case _:
                assert_never(event)

    @property
    def _joins(self) -> bool:
        return self._buffering.manner.joins

    # --- hearing ------------------------------------------------------------------

    def _heard(self, heard: Heard) -> list[Effect]:
        if self._has(heard.id):
            return []  # handed in twice; it has its place already
        if heard.also:  # they may have been heard before, alone
            also = frozenset(heard.also)
            self._waiting = tuple(x for x in self._waiting if x.id not in also)
        if self._current is None:
            return self._heard_idle(heard)
        if self._may_interrupt(heard):
            return self._interrupt(heard, self._current)
        return self._line_up(heard)

    def _has(self, message: str) -> bool:
        lined = any(x.id == message or message in x.also for x in self._waiting)
        return lined or message in self.members

    def _heard_idle(self, heard: Heard) -> list[Effect]:
        """Begin at once, or wait for more words."""
        first = self._waiting[0] if self._waiting else heard
        has_room = len(self._waiting) < self._queue_cap
        if not (self._gathers(heard) and has_room):
            if self._waiting and not (has_room and lining.belongs(heard, first)):
                return [*self._next(), *self._line_up(heard)]
            self._waiting = (*self._waiting, heard)
            return self._next()
        self._waiting = (*self._waiting, heard)
        if not lining.belongs(heard, first):
            return [Wait(heard.id, ahead=len(self._waiting) - 1)]
        return [self._gather(heard.now)]

    def _gathers(self, heard: Heard) -> bool:
        buffering = self._buffering
        is_wanted = buffering.manner.gathers and buffering.debounce > 0
        is_plain = heard.may_join and not (heard.is_media or heard.is_begun)
        return is_wanted and is_plain

    def _gather(self, now: float) -> Gather:
        before, buffering = self._gathering, self._buffering
        self._gathered += 1
        latest = (
            now + max(buffering.debounce, buffering.longest_debounce)
            if before is None
            else before.until_latest
        )
        self._gathering = Gathering(self._gathered, latest)
        until = min(now + buffering.debounce, latest)
        return Gather(self._gathered, max(0.0, until - now))

    def _gathered_enough(self, number: int) -> list[Effect]:
        gathering = self._gathering
        is_ours = gathering is not None and gathering.number == number
        return self._next() if is_ours else []

    def _line_up(self, heard: Heard) -> list[Effect]:
        """Have it wait, if there is room or room can be made."""
        effects: list[Effect] = []
        if not heard.is_owed and lining.is_full(self._waiting, heard, self._queue_cap):
            overflow = self._buffering.overflow
            if overflow == "summarise" and not self._joins:
                overflow = "new"  # cut short, it would be answered all the same
            made = lining.make_room(self._waiting, heard, self._queue_cap, overflow)
            if made is None:
                return [Refuse(heard.id)]
            self._waiting, dropped = made
            if dropped:
                effects.append(DropWaiting(dropped, "overflow"))
        is_first = not any(lining.belongs(heard, each) for each in self._waiting)
        buffering = self._buffering
        notes = buffering.note and buffering.manner.notes and not heard.is_owed
        self._waiting = (*self._waiting, heard)
        is_noted = notes and is_first and heard.may_join
        effects.append(Wait(heard.id, len(self._waiting), is_noted=is_noted))
        return effects

    # --- interrupting ---------------------------------------------------------------

    def _may_interrupt(self, heard: Heard) -> bool:
        current = self._current
        if current is None or not self._buffering.manner.interrupts:
            return False
        is_ours = heard.may_join and lining.belongs(heard, current)
        is_open = current.may_join and not (self._is_ending or heard.is_late)
        others = any(not lining.belongs(heard, each) for each in self._waiting)
        is_fair = not others or self._in_a_row < MOST_IN_A_ROW
        has_room = not lining.is_full(self._waiting, heard, self._queue_cap)
        return is_ours and is_open and is_fair and (has_room or heard.is_owed)

    def _interrupt(self, heard: Heard, current: Heard) -> list[Effect]:
        """End the running turn; what its sender wrote since then is next."""
        self._is_ending = True
        self._in_a_row += 1
        mine = [each for each in self._waiting if lining.belongs(heard, each)]
        rest = [each for each in self._waiting if not lining.belongs(heard, each)]
        self._waiting = (*mine, heard, *rest)
        return [
            CancelCurrent(current.id, self._generation, "interrupted"),
            Wait(heard.id, ahead=len(mine) + 1),
        ]

    # --- steering -------------------------------------------------------------------

    def _inject(self) -> list[Effect]:
        current = self._current
        if current is None or self._is_ending or not current.may_join:
            return []
        if not self._buffering.manner.injects:
            return []
        room = self._buffering.injections - len(self._injected)
        taken = lining.leading(self._waiting, current, room)
        self._take_out(taken)
        ids = tuple(each.id for each in taken)
        self._injected = (*self._injected, *ids)
        return [Inject(ids)] if ids else []

    # --- turns ----------------------------------------------------------------------

    def _ended(self, ended: TurnEnded) -> list[Effect]:
        # Why: after a stop the cancelled turn still reports; by then another may be
        # running, even for the same message.
        if (ended.id, ended.generation) != (self.current, self._generation):
            return []
        self._waiting = (*ended.again, *self._waiting)
        if not self._is_ending:
            self._in_a_row = 0
        return self._next()

    def _next(self) -> list[Effect]:
        """Begin the turn of the first in line, and of who joins it."""
        was_gathering, self._gathering = self._gathering is not None, None
        self._current, self._injected, self._is_ending = None, (), False
        # Invariant: nothing waits while nothing runs, unless more words are awaited.
        if not self._waiting:
            return []
        first = self._waiting[0]
        taken: Sequence[Heard] = (first,)
        style: Style = first.style
        if self._joins and first.may_join and not first.is_begun:
            taken = lining.joining(self._waiting, self._buffering.most_chars)
            style = "lines" if was_gathering else self._buffering.manner.style
        self._take_out(taken)
        also, short = first.also, first.short
        if len(taken) > 1:
            also = tuple(each.id for each in taken[1:])
            short = tuple(each.id for each in taken if each.is_short)
        elif not also:
            style = "alone"
        self._generation += 1
        self._current = msgspec.structs.replace(first, also=also, style=style)
        return [Start(first.id, self._generation, also, style, short)]

    def _take_out(self, taken: Sequence[Heard]) -> None:
        ids = {each.id for each in taken}
        self._waiting = tuple(each for each in self._waiting if each.id not in ids)

    def _stop(self, ids: frozenset[str]) -> list[Effect]:
        effects: list[Effect] = []
        is_current = self._current is not None and self._current.id in ids
        is_cancelled = is_current and not self._is_ending
        if self._current is not None and is_cancelled:
            effects.append(CancelCurrent(self._current.id, self._generation))
        dropped = tuple(each.id for each in self._waiting if each.id in ids)
        first = self.waiting[:1]
        if dropped:
            effects.append(DropWaiting(dropped))
            self._waiting = tuple(x for x in self._waiting if x.id not in ids)
        lost_its_first = self._gathering is not None and self.waiting[:1] != first
        if is_cancelled or lost_its_first:
            effects += self._next()
        return effects

    def _forget(self, ids: frozenset[str]) -> None:
        """Leave out what somebody else has settled."""
        self._injected = tuple(x for x in self._injected if x not in ids)
        if self._current is not None:
            also = tuple(x for x in self._current.also if x not in ids)
            self._current = msgspec.structs.replace(self._current, also=also)
