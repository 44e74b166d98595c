"""How messages, answers and deliveries are written down: rows from Structs; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors import records, telling
from actors.delivering import spoken
from actors.history import AlsoAsked, Deferred, Exchanged
from actors.journal import as_journal
from actors.rules.keys import chat_partition, parse_key
from runtime.rows import (
    Accept,
    Commit,
    Defer,
    Enqueue,
    Settle,
)

if TYPE_CHECKING:
    from actors.answers import Answer, Aside, Joint
    from actors.deliveries import Delivery
    from actors.history import Event, History
    from actors.messages import Inbound
    from actors.redaction import Keep
    from actors.rules import message_state
    from actors.services import Services
    from runtime.entries import Entry


def as_exchange(answer: Answer, history: History, services: Services) -> Commit:
    """Write an answer down as one transaction, and all that follows from it.

    Args:
        answer: what a session said.
        history: knows the journal's last event, and what has been counted.
        services: the time, and what the audit keeps.
    """
    now = services.clock.wall()
    journal = as_journal(as_events(answer), history, now, services.keep)
    rest = as_commit(answer, now)
    return msgspec.structs.replace(
        rest,
        appends=journal.appends,
        snapshots=journal.snapshots,
        records=(*journal.records, *rest.records),
        entries=(
            *rest.entries,
            *telling.of_answer(answer, parse_key(history.stream).agent, services),
        ),
    )


def as_events(answer: Answer) -> tuple[Event, ...]:
    """Give the events of a session's journal that an answer makes."""
    ends = () if answer.ends is None else (answer.ends,)
    return (as_event(answer), *ends)


def as_event(answer: Answer) -> Exchanged | Deferred:
    """Give the event of a session's journal that tells of an answer itself."""
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
        also=tuple(as_asked(each) for each in answer.also),
        policy=answer.carried.policy,
        occasion=inbound.occasion,
    )


def as_asked(joint: Joint) -> AlsoAsked:
    """Write down a further message that an answer is to."""
    inbound = joint.inbound
    return AlsoAsked(
        inbound.id, inbound.text, inbound.sender_id, inbound.sender_name, joint.how
    )


def as_commit(answer: Answer, now: float) -> Commit:
    """Write down what an answer does to the inbox and the outbox.

    Args:
        answer: what is to be stored.
        now: Unix seconds.
    """
    inbound, put_off = answer.inbound, answer.put_off
    part = part_of(inbound)
    state, reason = answer.settled
    later: tuple[Defer, ...] = ()
    settles = [Settle(inbound.id, state, reason)]
    if put_off is not None:
        # All wait together, or one of them would be begun alone.
        all_ = (inbound, *(each.inbound for each in answer.also))
        later, settles = tuple(as_defer(x, put_off, reason) for x in all_), []
    elif answer.also:
        settles += [
            Settle(x.inbound.id, state, x.how if reason == "ok" else reason)
            for x in answer.also
        ]
    return Commit(
        at=now,
        accepts=tuple(as_accept(each, now) for each in answer.handed),
        defers=later,
        deliveries=tuple(as_enqueue(each, part) for each in answer.deliveries),
        records=answer.carried.records,
        entries=answer.carried.entries,
        facts=(*answer.remembered, *answer.carried.facts),
        settles=tuple(settles),
    )


def as_told(aside: Aside, now: float) -> Commit:
    """Write down what is said beside an answer.

    Args:
        aside: what is to be stored.
        now: Unix seconds.
    """
    address = aside.delivery.address
    part = chat_partition(address.connector, address.chat)
    return Commit(at=now, deliveries=(as_enqueue(aside.delivery, part),))


def as_unheard(
    answer: Answer, now: float, keep: Keep, told: tuple[Entry, ...] = ()
) -> Commit:
    """Write down a message that no session answers, and a row of the audit.

    Args:
        answer: what is said about it.
        now: Unix seconds.
        keep: says what the audit keeps.
        told: rows that other programs are told by.
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
        status=answer.settled[0],
        reason=answer.settled[1],
    )
    row = records.unheard(inbound.id, body, keep)
    commit = as_commit(answer, now)
    return msgspec.structs.replace(commit, records=(row,), entries=told)


def as_defer(inbound: Inbound, put_off: message_state.PutOff, reason: str) -> Defer:
    """Write down that a message waits."""
    return Defer(inbound.id, put_off.attempts, put_off.due_at, reason)


def as_accept(inbound: Inbound, now: float) -> Accept:
    """Write a message down as its inbox row."""
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
    """Write a delivery down as its outbox row."""
    return Enqueue(
        delivery_id=delivery.id,
        connector=delivery.address.connector,
        chat=delivery.address.chat,
        correlation_id=delivery.correlation_id,
        part=part,
        body=msgspec.json.encode(delivery),
    )


def chat_stream(inbound: Inbound) -> str:
    """Name the chat a message came from, for people who read the tables."""
    return f"{inbound.address.connector}/{inbound.address.chat}"


def part_of(inbound: Inbound) -> int:
    """Give the partition of all rows that a message causes."""
    return chat_partition(inbound.address.connector, inbound.address.chat)
