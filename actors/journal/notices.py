"""Events that other programs receive by webhook: their contents and rows; pure.

A row is written in the commit that makes the event true, so exactly what happened is
announced. `actors/webhooks/notifier.py` sends each event at least once; the row's id is
the event's id, the same at every try. Texts are redacted as in the audit.
"""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal

import msgspec

from actors import names
from actors.journal.outbox import spoken
from actors.messages.keys import partition
from runtime.actor.ref import UNANSWERED, ActorRef
from runtime.errors import MailboxFullError
from runtime.store.rows import Entry, SettledState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from actors.agents.hiring import HiringDecision, Requester
    from actors.agents.rows import StaffRows
    from actors.journal.answers import Answer
    from actors.messages.inbound import Inbound
    from actors.messages.tracing import TraceParent
    from actors.schedule.appointments import Appointment, DueOutcome
    from actors.services import Services


DUE = "webhook_due"
DEAD = "webhook_dead"
"""Kinds of entries: events that are to be sent, and events that were given up."""

MOST_TEXT = 4_000
"""Characters of each text in an event; the rest is cut, and marked so."""

CUT = "…"

EventType = Literal[
    "turn.finished",
    "turn.cancelled",
    "turn.failed",
    "message.dropped",
    "appointment.fired",
    "appointment.paused",
    "agent.created",
    "agent.updated",
    "settings.applied",
    "settings.refused",
]


class EventShape(msgspec.Struct, frozen=True):
    """When an event happens, and what its `data` may hold."""

    when: str
    fields: tuple[str, ...]
    texts: tuple[str, ...] = ()
    """Fields that only a webhook with `texts = true` has."""


_OF_MESSAGE = (
    "message",
    "correlation_id",
    "connector",
    "chat",
    "thread",
    "sender",
    "occasion",
)
_OF_TURN = (
    "agent",
    *_OF_MESSAGE,
    "outcome",
    "reason",
    "trouble",
    "also",
    "model",
    "seconds",
    "input_tokens",
    "output_tokens",
    "cost_dollars",
)
_OF_APPOINTMENT = ("appointment", "shown_id", "kind", "agent", "connector", "chat")
_OF_AGENT = ("agent", "by", "asked_by", "message")
_SAID = ("asked", "said")

EVENTS: dict[EventType, EventShape] = {
    "turn.finished": EventShape(
        "An agent has answered, or chose to say nothing.", _OF_TURN, _SAID
    ),
    "turn.cancelled": EventShape(
        "Somebody stopped an answer, or a message that waited.", _OF_TURN, _SAID
    ),
    "turn.failed": EventShape(
        "There is no answer, and people were told why.", _OF_TURN, _SAID
    ),
    "message.dropped": EventShape(
        "No agent answers a message, and its writer was told so.", _OF_TURN, _SAID
    ),
    "appointment.fired": EventShape(
        "A reminder, task, cron or heartbeat was due.",
        (*_OF_APPOINTMENT, "due"),
        ("text",),
    ),
    "appointment.paused": EventShape(
        "An appointment failed so often that it is tried no more.",
        (*_OF_APPOINTMENT, "failures"),
        ("text",),
    ),
    "agent.created": EventShape(
        "An agent made another one.", _OF_AGENT, ("description",)
    ),
    "agent.updated": EventShape(
        "An agent changed one that an agent had made.", _OF_AGENT, ("description",)
    ),
    "settings.applied": EventShape(
        "Changed settings are in use.", ("applied", "waiting_for_a_restart")
    ),
    "settings.refused": EventShape(
        "Changed settings are wrong; those before them stay in use.", ("why",)
    ),
}

Value = str | int | float | bool | tuple[str, ...]


class Happened(msgspec.Struct, frozen=True):
    """An event that other programs may be told of."""

    type: EventType
    data: dict[str, Value]
    agent: str = ""
    """The agent it is about; empty: none, and every webhook is told of it."""

    texts: dict[str, str] = {}
    """Texts of people and agents: only for webhooks that are to have them."""


class Body(msgspec.Struct, frozen=True):
    """The body that is sent, as Standard Webhooks define it."""

    type: str
    timestamp: str
    data: dict[str, Value]


class Notice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One event on its way to one receiver: the body of its row."""

    event: str
    made_at: float
    """Unix seconds."""

    body: str
    """JSON text, the same at every try."""

    attempts: int = 0
    due_at: float = 0.0
    """Unix seconds of the earliest try; 0: at once."""

    why: str = ""
    """Why the last try failed."""

    traceparent: str = ""
    """Which step of which trace it tells of, in W3C's form; empty: of none."""


class Subscription(msgspec.Struct, frozen=True, kw_only=True):
    """Which events one webhook is told of."""

    name: str
    events: tuple[str, ...] = ("*",)
    agents: tuple[str, ...] = ("*",)
    has_texts: bool = False

    def wants(self, happened: Happened) -> bool:
        """Tell whether it is told of an event."""
        is_about = not happened.agent or _fits(happened.agent, self.agents)
        return is_about and _fits(happened.type, self.events)


