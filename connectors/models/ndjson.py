r"""Lines of JSON from bytes: one object in each line.

Sans-I/O: fed with the chunks of a response in any split, gives back its lines.
"""

from __future__ import annotations

from connectors.models.sse import TooLargeError

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
