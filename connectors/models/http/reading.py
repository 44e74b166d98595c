"""Reads the body of an answer: as a stream of events, or in one piece.

Sans-I/O: fed with the chunks of a response in any split. A framing cuts the bytes into
events (server-sent events, or one JSON object in each line); an assembly puts the
events together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from connectors.models.format import Assembly, Framing

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


MAX_BODY = 16 * 1024 * 1024
"""Most bytes of an answer in one piece: four megabytes of words, escaped."""


class Reading(Protocol):
    """A body that is being read."""

    def feed(self, chunk: bytes) -> str:
        """Take the next bytes; gives back the words they bring.

        Raises:
            TooLargeError: a bound is passed.
            actors.errors.ModelError: see `Assembly.take`.
        """
        ...

    def end(self) -> str:
        """Learn of the body's clean end; gives back the words that this brings."""
        ...


class SseFraming:
    """Server-sent events; what they are called is left out, as their data says it."""

    def __init__(self) -> None:
        self._parser = SseParser()

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next bytes; see `SseParser`."""
        return [event.data for event in self._parser.feed(chunk)]

    def end(self) -> list[bytes]:
        """Give nothing: the standard drops an event that is not ended."""
        return []


class StreamReading:
    """A streamed answer."""

    def __init__(self, framing: Framing, assembly: Assembly) -> None:
        self._framing = framing
        self._assembly = assembly

    def feed(self, chunk: bytes) -> str:
        """Take the next bytes; see `Reading`."""
        words = ""
        for event in self._framing.feed(chunk):
            words += self._assembly.take(event)
        return words

    def end(self) -> str:
        """Learn of the body's clean end; see `Reading`."""
        words = "".join(map(self._assembly.take, self._framing.end()))
        self._assembly.end()
        return words


class WholeReading:
    """An answer in one piece."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._body = bytearray()

    def feed(self, chunk: bytes) -> str:
        """Take the next bytes; no words come before the end."""
        self._body += chunk
        if len(self._body) > MAX_BODY:
            raise TooLargeError(f"the answer is above {MAX_BODY} bytes")
        return ""

    def end(self) -> str:
        """Learn of the body's clean end; gives back all words."""
        words = self._assembly.take_whole(bytes(self._body))
        self._assembly.end()
        return words


MAX_LINE = 1024 * 1024
"""Most bytes of one line."""


class LineFraming:
    """Cuts a byte stream into its lines; empty ones are left out."""

    def __init__(self) -> None:
        self._line = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next bytes; give back the lines they complete, in order.

        Raises:
            TooLargeError: a line is above the bound.
        """
        self._line += chunk
        if b"\n" not in chunk:
            self._check(self._line)
            return []
        *lines, rest = bytes(self._line).split(b"\n")
        self._line = bytearray(rest)
        for line in (*lines, rest):
            self._check(line)
        return [line for each in lines if (line := each.strip())]

    def end(self) -> list[bytes]:
        """Give the last line, at the stream's clean end: it need not be ended."""
        line = bytes(self._line).strip()
        self._line.clear()
        return [line] if line else []

    @staticmethod
    def _check(line: bytes | bytearray) -> None:
        if len(line) > MAX_LINE:
            raise TooLargeError(f"a line is above {MAX_LINE} bytes")
