"""Server-sent events from bytes, as the WHATWG HTML standard (9.2.6) reads them.

Sans-I/O: fed with the chunks of a response in any split, gives back its events.
Knows nothing of HTTP or of any provider. `id` and `retry` are left out, because
an answer that broke off is asked for again, not resumed.
"""

from __future__ import annotations

import msgspec

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class SseEvent(msgspec.Struct, frozen=True):
    """One event of a stream."""

    data: bytes
    """Its `data` lines, joined by line feeds; not yet decoded."""

    name: bytes = b""
    """Its `event` line; empty if it had none."""


class TooLargeError(ValueError):
    """What came is above its bound; its reader is of no more use."""


class SseTooLargeError(TooLargeError):
    """An event, or a line of one, is above the bound; the parser is of no more use."""


class SseParser:
    """Cuts a byte stream into events.

    An event that is not ended by an empty line is never given out, so a stream
    that breaks off gives no half event.

    Args:
        max_event_bytes: most bytes of one event's data and of one line.
    """

    def __init__(self, max_event_bytes: int = 1024 * 1024) -> None:
        self._max_bytes = max_event_bytes
        self._line = bytearray()
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._name = b""
        self._is_first_line = True
        self._after_return = False

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Take the next bytes; give back the events they complete, in order.

        Raises:
            SseTooLargeError: an event is above the bound.
        """
        if self._after_return and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            self._after_return = False
        if not chunk:
            return []
        # A line that ends in CR is complete at once; the LF of a CR LF that was
        # split between two chunks is dropped when it comes.
        self._after_return = chunk.endswith(b"\r")
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        first, *rest = chunk.split(b"\n")
        self._bound(len(self._line) + len(first))
        self._line += first
        if not rest:
            return []
        events: list[SseEvent] = []
        line = bytes(self._line)
        for following in rest:
            event = self._take_line(line)
            if event is not None:
                events.append(event)
            line = following
            self._bound(len(line))
        self._line = bytearray(line)
        return events

    def _bound(self, size: int) -> None:
        if self._data_bytes + size > self._max_bytes:
            raise SseTooLargeError(f"an event is above {self._max_bytes} bytes")

    def _take_line(self, line: bytes) -> SseEvent | None:
        if self._is_first_line:
            self._is_first_line = False
            line = line.removeprefix(BYTE_ORDER_MARK)
        if not line:
            return self._end_event()
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._data_bytes += len(value) + 1
        elif field == b"event":
            self._name = value
        return None

    def _end_event(self) -> SseEvent | None:
        data, name = self._data, self._name
        self._data, self._data_bytes, self._name = [], 0, b""
        # The standard drops an event whose data is the empty string.
        joined = b"\n".join(data)
        return SseEvent(joined, name) if joined else None
