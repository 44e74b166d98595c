"""A session's history: the lines for the model, and which messages were answered; pure.

Rebuilt from the newest snapshot of the session and the later events of its journal
stream. Besides exchanges, the journal says when earlier lines were summarised
(`compacted`), when they were searched for facts (`flushed`), and when the conversation
began anew (`reset`). A *compaction* makes room and the conversation goes on; a *reset*
ends it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from actors.messages.busy_policies import Chosen
from actors.messages.inbound import Inbound, Occasion, TranscriptLine
from actors.messages.usage import Run
from actors.rules.prompt.compaction import MOST_SUMMARIES, Trigger, shortened, tokens_of
from runtime.store.port import Store

ResetReason = Literal["command", "model", "daily", "idle"]
"""What ended a conversation: a person's command; the agent's marker; the hour of the
day; a long silence."""

EXPIRED: frozenset[ResetReason] = frozenset({"daily", "idle"})
"""Reasons that nobody asked for, so that people are told."""


class Compacted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Event `compacted`: a summary replaced earlier lines."""

    id: str
    trigger: Trigger
    outcome: Literal["summarised", "truncated", "kept"]
    """`truncated`: there was no summary, and lines were cut; `kept`: nothing changed,
    and only the cost of the try is recorded."""

    summary: str = ""
    messages_before: int = 0
    """Lines before it."""

    messages_after: int = 0
    tokens_before: int = 0
    """Estimated tokens of these lines."""

    tokens_after: int = 0
    """Estimated tokens of the summary and the lines that stayed."""

    cut_to: int = 0
    """Characters that each line was cut to; 0: none was cut."""

    sender_id: str = ""
    """The person whose account pays for it."""

    run: Run | None = None

    def left_of(self, lines: tuple[TranscriptLine, ...]) -> tuple[TranscriptLine, ...]:
        """Give what stays of the lines before it."""
        if self.outcome == "kept":
            return lines
        left = lines[max(0, len(lines) - self.messages_after) :]
        return shortened(left, self.cut_to) if self.cut_to else left


class Flushed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Event `flushed`: the lines were searched for facts to remember."""

    id: str
    messages: int
    """Lines of the conversation that were searched so far."""

    sender_id: str = ""
    run: Run | None = None


class Reset(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Event `reset`: the conversation has ended; the next message begins a new one."""

    id: str
    reason: ResetReason
    summary: str = ""
    """What it was about, if a model could be asked."""

    messages: int = 0
    """Lines it had."""

    sender_id: str = ""
    """The person who asked for it, or whose account pays for it."""

    run: Run | None = None


Chapter = Compacted | Flushed | Reset

KINDS: dict[str, type[Compacted | Flushed | Reset]] = {
    "compacted": Compacted,
    "flushed": Flushed,
    "reset": Reset,
}
"""Event types by name."""


class Summary(msgspec.Struct, frozen=True):
    """The summary of an earlier part of this conversation."""

    text: str
    at: float
    """Unix seconds at which it was written."""


def kind_of(chapter: Chapter) -> str:
    """Give the event's name."""
    return next(kind for kind, shape in KINDS.items() if isinstance(chapter, shape))


def read_chapter(kind: str, body: bytes) -> Chapter | None:
    """Decode an event; None: it is of another kind.

    Raises:
        msgspec.DecodeError: it cannot be read.
    """
    shape = KINDS.get(kind)
    return None if shape is None else msgspec.json.decode(body, type=shape)


# Chosen: answered messages that are remembered, to recognise one that comes again while
# its answer is being stored, which takes seconds.
REMEMBERED = 64

# Chosen: a session that wakes reads at most so many events after its snapshot, in about
# two milliseconds; a snapshot is as long as a prompt's history.
SNAPSHOT_EVERY = 50

PAGE = 1000
"""Events read at once."""

SCHEMA = 1
"""Version of `Snapshotted`; raised when its shape changes. Snapshots of another version
are ignored."""

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
    """Event `exchanged`: a question and its answer."""

    inbound_id: str
    lines: tuple[TranscriptLine, ...] = ()
    """What the model will see of it; empty for commands and refusals."""

    sender_id: str = ""
    sender_name: str = ""
    asked: str = ""
    """The message's text, where it is not among the lines."""

    said: str = ""
    """The answer's text, where it is not among the lines."""

    state: str = "replied"
    reason: str = "ok"
    run: Run | None = None
    """The turn's models, tokens and cost; None if no model was asked."""

    resume: str = ""
    """The model's session id, to resume it later."""

    is_group: bool = False
    """Whether others read along; older releases did not record it."""

    also: tuple[AlsoAsked, ...] = ()
    """Further messages of the same person that it answers, in order."""

    policy: Chosen = ""
    """The busy policy that a person chose with it."""
    occasion: Occasion = ""  # set if the runtime wrote the message; empty: a person did


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
    """The counters of one conversation."""

    message_count: int = 0
    """Lines of people and agents."""

    tokens: int = 0
    """Estimated from the characters of these lines."""

    started_at: float = 0.0
    """Unix seconds."""

    last_at: float = 0.0
    """Unix seconds of the last line."""

    compactions: int = 0
    resets: int = 0
    """How many conversations of this stream have ended."""

    is_closed: bool = False
    """Whether it has ended; the next message begins another one."""

    is_group: bool = False
    """Whether others read along."""

    policy: Chosen = ""
    """The busy policy that a person chose; outlives the conversation."""

    def plus(self, lines: tuple[TranscriptLine, ...], at: float) -> Conversation:
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

    lines: tuple[TranscriptLine, ...]
    answered: tuple[str, ...]
    counted: Conversation
    reported: dict[str, int] = {}
    resume: str = ""
    summaries: tuple[Summary, ...] = ()
    flushed: int = 0
    ended: ResetReason | None = None


