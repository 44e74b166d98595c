"""What a session says about one message, and the one commit that makes it so.

Pure: builds values, stores nothing. An answer settles its message, appends its
lines to the journal, and puts what is to be said, and what is handed on, into the
same transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.messages import Chain, Delivery, Inbound, Line
from actors.rules import loop_guard, markers
from actors.rules.keys import partition
from runtime.store import (
    Accept,
    Append,
    Commit,
    Enqueue,
    NewEvent,
    Settle,
    SettledState,
)

if TYPE_CHECKING:
    from actors.persona import Persona
    from actors.protocol import Failed, Finished
    from actors.services import Services

FAILED = "[Task failed]"
TIMED_OUT = "[Task timed out]"
STOPPED = "[Task stopped]"
"""What the model reads later of a turn that failed (F120), or was stopped: the next
words are a new question then, and not the rest of that one."""

CUT = "\n\n(cut: the answer was longer than {most} characters)"


class Exchanged(msgspec.Struct, frozen=True):
    """One event of a session's journal: what was asked and what was answered."""

    inbound_id: str
    lines: tuple[Line, ...]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """All that comes of one message."""

    inbound: Inbound
    settled: tuple[SettledState, str]
    """Its terminal state, and why."""

    lines: tuple[Line, ...] = ()
    """For the history."""

    deliveries: tuple[Delivery, ...] = ()
    handed: tuple[Inbound, ...] = ()
    """Messages for other agents."""


def notice(inbound: Inbound, text: str, settled: tuple[SettledState, str]) -> Answer:
    """Answer with the runtime's own words; the history does not change."""
    said = _delivery(inbound, "", text, number=0)
    return Answer(inbound=inbound, settled=settled, deliveries=(said,))


def cancelled(inbound: Inbound, asked: tuple[Line, ...]) -> Answer:
    """Remember that a message was stopped, and tell whoever waits for it."""
    said = _delivery(inbound, "", "(stopped)", number=0)
    return Answer(
        inbound=inbound,
        settled=("cancelled", "stopped"),
        lines=(*asked, Line("assistant", STOPPED)),
        deliveries=(said,),
    )


def failure(inbound: Inbound, asked: tuple[Line, ...], failed: Failed) -> Answer:
    """Tell that there is no answer, and remember that there was none."""
    mark = TIMED_OUT if failed.reason == "timeout" else FAILED
    return Answer(
        inbound=inbound,
        settled=("replied", failed.reason),
        lines=(*asked, Line("assistant", mark)),
        deliveries=(_delivery(inbound, "", failed.text, number=0),),
    )


def reply(
    inbound: Inbound,
    asked: tuple[Line, ...],
    finished: Finished,
    persona: Persona,
    services: Services,
) -> Answer:
    """Take a model's text apart: words for people, work for other agents."""
    parsed = markers.parse(finished.text, "assistant")
    wanted = (*finished.delegations, *parsed.delegations)
    handed, refusals = _hand_on_all(inbound, wanted, persona, services)
    notices = [parsed.notice, *refusals] if parsed.notice else refusals
    text = _words(parsed.visible, handed, services.limits.max_reply_chars)
    # A platform takes no empty message; where only a notice is left, it is the answer.
    said = [(persona.name, text)] if text.strip() else []
    said += [("", line) for line in notices]
    deliveries = [
        _delivery(inbound, agent, words, number=number, others=False)
        for number, (agent, words) in enumerate(said)
    ]
    announced = len(handed) + len(deliveries) - 1 + inbound.others
    deliveries[0] = msgspec.structs.replace(deliveries[0], answers_left=announced)
    heard = text if text.strip() else "\n".join(notices)
    return Answer(
        inbound=inbound,
        settled=("replied", "ok"),
        lines=(*asked, Line("assistant", heard, name=persona.name)),
        deliveries=tuple(deliveries),
        handed=tuple(handed),
    )


