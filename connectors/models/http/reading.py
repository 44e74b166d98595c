"""Reads the body of an answer: as a stream of events, or in one piece.

Sans-I/O. Joins a framing, which knows bytes, and an assembly, which knows events.

Lines of JSON from bytes: one object in each line.

Sans-I/O: fed with the chunks of a response in any split, gives back its lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from connectors.models.http.sse import SseParser, TooLargeError

if TYPE_CHECKING:
    from connectors.models.format import Assembly, Framing


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
