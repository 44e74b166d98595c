"""Records for people, made from a session's events; pure.

`callboard records rebuild` makes the same records from the journal alone, so everything
in a record must be in an event.

The audit record of what an operator does by hand; pure but for ids and times.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from actors.journal.history import (
    Chapter,
    Compacted,
    Conversation,
    Deferred,
    Event,
    Exchanged,
    Flushed,
    Reset,
)
from actors.messages.keys import SessionKey, chat_partition, parse_key
from actors.messages.state import outcome_of
from actors.messages.usage import Run, Spent
from runtime.store.rows import Commit, Record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from actors.delegation.consultations import Consulted
    from actors.messages.inbound import Inbound
    from actors.rules.text.secrets import AuditRedaction
    from actors.services import Services


CONVERSATION = "conversation"
AUDIT = "audit"
USAGE = "usage"
COMPACTION = "compaction"

CHECK = "check:"
"""Begins the ids of usage records that no event has: costs of relevance checks."""


class ConversationRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation."""

    agent: str
    connector: str
    chat: str
    thread: str
    sender_id: str
    status: str = "active"
    """`closed` from its end until the next message."""

    message_count: int
    tokens_estimate: int
    started_at: float
    last_message_at: float
    # Why unset: then the rows equal those of earlier releases.
    compactions: int | msgspec.UnsetType = msgspec.UNSET
    resets: int | msgspec.UnsetType = msgspec.UNSET


class CompactionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One compaction, or one reset with a summary."""

    conversation: str
    """Name of its journal stream."""

    agent: str
    kind: str
    """`compacted` or `reset`."""

    reason: str
    """What asked for it."""

    outcome: str
    summary: str
    messages_before: int
    messages_after: int
    tokens_before: int
    tokens_after: int


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One exchange, or one refused attempt."""

    channel: str
    chat: str
    sender_id: str
    sender_name: str
    agent: str = ""
    input: str = ""
    output: str = ""
    provider: str = ""
    model: str = ""
    seconds: float = 0.0
    attempt: int = 0
    status: str
    """Outcome of the message (`outcome_of`), or `unauthorised`."""

    reason: str


class UsageRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The usage of one turn."""

    agent: str
    connector: str
    sender_id: str
    provider: str
    model: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    """How many of `input_tokens` the provider had cached."""

    cost: float
    """US dollars."""

    spent: tuple[Spent, ...] = ()
    """The same, by model, account and price list."""

    seconds: float
    prepared: float = 0.0
    """Of these seconds, those until the prompt could be made."""

    rounds: int
    attempt: int
    status: str
    occasion: str = ""
    """Of a scheduled turn: `task`, `heartbeat`, …"""


def conversation(stream: str, key: SessionKey, counted: Conversation) -> Record:
    """Make the record of a conversation."""
    body = ConversationRecord(
        agent=key.agent,
        connector=key.connector,
        chat=key.chat,
        thread=key.thread,
        sender_id=key.sender,
        status="closed" if counted.is_closed else "active",
        message_count=counted.message_count,
        tokens_estimate=counted.tokens,
        started_at=counted.started_at,
        last_message_at=counted.last_at,
        compactions=counted.compactions or msgspec.UNSET,
        resets=counted.resets or msgspec.UNSET,
    )
    return _record(CONVERSATION, stream, key.agent, part_of(key), body)


def audit(key: SessionKey, event: Exchanged, keep: AuditRedaction) -> Record:
    """Make the record of an exchange."""
    run = event.run
    asked = [line.text for line in event.lines if line.role == "user"]
    said = [line.text for line in event.lines if line.role == "assistant"]
    body = AuditRecord(
        channel=key.connector,
        chat=key.chat,
        sender_id=event.sender_id or key.sender,
        sender_name=event.sender_name,
        agent=key.agent,
        input=asked[-1] if asked and not event.also else event.asked,
        output=said[-1] if said else event.said,
        provider=run.provider if run else "",
        model=run.model if run else "",
        seconds=run.seconds if run else 0.0,
        attempt=run.attempt if run else 0,
        status=outcome_of(event.state, event.reason),
        reason=event.reason,
    )
    name = event.inbound_id
    if event.state == "dead":
        # It may be retried by hand, which is an exchange of its own.
        name = f"{name}#{run.attempt if run else 0}"
    return _record(AUDIT, name, key.connector, part_of(key), kept(body, keep))


def audit_also(
    key: SessionKey, event: Exchanged, keep: AuditRedaction
) -> Iterator[Record]:
    """Make the records of further messages that one exchange answered."""
    said = [line.text for line in event.lines if line.role == "assistant"]
    for each in event.also:
        body = AuditRecord(
            channel=key.connector,
            chat=key.chat,
            sender_id=each.sender_id or key.sender,
            sender_name=each.sender_name,
            agent=key.agent,
            input=each.asked,
            output=said[-1] if said else event.said,
            status=outcome_of(event.state, event.reason),
            reason=each.how if event.reason == "ok" else event.reason,
        )
        name = each.inbound_id
        if event.state == "dead":
            name = f"{name}#{event.run.attempt if event.run else 0}"
        yield _record(AUDIT, name, key.connector, part_of(key), kept(body, keep))


def compaction(stream: str, key: SessionKey, event: Chapter) -> Record | None:
    """Make the record of a compaction or reset; None: it has no text."""
    if isinstance(event, Compacted) and event.outcome != "kept":
        body = CompactionRecord(
            conversation=stream,
            agent=key.agent,
            kind="compacted",
            reason=event.trigger,
            outcome=event.outcome,
            summary=event.summary,
            messages_before=event.messages_before,
            messages_after=event.messages_after,
            tokens_before=event.tokens_before,
            tokens_after=event.tokens_after,
        )
    elif isinstance(event, Reset) and event.summary:
        body = CompactionRecord(
            conversation=stream,
            agent=key.agent,
            kind="reset",
            reason=event.reason,
            outcome="summarised",
            summary=event.summary,
            messages_before=event.messages,
            messages_after=0,
            tokens_before=0,
            tokens_after=0,
        )
    else:
        return None
    return _record(COMPACTION, event.id, key.agent, part_of(key), body)


def usage(key: SessionKey, event: Event | Consulted) -> Record | None:
    """Make the record of the model calls behind an event, if there were any."""
    run = event.run
    if run is None:
        return None
    sender = event.sender_id or key.sender
    occasion = event.occasion if isinstance(event, Exchanged | Deferred) else ""
    body = _used(run, key.agent, key.connector, sender, status_of(event), occasion)
    name = f"{name_of(event)}#{run.attempt}"
    return _record(USAGE, name, key.agent, part_of(key), body)


def usage_of_check(name: str, inbound: Inbound, agent: str, run: Run) -> Record:
    """Make the record of a relevance check."""
    connector, chat = inbound.address.connector, inbound.address.chat
    body = _used(run, agent, connector, inbound.sender_id, "check")
    return _record(USAGE, name, agent, chat_partition(connector, chat), body)


def _used(
    run: Run, agent: str, connector: str, sender: str, status: str, occasion: str = ""
) -> UsageRecord:
    return UsageRecord(
        agent=agent,
        connector=connector,
        sender_id=sender,
        provider=run.provider,
        model=run.model,
        input_tokens=run.usage.input_tokens,
        output_tokens=run.usage.output_tokens,
        cached_tokens=run.usage.cached_tokens,
        spent=run.spent,
        cost=run.cost,
        seconds=run.seconds,
        prepared=run.prepared,
        rounds=run.rounds,
        attempt=run.attempt,
        status=status,
        occasion=occasion,
    )


def name_of(event: Event | Consulted) -> str:
    """Give the id of the message that an event is about, or of the event."""
    if isinstance(event, Compacted | Flushed | Reset):
        return event.id
    return event.inbound_id


def status_of(event: Event | Consulted) -> str:
    """Give an event's outcome in one bounded word."""
    match event:
        case Compacted():
            return "compaction"
        case Flushed():
            return "flush"
        case Reset():
            return "reset"
        case _:
            return event.reason


