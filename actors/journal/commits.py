"""Makes events, rows and commits from messages, answers and deliveries; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.journal import notices as telling, records
from actors.journal.history import (
    SCHEMA,
    AlsoAsked,
    Chapter,
    Compacted,
    Deferred,
    Event,
    Exchanged,
    Flushed,
    History,
    Reset,
    kind_of,
)
from actors.journal.outbox import spoken
from actors.journal.parts import in_one_part
from actors.messages.keys import chat_partition, parse_key
from actors.messages.state import outcome_of
from actors.rules.prompt.compaction import tokens_of
from runtime.store.rows import (
    Accept,
    Append,
    Commit,
    Defer,
    Enqueue,
    Entry,
    NewEvent,
    Record,
    Settle,
    Snapshot,
)

if TYPE_CHECKING:
    from actors.journal.answers import Answer, Aside, ChapterEntry, CombinedMessage
    from actors.messages import state as message_state
    from actors.messages.deliveries import Delivery
    from actors.messages.inbound import Inbound
    from actors.rules.text.secrets import AuditRedaction
    from actors.services import Services


def as_entry(
    entry: ChapterEntry, event: Chapter, history: History, services: Services
) -> Commit:
    """Make the commit of an entry that answers no message.

    Args:
        event: its event, as `as_chapter` gives it.
        history: knows the journal's last event, and the counters.
    """
    commit = as_journal((event,), history, services.clock.wall(), services.keep)
    if is_void(entry, history):
        return commit
    if not entry.remembered:
        return commit
    commit = msgspec.structs.replace(commit, facts=entry.remembered)
    part = records.part_of(parse_key(history.stream))
    return in_one_part(commit, part, f"{history.stream}@{history.version}")


def as_journal(
    events: tuple[Event, ...], history: History, now: float, keep: AuditRedaction
) -> Commit:
    """Make the rows of a session's events, and the records that follow from them.

    Args:
        events: in order.
        history: knows the journal's last event, and the counters.
        now: Unix seconds.
    """
    part = records.part_of(parse_key(history.stream))
    counted = history.counted
    made: dict[tuple[str, str], Record] = {}
    for event in events:
        counted = counted.after(event, now)
        for record in records.of_event(history.stream, event, counted, keep):
            made[record.kind, record.id] = record
    body = history.snapshot_after(events, now)
    snapshot = Snapshot(
        stream=history.stream,
        sequence=history.version + len(events),
        schema=SCHEMA,
        part=part,
        body=body or b"",
    )
    journal = Append(
        stream=history.stream,
        expected=history.version,
        part=part,
        events=tuple(
            [
                NewEvent(event_kind(event), msgspec.json.encode(event))
                for event in events
            ]
        ),
    )
    return Commit(
        at=now,
        appends=(journal,),
        snapshots=(snapshot,) if body is not None else (),
        records=tuple(made.values()),
    )


def event_kind(event: Event) -> str:
    """Name an event of a session's journal."""
    if isinstance(event, Exchanged):
        return "exchanged"
    return "deferred" if isinstance(event, Deferred) else kind_of(event)


def is_void(entry: ChapterEntry, history: History) -> bool:
    """Whether an entry's conversation has ended since it was made."""
    is_reset = isinstance(entry.chapter, Reset)
    return history.counted.resets != entry.resets or (
        history.counted.is_closed and not is_reset
    )


def as_chapter(entry: ChapterEntry, history: History) -> Chapter:
    """Give the event of an entry as it is right by now.

    Lines that came since it was made stay. Of a conversation that has ended meanwhile,
    only the entry's cost is recorded.
    """
    chapter = entry.chapter
    if isinstance(chapter, Compacted):
        since = history.counted.message_count - entry.messages
        if is_void(entry, history) or since < 0:
            return msgspec.structs.replace(
                chapter, outcome="kept", summary="", messages_after=0, tokens_after=0
            )
        newest = history.lines[max(0, len(history.lines) - since) :] if since else ()
        return msgspec.structs.replace(
            chapter,
            messages_before=chapter.messages_before + since,
            messages_after=chapter.messages_after + since,
            tokens_before=chapter.tokens_before + tokens_of(newest),
            tokens_after=chapter.tokens_after + tokens_of(newest),
        )
    if isinstance(chapter, Flushed) and is_void(entry, history):
        return msgspec.structs.replace(chapter, messages=0)
    return chapter


def as_exchange(
    answer: Answer,
    history: History,
    services: Services,
    events: tuple[Event, ...] = (),
) -> Commit:
    """Make the commit of an answer, and of everything that follows from it.

    Args:
        events: as `as_events` gives them; empty: they are made here.
    """
    now = services.clock.wall()
    journal = as_journal(events or as_events(answer), history, now, services.keep)
    rest = as_commit(answer, now)
    told = telling.of_answer(answer, parse_key(history.stream).agent, services)
    commit = msgspec.structs.replace(
        rest,
        appends=journal.appends,
        snapshots=journal.snapshots,
        records=(*journal.records, *rest.records),
        entries=(*rest.entries, *told),
    )
    if not (rest.records or rest.facts or commit.entries):
        return commit  # all the rest is of the chat
    cause = f"{history.stream}@{history.version}"
    return in_one_part(commit, part_of(answer.inbound), cause)


