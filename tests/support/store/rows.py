"""Rows for tests of the store, with everything filled in that a test does not mind."""

from __future__ import annotations

from typing import Any

from runtime.store.facts import FactChange, FactListing, SaveFact
from runtime.store.port import Store
from runtime.store.rows import (
    Accept,
    Append,
    Commit,
    Enqueue,
    NewEvent,
    Receipt,
    Record,
    Settle,
    Snapshot,
    StoredDelivery,
    StoredMessage,
)

ANNA = "person:cli/anna"
NOW = 1_700_000_000.0
"""Unix seconds at which everything happens unless a test says otherwise."""


def heard(
    name: str,
    *,
    connector: str = "cli",
    platform_id: str = "",
    priority: int = 5,
    stream: str = "session/anna",
) -> Accept:
    """Make a message to accept."""
    return Accept(
        id=name,
        connector=connector,
        platform_id=platform_id or name,
        part=7,
        stream=stream,
        body=repr(name).encode(),
        at=NOW,
        priority=priority,
    )


def events(
    stream: str, expected: int, count: int = 1, *, body: bytes = b"{}"
) -> Append:
    """Make `count` events for a stream."""
    new = tuple(NewEvent(f"kind{number}", body) for number in range(count))
    return Append(stream=stream, expected=expected, part=7, events=new)


def saying(
    name: str,
    *,
    connector: str = "cli",
    chat: str = "kitchen",
    correlation_id: str = "",
) -> Enqueue:
    """Make a delivery to enqueue."""
    return Enqueue(
        delivery_id=name,
        connector=connector,
        chat=chat,
        correlation_id=correlation_id or f"of {name}",
        part=7,
        body=repr(name).encode(),
    )


def summing_up(stream: str, sequence: int, body: bytes = b"{}") -> Snapshot:
    """Make a snapshot to keep."""
    return Snapshot(stream=stream, sequence=sequence, schema=1, part=7, body=body)


def noting(
    name: str, *, kind: str = "audit", owner: str = "", body: bytes = b"{}"
) -> Record:
    """Make a record to write."""
    return Record(kind=kind, id=name, owner=owner, part=7, body=body)


def remembering(name: str, *, text: str = "", **fields: Any) -> SaveFact:
    """Make a fact to save."""
    given: dict[str, Any] = {
        "agent": "bot",
        "scope": ANNA,
        "kind": "fact",
        "part": 7,
    }
    return SaveFact(id=name, text=text or repr(name), **{**given, **fields})


async def change_facts(store: Store, *changes: FactChange, at: float = NOW) -> None:
    """Commit changes of facts."""
    await store.commit(Commit(at=at, facts=changes))


async def fact_names(
    store: Store, *scopes: str, agent: str = "bot", **filters: Any
) -> list[str]:
    """List facts, and give their ids."""
    listing = FactListing(agent=agent, scopes=scopes or (ANNA,), now=NOW, **filters)
    return [row.id for row in await store.facts.listed(listing)]


def accepting(*names: str, at: float = NOW) -> Commit:
    """Make a commit that accepts messages."""
    return Commit(at=at, accepts=tuple(heard(name) for name in names))


def enqueueing(*names: str, at: float = NOW, correlation_id: str = "") -> Commit:
    """Make a commit that enqueues deliveries."""
    rows = tuple(saying(name, correlation_id=correlation_id) for name in names)
    return Commit(at=at, deliveries=rows)


def settling(*names: str, at: float = NOW) -> Commit:
    """Make a commit that settles messages as replied."""
    return Commit(at=at, settles=tuple(Settle(name, "replied") for name in names))


def turn(number: int, stream: str) -> Commit:
    """Make a whole turn: heard, journalled, answered and settled, its answer said."""
    name = f"{stream}-{number}"
    return Commit(
        at=NOW,
        accepts=(heard(name),),
        appends=(events(stream, number),),
        deliveries=(saying(name),),
        settles=(Settle(name, "replied"),),
        receipts=(Receipt(name, "sent", receipt="42"),),
    )


def stored(number: int, name: str, **fields: Any) -> StoredMessage:
    """Make what is given back of a message; `fields` are what is different."""
    given: dict[str, Any] = {
        "connector": "cli",
        "platform_id": name,
        "part": 7,
        "epoch": 3,
        "stream": "session/anna",
        "body": b"",
        "at": NOW,
        "priority": 5,
        "state": "accepted",
        "attempts": 0,
        "started_at": 0.0,
        "due_at": 0.0,
        "reason": "",
        "settled_at": 0.0,
    }
    return StoredMessage(number, name, **{**given, **fields})


def stored_delivery(number: int, name: str, **fields: Any) -> StoredDelivery:
    """Make what is given back of a delivery; `fields` are what is different."""
    given: dict[str, Any] = {
        "connector": "cli",
        "chat": "kitchen",
        "correlation_id": f"of {name}",
        "part": 7,
        "epoch": 3,
        "body": b"",
        "at": NOW,
        "state": "pending",
        "attempts": 0,
        "receipt": "",
        "settled_at": 0.0,
    }
    return StoredDelivery(number, name, **{**given, **fields})