def of_event(
    stream: str,
    event: Event,
    counted: Conversation,
    keep: AuditRedaction,
) -> tuple[Record, ...]:
    """Make all records that follow from one event of a session."""
    key = parse_key(stream)
    made = [usage(key, event)]
    changes = isinstance(event, Compacted | Reset)
    if isinstance(event, Exchanged):
        made += (audit(key, event, keep), *audit_also(key, event, keep))
        changes = bool(event.lines)
    elif isinstance(event, Compacted | Reset):
        made.append(compaction(stream, key, event))
    if changes:
        made.append(conversation(stream, key, counted))
    return tuple([each for each in made if each is not None])


def of_consultation(
    stream: str, event: Consulted, keep: AuditRedaction
) -> tuple[Record, ...]:
    """Make all records that follow from an agent's question to a colleague."""
    key = parse_key(stream)
    # After an interruption the same is asked again, which is another row.
    is_cut = event.state == "cancelled"
    exchanged = Exchanged(
        inbound_id=f"{event.inbound_id}#stopped" if is_cut else event.inbound_id,
        sender_id=event.sender_id,
        sender_name=event.source,
        asked=event.asked,
        said=event.said,
        state=event.state,
        reason=event.reason,
        run=event.run,
    )
    audited = audit(key, exchanged, keep)
    spent = usage(key, event)
    return (audited,) if spent is None else (spent, audited)


# Why kept: each answer makes three rows of one conversation.
@lru_cache(maxsize=1024)
def part_of(key: SessionKey) -> int:
    """Give the partition of a session's rows."""
    return chat_partition(key.connector, key.chat)


def kept(body: AuditRecord, keep: AuditRedaction) -> AuditRecord:
    """Give what the audit keeps of an exchange."""
    redact, has_texts = keep.redact, keep.has_texts
    return msgspec.structs.replace(
        body,
        chat=redact(body.chat),
        sender_id=redact(body.sender_id),
        sender_name=redact(body.sender_name),
        input=redact(body.input) if has_texts else "",
        output=redact(body.output) if has_texts else "",
    )


def audit_row(record_id: str, body: AuditRecord, keep: AuditRedaction) -> Record:
    """Make an audit record of something that is in no session's journal.

    Args:
        record_id: the message's id, or a new one for a refused attempt.
    """
    part = chat_partition(body.channel, body.chat)
    return _record(AUDIT, record_id, body.channel, part, kept(body, keep))


def _record(
    kind: str, record_id: str, owner: str, part: int, body: msgspec.Struct
) -> Record:
    return Record(
        kind=kind,
        id=record_id,
        owner=owner,
        part=part,
        body=msgspec.json.encode(body),
    )


CHANNEL = "operator"
"""Stands in the audit instead of a connector."""

REASON = "by hand"


class Deed(msgspec.Struct, frozen=True):
    """Something that an operator did."""

    verb: str
    """The command: `kill`, `retry`, `drop`, `pause`, …"""

    status: str
    """The outcome in one word: `killed`, `retried`, …"""

    target: str
    """Id or name of the object."""

    by: str
    """The operator."""


def as_commit(deed: Deed, services: Services) -> Commit:
    """Make the commit of the audit record."""
    body = AuditRecord(
        channel=CHANNEL,
        chat=deed.target,
        sender_id=deed.by,
        sender_name=deed.by,
        input=f"{deed.verb} {deed.target}",
        status=deed.status,
        reason=REASON,
    )
    row = audit_row(services.ids.new(), body, services.keep)
    return Commit(at=services.clock.wall(), records=(row,))
