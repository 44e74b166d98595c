"""Has the notes of an answer reviewed by the agent's memory.

What comes back goes into the commit of what it came from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors import names
from actors.errors import ChatError
from actors.journal.plan import Carried
from actors.memory import scopes
from actors.memory.messages import (
    CountReward,
    FactKind,
    Forget,
    KeepFact,
    KeepLog,
    LearnLesson,
    Note,
    NoteResult,
    NoteSource,
    ReviewedNotes,
    ReviewNotes,
    SetState,
    Summarise,
)
from actors.memory.note_rules import auto_saved
from actors.messages.inbound import Address, Inbound
from actors.messages.keys import account_of, chat_partition, parse_key
from actors.people.identity import Person
from actors.people.lookup import FindPerson
from actors.rules.markers import actions, parser as markers
from actors.rules.markers.outcomes import ActionOutcome, OutcomeKind
from runtime.actor.ref import UNANSWERED
from runtime.errors import KernelError
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Iterable

    from actors.agents.persona import Persona
    from actors.ports import Noted
    from actors.rules.markers.actions import Action
    from actors.services import Services
    from runtime.actor.actor import Actor
    from runtime.store.facts import FactChange

LOG = EventLog("memory")

# Chosen: it reads one person's facts; a disk that takes longer is ill.
CONSIDERED_WITHIN = 5.0

PURGED: tuple[FactKind, ...] = ("fact", "state", "lesson", "outcome", "summary", "log")
"""What `PURGE_FACTS` forgets: everything about the asking person."""

BEFORE_ALL = "0"
"""Older than any id."""

LATER = "memory could not be asked just now; say it again"
OFF = "nothing is remembered here"


def notes_of(wants: Iterable[Action], own: tuple[str, ...] = ()) -> tuple[Note, ...]:
    """Give what is to be remembered or forgotten, in order.

    Args:
        wants: what an answer asks for.
        own: scopes of whoever is answered, for what is forgotten; empty: where the
            notes come from.
    """
    notes: list[Note] = []
    for each in wants:
        match each:
            case actions.SaveFact(category=category, text=text):
                notes.append(KeepFact(category=category, text=text))
            case actions.SetAgentState(key=key, value=value):
                notes.append(SetState(key, value))
            case actions.AddReward(score=score, domain=domain, text=text):
                notes.append(CountReward(score, domain, text))
            case actions.AddLesson(domain=domain, rule=rule):
                notes.append(LearnLesson(domain, rule))
            case actions.PurgeFacts():
                notes.append(Forget(kinds=PURGED, scopes=own, is_asked=True))
            case _:
                pass  # somebody else's
    return tuple(notes)


def source_of(inbound: Inbound, person: Person, services: Services) -> NoteSource:
    """Say where an answer's notes come from, and where they belong."""
    address = inbound.address
    return NoteSource(
        scope=scopes.writing(
            address,
            person.id,
            is_direct=inbound.is_direct,
            member=scopes.member_of(inbound, services.sessions.session_scope),
        ),
        readable=readable(inbound, person, services),
        part=chat_partition(address.connector, address.chat),
        is_owner=account_of(inbound) in services.owners and not inbound.chain.agents,
        connector=address.connector,
        chat=address.chat,
        sender_id=inbound.sender_id,
        message_id=inbound.id,
        as_of=inbound.id,
    )


def readable(inbound: Inbound, person: Person, services: Services) -> tuple[str, ...]:
    """Name the scopes that may be read where this was said."""
    kit = services.memory
    return scopes.reading(
        inbound.address,
        person.accounts,
        is_direct=inbound.is_direct,
        member=scopes.member_of(inbound, services.sessions.session_scope),
        person_in_groups=kit is not None and kit.config.person_in_groups,
    )


async def consider(
    notes: tuple[Note, ...],
    inbound: Inbound,
    source: NoteSource,
    asker: tuple[Persona, Services, Actor],
) -> Carried:
    """Ask what notes of an answer come to, and of the words it answers."""
    persona, services, turn = asker
    kit = services.memory
    saved = None if kit is None else auto_saved(inbound, kit.config)
    if any(isinstance(note, Forget) and note.is_asked for note in notes):
        saved = None  # least of all the words that ask for it
    if saved is not None:
        key, text = saved
        notes = (*notes, KeepFact(category="conversation", text=text, key=key))
    if not notes:
        return Carried()
    considered = await ask(notes, source, persona.name, (services, turn))
    told = zip(notes, considered.results, strict=True)
    most = len(notes) - (saved is not None)  # nobody asked for the words to be kept
    outcomes = [outcome_of(note, result) for note, result in told]
    return Carried(
        facts=considered.changes,
        entries=considered.entries,
        outcomes=tuple(outcomes[:most]),
    )


