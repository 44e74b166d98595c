"""Rows that are themselves the truth: changed in place, and forgotten when told.

Unlike records, which follow from events, nothing else tells what an entry says. Each
has a version, so that two writers who read the same one cannot both change it.
"""

from __future__ import annotations

import msgspec


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """What one row of a kind is to say from now on."""

    kind: str
    """The table, so to speak: `person`, …"""

    id: str
    owner: str = ""
    """What entries of one kind can be listed by; may be empty."""

    part: int
    body: bytes | None
    """JSON text; None forgets the entry."""

    expected: int | None = None
    """Its version as the writer has seen it, 0 if there was none; None: whichever."""


class StoredEntry(msgspec.Struct, frozen=True):
    """One entry; `version` grows by one with each change."""

    kind: str
    id: str
    owner: str
    part: int
    epoch: int
    version: int
    body: bytes
    at: float
    """Unix seconds of its last change."""
