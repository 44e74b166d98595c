"""What a turn looks up before its first call: memories, the person, overheard messages.

The messages of a group since the agent last answered there are read from the rows of
the chat when it answers. They are kept nowhere else: a restart changes nothing, and a
chat without a question to an agent costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors import names
from actors.errors import ChatError
from actors.journal.history import History, read_history
from actors.memory import notes as noting, scopes
from actors.memory.messages import Fact, FactsUsed, Recall, RecalledFacts
from actors.memory.notebook import project_text
from actors.messages.deliveries import Delivery
from actors.messages.inbound import ALONE, Inbound
from actors.messages.keys import parse_key
from actors.people import lookup as knowing
from actors.rules.groups.overheard import (
    ChatExchange,
    OverheardDelivery,
    OverheardMessage,
    OverhearingAgent,
    last_turn,
    overheard,
)
from actors.rules.prompt.brief import Memories, PromptMemory
from actors.rules.prompt.build import speaks_of
from actors.schedule.rows import listed
from runtime.actor.ref import UNANSWERED
from runtime.errors import KernelError, StoreError
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from actors.agents.persona import Persona
    from actors.protocol import StartTurn
    from actors.services import Services
    from runtime.store.port import Store
    from runtime.store.rows import Answered, StoredDelivery


if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import tzinfo

    from actors.agents.persona import Persona
    from actors.people.identity import Person
    from actors.services import Services
    from runtime.actor.actor import Actor
    from runtime.store.port import Entries

    Kept = tuple[Entries, Callable[[str], tzinfo | None]]

LOG = EventLog("memory")

NOTHING = RecalledFacts()

# Chosen: a recall has a time limit of its own; this one is for a memory that is gone.
GRACE = 0.5
"""Seconds that a recall may take beyond its limit."""


async def remind(
    inbound: Inbound, persona: Persona, services: Services, turn: Actor
) -> Memories:
    """Ask the memory for what is relevant to a message; a failure gives nothing."""
    person = await knowing.person_of(turn, services, inbound)
    recalled = await _recall(inbound, person, (persona, services, turn))
    if recalled.relevant:
        turn.tell(names.memory(persona.name), FactsUsed(recalled.relevant))
    return memories_of(
        inbound,
        person,
        recalled,
        project=await project_text(recalled.states, services.notebook)
        if recalled.states
        else "",
        tasks=await _tasks(inbound, person, persona, services),
    )


def memories_of(
    inbound: Inbound,
    person: Person,
    recalled: RecalledFacts,
    *,
    project: str,
    tasks: tuple[PromptMemory, ...],
) -> Memories:
    """Put together the memories of a prompt.

    Args:
        project: the operator's text about the active project.
        tasks: the next appointments, if the message is about such things.
    """
    own = Memories(
        profile=_wishes(person, inbound),
        project=project,
        tasks=tasks,
        language=person.language if person.is_language_chosen else "",
    )
    if recalled == NOTHING:
        return own
    return msgspec.structs.replace(
        own,
        sticky=entries(recalled.sticky),
        relevant=entries(recalled.relevant),
        states=entries(recalled.states),
        profile=(*own.profile, *entries(recalled.profile)),
        lessons=entries(recalled.lessons),
        outcomes=entries(recalled.outcomes),
        summaries=tuple([fact.text for fact in reversed(recalled.summaries)]),
        logs=tuple([fact.text for fact in recalled.logs]),
    )


async def _recall(
    inbound: Inbound, person: Person, asker: tuple[Persona, Services, Actor]
) -> RecalledFacts:
    persona, services, turn = asker
    kit, memory = services.memory, turn.find(names.memory(persona.name))
    if kit is None or memory is None:
        return NOTHING
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
        return NOTHING
    return found if isinstance(found, RecalledFacts) else NOTHING


async def _tasks(
    inbound: Inbound, person: Person, persona: Persona, services: Services
) -> tuple[PromptMemory, ...]:
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
) -> tuple[PromptMemory, ...]:
    """List the next appointments, if the message is about such things.

    Raises:
        StoreError: the disk fails.
    """
    config = persona.config
    if "schedule" not in config.markers or not speaks_of(inbound.text, "scheduling"):
        return ()
    scope = scopes.writing(inbound.address, person.id, is_direct=inbound.is_direct)
    return tuple(PromptMemory(line) for line in await listed(kept[0], scope, kept[1]))


def _wishes(person: Person, inbound: Inbound) -> tuple[PromptMemory, ...]:
    """Give how a person wants to be spoken to; it is private, so not in groups."""
    if person.personality and inbound.is_direct:
        return (PromptMemory(person.personality, "how to speak with them"),)
    return ()


def entries(facts: Iterable[Fact]) -> tuple[PromptMemory, ...]:
    """Give facts in the form of a prompt."""
    return tuple(
        [
            PromptMemory(fact.text, fact.key if fact.kind == "state" else fact.category)
            for fact in facts
        ]
    )


OVERHEARD_LOG = EventLog("turn")

PAGE = 50
"""Messages read at once."""

# Chosen: a thousand rows of one chat, about 20 ms of reading.
MOST_PAGES = 20


async def with_conversation(
    start: StartTurn, persona: Persona, services: Services
) -> StartTurn:
    """Give a turn in a lane the conversation of its chat, if its work needs one.

    If the disk fails, it works without.
    """
    inbound = start.inbound
    if not inbound.lane or inbound.occasion in ALONE:
        return start
    key = msgspec.structs.replace(parse_key(start.conversation), lane="")
    history = History(key.text, persona.config.max_history)
    try:
        await read_history(history, services.store)
    except StoreError as error:
        OVERHEARD_LOG.warning("worked without the conversation", why=str(error))
        return start
    return msgspec.structs.replace(
        start,
        history=history.lines,
        earlier=history.earlier,
        summaries=tuple(each.text for each in history.summaries),
    )


async def overhear(
    start: StartTurn, persona: Persona, services: Services
) -> tuple[OverheardMessage, ...]:
    """Give the messages since the agent last answered in this chat, oldest first.

    Empty in direct chats, for scheduled turns, and if the disk fails: then the question
    is answered without them.
    """
    inbound, most = start.inbound, persona.config.groups.pending_messages
    if inbound.is_direct or inbound.occasion in ALONE or not most:
        return ()
    try:
        return await _overhear(start, persona, most, services.store)
    except StoreError as error:
        OVERHEARD_LOG.warning(
            "answered without what was said in the chat",
            correlation_id=inbound.correlation_id,
            why=str(error),
        )
        return ()


async def _overhear(
    start: StartTurn, persona: Persona, most: int, store: Store
) -> tuple[OverheardMessage, ...]:
    address = start.inbound.address
    found = await store.answered(address.connector, start.inbound.platform_id)
    if found is None:
        return ()  # not a stored message
    row = found.message
    place = start.inbound.copy_of or row.number
    ear = OverhearingAgent(
        agent=persona.name,
        thread=address.thread,
        answered=frozenset(start.answered),
        place=place,
        at=row.at,
        agents=persona.everybody,
    )
    stream = f"{address.connector}/{address.chat}"
    exchanges = await recent(store, stream, row.number, ear, most)
    said = overheard(exchanges, ear, most)
    if not start.inbound.chain.turns:
        return said
    # Another agent's answer that calls this agent is the question itself.
    question = (start.inbound.sender_name, start.inbound.text)
    return tuple(word for word in said if (word.name, word.text) != question)


async def recent(
    store: Store, stream: str, before: int, ear: OverhearingAgent, most: int
) -> list[ChatExchange]:
    """Read a chat back to the agent's last answer, or until there is enough.

    Raises:
        StoreError: the disk fails.
    """
    exchanges: list[ChatExchange] = []
    for _ in range(MOST_PAGES):
        rows = await store.exchanges(stream, before, PAGE)
        exchanges += (each for row in rows if (each := read(row)) is not None)
        is_reached = last_turn(exchanges, ear)[0] > 0 or len(rows) < PAGE
        if is_reached or len(overheard(exchanges, ear, most)) == most:
            break
        before = rows[-1].message.number
    return exchanges


def read(row: Answered) -> ChatExchange | None:
    """Decode a message and its deliveries; None: the row is damaged."""
    message = row.message
    try:
        inbound = msgspec.json.decode(message.body, type=Inbound)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        OVERHEARD_LOG.fault("message cannot be read", error, message=message.id)
        return None
    told = (read_told(each) for each in row.deliveries if each.state != "dead")
    return ChatExchange(
        inbound=inbound,
        number=message.number,
        at=message.at,
        told=tuple(each for each in told if each is not None),
    )


def read_told(row: StoredDelivery) -> OverheardDelivery | None:
    """Decode a delivery; None: the row is damaged."""
    try:
        return OverheardDelivery(msgspec.json.decode(row.body, type=Delivery), row.at)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        OVERHEARD_LOG.fault("delivery cannot be read", error, delivery=row.id)
        return None
