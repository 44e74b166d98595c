"""Where the rows for people do not say what the journal says; pure."""

from __future__ import annotations

from operator import eq
from typing import TYPE_CHECKING

import msgspec

from actors import records
from actors.rebuild import Expected

if TYPE_CHECKING:
    from runtime.rows import Record, StoredRecord

TEXTS = frozenset({"input", "output"})
"""Fields of an audit record that settings may leave out, and secrets are taken from."""

NAMES = frozenset({"chat", "sender_id", "sender_name"})
"""Fields of an audit record that secrets are taken from."""

MASK = "***"
"""What stands for a secret in a text that is kept."""


class Difference(msgspec.Struct, frozen=True):
    """A record that is not as the journal has it."""

    kind: str
    id: str
    problem: str
    """`is missing`, or which fields differ; for people."""

    expected: Expected | None = None
    """What is to be written; None if nothing can be."""


def compare(
    expected: Expected, stored: StoredRecord | None, audited_since: float
) -> Difference | None:
    """Hold what there is against what follows from the journal.

    A record written after its event is passed over: a later event, or an apology of
    the runtime, took its place.

    Args:
        expected: what follows from an event.
        stored: what there is of the same kind and id.
        audited_since: Unix seconds; audit records of earlier events may be gone.
    """
    record = expected.record
    if stored is None:
        if record.kind == records.AUDIT and expected.at < audited_since:
            return None
        return Difference(record.kind, record.id, "is missing", expected)
    if stored.at > expected.at:
        return None
    fields = differing(record, stored)
    if not fields:
        return None
    problem = f"differs in {', '.join(fields)}"
    return Difference(record.kind, record.id, problem, covered(expected, stored))


def differing(record: Record, stored: StoredRecord) -> list[str]:
    """Name what differs between a record and what there is of it."""
    found = [
        name
        for name in ("owner", "part")
        if getattr(record, name) != getattr(stored, name)
    ]
    try:
        there = msgspec.json.decode(stored.body, type=dict[str, object])
    except ValueError:
        return [*found, "body"]
    wanted = msgspec.json.decode(record.body, type=dict[str, object])
    is_audit = record.kind == records.AUDIT
    for name in sorted(wanted.keys() | there.keys()):
        is_same = fits if is_audit and name in TEXTS else eq
        is_same = is_covered if is_audit and name in NAMES else is_same
        if not is_same(wanted.get(name), there.get(name)):
            found.append(name)
    return found


def covered(expected: Expected, stored: StoredRecord) -> Expected:
    """Leave out of an audit record what was taken out before as a secret.

    It may be one that no settings name any more.
    """
    record = expected.record
    if record.kind != records.AUDIT:
        return expected
    try:
        there = msgspec.json.decode(stored.body, type=dict[str, object])
    except ValueError:
        return expected
    wanted = msgspec.json.decode(record.body, type=dict[str, object])
    for name in NAMES | TEXTS:
        was, words = there.get(name), wanted.get(name)
        if MASK in str(was) and is_covered(words, was):
            wanted[name] = was
    body = msgspec.json.encode(wanted)
    return Expected(msgspec.structs.replace(record, body=body), expected.at)


def fits(wanted: object, there: object) -> bool:
    """Whether a kept text may come from these words.

    It may have been left out, or had secrets taken out that nobody knows any more.
    """
    return not there or not wanted or is_covered(wanted, there)


def is_covered(wanted: object, there: object) -> bool:
    """Whether a kept text comes from these words, but for secrets taken out."""
    if there == wanted:
        return True
    pieces = str(there).split(MASK)
    place, words = 0, str(wanted)
    for piece in pieces:
        found = words.find(piece, place)
        if found < 0:
            return False
        place = found + len(piece)
    return len(pieces) > 1
