"""How pairing requests and guests are stored.

`pairing` and `guest` by account, listed by connector. Every decision is put on record
in the audit, in the same commit. Nobody's words stand in either.
"""

from __future__ import annotations

import msgspec

from actors.journal.parts import in_one_part
from actors.people import rows as people_rows
from actors.people.identity import connector_of
from actors.people.pairing_rules import Guest, PairingRequest
from actors.people.rows import part_of
from actors.rules.text.secrets import AuditRedaction
from runtime.store.port import Store
from runtime.store.rows import Commit, Entry, Record, StoredEntry, decoded

PAIRING = "pairing"
GUEST = "guest"

PAGE = 1000

# Chosen: who lets in more than that by hand lists them in the settings, by a pattern or
# a role. Ten thousand are three megabytes on the disk, and read in a tenth of a second
# at the start and after each change from outside (measured on 2 busy cores).
MOST_GUESTS = 10_000

COMMAND_LINE = "the command line"


class PairingRows(msgspec.Struct, frozen=True):
    """All rows of requests and guests."""

    requests: tuple[PairingRequest, ...] = ()
    guests: tuple[Guest, ...] = ()


async def read(store: Store) -> PairingRows:
    """Read all rows; one that another release wrote otherwise is left out.

    Raises:
        StoreError: the disk fails.
    """
    return rows_of(await _every(store, PAIRING), await _every(store, GUEST))


async def _every(store: Store, kind: str) -> list[StoredEntry]:
    found: list[StoredEntry] = []
    while True:
        page = await store.entries(
            kind, after=found[-1].id if found else "", limit=PAGE
        )
        found.extend(page)
        if len(page) < PAGE:
            return found


def rows_of(asking: list[StoredEntry], let_in: list[StoredEntry]) -> PairingRows:
    """Read rows; one of another release is nobody's."""
    requests = tuple(x for x in map(_request, asking) if x is not None)
    guests = tuple(x for x in map(_guest, let_in) if x is not None)
    return PairingRows(requests, guests)


def _request(row: StoredEntry) -> PairingRequest | None:
    found = decoded(row, PairingRequest)
    if found is None or found.account != row.id:
        return None
    return msgspec.structs.replace(found, version=row.version)


def _guest(row: StoredEntry) -> Guest | None:
    found = decoded(row, Guest)
    if found is None or found.account != row.id:
        return None
    return msgspec.structs.replace(found, version=row.version)


def as_request(request: PairingRequest) -> Entry:
    """Write a request down, if nobody else changed it since it was read."""
    body = msgspec.json.encode(msgspec.structs.replace(request, version=0))
    return _entry(PAIRING, request.account, body, request.version)


def as_forgotten(request: PairingRequest) -> Entry:
    """Forget a request, if nobody else changed it since it was read."""
    return _entry(PAIRING, request.account, None, request.version)


def as_guest(guest: Guest) -> Entry:
    """Write down that somebody was let in, if nobody else changed it meanwhile."""
    body = msgspec.json.encode(msgspec.structs.replace(guest, version=0))
    return _entry(GUEST, guest.account, body, guest.version)


def _entry(
    kind: str, account: str, body: bytes | None, expected: int | None = None
) -> Entry:
    return Entry(
        kind=kind,
        id=account,
        owner=connector_of(account),
        part=part_of(account),
        body=body,
        expected=expected,
    )


def as_let_in(
    request: PairingRequest, by: str, at: float, known: Guest | None
) -> Guest:
    """Say as whom somebody is known once they are let in.

    Args:
        at: Unix seconds.
        known: what their row says now; None: they have none.
    """
    return Guest(
        account=request.account,
        name=request.name,
        address=request.address,
        by=by,
        at=at,
        language=request.language,
        version=0 if known is None else known.version,
    )


def as_approved(
    request: PairingRequest, guest: Guest, told: tuple[str, AuditRedaction], at: float
) -> Commit:
    """Let somebody in; their request is over.

    Args:
        told: id of the record that tells of it, and what the audit keeps.
        at: Unix seconds.
    """
    entries = (as_forgotten(request), as_guest(guest))
    record = as_told(guest.account, "let_in", guest.by, told)
    return _as_decision(at, entries, record)


def as_denied(
    request: PairingRequest, by: str, told: tuple[str, AuditRedaction], at: float
) -> Commit:
    """Deny a request; see `as_approved`."""
    record = as_told(request.account, "not_let_in", by, told)
    return _as_decision(at, (as_request(request),), record)


def as_revoked(
    account: str, by: str, told: tuple[str, AuditRedaction], at: float
) -> Commit:
    """Let somebody in no more; see `as_approved`."""
    entry = _entry(GUEST, account, None)
    return _as_decision(at, (entry,), as_told(account, "revoked", by, told))


def _as_decision(at: float, entries: tuple[Entry, ...], record: Record) -> Commit:
    commit = Commit(at=at, entries=entries, records=(record,))
    return in_one_part(commit, entries[0].part, record.id)


def as_told(
    account: str, outcome: str, by: str, told: tuple[str, AuditRedaction]
) -> Record:
    """Put a decision on record."""
    record_id, keep = told
    return people_rows.as_told(record_id, account, outcome, f"by {by}", keep)
