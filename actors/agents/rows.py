"""How agents that were made, clients and disabled agents are stored.

`agent` by name and `client` by id hold what a conductor wrote; `agent_at_rest` by name
says that an agent of the settings answers nobody. Every change of one is put on record
as it stands afterwards, in the same commit.
"""

from __future__ import annotations

from typing import Literal, TypeVar

import msgspec

from actors.agents.hired import Client, HiredAgent
from actors.messages.keys import partition
from actors.rules.markers import outcomes as confirming
from runtime.store.port import Store
from runtime.store.rows import Commit, Entry, Record, StoredEntry, decoded

AGENT = "agent"
CLIENT = "client"
AT_REST = "agent_at_rest"
CHANGE = "staff_change"

PAGE = 1000

Row = TypeVar("Row", HiredAgent, Client)

Outcome = Literal["created", "updated", "enabled", "disabled", "removed"]


class StaffChange(msgspec.Struct, frozen=True, kw_only=True):
    """One change: who made it, and its result."""

    kind: str
    """`agent`, `client` or `agent_at_rest`."""

    outcome: Outcome
    version: int
    """Of the row, from 1; 0 if it is gone."""

    by: str
    """Name of the conductor, or `the command line`."""

    asked_by: str = ""
    """At whose words, as `connector/sender_id`."""

    message: str = ""
    """Id of the message that it came of."""

    row: HiredAgent | None = None
    """As it is from then on; None: gone, or no agent that was made."""


class Conducted(msgspec.Struct, frozen=True):
    """What to store in the commit of the answer that holds the requests."""

    entries: tuple[Entry, ...] = ()
    records: tuple[Record, ...] = ()
    outcomes: tuple[confirming.ActionOutcome, ...] = ()
    """For people, should it be stored."""

    made: dict[str, str] = {}
    """Agents that are there then: their names, and what to come to each for."""


NOTHING = Conducted()


class StoredAgent(msgspec.Struct, frozen=True):
    """An agent that was made, with the version of its row."""

    agent: HiredAgent
    version: int


class StaffRows(msgspec.Struct, frozen=True):
    """All stored rows of agents."""

    agents: dict[str, StoredAgent] = {}
    at_rest: frozenset[str] = frozenset()
    """Names of the settings' agents that answer nobody."""

    unreadable: tuple[str, ...] = ()
    """Names of rows that this release cannot read."""

    def version(self, name: str) -> int:
        """Give the version of an agent's row; 0 if there is none."""
        stored = self.agents.get(name)
        return stored.version if stored is not None else 0


async def read(store: Store) -> StaffRows:
    """Read all rows of agents.

    Raises:
        StoreError: the disk fails.
    """
    made = await every(store, AGENT)
    at_rest = await every(store, AT_REST)
    return rows_of(made, at_rest)


async def client_ids(store: Store) -> tuple[str, ...]:
    """Read the ids of all clients.

    Raises:
        StoreError: the disk fails.
    """
    return tuple(row.id for row in await every(store, CLIENT))


async def every(store: Store, kind: str) -> list[StoredEntry]:
    """Read all entries of a kind.

    Raises:
        StoreError: the disk fails.
    """
    found: list[StoredEntry] = []
    while True:
        after = found[-1].id if found else ""
        page = await store.entries(kind, after=after, limit=PAGE)
        found.extend(page)
        if len(page) < PAGE:
            return found


def rows_of(made: list[StoredEntry], at_rest: list[StoredEntry]) -> StaffRows:
    """Read rows; one that cannot be read is named, and no agent."""
    agents: dict[str, StoredAgent] = {}
    unreadable: list[str] = []
    for row in made:
        agent = decoded(row, HiredAgent)
        if agent is None or agent.name != row.id:
            unreadable.append(row.id)
        else:
            agents[row.id] = StoredAgent(agent, row.version)
    return StaffRows(agents, frozenset(row.id for row in at_rest), tuple(unreadable))


def as_entry(kind: str, name: str, row: Row | None, version: int) -> Entry:
    """Write a row down, or forget it, if nobody else changed it since that version."""
    return Entry(
        kind=kind,
        id=name,
        part=partition(name),
        body=None if row is None else msgspec.json.encode(row),
        expected=version,
    )


def as_rest(name: str, *, is_active: bool) -> Entry:
    """Write down whether an agent of the settings answers anybody."""
    body = None if is_active else b"{}"
    return Entry(kind=AT_REST, id=name, part=partition(name), body=body)


def as_record(record_id: str, name: str, change: StaffChange) -> Record:
    """Put a change on record.

    Args:
        name: of the agent, or id of the client.
    """
    return Record(
        kind=CHANGE,
        id=record_id,
        owner=name,
        part=partition(name),
        body=msgspec.json.encode(change),
    )


def as_commit(at: float, entry: Entry, record: Record) -> Commit:
    """Put one change and its record together."""
    return Commit(at=at, entries=(entry,), records=(record,))
