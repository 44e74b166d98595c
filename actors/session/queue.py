"""The queue of one session: whose turn it is, at most one at a time.

Pure: the session feeds events to `SessionQueue.on` and carries out the effects in
order. The busy policy (`messages/busy_policies.py`) says what happens to a message that
comes during a turn: it waits, joins a later turn, is put into the running turn, or ends
it. The overflow policy says what happens when too many wait. A stop ends the turn and
drops what waits, but only what it is meant for. Only messages of one sender join each
other, interrupt each other, or push each other out: nobody loses a message by what
somebody else writes. The messages of one sender keep their order.

Who has waited longest is next. A message has waited since it came, or since the last
turn of its sender ended: who writes much takes turns with the others, and nobody is
preferred for having been silent before. A sender with many messages waiting comes after
the others, but not for ever.

A turn that waits itself, for another attempt, for people, or for a model that says
nothing, is set aside: other people are answered meanwhile. What its own sender writes
waits behind it. It goes on beside the turns of the others, and has its place no more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, assert_never

import msgspec

from actors.messages.busy_policies import SERIAL, BusySettings, Overflow, Style

# Chosen: a question, its correction and an addition.
MANY = 3
"""Most waiting messages of a sender who does not flood. Senders with more come after
those with fewer, so that a flood does not take half of a busy group's time. Messages
that share a turn count as one."""

MOST_PASSED = 12
"""Turns in a row in which senders with many messages let others go first."""

MOST_IN_A_ROW = 3
"""Turns that one sender may interrupt in a row while others wait. After that the next
message of that sender waits, so that the others are answered, too."""


class Arrival(msgspec.Struct, frozen=True):
    """A message for the session arrived; it may wait in the queue."""

    id: str
    """The message's own id, unique in the session."""

    is_owed: bool = False
    """Whether it waits even in a full queue: an earlier process accepted it, or it ends
    the conversation."""

    whose: tuple[str, ...] = ()
    """Its sender and interruption scope."""

    may_join: bool = False
    """Whether it may share a turn with others of its sender: a person's plain words."""

    is_media: bool = False
    """Whether a file came with it; then the queue does not wait for more words."""

    is_begun: bool = False
    """Whether a turn for it was begun before; then no other message joins it."""

    is_late: bool = False
    """Whether the running turn has its answer already, and cannot be interrupted."""

    is_short: bool = False
    """Whether the model gets only one line of it, because too many wait."""

    size: int = 0
    """Characters."""

    also: tuple[str, ...] = ()
    """Ids of the messages that shared its turn before a restart; they still do."""

    short: tuple[str, ...] = ()
    style: Style = "alone"
    """As in the `BeginTurn` of that turn."""

    now: float = 0.0
    """Seconds on the caller's clock."""

    since: int = 0
    """Turns begun when it came, or by the end of the last turn of its sender and one
    more; the queue says so."""

    @property
    def can_share(self) -> bool:
        """Whether it may still share a turn with others of its sender."""
        return self.may_join and not self.is_begun


class TurnSettled(msgspec.Struct, frozen=True):
    """The message of a turn is settled, well or badly, also after a cancelled turn."""

    id: str
    generation: int
    """As in the `BeginTurn` of this turn."""

    again: tuple[Arrival, ...] = ()
    """Messages that shared the turn and were not answered: they wait again, first."""


class StopRequested(msgspec.Struct, frozen=True):
    """Somebody said `/stop`."""

    ids: frozenset[str]
    """The messages it is meant for. All others stay, and keep their order."""


class TurnWaits(msgspec.Struct, frozen=True):
    """A turn waits for something: other people need not wait for it."""

    id: str


class RoundStarting(msgspec.Struct, frozen=True):
    """A turn is about to call its model again; messages may be put in."""

    generation: int


class DebounceElapsed(msgspec.Struct, frozen=True):
    """Timer of a session: the time of a `Debounce` is up."""

    number: int


class MembersSettled(msgspec.Struct, frozen=True):
    """Somebody else settled messages that share a turn, but not its first."""

    ids: frozenset[str]


Event = (
    Arrival
    | TurnSettled
    | StopRequested
    | TurnWaits
    | RoundStarting
    | DebounceElapsed
    | MembersSettled
)


