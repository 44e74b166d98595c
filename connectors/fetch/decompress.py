"""Unpacks a compressed body, never further than a limit.

Pure. A few kilobytes can unpack to gigabytes, so what comes out is counted while it
does, and at the limit nothing more is unpacked.
"""

from __future__ import annotations

import zlib
from typing import Protocol

from connectors.fetch.messages import FetchFailedError, FetchTooLargeError

ACCEPTED = "gzip, deflate"
"""What `Accept-Encoding` says: what is unpacked here."""

MAX_MEMBERS = 64
"""Most parts that a gzip body may be put together from."""


class Unpacking(Protocol):
    """What zlib's object for unpacking has; its own name for it is private."""

    @property
    def eof(self) -> bool:
        """Whether the end of the packed bytes was seen."""
        ...

    @property
    def unconsumed_tail(self) -> bytes:
        """Packed bytes for which there was no room."""
        ...

    @property
    def unused_data(self) -> bytes:
        """Bytes after the end."""
        ...

    def decompress(self, packed: bytes, max_length: int = 0, /) -> bytes:
        """Unpack at most so many bytes."""
        ...


class Body(Protocol):
    """Takes a body piece by piece."""

    def feed(self, piece: bytes) -> None:
        """Take the next piece.

        Raises:
            FetchTooLargeError: it is above the limit.
            FetchFailedError: it is damaged.
        """
        ...

    def finish(self) -> bytes:
        """Give the whole body.

        Raises:
            FetchFailedError: its end is missing.
        """
        ...


def body_for(encoding: str, max_bytes: int) -> Body:
    """Choose how a body is read.

    Args:
        encoding: the header `Content-Encoding`; empty if there is none.
        max_bytes: most bytes that may come in, and most that may come out.

    Raises:
        FetchFailedError: a compression that was not asked for.
    """
    match encoding.strip().lower():
        case "" | "identity":
            return PlainBody(max_bytes)
        case "gzip" | "x-gzip" | "deflate":
            return PackedBody(max_bytes)
        case _:
            raise FetchFailedError("it is compressed in a way that was not asked for")


class PlainBody:
    """A body that is not compressed.

    Args:
        max_bytes: most bytes of it.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._body = bytearray()

    def feed(self, piece: bytes) -> None:
        """Take the next piece."""
        if len(self._body) + len(piece) > self._max_bytes:
            raise too_large(self._max_bytes)
        self._body += piece

    def finish(self) -> bytes:
        """Give the whole body."""
        return bytes(self._body)


class PackedBody:
    """A body in gzip or deflate, told apart by its first bytes.

    Args:
        max_bytes: most bytes of it, packed and unpacked.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._taken = 0
        self._body = bytearray()
        self._start = b""
        self._between = b""
        self._zlib: Unpacking | None = None
        self._members = 0

    def feed(self, piece: bytes) -> None:
        """Unpack the next piece."""
        self._taken += len(piece)
        if self._taken > self._max_bytes:
            raise too_large(self._max_bytes)
        if self._zlib is None:
            self._start += piece
            if len(self._start) < 2:
                return
            piece, self._start = self._start, b""
            self._zlib = zlib.decompressobj(window_bits(piece))
        try:
            self._unpack(piece)
        except zlib.error as error:
            raise FetchFailedError("its compressed body is damaged") from error

    def finish(self) -> bytes:
        """Give what came out."""
        if self._start or (self._zlib is not None and not self._zlib.eof):
            raise FetchFailedError("its compressed body has no end")
        return bytes(self._body)

    def _unpack(self, piece: bytes) -> None:
        while piece and self._zlib is not None:
            if self._zlib.eof:
                piece = self._between + piece
                if len(piece) < 2:
                    self._between = piece
                    return
                if not is_gzip(piece):
                    return  # padding after the end, which browsers skip as well
                self._between = b""
                self._next_member()
            room = self._max_bytes - len(self._body)
            # One byte more than there is room for tells that there is too much.
            self._body += self._zlib.decompress(piece, room + 1)
            if len(self._body) > self._max_bytes:
                raise too_large(self._max_bytes)
            piece = self._zlib.unconsumed_tail or self._zlib.unused_data

    def _next_member(self) -> None:
        self._members += 1
        if self._members >= MAX_MEMBERS:
            raise FetchFailedError("its compressed body has too many parts")
        self._zlib = zlib.decompressobj(zlib.MAX_WBITS | 16)


def is_gzip(start: bytes) -> bool:
    """Tell gzip by its first two bytes."""
    return start[:2] == b"\x1f\x8b"


def window_bits(start: bytes) -> int:
    """Tell zlib what is coming.

    Source: RFC 9110 8.4.1.2: `deflate` is zlib's format, but some servers send it
    without the two bytes in front.
    """
    if is_gzip(start):
        return zlib.MAX_WBITS | 16
    is_zlib = start[0] & 0x0F == 8 and int.from_bytes(start[:2]) % 31 == 0
    return zlib.MAX_WBITS if is_zlib else -zlib.MAX_WBITS


def too_large(max_bytes: int) -> FetchTooLargeError:
    """Make the error."""
    return FetchTooLargeError(
        f"it is above {max_bytes} bytes (the setting fetch.max_bytes)"
    )