async def log(
    entry: str, inbound: Inbound, person: Person, asker: tuple[Persona, Services, Actor]
) -> Carried:
    """Have something written into the day's log, with an answer."""
    persona, services, turn = asker
    if services.memory is None:
        return Carried()
    source = source_of(inbound, person, services)
    kept = await ask((KeepLog(entry),), source, persona.name, (services, turn))
    return Carried(facts=kept.changes, entries=kept.entries)


async def ask(
    notes: tuple[Note, ...],
    source: NoteSource,
    agent: str,
    asker: tuple[Services, Actor],
) -> ReviewedNotes:
    """Ask a memory; without an answer in time nothing is remembered."""
    services, actor = asker
    if services.memory is None:
        off = NoteResult(outcome="refused", text=OFF, reason="off")
        return ReviewedNotes(results=(off,) * len(notes))
    memory = actor.find(names.memory(agent))
    try:
        if memory is not None:
            now = services.clock.wall()
            wanted = ReviewNotes(notes=notes, source=source, now=now)
            found: object = await memory.ask(wanted, timeout=CONSIDERED_WITHIN)
            if isinstance(found, ReviewedNotes):
                return found
    except (*UNANSWERED, KernelError, ChatError) as error:
        LOG.warning("nothing was remembered", agent=agent, why=str(error))
    return ReviewedNotes(results=(refused(LATER),) * len(notes))


def refused(why: str) -> NoteResult:
    """Say that nothing comes of a note."""
    return NoteResult(outcome="refused", text=why, reason="unanswered")


def outcome_of(note: Note, result: NoteResult) -> ActionOutcome:
    """Say to people what comes of a note."""
    match result.outcome:
        case "refused":
            return ActionOutcome(kind="refused", what=about(note), why=result.text)
        case "forgotten":
            return ActionOutcome(kind="forgotten", count=result.count)
        case "known":
            return ActionOutcome(kind="known", what=result.text)
        case "saved":
            kind: OutcomeKind = "saved"
            if isinstance(note, SetState):
                kind = "state_set"
            elif isinstance(note, CountReward):
                kind = "rewarded"
            elif isinstance(note, LearnLesson):
                kind = "lesson_kept"
            return ActionOutcome(kind=kind, what=result.text)


def about(note: Note) -> str:
    """Name what a note is about, for people."""
    match note:
        case SetState(key=key):
            return key
        case LearnLesson(domain=domain) | CountReward(domain=domain):
            return domain
        case KeepFact(text=text) | Summarise(text=text) | KeepLog(text=text):
            return text
        case Forget():
            return "forgetting"


async def remember(
    services: Services, asker: Actor, noted: Noted
) -> tuple[FactChange, ...]:
    """Have kept what was found in a conversation that is summed up.

    Raises:
        ChatError: it cannot be kept now.
    """
    key = parse_key(noted.conversation)
    whose = await scopes_of(asker, noted.conversation, is_group=noted.is_group)
    source = NoteSource(
        scope=whose[0],
        readable=whose,
        part=chat_partition(key.connector, key.chat),
        connector=key.connector,
        chat=key.chat,
        sender_id=noted.sender_id,
        as_of=noted.since or BEFORE_ALL,
    )
    if noted.kind == "facts":
        notes = notes_of(markers.parse(noted.text, "assistant").actions)
    else:
        notes = (Summarise(noted.text), KeepLog(noted.text))
    if not notes:
        return ()
    considered = await ask(notes, source, noted.agent, (services, asker))
    if any(each.reason == "unanswered" for each in considered.results):
        raise ChatError(LATER)
    return considered.changes


async def scopes_of(
    asker: Actor, conversation: str, *, is_group: bool
) -> tuple[str, ...]:
    """Say where what is found in a conversation belongs, as with its answers' notes.

    After it come those by which it is forgotten, too: of a person's further accounts,
    of a member's group.

    Raises:
        ChatError: nobody can say whose it is now; `KernelError` or those of an `ask`
            that is not answered, too.
    """
    key = parse_key(conversation)
    address = Address(key.connector, key.chat, key.thread)
    if not key.sender:
        return (scopes.chat(address),)
    if is_group:
        return (scopes.chat(address, key.sender), scopes.chat(address))
    person = Person(f"{key.connector}/{key.sender}")
    people = asker.find(names.PEOPLE)
    if people is not None:
        wanted = FindPerson(person.id)
        found: object = await people.ask(wanted, timeout=CONSIDERED_WITHIN)
        person = found if isinstance(found, Person) else person
    return person.scopes
