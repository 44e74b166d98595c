"""How people are stored: one entry for each person, one for each further account.

`person` by the id of an account, listed by how its name begins; `alias` by account,
with the id of the person it belongs to. Linking and unlinking are put on record in the
audit, in the same commit. `chat-people` by group: who wrote there, and when last.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from actors.journal import records
from actors.journal.parts import in_one_part
from actors.messages.keys import chat_partition
from actors.people.identity import PeopleChange, Person, bucket
from actors.rules.text.secrets import AuditRedaction
from runtime.store.port import Entries
from runtime.store.rows import Commit, Entry, Record, StoredEntry

PERSON = "person"
ALIAS = "alias"
CHAT = "chat-people"

EVERYBODY = 0
"""The part of all people and aliases: a link changes the rows of two at once."""

# Chosen: a row of some ten kilobytes; of more, those who wrote longest ago make room.
MOST_IN_CHAT = 100


class PersonRow(msgspec.Struct, frozen=True):
    """A person with the version of the row that was read; 0: no row yet."""

    person: Person
    version: int = 0


class SeenPerson(msgspec.Struct, frozen=True):
    """Somebody who wrote in a group."""

    name: str
    seen_at: float
    """Unix seconds of their last message, to the minute."""


class ChatPeople(msgspec.Struct, frozen=True):
    """Who wrote in a group, by account, and the version of its row; 0: no row yet."""

    people: dict[str, SeenPerson] = {}
    version: int = 0


async def read_chat(store: Entries, chat: str) -> ChatPeople:
    """Read who wrote in a group, `connector/chat`.

    Raises:
        StoreError: the disk fails.
    """
    row = await store.entry(CHAT, chat)
    if row is None:
        return ChatPeople()
    try:
        people = msgspec.json.decode(row.body, type=dict[str, SeenPerson])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        people = {}  # another release wrote it; it is learnt anew
    return ChatPeople(people, row.version)


def as_chat_entry(chat: str, known: ChatPeople) -> Entry:
    """Write down who wrote in a group, if nobody else did since that version."""
    newest = sorted(known.people.items(), key=lambda each: -each[1].seen_at)
    return Entry(
        kind=CHAT,
        id=chat,
        part=part_of(chat),
        body=msgspec.json.encode(dict(newest[:MOST_IN_CHAT])),
        expected=known.version,
    )


async def whose(store: Entries, account: str) -> str:
    """Give the id of the person that an account belongs to: mostly its own.

    Raises:
        StoreError: the disk fails.
    """
    row = await store.entry(ALIAS, account)
    return account if row is None else row.body.decode()


async def read(store: Entries, account: str) -> PersonRow:
    """Read who is behind an account; a stranger has a name for nothing else.

    Raises:
        StoreError: the disk fails.
    """
    return await own(store, await whose(store, account))


async def own(store: Entries, person_id: str) -> PersonRow:
    """Read a person's own row, whoever that account is linked with.

    Raises:
        StoreError: the disk fails.
    """
    row = await store.entry(PERSON, person_id)
    if row is None:
        return PersonRow(Person(person_id))
    return PersonRow(decoded(row), row.version)


async def alike(store: Entries, name: str, most: int) -> tuple[Person, ...]:
    """Read people whose names begin as this one does.

    Raises:
        StoreError: the disk fails.
    """
    rows = await store.entries(PERSON, bucket(name), limit=most)
    return tuple(map(decoded, rows))


def decoded(row: StoredEntry) -> Person:
    """Read a row; one of another release that cannot be read is a stranger's."""
    try:
        return msgspec.json.decode(row.body, type=Person)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return Person(row.id)


def as_entry(person: Person, version: int) -> Entry:
    """Write a person down, if nobody else did since that version."""
    return Entry(
        kind=PERSON,
        id=person.id,
        owner=bucket(person.name),
        part=EVERYBODY,
        body=msgspec.json.encode(person),
        expected=version,
    )


def as_commit(
    change: PeopleChange,
    versions: Mapping[str, int],
    at: float,
    told: tuple[Record, ...],
) -> Commit:
    """Write down that people are linked, or no longer.

    Args:
        versions: of the rows that were read, by person; 0 if there was none.
        at: Unix seconds.
        told: what the audit says of it; its first record's id names the change.
    """
    people = [as_entry(each, versions.get(each.id, 0)) for each in change.people]
    aliases = [
        Entry(
            kind=ALIAS,
            id=account,
            owner=person_id,
            part=EVERYBODY,
            body=person_id.encode() if person_id else None,
        )
        for account, person_id in change.whose.items()
    ]
    commit = Commit(at=at, entries=(*people, *aliases), records=told)
    return in_one_part(commit, EVERYBODY, told[0].id)


def as_told(
    record_id: str, account: str, outcome: str, why: str, keep: AuditRedaction
) -> Record:
    """Put a linking or unlinking on record.

    Args:
        account: which one was linked or unlinked.
        outcome: `linked` or `unlinked`.
        why: with whom, and by whose word.
    """
    connector, _, sender = account.partition("/")
    body = records.AuditRecord(
        channel=connector,
        chat="",
        sender_id=sender,
        sender_name="",
        status=outcome,
        reason=why,
    )
    return records.audit_row(record_id, body, keep)


def part_of(account: str) -> int:
    """Give the partition of an account's rows."""
    connector, _, sender = account.partition("/")
    return chat_partition(connector, sender)