class Announcer(msgspec.Struct, frozen=True):
    """Makes the rows of events for the webhooks that are told of them."""

    subscriptions: tuple[Subscription, ...] = ()

    def __bool__(self) -> bool:
        """Whether any webhook is told of anything."""
        return bool(self.subscriptions)

    def entries(
        self,
        happened: Iterable[Happened],
        now: float,
        new_id: Callable[[], str],
        traceparent: TraceParent | None = None,
    ) -> tuple[Entry, ...]:
        """Give the rows for events.

        Args:
            happened: the events, in order.
            now: Unix seconds.
            new_id: gives an id that grows.
            traceparent: names the trace of a message; None: messages are not traced.
        """
        if not self.subscriptions:
            return ()
        return tuple(
            _as_due(each, to, now, new_id(), traceparent)
            for each in happened
            for to in self.subscriptions
            if to.wants(each)
        )


def as_entry(
    kind: str, name: str, webhook: str, notice: Notice | None, expected: int | None
) -> Entry:
    """Make the row of a notice; without notice, the row is deleted."""
    return Entry(
        kind=kind,
        id=name,
        owner=webhook,
        part=partition(webhook),
        body=None if notice is None else msgspec.json.encode(notice),
        expected=expected,
    )


def _as_due(
    happened: Happened,
    to: Subscription,
    now: float,
    name: str,
    traceparent: TraceParent | None,
) -> Entry:
    data = dict(happened.data)
    if to.has_texts:
        data |= {key: _cut(text) for key, text in happened.texts.items()}
    at = datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds")
    body = Body(happened.type, at.replace("+00:00", "Z"), data)
    cause = happened.data.get("correlation_id")
    notice = Notice(
        event=happened.type,
        made_at=now,
        body=msgspec.json.encode(body).decode(),
        traceparent=traceparent(str(cause), "") if traceparent and cause else "",
    )
    return as_entry(DUE, name, to.name, notice, 0)


def _fits(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _cut(text: str) -> str:
    return text if len(text) <= MOST_TEXT else text[: MOST_TEXT - 1] + CUT


OF_STATE: dict[SettledState, EventType] = {
    "cancelled": "turn.cancelled",
    "dead": "turn.failed",
    "dropped": "message.dropped",
}


def of_answer(answer: Answer, agent: str, services: Services) -> tuple[Entry, ...]:
    """Give the rows for an answer; none if the message is only postponed.

    Args:
        agent: whose answer; empty: no agent's.
    """
    if not services.announcer or (what := type_of(answer)) is None:
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
    """Name the event of an answer; None: nothing yet, or a command was answered."""
    if answer.put_off is not None:
        return None
    state = answer.settled[0]
    if state != "replied":
        return OF_STATE[state]
    if [each for each in answer.deliveries if each.trouble]:
        return "turn.failed"  # people read why there is no answer
    is_turn = answer.run is not None or bool(answer.lines)
    return "turn.finished" if is_turn else None


def of_unanswered(answer: Answer, services: Services) -> tuple[Entry, ...]:
    """Give the rows for a message that no session answers.

    None for messages without any delivery: in groups, most messages are for no agent.
    """
    if not spoken(answer.deliveries):
        return ()
    return of_answer(answer, answer.inbound.agent, services)


def of_inbound(inbound: Inbound) -> dict[str, Value]:
    """Give the fields that identify a message."""
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
    name: str, it: Appointment, woken: DueOutcome, services: Services
) -> tuple[Entry, ...]:
    """Give the rows for runs of an appointment."""
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
    decided: HiringDecision, rows: StaffRows, maker: Requester, services: Services
) -> tuple[Entry, ...]:
    """Give the rows for agents that a conductor made or changed."""
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
    """Give the rows for events."""
    now = services.clock.wall()
    return services.announcer.entries(
        happened, now, services.ids.new, services.traceparent
    )


def wake_notifiers(
    find: Callable[[str], ActorRef | None], entries: Iterable[Entry]
) -> None:
    """Tell the notifiers that rows are durable."""
    found: dict[str, list[str]] = {}
    for each in entries:
        if each.kind == DUE:
            found.setdefault(each.owner, []).append(each.id)
    for webhook, ids in found.items():
        notifier = find(names.notifier(webhook))
        if notifier is not None:  # else it reads the rows when it starts
            # A notifier with a full mailbox finds them at its next sweep.
            with contextlib.suppress(MailboxFullError, *UNANSWERED):
                notifier.tell(NewNotices(tuple(ids)))


SHOWN_ID = 6
"""Characters of an id that people see; it is rarely ambiguous."""


class NewNotices(msgspec.Struct, frozen=True):
    """To a notifier: the rows with these ids are durable."""

    ids: tuple[str, ...]