def as_events(answer: Answer) -> tuple[Event, ...]:
    """Give the events of a session's journal that an answer makes."""
    ends = () if answer.ends is None else (answer.ends,)
    return (as_event(answer), *ends)


def as_event(answer: Answer) -> Exchanged | Deferred:
    """Give the event of a session's journal for the answer itself."""
    inbound = answer.inbound
    if answer.put_off is not None:
        said = spoken(answer.deliveries[:1])
        return Deferred(
            inbound_id=inbound.id,
            sender_id=inbound.sender_id,
            reason=answer.settled[1],
            text=said,
            due_at=answer.put_off.due_at,
            run=answer.run,
            occasion=inbound.occasion,
        )
    said = spoken(answer.deliveries)
    return Exchanged(
        inbound_id=inbound.id,
        lines=answer.lines,
        sender_id=inbound.sender_id,
        sender_name=inbound.sender_name,
        asked="" if answer.lines and not answer.also else inbound.text,
        said="" if answer.lines else said,
        state=answer.settled[0],
        reason=answer.settled[1],
        run=answer.run,
        resume=answer.resume,
        is_group=not inbound.is_direct,
        also=tuple([as_asked(each) for each in answer.also]),
        policy=answer.carried.policy,
        occasion=inbound.occasion,
    )


def as_asked(joint: CombinedMessage) -> AlsoAsked:
    """Describe a further message that an answer is to."""
    inbound = joint.inbound
    return AlsoAsked(
        inbound.id, inbound.text, inbound.sender_id, inbound.sender_name, joint.how
    )


def as_commit(answer: Answer, now: float) -> Commit:
    """Make the commit of what an answer changes in inbox and outbox.

    Args:
        now: Unix seconds.
    """
    inbound, put_off = answer.inbound, answer.put_off
    part = part_of(inbound)
    state, reason = answer.settled
    later: tuple[Defer, ...] = ()
    settles = [Settle(inbound.id, state, reason)]
    if put_off is not None:
        # All are postponed together, or one of them would be begun alone.
        all_ = (inbound, *(each.inbound for each in answer.also))
        later, settles = tuple([as_defer(x, put_off, reason) for x in all_]), []
    elif answer.also:
        settles += [
            Settle(x.inbound.id, state, x.how if reason == "ok" else reason)
            for x in answer.also
        ]
    return Commit(
        at=now,
        accepts=tuple([as_accept(each, now) for each in answer.handed]),
        defers=later,
        deliveries=tuple([as_enqueue(each, part) for each in answer.deliveries]),
        records=answer.carried.records,
        entries=answer.carried.entries,
        facts=(*answer.remembered, *answer.carried.facts),
        settles=tuple(settles),
    )


def as_aside(aside: Aside, now: float) -> Commit:
    """Make the commit of a notice beside an answer; it is refused after the answer.

    Args:
        now: Unix seconds.
    """
    address = aside.delivery.address
    part = chat_partition(address.connector, address.chat)
    row = as_enqueue(aside.delivery, part)
    said = msgspec.structs.replace(row, beside=aside.inbound.id)
    return Commit(at=now, deliveries=(said,))


def as_unanswered(
    answer: Answer, now: float, keep: AuditRedaction, told: tuple[Entry, ...] = ()
) -> Commit:
    """Make the commit of a message that no session answers, with an audit record.

    Args:
        now: Unix seconds.
        told: rows that tell other programs.
    """
    inbound = answer.inbound
    said = spoken(answer.deliveries)
    body = records.AuditRecord(
        channel=inbound.address.connector,
        chat=inbound.address.chat,
        sender_id=inbound.sender_id,
        sender_name=inbound.sender_name,
        agent=inbound.agent,
        input=inbound.text,
        output=said,
        status=outcome_of(*answer.settled),
        reason=answer.settled[1],
    )
    row = records.audit_row(inbound.id, body, keep)
    commit = as_commit(answer, now)
    commit = msgspec.structs.replace(commit, records=(row,), entries=told)
    return in_one_part(commit, part_of(inbound), inbound.id) if told else commit


def as_defer(inbound: Inbound, put_off: message_state.Postpone, reason: str) -> Defer:
    """Make the row that postpones a message."""
    return Defer(inbound.id, put_off.attempts, put_off.due_at, reason)


def as_accept(inbound: Inbound, now: float) -> Accept:
    """Make the inbox row of a message."""
    stream = chat_stream(inbound)
    return Accept(
        id=inbound.id,
        connector=inbound.address.connector,
        platform_id=inbound.platform_id,
        part=part_of(inbound),
        stream=stream,
        body=msgspec.json.encode(inbound),
        at=now,
        priority=inbound.priority,
    )


def as_enqueue(delivery: Delivery, part: int) -> Enqueue:
    """Make the outbox row of a delivery."""
    return Enqueue(
        delivery_id=delivery.id,
        connector=delivery.address.connector,
        chat=delivery.address.chat,
        correlation_id=delivery.correlation_id,
        part=part,
        body=msgspec.json.encode(delivery),
    )


def chat_stream(inbound: Inbound) -> str:
    """Name the chat of a message, for people who read the tables."""
    return f"{inbound.address.connector}/{inbound.address.chat}"


def part_of(inbound: Inbound) -> int:
    """Give the partition of all rows that a message causes."""
    return chat_partition(inbound.address.connector, inbound.address.chat)
