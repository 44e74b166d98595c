"""Login links and browser sessions, as rows of the database; pure.

Only hashes of links and cookies are stored: nobody can log in with a copy of the
database.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from typing import TypeVar

import msgspec

from actors.people.rows import part_of
from runtime.store.rows import Entry, StoredEntry, decoded

LINK = "page_login"
SESSION = "page_session"

TOKEN_BYTES = 32
MOST_LINKS = 20
"""Links valid at once; of more, the oldest is deleted."""


class LoginLink(msgspec.Struct, frozen=True):
    """A link that logs a browser in, once."""

    person: str
    until: float
    """Unix seconds."""

    made_at: float


class BrowserSession(msgspec.Struct, frozen=True):
    """A logged-in browser."""

    person: str
    until: float
    """Unix seconds."""

    made_at: float


Kept = TypeVar("Kept", LoginLink, BrowserSession)


def new_token(random: bytes) -> str:
    """Write random bytes as text for a path or a cookie."""
    return base64.urlsafe_b64encode(random).decode().rstrip("=")


def row_id(connector: str, token: str) -> str:
    """Give the row id of a token: its hash."""
    digest = hashlib.sha256(f"{connector}/{token}".encode()).hexdigest()
    return f"{connector}/{digest}"


def csrf_of(cookie: str) -> str:
    """Give the token that forms of a session must carry (CSRF).

    It is a hash of the cookie, which scripts cannot read.
    """
    return hashlib.sha256(f"csrf/{cookie}".encode()).hexdigest()[:32]


def login_entry(
    kind: str,
    name: str,
    row: LoginLink | BrowserSession | None,
    expected: int | None = None,
) -> Entry:
    """Make the entry that writes a row, or deletes it (None).

    Args:
        kind: `LINK` or `SESSION`.
        name: by `row_id`.
        row: the new content.
        expected: the version it must have; 0: it must not exist.
    """
    connector = name.partition("/")[0]
    return Entry(
        kind=kind,
        id=name,
        owner=connector,
        part=part_of(f"{connector}/"),
        body=None if row is None else msgspec.json.encode(row),
        expected=expected,
    )


def surplus(
    entries: Iterable[StoredEntry], shape: type[Kept], now: float, most: int
) -> list[Entry]:
    """Make the entries that delete expired rows, and the oldest beyond `most`.

    Args:
        entries: all rows of one kind and connector.
        now: Unix seconds.
        most: rows that may stay.
    """
    gone: list[StoredEntry] = []
    holding: list[tuple[float, StoredEntry]] = []
    for each in entries:
        row = decoded(each, shape)
        if row is None or row.until <= now:
            gone.append(each)
        else:
            holding.append((row.made_at, each))
    holding.sort(key=lambda pair: pair[0])
    gone += [each for _, each in holding[: max(0, len(holding) - most)]]
    return [login_entry(each.kind, each.id, None) for each in gone]
