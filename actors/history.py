"""What a session knows of its past: lines for the model, and what was answered.

Pure. Rebuilt from the session's newest snapshot and the events of its journal
stream after that. What of the past is kept in other words, or not at all, stands in
`chapters.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from actors.chapters import (
    EXPIRED,
    Compacted,
    Flushed,
    Reset,
    ResetReason,
    Summary,
    read_chapter,
)
from actors.ledger import Run
from actors.messages import Line, Occasion
from actors.rules.busy_policies import Chosen
from actors.rules.compaction import MOST_SUMMARIES, tokens_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from actors.chapters import Chapter
    from actors.messages import Inbound

# Chosen: answered messages remembered, to tell one that is handed in once more while
# its answer is being stored; that is a matter of seconds.
REMEMBERED = 64

# Chosen: a wake-up reads at most so many events after its snapshot, some two
# milliseconds' worth; a snapshot is as long as a prompt's history.
SNAPSHOT_EVERY = 50

SCHEMA = 1
"""Version of `Snapshotted`; raised when its shape changes. Snapshots of another
version are passed over."""

NONE_REPORTED: Mapping[str, int] = {}


class AlsoAsked(msgspec.Struct, frozen=True, omit_defaults=True):
    """A further message that an exchange answers."""

    inbound_id: str
    asked: str
    sender_id: str = ""
    sender_name: str = ""
    how: Literal["merged", "steered"] = "merged"
    """Whether the turn began with it, or it was put in later."""


class Exchanged(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Event `exchanged`: what was asked and what was answered."""

    inbound_id: str
    lines: tuple[Line, ...] = ()
    """What the model will see of it; nothing for commands and refusals."""

    sender_id: str = ""
    sender_name: str = ""
    asked: str = ""
    """The words of the message, where they are not among the lines."""

    said: str = ""
    """The words of the answer, where they are not among the lines."""

    state: str = "replied"
    reason: str = "ok"
    run: Run | None = None
    """The turn behind it; None if no model was asked."""

    resume: str = ""
    """By which the model may go on where this left off (F217)."""

    is_group: bool = False
    """Whether others read along; releases before it was told took none for one."""

    also: tuple[AlsoAsked, ...] = ()
    """Further messages of the same person that it answers, in order."""

    policy: Chosen = ""
    """The busy policy that people chose by it."""
    occasion: Occasion = ""  # why the runtime wrote it itself; empty: somebody did


