"""Asks hooks about an answer before it is stored, and tells them of finished turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors import names
from actors.hooks.asker import ask_all
from actors.hooks.book import (
    AskHooks,
    FinishedTurn,
    HooksAnswered,
    TellHook,
    about,
    patience,
)
from actors.hooks.chain import MOST_SENT, unasked
from actors.journal import answers
from actors.journal import splitting as parts
from actors.journal.outbox import silent_result, spoken
from actors.rules.markers.sanitizer import clean
from runtime.actor.messages import Keyed
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from actors.hooks.chain import HooksOutcome, HookSpec
    from actors.journal.answers import Answer
    from actors.messages.deliveries import Delivery
    from actors.messages.inbound import Inbound, TranscriptLine
    from actors.services import Services
    from runtime.actor.actor import Actor

LOG = EventLog("session")

WITHHELD = "[This answer was held back before anybody read it]"
"""What the model reads later in place of an answer that was held back."""


def ask(answer: Answer, agent: str, session: Actor, services: Services) -> str:
    """Have hooks asked about an answer.

    Args:
        answer: about to be stored.
        agent: the agent that answers.
        session: told the result.
        services: the hooks.

    Returns:
        The key of the coming `HooksAnswered`; empty: there are no hooks to ask.
    """
    inbound = answer.inbound
    hooks = services.hooks.sending(inbound.address.connector, agent)
    if not (hooks and answer.words.strip()):
        return ""
    key = services.ids.new()
    lost = HooksAnswered(key, unasked(hooks, answer.words))
    asked = AskHooks(
        key=key,
        event="message_sending",
        hooks=hooks,
        about=about(inbound, agent),
        text=answer.words,
        most=MOST_SENT,
        back=session.actor_urn,
    )
    if session.tell(names.HOOK_QUESTIONS, Keyed(key, asked)):
        session.after(patience(hooks), lost)
    else:
        session.note(lost)
    return key


def worded(answer: Answer, passed: HooksOutcome, services: Services) -> Answer:
    """Apply the hooks' result to an answer; no hook is asked about it again.

    Args:
        answer: to one message, or several.
        passed: the result.
        services: what the platform takes, and counts.
    """
    # No hook was asked about the thought. It may hold what one takes out of the text.
    spoken = tuple(
        msgspec.structs.replace(each, thought="", actions=())
        for each in answer.deliveries
    )
    answer = msgspec.structs.replace(answer, deliveries=spoken)
    answer_as_is = msgspec.structs.replace(answer, words="")
    if not (passed.cancelled_by or passed.changed_by):
        return answer_as_is
    inbound = answer.inbound
    is_held_back = bool(passed.cancelled_by)
    outcome = "hook_withheld" if is_held_back else "hook_reworded"
    services.metrics.messages.add(1, inbound.address.connector, outcome)
    LOG.info(
        "answer held back by a hook" if is_held_back else "answer changed by a hook",
        correlation_id=inbound.correlation_id,
        hook=passed.cancelled_by or ", ".join(passed.changed_by),
        why=passed.reason,
    )
    text = "" if is_held_back else clean(passed.text)
    return msgspec.structs.replace(
        answer_as_is,
        deliveries=reworded(answer, text, services),
        lines=tuple(_line(each, answer.words, text) for each in answer.lines),
        settled=("replied", "withheld") if is_held_back else answer.settled,
        resume="",  # a model that keeps the conversation itself has the old text
    )


def reworded(answer: Answer, text: str, services: Services) -> tuple[Delivery, ...]:
    """Replace an answer's text; without text, only tell that no answer comes.

    Args:
        answer: as it was.
        text: the new text; blank: none, and no file is sent. Notices are sent all the
            same: they tell what was done.
        services: what the platform takes.
    """
    files = [each for each in answer.deliveries if each.file is not None]
    own = [each for each in answer.deliveries if each.agent and not each.file]
    silences = [each for each in answer.deliveries if each.kind == "silence"]
    notices = [each for each in answer.deliveries if each.kind == "notice"]
    first = msgspec.structs.replace((own or files)[0], file=None)
    connector = first.address.connector
    can = services.account(connector).abilities
    said = [
        msgspec.structs.replace(first, text=part)
        for part in parts.for_platform(text, can)
    ]
    said += notices
    words = len(said)
    said += files if text.strip() else []
    if not said:
        said = [msgspec.structs.replace(first, text="", kind="silence")]
    before = len(own) + len(notices) + len(files)
    head = next(each for each in answer.deliveries if each.kind != "silence")
    announced = head.answers_left - (before - 1) + len(said) - 1
    told = [
        msgspec.structs.replace(
            each,
            id=f"{first.reply_id}:{number}",
            part=number,
            parts=len(said) if each.file is not None else max(words, 1),
            answers_left=0 if number else announced,
            usage=None if number else head.usage,
        )
        for number, each in enumerate(said)
    ]
    return (*told, *silences)


def _line(line: TranscriptLine, words: str, text: str) -> TranscriptLine:
    """Let the history hold the text that is sent."""
    if line.role != "assistant" or words not in line.text:
        return line
    instead = text if text.strip() else WITHHELD
    return msgspec.structs.replace(line, text=line.text.replace(words, instead, 1))


def tell_finished(actor: Actor, answer: Answer, agent: str, services: Services) -> None:
    """Tell hooks that a turn is finished and stored.

    Args:
        actor: tells.
        answer: the stored answer.
        agent: whose turn it was.
        services: the hooks.
    """
    run = answer.run
    hooks = services.hooks.finished(answer.inbound.address.connector, agent)
    if run is None or not hooks:
        return
    state, reason = answer.settled
    said = spoken(x for x in answer.deliveries if x.agent)
    ended = FinishedTurn(
        state=state,
        reason=reason,
        seconds=run.seconds,
        rounds=run.rounds,
        input_tokens=run.usage.input_tokens,
        output_tokens=run.usage.output_tokens,
        cost=run.cost,
        model=run.model,
    )
    told = TellHook(about=about(answer.inbound, agent), text=said, ended=ended)
    for hook in hooks:
        actor.tell(names.hook(hook.name), told)


async def intercepted(
    inbound: Inbound,
    agent: str,
    hooks: tuple[HookSpec, ...],
    session: Actor,
    services: Services,
) -> Answer | None:
    """Ask hooks whether one of them answers a message.

    Args:
        inbound: a message that an agent is about to be asked.
        agent: which agent.
        hooks: the hooks to ask.
        session: asks; it handles nothing else meanwhile.
        services: counts.

    Returns:
        The answer that settles the message; None: no hook answers it.
    """
    asked = AskHooks(
        key=inbound.id,
        event="message_heard",
        hooks=hooks,
        about=about(inbound, agent),
        text=inbound.text,
        most=MOST_SENT,
        back=session.actor_urn,
    )
    passed = await ask_all(session, asked)
    if not passed.consumed_by:
        return None
    services.metrics.messages.add(1, inbound.address.connector, "hook_consumed")
    LOG.info(
        "message consumed by a hook",
        correlation_id=inbound.correlation_id,
        hook=passed.consumed_by,
    )
    answer = answers.notice(inbound, clean(passed.text), ("replied", "consumed"))
    if answer.deliveries[0].text.strip():
        return answer
    return msgspec.structs.replace(answer, deliveries=(silent_result(inbound),))
