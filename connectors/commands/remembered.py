"""What memory has for one message, read as a turn would read it, and changing nothing.

No actor and no other program is asked: the database is read where it lies, which does
not disturb a running server. Where a server would ask an embedder over the network,
words alone must do, and that is told.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from actors import people_rows
from actors.jotting import project_text
from actors.memory_kit import MemoryKit, MemoryMetrics
from actors.recalling import Recalling
from actors.records import CONVERSATION
from actors.remembering import Recall, Recalled
from actors.reminding import memories_of, tasks_of
from actors.rules import scopes
from actors.rules.approvals import person as account_of
from actors.rules.briefing import NO_MEMORIES, Memories
from actors.rules.identity import Person
from actors.rules.keys import parse_key
from connectors.commands.interruptible import run_interruptible
from connectors.memory_config import HASHING, OFF
from connectors.model_checks import find_zone
from connectors.models.hashing_embedder import HashingEmbedder
from connectors.notebook import make_notebook
from runtime.metrics import Metrics
from runtime.sqlite_reader import reader
from runtime.sqlite_survey import survey

if TYPE_CHECKING:
    from actors.messages import Inbound
    from actors.persona import Persona
    from connectors.config import AppConfig
    from runtime.sqlite_reader import SqliteReader

# Chosen: nobody waits in a chat for it, and a disk that is cold may take its time.
WITHIN = 30.0
"""Seconds that reading may take; a turn has `memory.recall_timeout`."""

ORDER = (
    "sticky",
    "relevant",
    "states",
    "profile",
    "lessons",
    "outcomes",
    "summaries",
    "logs",
)


class KnownFact(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that memory gave, and why."""

    layer: str
    """For which layer; whether it is shown there, the layer says."""

    id: str
    scope: str
    kind: str
    category: str
    score: float
    """How much it has to do with the words; 1 for what is always given."""

    told_at: float
    """Unix seconds."""

    text: str


class Remembered(msgspec.Struct, frozen=True, kw_only=True):
    """What memory has, and whose it is."""

    memories: Memories = NO_MEMORIES
    person: str = ""
    accounts: tuple[str, ...] = ()
    """All of that person's."""

    scopes: tuple[str, ...] = ()
    """Whose memory was read."""

    facts: tuple[KnownFact, ...] = ()
    missed: str = ""
    """Why something may be missing; empty: nothing is."""


def remembered(config: AppConfig, inbound: Inbound, persona: Persona) -> Remembered:
    """Read what a turn would be reminded of before its model is asked.

    Raises:
        runtime.errors.StoreError: the database cannot be read.
    """
    path = Path(config.store.path)
    if not path.is_file():
        return Remembered(missed=f"there is no database {path} yet")
    return run_interruptible(_read, path, config, inbound, persona)


async def _read(
    path: Path, config: AppConfig, inbound: Inbound, persona: Persona
) -> Remembered:
    with reader(path) as store:
        person = await _person(store, inbound)
        names = scopes.reading(
            inbound.address,
            person.accounts,
            is_direct=inbound.is_direct,
            member=scopes.member_of(inbound, config.sessions.session_scope),
            person_in_groups=config.memory.person_in_groups,
        )
        recalled, missed = await _recall(store, config, (inbound, persona.name, names))
        project = await project_text(recalled.states, make_notebook(config, None))
        tasks = await tasks_of(inbound, person, persona, (store, find_zone))
        memories = memories_of(inbound, person, recalled, project=project, tasks=tasks)
    return Remembered(
        memories=memories,
        person=person.id,
        accounts=person.accounts,
        scopes=names if config.memory.enabled else (),
        facts=tuple(facts_of(recalled)),
        missed=missed,
    )


async def _person(store: SqliteReader, inbound: Inbound) -> Person:
    if not inbound.sender_id:
        return Person(account_of(inbound))
    return (await people_rows.read(store, account_of(inbound))).person


async def _recall(
    store: SqliteReader, config: AppConfig, asked: tuple[Inbound, str, tuple[str, ...]]
) -> tuple[Recalled, str]:
    """Recall; give why something may be missing beside."""
    inbound, agent, names = asked
    if not config.memory.enabled:
        return Recalled(), "memory.enabled is false"
    kit, why = _kit(config)
    recall = Recall(
        question=inbound.text, scopes=names, now=inbound.received_at, within=WITHIN
    )
    recalled, _ = await Recalling(agent, store.facts, kit).recall(recall)
    return recalled, "; ".join(filter(None, (why, recalled.missed)))


def _kit(config: AppConfig) -> tuple[MemoryKit, str]:
    """Make what a recall works with here; say what it does not have."""
    name = config.memory.embedder
    metrics = MemoryMetrics(Metrics())
    if name == HASHING:
        embedder = HashingEmbedder(config.memory.hashing_dimensions)
        return MemoryKit(config.memory, metrics, embedder), ""
    why = f"searched by words only: the embedder {name!r} is not asked from here"
    return MemoryKit(config.memory, metrics), "" if name == OFF else why


def facts_of(recalled: Recalled) -> list[KnownFact]:
    """List all that was recalled, layer by layer."""
    return [
        KnownFact(
            layer=layer,
            id=fact.id,
            scope=fact.scope,
            kind=fact.kind,
            category=fact.category,
            score=round(fact.score, 4),
            told_at=fact.created_at,
            text=fact.text,
        )
        for layer in ORDER
        for fact in getattr(recalled, layer)
    ]


def newest_chat(config: AppConfig, agent: str, connector: str, sender: str) -> str:
    """Find where somebody spoke with an agent last in private; empty: nowhere yet."""
    path = Path(config.store.path)
    if not (sender and path.is_file()):
        return ""
    with survey(path) as rows:
        for row in rows.recent(CONVERSATION):
            try:
                key = parse_key(row.id)
            except ValueError:
                continue
            if (key.agent, key.connector, key.sender) == (agent, connector, sender):
                return key.chat
    return ""
