"""Makes the records again from the journal alone, and compares them; pure.

Sessions write records (`records.py`) beside their events; what is folded from the
events here must be equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import eq

import msgspec

from actors.delegation.consultations import Consulted
from actors.journal import records
from actors.journal.history import (
    KINDS,
    Conversation,
    Deferred,
    Event,
    Exchanged,
    read_chapter,
)
from actors.messages.keys import parse_key
from actors.rules.text.secrets import AuditRedaction
from runtime.store.rows import Record, StoredEvent, StoredRecord


class Expected(msgspec.Struct, frozen=True):
    """A record that follows from an event."""

    record: Record
    at: float
    """Unix seconds of the event, and so of the record."""


class Fold:
    """Makes the records that follow from events, given stream by stream in order."""

    def __init__(self, keep: AuditRedaction) -> None:
        self._keep = keep
        self._stream = ""
        self._counted = Conversation()
        self._conversation: Expected | None = None

    def take(self, event: StoredEvent) -> Iterator[Expected]:
        """Take one event; give the records that are certain by now.

        A conversation's record is certain when its stream has ended.

        Raises:
            ValueError: the event cannot be read; it is ignored.
        """
        if event.stream != self._stream:
            yield from self.end()
            self._stream = event.stream
        read = read_event(event)
        if read is None:
            return
        if isinstance(read, Consulted):
            for record in records.of_consultation(event.stream, read, self._keep):
                yield Expected(record, event.at)
            return
        self._counted = self._counted.after(read, event.at)
        for record in records.of_event(event.stream, read, self._counted, self._keep):
            expected = Expected(record, event.at)
            if record.kind == records.CONVERSATION:
                self._conversation = expected
            else:
                yield expected

    def end(self) -> Iterator[Expected]:
        """Give the records that waited for the stream's end."""
        if self._conversation is not None:
            yield self._conversation
        self._stream, self._counted, self._conversation = "", Conversation(), None


def read_event(event: StoredEvent) -> Event | Consulted | None:
    """Decode a session's event; None: no record follows from its kind.

    Raises:
        ValueError: it cannot be read.
    """
    if event.kind == "exchanged":
        parse_key(event.stream)
        return msgspec.json.decode(event.body, type=Exchanged)
    if event.kind == "consulted":
        parse_key(event.stream)
        return msgspec.json.decode(event.body, type=Consulted)
    if event.kind == "deferred":
        parse_key(event.stream)
        return msgspec.json.decode(event.body, type=Deferred)
    if event.kind in KINDS:
        parse_key(event.stream)
    return read_chapter(event.kind, event.body)


TEXTS = frozenset({"input", "output"})
"""Fields of an audit record that settings may leave out, and that are redacted."""

NAMES = frozenset({"chat", "sender_id", "sender_name"})
"""Fields of an audit record that are redacted."""

MASK = "***"
"""Stands for a redacted secret."""


class Difference(msgspec.Struct, frozen=True):
    """A record that differs from the journal."""

    kind: str
    id: str
    problem: str
    """`is missing`, or which fields differ; for people."""

    expected: Expected | None = None
    """The right record; None if none can be made."""


def compare(
    expected: Expected, stored: StoredRecord | None, audited_since: float
) -> Difference | None:
    """Compare a stored record with the one that follows from the journal.

    A record written after its event is left alone: a later event, or an apology of the
    runtime, replaced it.

    Args:
        stored: the record of the same kind and id.
        audited_since: Unix seconds; audit records of earlier events may be deleted.
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
    """Name the fields in which two records differ."""
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
    """Leave out what was redacted in the stored record, perhaps by older settings."""
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
    """Whether a stored text may come from this text.

    It may have been left out, or redacted by older settings.
    """
    return not there or not wanted or is_covered(wanted, there)


def is_covered(wanted: object, there: object) -> bool:
    """Whether a stored text comes from this text, but for redacted secrets."""
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
