"""Lists conversations, and tells what happened in one, from its journal."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import msgspec

from actors.approvals import receipts as tool_receipt
from actors.journal.history import (
    KINDS,
    Compacted,
    Deferred,
    Exchanged,
    Flushed,
    Reset,
    read_chapter,
)
from actors.journal.records import CONVERSATION, ConversationRecord
from actors.messages.deliveries import Delivery
from actors.messages.inbound import Inbound, ToolCall, Usage
from actors.messages.state import outcome_of
from actors.messages.usage import Run
from actors.turn.machine import ModelReplied, ToolReturned
from actors.turn.steps import ApprovalRecorded
from connectors.admin.display import Complain, moment, read_record
from runtime.errors import MisuseError
from runtime.store.database import FIRST, MOST_NAMED, Inspection, Mark
from runtime.store.rows import StoredDelivery, StoredEvent, decoded


class StoryCall(msgspec.Struct, frozen=True):
    """A tool that the model asked for."""

    name: str
    arguments: str
    """JSON text, as the model wrote it."""

    @classmethod
    def of(cls, call: ToolCall) -> StoryCall:
        """Take what is shown of a tool call."""
        return cls(call.name, call.arguments.decode("utf-8", "replace"))


class StoryEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One event of a conversation; times in ISO 8601, local with offset."""

    at: str | None
    what: str
    """`heard`, `round`, `leave`, `tool`, `answered`, `deferred`, `failed`, `dropped`,
    `cancelled`, `delivery`, `compacted`, `flushed`, `reset`, or a kind of event that
    this release does not know."""

    message: str = ""
    """Id of the message that it belongs to."""

    who: str = ""
    """The person, the agent or the tool."""

    text: str = ""
    reason: str = ""
    calls: tuple[StoryCall, ...] = ()
    usage: Usage | None = None
    run: Run | None = None
    due_at: str | None = None
    delivery: str = ""
    state: str = ""
    receipt: str = ""
    attempts: int = 0
    proof: str = ""
    """What a tool's receipt proves: `ok`, `bad`, or `unchecked` without the key."""


def delivery_scene(row: StoredDelivery, message: str) -> StoryEvent:
    """Describe a delivery; with its text only if no agent wrote it."""
    try:
        delivery = msgspec.json.decode(row.body, type=Delivery)
        text = "" if delivery.agent else delivery.text
    except ValueError:
        text = "(cannot be read by this release)"
    return StoryEvent(
        at=moment(row.settled_at or row.at),
        what="delivery",
        message=message,
        text=text,
        delivery=row.id,
        state=row.state,
        receipt=row.receipt,
        attempts=row.attempts,
    )


ENDS = {"replied": "answered", "dead": "failed"}
"""What the other states of an exchange are called."""