class BeginTurn(msgspec.Struct, frozen=True):
    """Begin the turn for this message."""

    id: str
    generation: int
    """Grows with every turn; tells a late result from one that is waited for."""

    also: tuple[str, ...] = ()
    """Ids of further messages that it answers, in order."""

    style: Style = "alone"
    """How their words become one question."""

    short: tuple[str, ...] = ()
    """Ids of those of which the model gets only one line."""


class KeepWaiting(msgspec.Struct, frozen=True):
    """The message waits for its turn."""

    id: str
    ahead: int
    """How many turns come before it, the running one included."""

    is_noted: bool = False
    """Whether to tell its sender that it comes next."""


class Debounce(msgspec.Struct, frozen=True):
    """Wait for more words; send `DebounceElapsed` after this time.

    It takes the place of a `Debounce` with a lower number.
    """

    number: int
    seconds: float


class InjectMessages(msgspec.Struct, frozen=True):
    """Put these messages into the turn."""

    ids: tuple[str, ...]


class RefuseMessage(msgspec.Struct, frozen=True):
    """Refuse the message, and tell its sender."""

    id: str
    reason: Literal["busy"] = "busy"


class CancelCurrent(msgspec.Struct, frozen=True):
    """Cancel a turn, and ignore whatever it still reports."""

    id: str
    generation: int
    reason: Literal["stopped", "interrupted"] = "stopped"
    """`interrupted`: the next turn begins after the `TurnSettled` of this one."""


class DropWaiting(msgspec.Struct, frozen=True):
    """Drop these messages, oldest first; their turns will not begin."""

    ids: tuple[str, ...]
    reason: Literal["stopped", "overflow"] = "stopped"


Effect = (
    BeginTurn
    | KeepWaiting
    | Debounce
    | InjectMessages
    | RefuseMessage
    | CancelCurrent
    | DropWaiting
)


class DebounceWindow(msgspec.Struct, frozen=True):
    """The first message in the queue waits for more words of its sender."""

    number: int
    until_latest: float
    """Latest end, in seconds on the caller's clock."""


class BegunTurn(msgspec.Struct, frozen=True):
    """A turn that was begun and is not settled."""

    first: Arrival
    generation: int
    injected: tuple[str, ...] = ()
    """Ids of the messages that were put into it."""

    is_ending: bool = False
    """Whether it was interrupted, and its end is not stored yet."""

    is_aside: bool = False
    """Whether other people need not wait for it."""

    @property
    def members(self) -> tuple[str, ...]:
        """Ids of all messages that it answers."""
        return (self.first.id, *self.first.also, *self.injected)