def _hand_on_all(
    inbound: Inbound,
    wanted: tuple[markers.Delegation, ...],
    persona: Persona,
    services: Services,
) -> tuple[list[Inbound], list[str]]:
    """Give the messages for other agents, and why some were not written."""
    is_own = not inbound.chain.agents
    left = services.limits.max_delegations if is_own else inbound.chain.left
    granted, each = loop_guard.share(left, len(wanted))
    handed: list[Inbound] = []
    refusals: list[str] = []
    for number, delegation in enumerate(wanted[:granted]):
        verdict = may_hand_on(inbound, delegation, persona, services)
        if isinstance(verdict, loop_guard.Refused):
            services.metrics.delegation(persona.name, verdict.reason)
            refusals.append(verdict.text)
        else:
            services.metrics.delegation(persona.name, "ok")
            chain = msgspec.structs.replace(verdict.chain, left=each)
            handed.append(
                _hand_on(inbound, delegation.task, chain, f">{number}", services)
            )
    if granted < len(wanted):
        services.metrics.delegation(persona.name, "max_delegations")
        most = services.limits.max_delegations
        refusals.append(
            f"Delegation stopped: one message may cause {most} delegations."
        )
    return handed, refusals


def may_hand_on(
    inbound: Inbound,
    delegation: markers.Delegation,
    persona: Persona,
    services: Services,
) -> loop_guard.Allowed | loop_guard.Refused:
    """Ask the loop guard about one delegation of this agent."""
    limits = persona.delegation_limits(services.limits.max_hops)
    now = services.clock.wall()
    return loop_guard.may_delegate(
        inbound.chain, persona.name, delegation.agent, limits, now
    )


def as_commit(answer: Answer, stream: str, version: int, now: float) -> Commit:
    """Write an answer down as one transaction.

    Args:
        answer: what is to be stored.
        stream: the session's journal stream.
        version: number of its last event.
        now: Unix seconds.
    """
    part = partition(stream)
    event = Exchanged(answer.inbound.id, answer.lines)
    journal = Append(
        stream=stream,
        expected=version,
        part=part,
        events=(NewEvent("exchanged", msgspec.json.encode(event)),),
    )
    return Commit(
        at=now,
        accepts=tuple(as_accept(each, now) for each in answer.handed),
        appends=(journal,) if answer.lines else (),
        deliveries=tuple(as_enqueue(each, part) for each in answer.deliveries),
        settles=(Settle(answer.inbound.id, *answer.settled),),
    )


def as_accept(inbound: Inbound, now: float) -> Accept:
    """Write a message down as its inbox row."""
    address = inbound.address
    stream = f"{address.connector}/{address.chat}"
    return Accept(
        id=inbound.id,
        connector=address.connector,
        platform_id=inbound.platform_id,
        part=partition(stream),
        stream=stream,
        body=msgspec.json.encode(inbound),
        at=now,
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


def _hand_on(
    inbound: Inbound,
    task: str,
    chain: Chain,
    suffix: str,
    services: Services,
) -> Inbound:
    """Make the message that the other agent hears; its reply address is the same."""
    source, target = chain.agents[-2:]
    return msgspec.structs.replace(
        inbound,
        id=services.ids.new(),
        # Why not the new id: handed on again after a crash, it is still the same.
        platform_id=inbound.id + suffix,
        sender_name=source,
        text=task,
        received_at=services.clock.wall(),
        agent=target,
        attachments=(),
        history=(),
        chain=chain,
        others=0,
    )


def _words(visible: str, handed: list[Inbound], most: int) -> str:
    """What people read; an agent that only hands work on says so."""
    text = visible
    if not text.strip() and handed:
        text = "\n".join(f"@{each.agent} {each.text}" for each in handed)
    return text if len(text) <= most else text[:most] + CUT.format(most=most)


def _delivery(
    inbound: Inbound, agent: str, text: str, *, number: int, others: bool = True
) -> Delivery:
    return Delivery(
        id=f"{inbound.id}:{number}",
        correlation_id=inbound.correlation_id,
        address=inbound.address,
        agent=agent,
        text=text,
        is_root=not inbound.chain.agents and inbound.id == inbound.correlation_id,
        reply_to=inbound.platform_id if not inbound.chain.agents else "",
        kind="reply" if agent else "notice",
        answers_left=inbound.others if others else 0,
    )
