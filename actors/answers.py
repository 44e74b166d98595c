"""What a session says about one message, and the one commit that makes it so.

Pure: builds values, stores nothing. An answer settles its message, appends its
lines to the journal, and puts what is to be said, and what is handed on, into the
same transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.ledger import Run
from actors.messages import Chain, Delivery, Inbound, Line, Trouble
from actors.rules import loop_guard, markers, message_state, parts, priority
from runtime.rows import SettledState

if TYPE_CHECKING:
    from actors.persona import Persona
    from actors.protocol import Failed, Finished
    from actors.services import Services
    from runtime.ids import IdSource

FAILED = "[Task failed]"
TIMED_OUT = "[Task timed out]"
STOPPED = "[Task stopped]"
"""What the model reads later of a turn that failed (F120), or was stopped: the next
words are a new question then, and not the rest of that one."""

CUT = "\n\n(cut: the answer was longer than {most} characters)"


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """All that comes of one message."""

    inbound: Inbound
    settled: tuple[SettledState, str]
    """Its terminal state, and why; with `put_off` only why."""

    put_off: message_state.PutOff | None = None
    """Set if this is no answer yet: the turn will be begun again."""

    lines: tuple[Line, ...] = ()
    """For the history."""

    run: Run | None = None
    """The turn behind it."""

    resume: str = ""
    """By which the model may go on later."""

    deliveries: tuple[Delivery, ...] = ()
    handed: tuple[Inbound, ...] = ()
    """Messages for other agents."""


class Aside(msgspec.Struct, frozen=True, kw_only=True):
    """Something said about one message beside its answer."""

    inbound: Inbound
    delivery: Delivery


def aside(inbound: Inbound, key: str, text: str) -> Aside:
    """Say something in the course of an answer, in the runtime's own words.

    Args:
        inbound: the message that is being answered.
        key: what is said twice under one key is said once.
        text: for the people in its chat.
    """
    said = msgspec.structs.replace(
        _delivery(inbound, "", text),
        id=f"{inbound.id}:aside:{key}",
        is_aside=True,
        is_root=False,
        answers_left=1,  # it takes the place of none
    )
    return Aside(inbound=inbound, delivery=said)


def notice(
    inbound: Inbound,
    text: str,
    settled: tuple[SettledState, str],
    trouble: Trouble = "",
) -> Answer:
    """Answer with the runtime's own words; the history does not change."""
    said = _delivery(inbound, "", text, trouble=trouble)
    return Answer(inbound=inbound, settled=settled, deliveries=(said,))


def apology(inbound: Inbound, text: str, reason: str, ids: IdSource) -> Answer:
    """Give a message up, in the runtime's own words.

    Its delivery has an id of its own each time: a message that is tried again by hand
    has its usual ids left for its answer.
    """
    answer = notice(inbound, text, ("dead", reason), "broken")
    return with_new_ids(answer, ids)


def with_new_ids(answer: Answer, ids: IdSource) -> Answer:
    """Give an answer whose deliveries take nobody else's ids."""
    said = tuple(
        msgspec.structs.replace(each, id=f"{each.id}:{ids.new()}")
        for each in answer.deliveries
    )
    return msgspec.structs.replace(answer, deliveries=said)


def cancelled(inbound: Inbound, asked: tuple[Line, ...]) -> Answer:
    """Remember that a message was stopped, and tell whoever waits for it."""
    return Answer(
        inbound=inbound,
        settled=("cancelled", "stopped"),
        lines=(*asked, Line("assistant", STOPPED)),
        deliveries=(_delivery(inbound, "", "(stopped)"),),
    )


def failure(
    inbound: Inbound,
    asked: tuple[Line, ...],
    failed: Failed,
    settled: tuple[SettledState, str],
    run: Run | None = None,
) -> Answer:
    """Tell that there is no answer, and remember that there was none."""
    mark = TIMED_OUT if failed.reason == "timeout" else FAILED
    return Answer(
        inbound=inbound,
        settled=settled,
        lines=(*asked, Line("assistant", mark)),
        deliveries=(_delivery(inbound, "", failed.text, trouble=failed.trouble),),
        run=run,
    )


