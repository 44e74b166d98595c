"""What is said of answers and appointments to other programs, and to whom; pure.

Of texts only what was redacted, as in the audit.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from actors import names
from actors.delivering import spoken
from actors.notices import DUE, Happened
from actors.notifying import NewNotices
from actors.schedule_rows import SHOWN_ID
from runtime.errors import MailboxFullError
from runtime.ref import UNANSWERED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from actors.answers import Answer
    from actors.messages import Inbound
    from actors.notices import EventType, Value
    from actors.rules.hiring import Decided, Maker
    from actors.rules.schedule import Appointment, Woken
    from actors.services import Services
    from actors.staff_rows import Rows
    from runtime.entries import Entry
    from runtime.ref import ActorRef
    from runtime.rows import SettledState

OF_STATE: dict[SettledState, EventType] = {
    "cancelled": "turn.cancelled",
    "dead": "turn.failed",
    "dropped": "message.dropped",
}


def of_answer(answer: Answer, agent: str, services: Services) -> tuple[Entry, ...]:
    """Give the rows that tell of an answer; none of what is only put off.

    Args:
        answer: what becomes of a message.
        agent: whose answer; empty: nobody's.
        services: who is told, what redacts, time, ids.
    """
    what = type_of(answer)
    if not services.announcer or what is None:
        return ()
    inbound, (state, reason) = answer.inbound, answer.settled
    data = of_inbound(inbound) | {"outcome": state, "reason": reason}
    troubles = [each.trouble for each in answer.deliveries if each.trouble]
    if troubles:
        data["trouble"] = troubles[0]
    if answer.also:
        data["also"] = tuple(each.inbound.id for each in answer.also)
    if answer.run is not None:
        data |= {
            "model": answer.run.model,
            "seconds": round(answer.run.seconds, 3),
            "input_tokens": answer.run.usage.input_tokens,
            "output_tokens": answer.run.usage.output_tokens,
            "cost_dollars": answer.run.cost,
        }
    said = spoken(answer.deliveries)
    texts = {"asked": services.redact(inbound.text), "said": services.redact(said)}
    happened = Happened(what, {"agent": agent, **data}, agent, texts)
    return announced((happened,), services)


def type_of(answer: Answer) -> EventType | None:
    """Say what becomes of a message; None: nothing yet, or a command was answered."""
    if answer.put_off is not None:
        return None
    state = answer.settled[0]
    if state != "replied":
        return OF_STATE[state]
    if any(each.trouble for each in answer.deliveries):
        return "turn.failed"  # people are told why there is no answer
    is_turn = answer.run is not None or bool(answer.lines)
    return "turn.finished" if is_turn else None


def of_unheard(answer: Answer, services: Services) -> tuple[Entry, ...]:
    """Give the rows that tell of a message that no session answers.

    Nothing of what nobody in its chat is told of either: in groups, most words.
    """
    if not spoken(answer.deliveries):
        return ()
    return of_answer(answer, answer.inbound.agent, services)


def of_inbound(inbound: Inbound) -> dict[str, Value]:
    """Say which message something is about."""
    return {
        "message": inbound.id,
        "correlation_id": inbound.correlation_id,
        "connector": inbound.address.connector,
        "chat": inbound.address.chat,
        "thread": inbound.address.thread,
        "sender": inbound.sender_id,
        "occasion": inbound.occasion,
    }


def of_slots(
    name: str, it: Appointment, woken: Woken, services: Services
) -> tuple[Entry, ...]:
    """Give the rows that tell of an appointment's slots."""
    if not services.announcer:
        return ()
    data: dict[str, Value] = {
        "appointment": name,
        "shown_id": name[:SHOWN_ID],
        "kind": it.kind,
        "agent": it.agent,
        "connector": it.address.connector,
        "chat": it.address.chat,
    }
    texts = {"text": services.redact(it.text)}
    happened = [
        Happened("appointment.fired", {**data, "due": due}, it.agent, texts)
        for due in woken.slots
    ]
    if woken.is_given_up:
        failures = it.failures if woken.after is None else woken.after.failures
        told: dict[str, Value] = {**data, "failures": failures}
        happened.append(Happened("appointment.paused", told, it.agent, texts))
    return announced(happened, services)


def of_hiring(
    decided: Decided, rows: Rows, maker: Maker, services: Services
) -> tuple[Entry, ...]:
    """Give the rows that tell of agents that a conductor made or changed."""
    happened = [
        Happened(
            "agent.updated" if rows.version(name) else "agent.created",
            {
                "agent": name,
                "by": maker.agent,
                "asked_by": maker.person,
                "message": maker.message,
            },
            name,
            {"description": services.redact(agent.description)},
        )
        for name, agent in decided.agents.items()
    ]
    return announced(happened, services)


def announced(happened: Iterable[Happened], services: Services) -> tuple[Entry, ...]:
    """Give the rows that tell of something."""
    now = services.clock.wall()
    return services.announcer.entries(happened, now, services.ids.new)


def wake_notifiers(
    find: Callable[[str], ActorRef | None], entries: Iterable[Entry]
) -> None:
    """Tell who sends events that some are durable."""
    found: dict[str, list[str]] = {}
    for each in entries:
        if each.kind == DUE:
            found.setdefault(each.owner, []).append(each.id)
    for webhook, ids in found.items():
        notifier = find(names.notifier(webhook))
        if notifier is not None:  # else it looks when it starts
            # Whoever is not told now finds them when it next looks at all rows.
            with contextlib.suppress(MailboxFullError, *UNANSWERED):
                notifier.tell(NewNotices(tuple(ids)))
