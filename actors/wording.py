"""What hooks make of an answer before it is stored; and who is told when it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors import answers, names
from actors.delivering import silent, spoken
from actors.hook_asker import ask_all
from actors.hooking import AskHooks, Ended, HooksSaid, TellHook, about, patience
from actors.rules import parts
from actors.rules.hooking import MOST_SENT, unasked
from actors.rules.sanitizer import clean
from runtime.logs import EventLog
from runtime.messages import Keyed

if TYPE_CHECKING:
    from actors.answers import Answer
    from actors.deliveries import Delivery
    from actors.messages import Inbound, Line
    from actors.rules.hooking import HookSpec, Passed
    from actors.services import Services
    from runtime.actor import Actor

LOG = EventLog("session")

WITHHELD = "[This answer was held back before anybody read it]"
"""What the model reads later in the place of its answer."""


def ask(answer: Answer, agent: str, session: Actor, services: Services) -> str:
    """Have hooks asked about an answer.

    Args:
        answer: about to be stored.
        agent: who says it.
        session: is told.
        services: who the hooks are.

    Returns:
        The key of what will be told; empty: there is nobody to ask.
    """
    inbound = answer.inbound
    hooks = services.hooks.sending(inbound.address.connector, agent)
    if not (hooks and answer.words.strip()):
        return ""
    key = services.ids.new()
    lost = HooksSaid(key, unasked(hooks, answer.words))
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


def worded(answer: Answer, passed: Passed, services: Services) -> Answer:
    """Give an answer as hooks leave it: no hook is asked about it again.

    Args:
        answer: to one message, or several.
        passed: what came of asking.
        services: what the platform takes, and counts.
    """
    answer_as_is = msgspec.structs.replace(answer, words="")
    if not (passed.cancelled_by or passed.changed_by):
        return answer_as_is
    inbound = answer.inbound
    is_held_back = bool(passed.cancelled_by)
    outcome = "hook_withheld" if is_held_back else "hook_reworded"
    services.metrics.message(inbound.address.connector, outcome)
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
        resume="",  # a model that keeps the conversation itself knows other words
    )


def reworded(answer: Answer, text: str, services: Services) -> tuple[Delivery, ...]:
    """Say other words in an answer's place; with none, only that none come.

    Args:
        answer: as it was.
        text: what is said instead; blank: nothing, and no file goes out. Notices are
            said all the same: they tell what was done.
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


def _line(line: Line, words: str, text: str) -> Line:
    """Let the history tell what was said, and not what was to be said."""
    if line.role != "assistant" or words not in line.text:
        return line
    instead = text if text.strip() else WITHHELD
    return msgspec.structs.replace(line, text=line.text.replace(words, instead, 1))


def tell_finished(actor: Actor, answer: Answer, agent: str, services: Services) -> None:
    """Tell hooks that a turn is finished, and stored.

    Args:
        actor: on whose behalf.
        answer: what came of it.
        agent: whose turn it was.
        services: who the hooks are.
    """
    run = answer.run
    hooks = services.hooks.finished(answer.inbound.address.connector, agent)
    if run is None or not hooks:
        return
    state, reason = answer.settled
    said = spoken(x for x in answer.deliveries if x.agent)
    ended = Ended(
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
    """Ask hooks whether a message is for them.

    Args:
        inbound: an agent is about to be asked.
        agent: which one.
        hooks: whom to ask.
        session: on whose behalf; it handles nothing else meanwhile.
        services: counts.

    Returns:
        What settles the message; None: no hook has it for itself.
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
    services.metrics.message(inbound.address.connector, "hook_consumed")
    LOG.info(
        "message consumed by a hook",
        correlation_id=inbound.correlation_id,
        hook=passed.consumed_by,
    )
    answer = answers.notice(inbound, clean(passed.text), ("replied", "consumed"))
    if answer.deliveries[0].text.strip():
        return answer
    return msgspec.structs.replace(answer, deliveries=(silent(inbound),))
