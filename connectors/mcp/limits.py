"""What one server may send before it is taken for broken; pure.

A server that sends without end costs us time though nobody asked it anything. What is
counted here: lines that are no messages, and messages that answer nothing.
"""

from __future__ import annotations

from connectors.mcp.messages import ServerLostError

LARGEST_MESSAGE = 8 * 1024 * 1024
"""Bytes of one message: the pictures of one result, in base64."""

MOST_GARBAGE = 100
"""Lines in a period that are no messages: some programs greet people at the start."""

MOST_UNASKED = 2_000
"""Messages in a period that answer nothing: progress, notes, requests."""

PERIOD = 10.0
"""Seconds."""


class Gate:
    """Counts what one server sends."""

    def __init__(self) -> None:
        self.garbage = 0
        """Lines, or messages, that were none, since it started."""

        self._since = 0.0
        self._in_period = {"garbage": 0, "unasked": 0}

    def take_garbage(self, now: float) -> None:
        """Count what is no message.

        Args:
            now: seconds on any clock that does not go backwards.

        Raises:
            ServerLostError: that was one too many.
        """
        self.garbage += 1
        self._count("garbage", MOST_GARBAGE, now)

    def take_unasked(self, now: float) -> None:
        """Count a message that answers nothing; as `take_garbage`."""
        self._count("unasked", MOST_UNASKED, now)

    def _count(self, kind: str, most: int, now: float) -> None:
        if now - self._since >= PERIOD:
            self._since = now
            self._in_period = dict.fromkeys(self._in_period, 0)
        self._in_period[kind] += 1
        if self._in_period[kind] > most:
            raise ServerLostError(
                f"it sent more than {most} messages in {PERIOD:.0f} seconds that "
                + ("are none" if kind == "garbage" else "answer nothing")
            )


class Lines:
    """Cuts what comes in pieces into lines.

    Args:
        longest: bytes of one line.
    """

    def __init__(self, longest: int = LARGEST_MESSAGE) -> None:
        self._longest = longest
        self._rest = bytearray()

    def feed(self, piece: bytes) -> list[bytes]:
        """Take a piece; give the lines that are complete now, without their ends.

        Raises:
            ServerLostError: a line is too long.
        """
        seen = len(self._rest)
        self._rest += piece
        if b"\n" not in piece:
            lines: list[bytes] = []
        else:
            end = self._rest.rindex(b"\n", seen) + 1
            lines = bytes(self._rest[: end - 1]).split(b"\n")
            del self._rest[:end]
        if max(map(len, (*lines, self._rest))) > self._longest:
            raise ServerLostError(f"it sent more than {self._longest} bytes at once")
        return lines
