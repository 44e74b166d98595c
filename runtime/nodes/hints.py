"""What nodes tell each other with a commit: that there are rows to look at.

A hint may get lost and is never what is true: who relies on it also looks by itself
now and then. Pure; `runtime/postgresql/hints.py` carries hints.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class RowsWritten(msgspec.Struct, frozen=True, array_like=True):
    """What one node tells all others."""

    node: str
    """Who wrote them."""

    kinds: tuple[str, ...]
    """Of which kinds they are, as in `Store.changes_outside`."""


def encode(node: str, kinds: Iterable[str]) -> str:
    """Write a hint: names of nodes and kinds, far below what NOTIFY takes."""
    return msgspec.json.encode(RowsWritten(node, tuple(sorted(kinds)))).decode()


def read(text: str, me: str) -> RowsWritten | None:
    """Read a hint; None: of this node itself, of another release, or sent by hand."""
    try:
        hint = msgspec.json.decode(text, type=RowsWritten)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None
    return None if hint.node == me else hint
