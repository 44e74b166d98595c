"""Rows for tests of the store, with everything filled in that a test does not mind."""

from __future__ import annotations

from runtime.store import Accept, Append, Commit, Enqueue, NewEvent, Receipt, Settle

NOW = 1_700_000_000.0
"""Unix seconds at which everything happens unless a test says otherwise."""


def heard(name: str, *, connector: str = "cli", platform_id: str = "") -> Accept:
    """Make a message to accept."""
    return Accept(
        id=name,
        connector=connector,
        platform_id=platform_id or name,
        part=7,
        stream="session/anna",
        body=repr(name).encode(),
        at=NOW,
    )


def events(
    stream: str, expected: int, count: int = 1, *, body: bytes = b"{}"
) -> Append:
    """Make `count` events for a stream."""
    new = tuple(NewEvent(f"kind{number}", body) for number in range(count))
    return Append(stream=stream, expected=expected, part=7, events=new)


def saying(name: str, *, connector: str = "cli", chat: str = "kitchen") -> Enqueue:
    """Make a delivery to enqueue."""
    return Enqueue(
        delivery_id=name,
        connector=connector,
        chat=chat,
        correlation_id=f"of {name}",
        part=7,
        body=repr(name).encode(),
    )


def accepting(*names: str, at: float = NOW) -> Commit:
    """Make a commit that accepts messages."""
    return Commit(at=at, accepts=tuple(heard(name) for name in names))


def enqueueing(*names: str, at: float = NOW) -> Commit:
    """Make a commit that enqueues deliveries."""
    return Commit(at=at, deliveries=tuple(saying(name) for name in names))


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