Event = Exchanged | Deferred | Compacted | Flushed | Reset
"""An event of a session's journal."""


class History:
    """The past of one session.

    Args:
        stream: its journal stream, which is also its key's text.
        max_history: most lines that a prompt holds.
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
        # Why no deque: an empty one takes 600 bytes, for each session.
        self._answered: list[str] = []
        # Never changed, only replaced: most conversations share this one.
        self._reported: Mapping[str, int] = NONE_REPORTED
        self.stream = stream
        self.lines: tuple[TranscriptLine, ...] = ()
        """Newest last; at most twice as many as a prompt holds."""

        self.version = 0
        """Number of the journal's last event."""

        self.resume = ""
        """Session id of the model that answered last, to resume it; empty: none."""

        self.counted = Conversation()
        self.summaries: tuple[Summary, ...] = ()
        """Of earlier parts of this conversation, the newest last."""

        self.flushed = 0
        """How many of its lines were searched for facts."""

        self.ended: ResetReason | None = None
        """Why the conversation before this one ended, until this one begins."""

    @property
    def earlier(self) -> int:
        """How many lines of this conversation are not held."""
        return max(0, self.said - len(self.lines))

    @property
    def said(self) -> int:
        """How many lines this conversation has; 0 if the last one has ended."""
        return 0 if self.counted.is_closed else self.counted.message_count

    @property
    def unflushed(self) -> int:
        """How many lines were not searched for facts yet."""
        return max(0, self.said - self.flushed)

    def restore(self, sequence: int, body: bytes) -> None:
        """Load a snapshot; the events after it come next.

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
        """Apply one event as it is in the journal.

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
        """Apply one event; one that was applied before changes nothing."""
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
            # Not answered for good: it may be begun again, also by hand. A run without
            # rounds is of a turn that broke, and says nothing about attempts.
            if event.run is not None and event.run.rounds:
                self._report(event.inbound_id, event.run.attempt)
        else:
            self._forget_report(event.inbound_id)
            self._remember((event.inbound_id, *[each.inbound_id for each in also]))
        if isinstance(event, Exchanged) and event.lines:
            if self.counted.is_closed:
                self.flushed, self.ended = 0, None
            self.lines = self._bounded((*self.lines, *event.lines))
            # A failed answer, or another model's, is not in the model's session.
            self.resume = event.resume

    def _turn_page(self, event: Chapter, at: float) -> None:
        match event:
            case Compacted(outcome="kept"):
                pass
            case Compacted():
                self.lines = event.left_of(self.lines)
                self.resume = ""  # the model's session is as long as before
                if event.summary:
                    newest = (*self.summaries, Summary(event.summary, at))
                    self.summaries = newest[-MOST_SUMMARIES:]
            case Flushed(messages=messages):
                self.flushed = max(self.flushed, messages)
            case Reset(reason=reason):
                self.lines, self.summaries, self.resume = (), (), ""
                self.flushed = 0
                self.ended = reason if reason in EXPIRED else None

    def _bounded(self, lines: tuple[TranscriptLine, ...]) -> tuple[TranscriptLine, ...]:
        """Keep the newest lines, if there are too many."""
        most = self.max_history
        return lines if len(lines) <= 2 * most else lines[len(lines) - most :]

    def resume_at(self, now: float, within: float) -> str:
        """Give `resume`, unless the last answer is too long ago.

        Args:
            now: Unix seconds.
            within: most seconds since the last answer.
        """
        return self.resume if now - self.counted.last_at <= within else ""

    def reported(self, inbound_id: str) -> int:
        """Give the last attempt at a message that is in the journal; 0: none."""
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
        self._forget_report(inbound_id)  # so that the newest is last
        reported = {**self._reported, inbound_id: attempt}
        if len(reported) > REMEMBERED:
            del reported[next(iter(reported))]
        self._reported = reported

    def _forget_report(self, inbound_id: str) -> None:
        if inbound_id in self._reported:
            left = {key: n for key, n in self._reported.items() if key != inbound_id}
            self._reported = left or NONE_REPORTED

    def note_answered(self, inbound_id: str) -> None:
        """Note that a message was answered without an event."""
        self._remember((inbound_id,))

    def _remember(self, answered: tuple[str, ...]) -> None:
        self._answered.extend(answered)
        del self._answered[:-REMEMBERED]

    @property
    def answered(self) -> tuple[str, ...]:
        """Ids of the messages that were answered lately, the newest last."""
        return tuple(self._answered)

    def has_answered(self, inbound_id: str) -> bool:
        """Whether a message was answered, as far as that is remembered."""
        return inbound_id in self._answered

    def brought(self, inbound: Inbound) -> tuple[TranscriptLine, ...]:
        """Lines that a stateless client sent along, if this is the beginning."""
        return () if self.lines else inbound.history


async def read_history(history: History, store: Store) -> None:
    """Rebuild a history from the newest snapshot and the journal after it.

    Raises:
        StoreError: the disk fails.
    """
    snapshot = await store.snapshot(history.stream)
    if snapshot is not None and snapshot.schema == SCHEMA:
        history.restore(snapshot.sequence, snapshot.body)
    while True:
        events = await store.read(history.stream, history.version, PAGE)
        for event in events:
            history.replay(event.sequence, event.kind, event.body, event.at)
        if len(events) < PAGE:
            break
