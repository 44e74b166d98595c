"""Links for logging in, and browsers that are logged in, as rows of the database; pure.

Of a link and of a cookie only the hash is kept: whoever reads the database, or a copy
of it, gets in with neither.
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, TypeVar

import msgspec

from actors.people_rows import part_of
from runtime.entries import Entry

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runtime.entries import StoredEntry

LINK = "page_login"
SESSION = "page_session"

TOKEN_BYTES = 32
MOST_LINKS = 20
"""Links that hold at once; of more, the first made is forgotten."""


class Link(msgspec.Struct, frozen=True):
    """A link for logging in."""

    person: str
    until: float
    """Unix seconds."""

    made_at: float


class Session(msgspec.Struct, frozen=True):
    """A browser that is logged in."""

    person: str
    until: float
    """Unix seconds."""

    made_at: float


Kept = TypeVar("Kept", Link, Session)


def new_token(random: bytes) -> str:
    """Write random bytes so that they can stand in an address or a cookie."""
    return base64.urlsafe_b64encode(random).decode().rstrip("=")


def row_id(connector: str, token: str) -> str:
    """Name the row of a token; who has the name cannot find the token."""
    digest = hashlib.sha256(f"{connector}/{token}".encode()).hexdigest()
    return f"{connector}/{digest}"


def csrf_of(cookie: str) -> str:
    """Make what forms of a session must carry: only its own pages know it.

    It follows from the cookie, which scripts cannot read, and cannot be turned back.
    """
    return hashlib.sha256(f"csrf/{cookie}".encode()).hexdigest()[:32]


def entry(
    kind: str, name: str, row: Link | Session | None, expected: int | None = None
) -> Entry:
    """Make the row that is kept, or forgotten (None).

    Args:
        kind: `LINK` or `SESSION`.
        name: by `row_id`.
        row: what is kept.
        expected: the version it must have; 0: there is none yet.
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


def read(entry: StoredEntry, shape: type[Kept]) -> Kept | None:
    """Read a row; None: another release wrote it, and nobody gets in by it."""
    try:
        return msgspec.json.decode(entry.body, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def surplus(
    entries: Iterable[StoredEntry], shape: type[Kept], now: float, most: int
) -> list[Entry]:
    """Say which rows are to go: those that hold no more, and the oldest beyond `most`.

    Args:
        entries: all of one kind and connector.
        shape: what they are.
        now: Unix seconds.
        most: how many may stay.
    """
    gone: list[StoredEntry] = []
    holding: list[tuple[float, StoredEntry]] = []
    for each in entries:
        row = read(each, shape)
        if row is None or row.until <= now:
            gone.append(each)
        else:
            holding.append((row.made_at, each))
    holding.sort(key=lambda pair: pair[0])
    gone += [each for _, each in holding[: max(0, len(holding) - most)]]
    return [entry(each.kind, each.id, None) for each in gone]
