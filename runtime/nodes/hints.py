"""What nodes tell each other at once: that there are rows to look at, and what to show.

A hint may get lost and is never what is true: who relies on it also looks by itself
now and then. Pure; `runtime/postgresql/hints.py` carries hints.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

MOST_BYTES = 7_900
"""What one NOTIFY takes, somewhat less than 8,000 bytes."""


LEASES = "leases"
"""The kind of rows that say who owns what."""


class RowsWritten(msgspec.Struct, frozen=True, array_like=True, tag="rows"):
    """What one node tells all others with a commit."""

    node: str
    """Who wrote them."""

    kinds: tuple[str, ...]
    """Of which kinds they are, as in `Store.changes_outside`."""


class Shown(msgspec.Struct, frozen=True, array_like=True):
    """One thing to show, or to know of, in a chat of a connector."""

    connector: str
    kind: str
    body: msgspec.Raw
    """JSON; only the domain knows what it says."""


class HintsShown(msgspec.Struct, frozen=True, array_like=True, tag="shown"):
    """What one node tells all others beside commits, in the order of its telling."""

    node: str
    items: tuple[Shown, ...]


Hint = RowsWritten | HintsShown
DECODER = msgspec.json.Decoder(Hint)


def encode(node: str, kinds: Iterable[str]) -> str:
    """Write a hint: names of nodes and kinds, far below what NOTIFY takes."""
    return msgspec.json.encode(RowsWritten(node, tuple(sorted(kinds)))).decode()


def pack(node: str, items: Iterable[Shown]) -> Iterator[str]:
    """Write what is to be shown in as few hints as NOTIFY takes, in order.

    What is too long by itself is left out.
    """
    empty = len(msgspec.json.encode(HintsShown(node, ())))
    found, room = list[Shown](), MOST_BYTES - empty
    for each in items:
        size = len(msgspec.json.encode(each)) + 1
        if size > MOST_BYTES - empty:
            continue
        if size > room:
            yield msgspec.json.encode(HintsShown(node, tuple(found))).decode()
            found, room = [], MOST_BYTES - empty
        found.append(each)
        room -= size
    if found:
        yield msgspec.json.encode(HintsShown(node, tuple(found))).decode()


def read(text: str, me: str) -> Hint | None:
    """Read a hint; None: of this node itself, of another release, or sent by hand."""
    try:
        hint = DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None
    return None if hint.node == me else hint