class SessionQueue:
    """At most one turn that others wait for, and a bounded number of new messages.

    Args:
        queue_cap: most messages that wait; 0 refuses everything during a turn. As many
            again may wait of senders who have less than an equal part of these, and as
            many again cut short with the overflow policy `summarise`.

    Raises:
        ValueError: `queue_cap` is negative.
    """

    __slots__ = (
        "_gathered",
        "_gathering",
        "_generation",
        "_in_a_row",
        "_passed",
        "_queue_cap",
        "_turns",
        "_waiting",
        "buffering",
        "manner",
    )

    def __init__(self, queue_cap: int, buffering: BusySettings = SERIAL) -> None:
        if queue_cap < 0:
            raise ValueError(f"queue_cap must be 0 or more, not {queue_cap}")
        self._queue_cap = queue_cap
        self.buffer_by(buffering)
        self._generation = 0
        # Why no dicts and deques: an empty one is hundreds of bytes, an empty tuple
        # none, and most conversations need none.
        self._turns: tuple[BegunTurn, ...] = ()
        self._in_a_row = 0
        self._passed = 0
        """Turns in a row in which senders with many messages let others go first."""

        self._gathering: DebounceWindow | None = None
        self._gathered = 0
        self._waiting: tuple[Arrival, ...] = ()

    def adopt(self, queue_cap: int, buffering: BusySettings) -> None:
        """Use other settings from now on; running and waiting messages stay."""
        self._queue_cap = queue_cap
        self.buffer_by(buffering)

    @property
    def current(self) -> str | None:
        """Id of the message whose turn others wait for, the first of those it answers.

        None: no turn runs, or each is set aside.
        """
        turn = self._current
        return None if turn is None else turn.first.id

    @property
    def begun(self) -> tuple[str, ...]:
        """Ids of the messages whose turns are begun and not settled."""
        return tuple(each.first.id for each in self._turns)

    @property
    def members(self) -> tuple[str, ...]:
        """Ids of all messages that the turns answer."""
        return tuple([name for each in self._turns for name in each.members])

    @property
    def waiting(self) -> tuple[str, ...]:
        """Ids of the messages that wait, oldest first."""
        return tuple([each.id for each in self._waiting])

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs and nothing waits."""
        return not (self._turns or self._waiting)

    def turn(self, inbound_id: str) -> BegunTurn | None:
        """Give the turn that answers this message; None: it has none."""
        for each in self._turns:
            if inbound_id in each.members:
                return each
        return None

    @property
    def most_waiting(self) -> int:
        """Most new messages that ever wait at once."""
        is_cut = self.buffering.overflow == "summarise" and self.manner.joins
        return self._queue_cap * (3 if is_cut else 2)

    def buffer_by(self, buffering: BusySettings) -> None:
        """Use another busy policy from now on; waiting messages keep their places."""
        self.buffering = buffering
        """The busy policy and its settings."""

        self.manner = buffering.manner
        """The rules of this policy."""

    def on(self, event: Event) -> list[Effect]:
        """Take one event in; give back the effects it causes, in order."""
        match event:
            case Arrival():
                return self._arrived(event)
            case TurnSettled():
                return self._ended(event)
            case StopRequested(ids=ids):
                return self._stop(ids)
            case DebounceElapsed(number=number):
                return self._gathered_enough(number)
            case _:
                return self._on_turn(event)

    def _on_turn(
        self, event: TurnWaits | RoundStarting | MembersSettled
    ) -> list[Effect]:
        match event:
            case TurnWaits(id=waiting):
                return self._set_aside(waiting)
            case RoundStarting(generation=generation):
                return self._inject(generation)
            case MembersSettled(ids=ids):
                self._forget(ids)
                return []
            case _:
                assert_never(event)

    # --- turns that are begun -------------------------------------------------------

    @property
    def _current(self) -> BegunTurn | None:
        for each in self._turns:
            if not each.is_aside:
                return each
        return None

    def _before(self, arrival: Arrival) -> BegunTurn | None:
        """Give the turn that a message waits for: its sender's own, or that of all."""
        if not self._turns:
            return None
        own = (x for x in self._turns if is_of_same_sender(x.first, arrival))
        return next(own, self._current)

    @property
    def _free(self) -> Line:
        """What waits and need not wait for a turn of its sender, oldest first."""
        if not self._turns:
            return self._waiting
        begun = {each.first.whose[:1] for each in self._turns}
        return tuple(each for each in self._waiting if each.whose[:1] not in begun)

    def _replace(self, old: BegunTurn, **changes: object) -> None:
        new = msgspec.structs.replace(old, **changes)
        self._turns = tuple(new if each is old else each for each in self._turns)

    # --- hearing ------------------------------------------------------------------

    def _arrived(self, arrival: Arrival) -> list[Effect]:
        if not (self._turns or self._waiting):  # as most often
            return self._arrived_idle(arrival)
        if self._has(arrival.id):
            return []  # handed in twice; it has its place already
        if arrival.also:  # they may have arrived before, alone
            also = frozenset(arrival.also)
            self._waiting = tuple(x for x in self._waiting if x.id not in also)
        turn = self._before(arrival)
        if turn is None:
            return self._arrived_idle(arrival)
        if self._may_interrupt(arrival, turn):
            return self._interrupt(arrival, turn)
        return self._line_up(arrival)

    def _has(self, message: str) -> bool:
        lined = any(x.id == message or message in x.also for x in self._waiting)
        return lined or message in self.members

    def _arrived_idle(self, arrival: Arrival) -> list[Effect]:
        """Begin at once, or wait for more words."""
        first = next(iter(self._free), None) or arrival
        has_room = len(self._waiting) < self._queue_cap
        if not (self._gathers(arrival) and has_room):
            if first is not arrival and not (has_room and belongs(arrival, first)):
                return [*self._next(), *self._line_up(arrival)]
            self._waiting = (*self._waiting, arrival)
            return self._next()
        self._put_last(arrival)
        if not belongs(arrival, first):
            return [KeepWaiting(arrival.id, ahead=len(self._waiting) - 1)]
        return [self._gather(arrival.now)]

    def _gathers(self, arrival: Arrival) -> bool:
        buffering = self.buffering
        is_wanted = self.manner.gathers and buffering.debounce > 0
        return is_wanted and arrival.can_share and not arrival.is_media

    def _gather(self, now: float) -> Debounce:
        before, buffering = self._gathering, self.buffering
        self._gathered += 1
        latest = (
            now + max(buffering.debounce, buffering.longest_debounce)
            if before is None
            else before.until_latest
        )
        self._gathering = DebounceWindow(self._gathered, latest)
        until = min(now + buffering.debounce, latest)
        return Debounce(self._gathered, max(0.0, until - now))

    def _gathered_enough(self, number: int) -> list[Effect]:
        gathering = self._gathering
        is_ours = gathering is not None and gathering.number == number
        return self._next() if is_ours else []

    def _line_up(self, arrival: Arrival) -> list[Effect]:
        """Let the message wait, if there is room or room can be made."""
        effects: list[Effect] = []
        if not arrival.is_owed and is_full(self._waiting, arrival, self._queue_cap):
            overflow = self.buffering.overflow
            if overflow == "summarise" and not self.manner.joins:
                overflow = "new"  # cut short or not, each has a turn of its own
            made = make_room(self._waiting, arrival, self._queue_cap, overflow)
            if made is None:
                return [RefuseMessage(arrival.id)]
            self._waiting, dropped = made
            if dropped:
                effects.append(DropWaiting(dropped, "overflow"))
        is_first = not any(belongs(arrival, each) for each in self._waiting)
        buffering = self.buffering
        notes = buffering.note and self.manner.notes and not arrival.is_owed
        self._put_last(arrival)
        is_noted = notes and is_first and arrival.may_join
        effects.append(KeepWaiting(arrival.id, len(self._waiting), is_noted=is_noted))
        return effects

    def _put_last(self, arrival: Arrival) -> None:
        # Why not the generation alone: what its sender wrote before may wait anew.
        own = [x.since for x in self._waiting if is_of_same_sender(x, arrival)]
        since = max([self._generation, *own[-1:]])
        came = msgspec.structs.replace(arrival, since=since)
        self._waiting = (*self._waiting, came)

    def _put_first(self, arrivals: Iterable[Arrival], rest: Line) -> None:
        """Have messages wait before the rest, as if they had waited always."""
        first = [msgspec.structs.replace(each, since=0) for each in arrivals]
        self._waiting = (*first, *rest)

    # --- interrupting ---------------------------------------------------------------

    def _may_interrupt(self, arrival: Arrival, turn: BegunTurn) -> bool:
        if not self.manner.interrupts:
            return False
        is_ours = arrival.may_join and belongs(arrival, turn.first)
        is_open = turn.first.may_join and not (turn.is_ending or arrival.is_late)
        others = any(not belongs(arrival, each) for each in self._waiting)
        is_fair = not others or self._in_a_row < MOST_IN_A_ROW
        has_room = not is_full(self._waiting, arrival, self._queue_cap)
        return is_ours and is_open and is_fair and (has_room or arrival.is_owed)

    def _interrupt(self, arrival: Arrival, turn: BegunTurn) -> list[Effect]:
        """End a turn; the newer words of its sender come next."""
        self._replace(turn, is_ending=True)
        self._in_a_row += 1
        mine = [each for each in self._waiting if belongs(arrival, each)]
        rest = tuple(each for each in self._waiting if not belongs(arrival, each))
        self._put_first((*mine, arrival), rest)
        return [
            CancelCurrent(turn.first.id, turn.generation, "interrupted"),
            KeepWaiting(arrival.id, ahead=len(mine) + 1),
        ]

    # --- steering -------------------------------------------------------------------

    def _inject(self, generation: int) -> list[Effect]:
        turn = next((x for x in self._turns if x.generation == generation), None)
        if turn is None or turn.is_ending or not turn.first.may_join:
            return []
        if not self.manner.injects:
            return []
        room = self.buffering.injections - len(turn.injected)
        taken = leading(self._waiting, turn.first, room)
        self._take_out(taken)
        ids = tuple(each.id for each in taken)
        self._replace(turn, injected=(*turn.injected, *ids))
        return [InjectMessages(ids)] if ids else []

    # --- turns ----------------------------------------------------------------------

    def _set_aside(self, inbound_id: str) -> list[Effect]:
        turn = self._current
        if turn is None or turn.first.id != inbound_id or turn.is_ending:
            return []
        if len(self._turns) > max(1, 2 * self._queue_cap):
            return []  # so many wait already that the others wait, too
        self._replace(turn, is_aside=True)
        return self._next()

    def _ended(self, ended: TurnSettled) -> list[Effect]:
        # Why: after a stop the cancelled turn still reports. By then another turn may
        # run, even for the same message.
        named = (ended.id, ended.generation)
        found = [x for x in self._turns if (x.first.id, x.generation) == named]
        if not found:
            return []
        turn = found[0]
        self._turns = tuple([each for each in self._turns if each is not turn])
        if not turn.is_ending:  # else the words that interrupted it are next
            self._in_a_row = 0
            if self._waiting:
                waiting = [self._waits_anew(each, turn) for each in self._waiting]
                self._waiting = tuple(waiting)
        if ended.again:
            self._put_first(ended.again, self._waiting)
        is_free = self._current is None and self._gathering is None
        return self._next() if is_free and self._waiting else []

    def _next(self) -> list[Effect]:
        """Begin the turn of the first message that waits, and of those that join it."""
        was_gathering, self._gathering = self._gathering is not None, None
        # Invariant: nobody waits while no turn runs, but during a debounce and behind
        # a turn of their own that is set aside.
        free = self._free
        if not free:
            return []
        # Why not always: the words that were waited for are whole now.
        first = free[0] if was_gathering or len(free) == 1 else self._first_of(free)
        taken: Sequence[Arrival] = (first,)
        style: Style = first.style
        if self.manner.joins and first.can_share:
            mine = tuple(each for each in free if belongs(each, first))
            taken = joining(mine, self.buffering.most_chars)
            style = "lines" if was_gathering else self.manner.style
        self._take_out(taken)
        also, short = first.also, first.short
        if len(taken) > 1:
            also = tuple(each.id for each in taken[1:])
            short = tuple(each.id for each in taken if each.is_short)
        elif not also:
            style = "alone"
        self._generation += 1
        begun = msgspec.structs.replace(first, also=also, style=style)
        self._turns = (*self._turns, BegunTurn(begun, self._generation))
        return [BeginTurn(first.id, self._generation, also, style, short)]

    def _first_of(self, free: Sequence[Arrival]) -> Arrival:
        """Choose whose turn is next."""
        many = self._with_many(free)
        lets_go_first = many if self._passed < MOST_PASSED else ()
        # Why no order among those with many: one of them would wait for ever.
        first = min(
            free, key=lambda each: (each.whose[:1] in lets_go_first, each.since)
        )
        has_passed = bool(many) and first.whose[:1] not in many
        self._passed = self._passed + 1 if has_passed else 0
        return first

    def _with_many(self, free: Sequence[Arrival]) -> set[tuple[str, ...]]:
        """Give the senders with many messages waiting; those of one turn count once."""
        joins = self.manner.joins
        turns = {
            (each.whose, "" if joins and each.can_share else each.id) for each in free
        }
        waiting = Counter(whose[:1] for whose, _ in turns)
        return {who for who, count in waiting.items() if count > MANY}

    def _waits_anew(self, waiting: Arrival, ended: BegunTurn) -> Arrival:
        """Give a message; if its sender's turn has ended, as if it came only now."""
        if not is_of_same_sender(waiting, ended.first):
            return waiting
        # Why one more: it comes after those who wrote while the turn ran.
        return msgspec.structs.replace(waiting, since=self._generation + 1)

    def _take_out(self, taken: Sequence[Arrival]) -> None:
        ids = {each.id for each in taken}
        self._waiting = tuple([each for each in self._waiting if each.id not in ids])

    def _stop(self, ids: frozenset[str]) -> list[Effect]:
        ended = [x for x in self._turns if x.first.id in ids and not x.is_ending]
        effects: list[Effect] = [CancelCurrent(x.first.id, x.generation) for x in ended]
        dropped = tuple(each.id for each in self._waiting if each.id in ids)
        first = self._free[:1]
        if dropped:
            effects.append(DropWaiting(dropped))
            self._waiting = tuple(x for x in self._waiting if x.id not in ids)
        is_gathering = self._gathering is not None
        lost_its_first = is_gathering and self._free[:1] != first
        self._turns = tuple(each for each in self._turns if each not in ended)
        is_free = self._current is None and not is_gathering
        if lost_its_first or (ended and is_free):
            effects += self._next()
        return effects

    def _forget(self, ids: frozenset[str]) -> None:
        """Leave out messages that somebody else has settled."""
        for turn in self._turns:
            also = tuple(x for x in turn.first.also if x not in ids)
            first = msgspec.structs.replace(turn.first, also=also)
            injected = tuple(x for x in turn.injected if x not in ids)
            self._replace(turn, first=first, injected=injected)


