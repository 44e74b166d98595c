"""The rows for people, made once more from the journal alone; pure.

Sessions write records beside their events (`records.py`); what is folded here from
the events must be the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors import records
from actors.chapters import KINDS, read_chapter
from actors.history import Conversation, Deferred, Exchanged
from actors.rules.book import Consulted
from actors.rules.keys import parse_key
from runtime.rows import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from actors.history import Event
    from actors.redaction import Keep
    from runtime.rows import StoredEvent


class Expected(msgspec.Struct, frozen=True):
    """A record that follows from an event."""

    record: Record
    at: float
    """Unix seconds of the event, and so of the record."""


class Fold:
    """The records that follow from events, given stream by stream in their order.

    Args:
        keep: says what the audit keeps.
    """

    def __init__(self, keep: Keep) -> None:
        self._keep = keep
        self._stream = ""
        self._counted = Conversation()
        self._conversation: Expected | None = None

    def take(self, event: StoredEvent) -> Iterator[Expected]:
        """Take one event in; give what is certain by now.

        How a conversation stands is certain when its stream has ended.

        Raises:
            ValueError: the event cannot be read; it is passed over.
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
        """Give what was waiting for the stream's end."""
        if self._conversation is not None:
            yield self._conversation
        self._stream, self._counted, self._conversation = "", Conversation(), None


def read_event(event: StoredEvent) -> Event | Consulted | None:
    """Read a session's event; None: no record follows from one of its kind.

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