class Storyteller:
    """Turns the journal of one conversation into events for people.

    Args:
        rows: where messages and deliveries are looked up; of those settled more
            than eight days ago only the journal knows.
        key: what receipts of tool calls are signed with; empty: none is checked.
    """

    def __init__(self, rows: Inspection, key: bytes = b"") -> None:
        self._rows = rows
        self._key = key
        # Of the messages that are not answered yet, so it stays small.
        self._open: dict[str, Inbound | None] = {}
        self._calls: dict[str, list[ToolCall]] = {}  # likewise, by message

    def tell(self, event: StoredEvent) -> Iterator[StoryEvent]:
        """Give one event of the journal, and the deliveries that belong to it."""
        try:
            match event.kind:
                case "exchanged":
                    exchanged = msgspec.json.decode(event.body, type=Exchanged)
                    yield from self._exchanged(event, exchanged)
                case "deferred":
                    deferred = msgspec.json.decode(event.body, type=Deferred)
                    yield from self._deferred(event, deferred)
                case kind if kind in KINDS:
                    yield from chapter_told(event)
                case _:
                    yield from self._step(event)
        except ValueError as error:
            yield StoryEvent(at=moment(event.at), what=event.kind, text=f"({error})")

    def _exchanged(
        self, event: StoredEvent, exchanged: Exchanged
    ) -> Iterator[StoryEvent]:
        name = exchanged.inbound_id
        asked = [line.text for line in exchanged.lines if line.role == "user"]
        said = [line for line in exchanged.lines if line.role == "assistant"]
        heard = StoryEvent(
            at=moment(event.at),
            what="heard",
            message=name,
            who=exchanged.sender_name,
            text=asked[-1] if asked else exchanged.asked,
        )
        yield from self._heard(name, heard)
        ended = outcome_of(exchanged.state, exchanged.reason)
        yield StoryEvent(
            at=moment(event.at),
            what=ENDS.get(ended, ended),
            message=name,
            who=said[-1].name if said else "",
            text=said[-1].text if said else exchanged.said,
            reason=exchanged.reason,
            run=exchanged.run,
        )
        yield from self._deliveries(name, event.at)
        self._open.pop(name, None)
        self._calls.pop(name, None)

    def _deferred(self, event: StoredEvent, deferred: Deferred) -> Iterator[StoryEvent]:
        yield from self._heard(deferred.inbound_id)
        yield StoryEvent(
            at=moment(event.at),
            what="deferred",
            message=deferred.inbound_id,
            text=deferred.text,
            reason=deferred.reason,
            run=deferred.run,
            due_at=moment(deferred.due_at),
        )
        yield from self._deliveries(deferred.inbound_id, event.at)

    def _step(self, event: StoredEvent) -> Iterator[StoryEvent]:
        name = event.stream.rpartition("/")[2]
        if event.kind == "round":
            round_ = msgspec.json.decode(event.body, type=ModelReplied)
            self._calls.setdefault(name, []).extend(round_.tool_calls)
            yield from self._heard(name)
            yield StoryEvent(
                at=moment(event.at),
                what="round",
                message=name,
                text=round_.text,
                calls=tuple(map(StoryCall.of, round_.tool_calls)),
                usage=round_.usage,
            )
        elif event.kind == "tool":
            tool = msgspec.json.decode(event.body, type=ToolReturned)
            yield StoryEvent(
                at=moment(event.at),
                what="tool",
                message=name,
                who=self._name_of(name, tool.call_id),
                text=tool.text,
                reason="error" if tool.is_error else "",
                proof=self._check(event, tool),
            )
        elif event.kind == "leave":
            noted = msgspec.json.decode(event.body, type=ApprovalRecorded)
            yield StoryEvent(
                at=moment(event.at),
                what="leave",
                message=name,
                who=self._name_of(name, noted.call_id),
                text=f"{noted.outcome} by {noted.by}" if noted.by else noted.outcome,
            )
        else:
            yield StoryEvent(at=moment(event.at), what=event.kind, message=name)

    def _name_of(self, message: str, call_id: str) -> str:
        calls = self._calls.get(message, ())
        return next((call.name for call in calls if call.id == call_id), call_id)

    def _check(self, event: StoredEvent, tool: ToolReturned) -> str:
        """Say whether a tool's receipt is genuine; nothing if there is none."""
        proof = tool.proof
        if proof is None:
            return ""
        if not self._key:
            return "unchecked"
        conversation, _, message = event.stream.rpartition("/")
        claim = tool_receipt.ReceiptClaim(
            conversation=conversation,
            message=message,
            call_id=tool.call_id,
            name=proof.name,
            arguments=proof.arguments,
            result=tool_receipt.digest_of_result(
                tool.text, tool.images, is_error=tool.is_error
            ),
            at=proof.at,
        )
        # Not by the id: one that a model used twice was made another.
        is_told = any(
            call.name == proof.name
            and tool_receipt.digest_of_arguments(call.arguments) == proof.arguments
            for call in self._calls.get(message, ())
        )
        is_genuine = tool_receipt.is_genuine(self._key, claim, proof.receipt)
        return "ok" if is_told and is_genuine else "bad"

    def _heard(
        self, name: str, otherwise: StoryEvent | None = None
    ) -> Iterator[StoryEvent]:
        """Give a message once, from the inbox if it is still there."""
        if name in self._open:
            return
        try:
            row = self._rows.message(name)
        except MisuseError:
            if otherwise is not None:
                yield otherwise
            return
        inbound = self._open[name] = decoded(row, Inbound)
        if inbound is not None:
            yield StoryEvent(
                at=moment(row.at),
                what="heard",
                message=name,
                who=inbound.sender_name,
                text=inbound.text,
            )

    def _deliveries(self, name: str, at: float) -> Iterator[StoryEvent]:
        """Give the deliveries that were enqueued together with an event."""
        inbound = self._open.get(name)
        correlation_id = name if inbound is None else inbound.correlation_id
        for row in self._rows.deliveries_of(correlation_id):
            if row.at == at and row.id.startswith(f"{name}:"):
                yield delivery_scene(row, name)


