"""The desk: answers what people say to the runtime, without a model (F093 to F103).

A session hands it what begins with a `/` and is none of its own affairs. Looking
something up takes so long and no longer; then whoever asked is told so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import trio

from actors import (
    answers,
    desk_cost,
    desk_memory,
    desk_models,
    desk_pairing,
    desk_people,
    desk_queue,
    desk_reports,
    knowing,
)
from actors.carried import Carried
from actors.desk_question import SLOW, Question, Told, Unanswered
from actors.rules import commands
from actors.rules.voice import Translated
from runtime.errors import StoreError
from runtime.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from actors.desk_question import Standing
    from actors.messages import Inbound
    from actors.persona import Persona
    from actors.rules.commands import Asked
    from actors.services import Services
    from runtime.actor import Actor

    Answer = Callable[[Question], Awaitable[Told]]

LOG = EventLog("desk")

NOT_ALLOWED = {
    "owners": "/{word} is for those who run this company.",
    "admins": "/{word} is for those who run this company, and for admins here.",
    "nobody": "/{word} is switched off here.",
}


async def answer(
    asked: Asked,
    inbound: Inbound,
    standing: Standing,
    asker: tuple[Persona, Services, Actor],
) -> Told:
    """Answer one command.

    Args:
        asked: what it says.
        inbound: who gave it, and where.
        standing: what only the conversation's session knows.
        asker: whose conversation it is, what is shared, and on whose behalf others
            are asked.
    """
    persona, services, actor = asker
    if is_for_others(asked, inbound, persona):
        return Told("")
    person = await knowing.person_of(actor, services, inbound)
    question = Question(
        word=asked.word,
        rest=asked.rest,
        inbound=inbound,
        standing=standing,
        person=person,
        say=services.speak(person),
        persona=persona,
        services=services,
        actor=actor,
    )
    found = DESKS.get(asked.word)
    if found is None:
        services.metrics.command("unknown", "unknown")
        return Told(unknown(question))
    settings = services.commands
    who, in_groups = settings.who, settings.who_in_groups
    if not commands.may_use(asked.word, inbound, services.approvers, (who, in_groups)):
        services.metrics.command(asked.word, "refused")
        return Told(refusal(question))
    return await looked_up(found, question)


def as_answer(told: Told, inbound: Inbound) -> answers.Answer:
    """Answer with what the desk told; nothing is said where that is empty."""
    if not told.text:
        return answers.Answer(inbound=inbound, settled=("dropped", "other_bot"))
    answer = answers.notice(inbound, Translated(told.text), ("replied", "command"))
    if not told.policy:
        return answer
    return msgspec.structs.replace(answer, carried=Carried(policy=told.policy))


async def looked_up(found: Answer, question: Question) -> Told:
    """Answer within the time there is for it."""
    services = question.services
    told = Told(question.say(SLOW))
    outcome = "slow"
    with trio.move_on_after(services.commands.answer_within):
        try:
            told, outcome = await found(question), "ok"
        except Unanswered:
            pass
        except (StoreError, msgspec.DecodeError) as error:
            LOG.warning("command not answered", word=question.word, why=str(error))
    services.metrics.command(question.word, outcome)
    return told


def is_for_others(asked: Asked, inbound: Inbound, persona: Persona) -> bool:
    """Whether a command of a group is for a bot that is none of ours."""
    name = asked.agent.casefold()
    return bool(name) and not inbound.is_direct and name not in persona.everybody


def unknown(question: Question) -> str:
    """Say that there is no such command, and which it may have been."""
    say, word = question.say, question.word
    skills = map(commands.as_command, question.persona.skills)
    close = commands.near(word, [*commands.COMMANDS, *skills])
    if word in ("approve", "deny"):
        text = say("Say which one: /{word} and the letters that stand in the question.")
        return text.format(word=word)
    lines = [say("There is no command /{word}.").format(word=word)]
    if close:
        listed = ", ".join(f"/{each}" for each in close)
        lines.append(say("Did you mean {names}?").format(names=listed))
    return " ".join([*lines, say("/help lists all commands.")])


def refusal(question: Question) -> str:
    """Say why somebody may not use a command."""
    who = commands.who_may(
        question.word,
        question.inbound,
        (question.services.commands.who, question.services.commands.who_in_groups),
    )
    return question.say(NOT_ALLOWED[who]).format(word=question.word)


async def help_(question: Question) -> Told:
    """List the commands that whoever asks may use."""
    say, services = question.say, question.services
    chosen = services.commands.who, services.commands.who_in_groups
    lines: list[str] = []
    for word, spec in commands.COMMANDS.items():
        if commands.may_use(word, question.inbound, services.approvers, chosen):
            arguments = f" {spec.arguments}" if spec.arguments else ""
            lines.append(f"/{word}{arguments} - {say(spec.meaning)}")
    skills = [f"/{commands.as_command(each)}" for each in question.persona.skills]
    if skills:
        lines.append(say("My skills: {skills}").format(skills=", ".join(skills)))
    return Told("\n".join(lines))


async def new(question: Question) -> Told:
    """Begin a new conversation (F097)."""
    return Told(question.say("A new conversation begins."), reset="new")


async def clear(question: Question) -> Told:
    """Clear the conversation, after what matters was noted down (F101)."""
    return Told(question.say("This conversation is cleared."), reset="clear")


DESKS: dict[str, Answer] = {
    "clear": clear,
    "cost": desk_cost.cost,
    "forget": desk_memory.forget,
    "help": help_,
    "language": desk_people.language,
    "link": desk_people.link,
    "memory": desk_memory.memory,
    "model": desk_models.model,
    "models": desk_models.models,
    "new": new,
    "pair": desk_pairing.pair,
    "queue": desk_queue.queue,
    "skills": desk_reports.skills,
    "start": desk_people.start,
    "status": desk_reports.status,
    "tasks": desk_reports.tasks,
    "unlink": desk_people.unlink,
    "who": desk_reports.who,
    "whoami": desk_people.whoami,
}
"""Who answers what. `/stop`, `/approve` and `/deny` are the session's own affair."""
