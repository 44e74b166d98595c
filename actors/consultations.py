"""How a book of consultations is written down and read back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors import records
from actors.rules.book import Book, Consultation, Consulted
from actors.rules.keys import parse_key
from runtime.rows import Append, Commit, NewEvent, Snapshot

if TYPE_CHECKING:
    from actors.services import Services
    from runtime.store import Store

KIND = "consulted"
"""Name of the event."""

SCHEMA = 1
"""Version of the snapshot's shape."""

SNAPSHOT_EVERY = 50
"""Events; as many as are read at most when somebody asks again."""

PAGE = 1000


async def read(store: Store, stream: str, book: Book) -> int:
    """Fill a book with what its stream tells; give the number of the last event.

    Raises:
        runtime.errors.StoreError: it cannot be read.
        msgspec.DecodeError: the same.
    """
    version = 0
    snapshot = await store.snapshot(stream)
    if snapshot is not None and snapshot.schema == SCHEMA:
        kept = msgspec.json.decode(snapshot.body, type=dict[str, Consultation])
        book.consultations.update(kept)
        version = snapshot.sequence
    while True:
        events = await store.read(stream, version, PAGE)
        for event in events:
            version = event.sequence
            if event.kind == KIND:
                book.take(msgspec.json.decode(event.body, type=Consulted), event.at)
        if len(events) < PAGE:
            return version


def as_commit(
    stream: tuple[str, int], event: Consulted, book: Book, services: Services
) -> Commit:
    """Write one event down, and the rows that follow from it.

    Args:
        stream: the book's, and the number of its last event.
        event: what happened.
        book: as it was before.
        services: the time, and what the audit keeps.
    """
    name, version = stream
    part = records.part_of(parse_key(name))
    now = services.clock.wall()
    snapshots: tuple[Snapshot, ...] = ()
    if (version + 1) % SNAPSHOT_EVERY == 0:
        then = book.copy()
        then.take(event, now)
        body = msgspec.json.encode(then.consultations)
        snapshots = (
            Snapshot(
                stream=name, sequence=version + 1, schema=SCHEMA, part=part, body=body
            ),
        )
    journal = Append(
        stream=name,
        expected=version,
        part=part,
        events=(NewEvent(KIND, msgspec.json.encode(event)),),
    )
    return Commit(
        at=now,
        appends=(journal,),
        snapshots=snapshots,
        records=records.of_consultation(name, event, services.keep),
    )
