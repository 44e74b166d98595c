"""Answers slash commands without a model: finds the command, checks who may use it.

A session hands over each command that it does not carry out itself. An answer that
takes longer than `ANSWER_WITHIN` is replaced by a notice.
"""

from __future__ import annotations

import msgspec
import trio

from actors.agents.persona import Persona
from actors.commands import registry
from actors.commands.context import (
    ANSWER_WITHIN,
    SLOW,
    CommandReply,
    CommandRequest,
    ConversationStatus,
    Unanswered,
)
from actors.commands.registry import Answer
from actors.journal import answers
from actors.journal.plan import Carried
from actors.messages import commands
from actors.messages.commands import OtherCommand
from actors.messages.inbound import Inbound
from actors.people import lookup as knowing
from actors.rules.text.translations import Translated
from actors.services import Services
from runtime.actor.actor import Actor
from runtime.errors import StoreError
from runtime.telemetry.logs import EventLog

LOG = EventLog("desk")

NOT_ALLOWED = {
    "owners": "/{word} is for those who run this company.",
    "admins": "/{word} is for those who run this company, and for admins here.",
    "nobody": "/{word} is switched off here.",
}


async def answer(
    asked: OtherCommand,
    inbound: Inbound,
    standing: ConversationStatus,
    asker: tuple[Persona, Services, Actor],
) -> CommandReply:
    """Answer one command.

    Args:
        standing: what only the conversation's session knows.
        asker: whose conversation it is, what is shared, and on whose behalf others
            are asked.
    """
    persona, services, actor = asker
    if is_for_others(asked, inbound, persona):
        return CommandReply("")
    person = await knowing.person_of(actor, services, inbound)
    question = CommandRequest(
        word=asked.word,
        rest=asked.rest,
        inbound=inbound,
        standing=standing,
        person=person,
        say=services.say(inbound),
        persona=persona,
        services=services,
        actor=actor,
    )
    found = registry.COMMANDS.get(asked.word)
    if found is None or found.answer is None:
        services.metrics.commands.add(1, "unknown", "unknown")
        return CommandReply(unknown(question))
    settings = services.commands
    who, in_groups = settings.who, settings.who_in_groups
    if not registry.may_use(asked.word, inbound, services.approvers, (who, in_groups)):
        services.metrics.commands.add(1, asked.word, "refused")
        return CommandReply(refusal(question))
    return await looked_up(found.answer, question)


def as_answer(told: CommandReply, inbound: Inbound) -> answers.Answer:
    """Answer with what the desk told; nothing is said where that is empty."""
    if not told.text:
        return answers.Answer(inbound=inbound, settled=("dropped", "other_bot"))
    answer = answers.notice(inbound, Translated(told.text), ("replied", "command"))
    if not told.policy:
        return answer
    return msgspec.structs.replace(answer, carried=Carried(policy=told.policy))


async def looked_up(found: Answer, question: CommandRequest) -> CommandReply:
    """Answer within the time there is for it."""
    services = question.services
    told = CommandReply(question.say(SLOW))
    outcome = "slow"
    with trio.move_on_after(ANSWER_WITHIN):
        try:
            told, outcome = await found(question), "ok"
        except Unanswered:
            pass
        except (StoreError, msgspec.DecodeError) as error:
            LOG.warning("command not answered", word=question.word, why=str(error))
    services.metrics.commands.add(1, question.word, outcome)
    return told


def is_for_others(asked: OtherCommand, inbound: Inbound, persona: Persona) -> bool:
    """Whether a command of a group is for a bot that is none of ours."""
    name = asked.agent.casefold()
    return bool(name) and not inbound.is_direct and name not in persona.everybody


def unknown(question: CommandRequest) -> str:
    """Say that there is no such command, and which it may have been."""
    say, word = question.say, question.word
    skills = map(commands.as_command, question.persona.skills)
    close = commands.near(word, [*registry.COMMANDS, *skills])
    if word in ("approve", "deny"):
        text = say("Say which one: /{word} and the letters that stand in the question.")
        return text.format(word=word)
    lines = [say("There is no command /{word}.").format(word=word)]
    if close:
        listed = ", ".join(f"/{each}" for each in close)
        lines.append(say("Did you mean {names}?").format(names=listed))
    return " ".join([*lines, say("/help lists all commands.")])


def refusal(question: CommandRequest) -> str:
    """Say why somebody may not use a command."""
    who = registry.who_may(
        question.word,
        question.inbound,
        (question.services.commands.who, question.services.commands.who_in_groups),
    )
    return question.say(NOT_ALLOWED[who]).format(word=question.word)