# --- what waits: which messages join, and which make room -------------------------

Line = tuple[Arrival, ...]


def belongs(one: Arrival, other: Arrival) -> bool:
    """Whether two messages are of one sender, in one scope."""
    return one.whose == other.whose


def is_of_same_sender(one: Arrival, other: Arrival) -> bool:
    """Whether two messages are of one sender, in whatever scope."""
    return one.whose[:1] == other.whose[:1]


def is_full(line: Line, arrival: Arrival, cap: int) -> bool:
    """Whether there is no room for a message; messages cut short take no room.

    As many again as `cap` may wait if their senders have less than an equal part of
    it: what somebody else writes keeps nobody out.
    """
    own = sum(belongs(arrival, each) for each in line)
    senders = {arrival.whose, *(each.whose for each in line)}
    most = cap * 2 if own * len(senders) < cap else cap
    return sum(not each.is_short for each in line) >= most


def make_room(
    line: Line, arrival: Arrival, cap: int, overflow: Overflow
) -> tuple[Line, tuple[str, ...]] | None:
    """Make room for a message by dropping or shortening its sender's oldest one.

    Args:
        cap: most messages that wait in full.
        overflow: whether the oldest is dropped, shortened, or the new one refused.

    Returns:
        The messages that still wait, and the ids of those dropped; None: no room.
    """
    old = [each for each in line if _may_go(each, arrival)]
    if overflow == "new" or not (old and arrival.may_join):
        return None
    if overflow == "oldest":
        return _without(line, old[0]), (old[0].id,)
    whole = [each for each in old if not each.is_short]
    if not whole:
        return None
    short = msgspec.structs.replace(whole[0], is_short=True)
    line = tuple(short if each is whole[0] else each for each in line)
    cut = [each for each in line if each.is_short]
    if len(cut) <= cap:
        return line, ()
    mine = next((each for each in cut if _may_go(each, arrival)), short)
    return _without(line, mine), (mine.id,)


def _may_go(each: Arrival, arrival: Arrival) -> bool:
    return each.can_share and belongs(each, arrival)


def _without(line: Line, gone: Arrival) -> Line:
    return tuple(each for each in line if each is not gone)


def joining(line: Line, most_chars: int) -> Sequence[Arrival]:
    """Give the first message that waits, and those behind it that share its turn.

    Args:
        line: the messages that wait; not empty.
        most_chars: most characters of all together; the first may be longer by itself.
    """
    first = line[0]
    taken = [first]
    size = first.size
    for each in line[1:]:
        if not belongs(each, first):
            continue
        size += each.size
        if size > most_chars or not each.can_share:
            break
        taken.append(each)
    return taken


def leading(line: Line, current: Arrival, most: int) -> Sequence[Arrival]:
    """Give at most `most` messages that may be put into the running turn."""
    taken: list[Arrival] = []
    for each in line:
        if not belongs(each, current):
            continue
        if len(taken) >= most or each.is_media or not each.can_share:
            break
        taken.append(each)
    return taken