def chapter_told(event: StoredEvent) -> Iterator[StoryEvent]:
    """Describe a compaction, a memory flush or a reset.

    Raises:
        ValueError: the event cannot be read.
    """
    match read_chapter(event.kind, event.body):
        case Compacted() as told:
            lines = f"{told.messages_before} -> {told.messages_after} messages"
            tokens = f"{told.tokens_before} -> {told.tokens_after} tokens"
            reason = f"{told.trigger}: {told.outcome}, {lines}, {tokens}"
            text, run = told.summary, told.run
        case Flushed() as told:
            text, run = "", told.run
            reason = f"{told.messages} messages gone through for facts"
        case Reset() as told:
            text, run = told.summary, told.run
            reason = f"{told.reason}, after {told.messages} messages"
        case _:
            return
    yield StoryEvent(
        at=moment(event.at), what=event.kind, text=text, reason=reason, run=run
    )


PAGE = 1000

# Chosen: a filter that fits nobody is done within a few milliseconds.
MOST_LOOKED_AT = 5_000
"""Conversations that are read for one page at most."""


class Conversation(msgspec.Struct, frozen=True):
    """One conversation and its record."""

    stream: str
    body: ConversationRecord


class ConversationPage(msgspec.Struct, frozen=True):
    """One page of conversations, the one with the newest message first."""

    found: list[Conversation]
    next: Mark | None
    """Where the next page begins; None: there is none."""


class StoryPage(msgspec.Struct, frozen=True):
    """One page of a conversation's events, in their order."""

    scenes: list[StoryEvent]
    before: int
    """Where the page before this one ends; 0: there is none."""

    after: int
    """Where the next page begins; 0: there is none."""


def everything(_conversation: Conversation) -> bool:
    """Want every conversation."""
    return True


def read_conversations(  # noqa: PLR0913  each filter has a name
    rows: Inspection,
    limit: int,
    complain: Complain,
    *,
    past: Mark = FIRST,
    agent: str = "",
    connector: str = "",
    fits: Callable[[Conversation], bool] = everything,
) -> ConversationPage:
    """List conversations, the one with the newest message first.

    Args:
        limit: most of them to give.
        agent: only this one's; empty: all.
        connector: only those there; empty: all.
        fits: says which of these are wanted.
    """
    found: list[Conversation] = []
    mark = past
    for looked_at, row in enumerate(rows.records(CONVERSATION, past=past)):
        if len(found) == limit or looked_at == MOST_LOOKED_AT:
            return ConversationPage(found, mark)
        mark = (row.at, row.number)
        body = read_record(row, ConversationRecord, complain)
        if body is None or agent not in {"", body.agent}:
            continue
        conversation = Conversation(row.id, body)
        if connector in {"", body.connector} and fits(conversation):
            found.append(conversation)
    return ConversationPage(found, None)


def read_story(
    rows: Inspection,
    stream: str,
    limit: int,
    key: bytes = b"",
    *,
    before: int = 0,
    after: int = 0,
) -> StoryPage:
    """Give one page of a conversation's events; without `before` or `after` the last.

    Args:
        limit: most events to tell.
        key: checks receipts of tool calls; empty: none is checked.
        before: number of the event up to which they are wanted; 0: to the last.
        after: number of the event from which on they are wanted instead.

    Raises:
        MisuseError: nothing of that name has happened there.
    """
    if after:
        found = rows.events(stream, after, limit)
    else:
        found = rows.events_before(stream, before, limit)
    if not found:
        raise MisuseError(f"there is no conversation {stream!r}, or no more of it")
    teller = Storyteller(rows, key)
    scenes = [scene for each in found for scene in teller.tell(each.event)]
    first, last = found[0].number, found[-1].number
    has_earlier = bool(rows.events_before(stream, first, 1))
    has_later = bool(rows.events(stream, last, 1))
    return StoryPage(scenes, first if has_earlier else 0, last if has_later else 0)


def find_conversation(rows: Inspection, name: str) -> str:
    """Find the stream that a name means.

    Raises:
        MisuseError: there is none, or more than one.
    """
    if rows.events(name, limit=1):
        return name
    found = (row.id for row in rows.records(CONVERSATION) if name in row.id)
    streams = list(itertools.islice(found, MOST_NAMED + 1))
    if not streams:
        raise MisuseError(
            f"no conversation has {name!r} in its name; `callboard replay` lists them"
        )
    if len(streams) > 1:
        more = ", …" if len(streams) > MOST_NAMED else ""
        raise MisuseError(
            f"more than one conversation has {name!r} in its name:"
            f" {', '.join(streams[:MOST_NAMED])}{more}; give more of it"
        )
    return streams[0]


def events_of(rows: Inspection, stream: str) -> Iterator[StoredEvent]:
    """Give the events of a conversation and of its turns, as they happened."""
    after = 0
    while True:
        entries = rows.events(stream, after, PAGE)
        for entry in entries:
            after = entry.number
            yield entry.event
        if len(entries) < PAGE:
            return