class Deferred(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Event `deferred`: a turn failed and will be begun again."""

    inbound_id: str
    sender_id: str = ""
    reason: str
    text: str
    due_at: float
    """Unix seconds."""

    run: Run | None = None
    occasion: Occasion = ""


class Conversation(msgspec.Struct, frozen=True, omit_defaults=True):
    """The counters of one conversation (F104, F105)."""

    message_count: int = 0
    """Lines of people and of agents."""

    tokens: int = 0
    """Estimated from the characters of these lines."""

    started_at: float = 0.0
    """Unix seconds."""

    last_at: float = 0.0
    """Unix seconds of the last words."""

    compactions: int = 0
    resets: int = 0
    """How many conversations of this stream have ended."""

    is_closed: bool = False
    """Whether it has ended; the next words begin another one."""

    is_group: bool = False
    """Whether others read along."""

    policy: Chosen = ""
    """What people chose for messages that come meanwhile; outlives its end."""

    def plus(self, lines: tuple[Line, ...], at: float) -> Conversation:
        """Count further lines."""
        fresh = Conversation(resets=self.resets, policy=self.policy)
        was, tokens = fresh if self.is_closed else self, tokens_of(lines)
        return msgspec.structs.replace(
            was,
            message_count=was.message_count + len(lines),
            tokens=was.tokens + tokens,
            started_at=was.started_at or at,
            last_at=at,
        )

    def after(self, event: Event, at: float) -> Conversation:
        """Count an event."""
        match event:
            case Exchanged(lines=lines, is_group=is_group):
                more = self.plus(lines, at) if lines else self
                policy = event.policy or self.policy
                return msgspec.structs.replace(more, is_group=is_group, policy=policy)
            case Compacted(outcome=outcome, tokens_after=tokens):
                if outcome == "kept":
                    return self
                compactions = self.compactions + 1
                return msgspec.structs.replace(
                    self, tokens=tokens, compactions=compactions
                )
            case Reset():
                resets = self.resets + 1
                return msgspec.structs.replace(self, resets=resets, is_closed=True)
            case Deferred() | Flushed():
                return self


class Snapshotted(msgspec.Struct, frozen=True):
    """The body of a session's snapshot."""

    lines: tuple[Line, ...]
    answered: tuple[str, ...]
    counted: Conversation
    reported: dict[str, int] = {}
    resume: str = ""
    summaries: tuple[Summary, ...] = ()
    flushed: int = 0
    ended: ResetReason | None = None


Event = Exchanged | Deferred | Compacted | Flushed | Reset
"""What a session's journal tells."""


class History:
    """The past of one session, as far as its journal goes.

    Args:
        stream: its journal stream, which is also its key's text.
        max_history: most lines of it that a prompt holds.
    """

    __slots__ = (
        "_answered",
        "_reported",
        "counted",
        "ended",
        "flushed",
        "lines",
        "max_history",
        "resume",
        "stream",
        "summaries",
        "version",
    )

    def __init__(self, stream: str, max_history: int) -> None:
        self.max_history = max_history
        # Why no deque: an empty one is 600 bytes, and there is one for each session.
        self._answered: list[str] = []
        # Never changed, only replaced: most conversations have this one in common.
        self._reported: Mapping[str, int] = NONE_REPORTED
        self.stream = stream
        self.lines: tuple[Line, ...] = ()
        """Newest last; at most twice as many as a prompt shows (F134)."""

        self.version = 0
        """Number of the journal's last event."""

        self.resume = ""
        """By which the model that answered last may go on; empty: from the lines."""

        self.counted = Conversation()
        self.summaries: tuple[Summary, ...] = ()
        """Of earlier parts of this conversation, the newest last."""

        self.flushed = 0
        """How many of its lines were gone through for facts."""

        self.ended: ResetReason | None = None
        """Why the conversation before this one ended, until this one has begun."""

    @property
    def earlier(self) -> int:
        """How many lines of this conversation are not held."""
        return max(0, self.said - len(self.lines))

    @property
    def said(self) -> int:
        """How many lines this conversation has; none, if the last one has ended."""
        return 0 if self.counted.is_closed else self.counted.message_count

    @property
    def unflushed(self) -> int:
        """How many lines were not gone through for facts yet."""
        return max(0, self.said - self.flushed)

    def restore(self, sequence: int, body: bytes) -> None:
        """Take up a snapshot; the events after it come next.

        Raises:
            msgspec.DecodeError: it is none of this schema.
        """
        snapshot = msgspec.json.decode(body, type=Snapshotted)
        self.version = sequence
        self.lines = self._bounded(snapshot.lines)
        self.counted = snapshot.counted
        self.summaries = snapshot.summaries
        self.flushed, self.ended = snapshot.flushed, snapshot.ended
        self._reported = snapshot.reported or NONE_REPORTED
        self.resume = snapshot.resume
        self._remember(snapshot.answered)

    def replay(self, sequence: int, kind: str, body: bytes, at: float) -> None:
        """Take up one event as the journal has it.

        Raises:
            msgspec.DecodeError: it cannot be read.
        """
        if kind == "exchanged":
            self.take(sequence, msgspec.json.decode(body, type=Exchanged), at)
        elif kind == "deferred":
            self.take(sequence, msgspec.json.decode(body, type=Deferred), at)
        elif (chapter := read_chapter(kind, body)) is not None:
            self.take(sequence, chapter, at)
        else:
            self.version = sequence

    def take(self, sequence: int, event: Event, at: float) -> None:
        """Take up one event; one that was taken up before changes nothing."""
        if sequence <= self.version:
            return
        self.version = sequence
        if isinstance(event, Exchanged | Deferred):
            self._take_exchange(event)
        else:
            self._turn_page(event, at)
        self.counted = self.counted.after(event, at)

    def _take_exchange(self, event: Exchanged | Deferred) -> None:
        is_dead = isinstance(event, Exchanged) and event.state == "dead"
        also = () if isinstance(event, Deferred) else event.also
        if isinstance(event, Deferred) or is_dead:
            # Not answered for good: it may be begun again, also by hand. Without a
            # round the run tells of none: of a turn that broke nobody knows more.
            if event.run is not None and event.run.rounds:
                self._report(event.inbound_id, event.run.attempt)
        else:
            self._forget_report(event.inbound_id)
            self._remember((event.inbound_id, *(each.inbound_id for each in also)))
        if isinstance(event, Exchanged) and event.lines:
            if self.counted.is_closed:
                self.flushed, self.ended = 0, None
            self.lines = self._bounded((*self.lines, *event.lines))
            # What failed, and what another model said, is not in its session (F220).
            self.resume = event.resume

    def _turn_page(self, event: Chapter, at: float) -> None:
        match event:
            case Compacted(outcome="kept"):
                pass
            case Compacted():
                self.lines = event.left_of(self.lines)
                self.resume = ""  # there it is as long as before
                if event.summary:
                    newest = (*self.summaries, Summary(event.summary, at))
                    self.summaries = newest[-MOST_SUMMARIES:]
            case Flushed(messages=messages):
                self.flushed = max(self.flushed, messages)
            case Reset(reason=reason):
                self.lines, self.summaries, self.resume = (), (), ""
                self.flushed = 0
                self.ended = reason if reason in EXPIRED else None

    def _bounded(self, lines: tuple[Line, ...]) -> tuple[Line, ...]:
        """Keep the newest lines, if there are too many (F134)."""
        most = self.max_history
        return lines if len(lines) <= 2 * most else lines[len(lines) - most :]

    def resume_at(self, now: float, within: float) -> str:
        """Give `resume`, unless the last answer is too long ago.

        Args:
            now: Unix seconds.
            within: seconds.
        """
        return self.resume if now - self.counted.last_at <= within else ""

    def reported(self, inbound_id: str) -> int:
        """Give the last attempt at a message that the journal tells of; 0: none."""
        return self._reported.get(inbound_id, 0)

    def snapshot_after(self, events: tuple[Event, ...], at: float) -> bytes | None:
        """Give the snapshot that belongs to the next events, if one is due."""
        count = self.version + len(events)
        if count // SNAPSHOT_EVERY == self.version // SNAPSHOT_EVERY:
            return None
        then = History(self.stream, self.max_history)
        for name in ("version", "lines", "counted", "summaries", "flushed", "ended"):
            setattr(then, name, getattr(self, name))
        then.resume, then._reported = self.resume, self._reported
        then._remember(tuple(self._answered))
        for event in events:
            then.take(then.version + 1, event, at)
        return msgspec.json.encode(
            Snapshotted(
                then.lines,
                tuple(then._answered),
                then.counted,
                dict(then._reported),
                then.resume,
                then.summaries,
                then.flushed,
                then.ended,
            )
        )

    def _report(self, inbound_id: str, attempt: int) -> None:
        self._forget_report(inbound_id)  # the newest last
        reported = {**self._reported, inbound_id: attempt}
        if len(reported) > REMEMBERED:
            del reported[next(iter(reported))]
        self._reported = reported

    def _forget_report(self, inbound_id: str) -> None:
        if inbound_id in self._reported:
            left = {key: n for key, n in self._reported.items() if key != inbound_id}
            self._reported = left or NONE_REPORTED

    def note_answered(self, inbound_id: str) -> None:
        """Take up that a message was answered without an event."""
        self._remember((inbound_id,))

    def _remember(self, answered: tuple[str, ...]) -> None:
        self._answered.extend(answered)
        del self._answered[:-REMEMBERED]

    @property
    def answered(self) -> tuple[str, ...]:
        """Ids of the messages that were answered lately, the newest last."""
        return tuple(self._answered)

    def has_answered(self, inbound_id: str) -> bool:
        """Whether this message was answered, as far as that is remembered."""
        return inbound_id in self._answered

    def brought(self, inbound: Inbound) -> tuple[Line, ...]:
        """Lines that a stateless client brought along, if this is the beginning."""
        return () if self.lines else inbound.history
