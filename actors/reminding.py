"""What a turn is reminded of before its model is asked: facts, and who is speaking."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors import knowing, names, noting
from actors.errors import ChatError
from actors.jotting import project_text
from actors.remembering import Recall, Recalled, WereOfUse
from actors.rules import scopes
from actors.rules.briefing import Entry, Memories
from actors.rules.gates import speaks_of
from actors.schedule_shown import listed
from runtime.errors import KernelError, StoreError
from runtime.logs import EventLog
from runtime.ref import UNANSWERED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import tzinfo

    from actors.messages import Inbound
    from actors.persona import Persona
    from actors.remembering import Fact
    from actors.rules.identity import Person
    from actors.services import Services
    from runtime.actor import Actor
    from runtime.store import Entries

    Kept = tuple[Entries, Callable[[str], tzinfo | None]]

LOG = EventLog("memory")

# Chosen: a recall keeps its own time; this is for a memory that is gone.
GRACE = 0.5
"""Seconds that an answer may come late."""


async def remind(
    inbound: Inbound, persona: Persona, services: Services, turn: Actor
) -> Memories:
    """Ask memory what goes with a message; in doubt, nothing does.

    Args:
        inbound: what is answered.
        persona: who answers.
        services: what is shared.
        turn: on whose behalf memory is asked.
    """
    person = await knowing.person_of(turn, services, inbound)
    recalled = await _recall(inbound, person, (persona, services, turn))
    if recalled.relevant:
        turn.tell(names.memory(persona.name), WereOfUse(recalled.relevant))
    return memories_of(
        inbound,
        person,
        recalled,
        project=await project_text(recalled.states, services.notebook),
        tasks=await _tasks(inbound, person, persona, services),
    )


def memories_of(
    inbound: Inbound,
    person: Person,
    recalled: Recalled,
    *,
    project: str,
    tasks: tuple[Entry, ...],
) -> Memories:
    """Put together what a prompt is told of memory.

    Args:
        inbound: what is answered.
        person: who wrote it.
        recalled: what the agent knows that goes with it.
        project: what the operator wrote of the active project.
        tasks: what is to come, if the words are about such things.
    """
    return Memories(
        sticky=entries(recalled.sticky),
        relevant=entries(recalled.relevant),
        states=entries(recalled.states),
        profile=(*_wishes(person, inbound), *entries(recalled.profile)),
        lessons=entries(recalled.lessons),
        outcomes=entries(recalled.outcomes),
        summaries=tuple(fact.text for fact in reversed(recalled.summaries)),
        logs=tuple(fact.text for fact in recalled.logs),
        project=project,
        tasks=tasks,
        language=person.language if person.is_language_chosen else "",
    )


async def _recall(
    inbound: Inbound, person: Person, asker: tuple[Persona, Services, Actor]
) -> Recalled:
    persona, services, turn = asker
    kit, memory = services.memory, turn.find(names.memory(persona.name))
    if kit is None or memory is None:
        return Recalled()
    recall = Recall(
        question=inbound.text,
        scopes=noting.readable(inbound, person, services),
        now=services.clock.wall(),
    )
    try:
        within = kit.config.recall_timeout + GRACE
        found: object = await memory.ask(recall, timeout=within)
    except (*UNANSWERED, KernelError, ChatError) as error:
        LOG.warning(
            "nothing was recalled",
            correlation_id=inbound.correlation_id,
            agent=persona.name,
            why=str(error),
        )
        return Recalled()
    return found if isinstance(found, Recalled) else Recalled()


async def _tasks(
    inbound: Inbound, person: Person, persona: Persona, services: Services
) -> tuple[Entry, ...]:
    try:
        return await tasks_of(
            inbound, person, persona, (services.store, services.find_zone)
        )
    except StoreError as error:
        LOG.warning(
            "appointments not read",
            correlation_id=inbound.correlation_id,
            why=str(error),
        )
        return ()


async def tasks_of(
    inbound: Inbound, person: Person, persona: Persona, kept: Kept
) -> tuple[Entry, ...]:
    """List what is to come, if the words are about such things (F141).

    Raises:
        StoreError: the disk fails.
    """
    config = persona.config
    if "schedule" not in config.markers or not speaks_of(inbound.text, "scheduling"):
        return ()
    scope = scopes.writing(inbound.address, person.id, is_direct=inbound.is_direct)
    return tuple(Entry(line) for line in await listed(kept[0], scope, kept[1]))


def _wishes(person: Person, inbound: Inbound) -> tuple[Entry, ...]:
    """Say how somebody wants to be spoken to; in a group that is nobody's business."""
    if person.personality and inbound.is_direct:
        return (Entry(person.personality, "how to speak with them"),)
    return ()


def entries(facts: Iterable[Fact]) -> tuple[Entry, ...]:
    """Give facts as a prompt wants them."""
    return tuple(
        Entry(fact.text, fact.key if fact.kind == "state" else fact.category)
        for fact in facts
    )