def deferral(
    inbound: Inbound,
    failed: Failed,
    put_off: message_state.PutOff,
    now: float,
    run: Run | None = None,
) -> Answer:
    """Tell that it will be tried again; that is said once, after the first failure."""
    text = (
        f"{failed.text}\n\nI will try again in {in_words(put_off.due_at - now)};"
        " /stop ends that."
    )
    said = _delivery(inbound, "", text, trouble="waiting")
    said = msgspec.structs.replace(
        said,
        id=f"{inbound.id}:waiting",
        is_root=False,
        answers_left=1,  # it takes the place of none
    )
    return Answer(
        inbound=inbound,
        settled=("replied", failed.reason),
        put_off=put_off,
        deliveries=(said,) if put_off.is_first else (),
        run=run,
    )


def in_words(seconds: float) -> str:
    """Say roughly how long something takes: `40 seconds`, `2 minutes`."""
    for unit, length in (("hour", 3600.0), ("minute", 60.0), ("second", 1.0)):
        count = round(seconds / length)
        if seconds >= length or unit == "second":
            count = max(1, count)
            return f"{count} {unit}{'' if count == 1 else 's'}"
    raise AssertionError("unreachable: a second is the last unit")


def reply(
    inbound: Inbound,
    asked: tuple[Line, ...],
    finished: Finished,
    persona: Persona,
    services: Services,
    run: Run | None = None,
) -> Answer:
    """Take a model's text apart: words for people, work for other agents."""
    parsed = markers.parse(finished.text, "assistant")
    wanted = (*finished.delegations, *parsed.delegations)
    handed, refusals = _hand_on_all(inbound, wanted, persona, services)
    notices = [parsed.notice, *refusals] if parsed.notice else refusals
    text = _words(parsed.visible, handed, services.limits.max_reply_chars)
    # A platform takes no empty message; where only a notice is left, it is the answer.
    most = services.account(inbound.address.connector).abilities.max_part_chars
    said = [(persona.name, part) for part in parts.split(text, most)]
    said += [("", line) for line in notices]
    deliveries = [
        msgspec.structs.replace(
            _delivery(inbound, agent, words, number=number), answers_left=0
        )
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
        run=run,
        resume=finished.resume,
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
            handed_on = _hand_on(inbound, delegation.task, chain, number, services)
            rank = priority.of_delegation(
                inbound.priority, is_by_conductor=persona.config.is_conductor
            )
            handed.append(msgspec.structs.replace(handed_on, priority=rank))
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


def _hand_on(
    inbound: Inbound,
    task: str,
    chain: Chain,
    number: int,
    services: Services,
) -> Inbound:
    """Make the message that the other agent hears; its reply address is the same."""
    source, target = chain.agents[-2:]
    return msgspec.structs.replace(
        inbound,
        id=services.ids.new(),
        # Why not the new id: handed on again after a crash, it is still the same.
        platform_id=f"{inbound.id}>{number}",
        sender_name=source,
        text=task,
        received_at=services.clock.wall(),
        agent=target,
        attachments=(),
        history=(),
        chain=chain,
        others=0,
        copy_of=0,
    )


def _words(visible: str, handed: list[Inbound], most: int) -> str:
    """What people read; an agent that only hands work on says so."""
    text = visible
    if not text.strip() and handed:
        text = "\n".join(f"@{each.agent} {each.text}" for each in handed)
    return text if len(text) <= most else text[:most] + CUT.format(most=most)


def _delivery(
    inbound: Inbound, agent: str, text: str, *, number: int = 0, trouble: Trouble = ""
) -> Delivery:
    return Delivery(
        id=f"{inbound.id}:{number}",
        reply_id=inbound.id,
        part=number,
        correlation_id=inbound.correlation_id,
        address=inbound.address,
        agent=agent,
        text=text,
        is_root=not inbound.chain.agents and inbound.id == inbound.correlation_id,
        reply_to=inbound.platform_id if not inbound.chain.agents else "",
        kind="reply" if agent else "notice",
        trouble=trouble,
        answers_left=inbound.others,
    )
