"""One exchange with a provider: how far it has come, and how long it may still take."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import httpx
import trio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from actors.errors import ModelFault
    from actors.ports import Speak
    from connectors.models.format import Assembly
    from connectors.models.http.reading import Reading

MAX_ERROR_BYTES = 64 * 1024
"""Most bytes read of an error's body; its text shows 200 characters of them."""

AFTER_END = 1.0
"""Seconds for the response to end after the answer has.

Worth waiting for: a connection that is read to its end is used again.
"""

DEADLINE_STEP = 0.001
"""Seconds by which a deadline may be early, counted from the last piece."""


class Exchange:
    """What has come of one answer so far, and how long the next piece may take.

    Args:
        reading: takes the body's bytes.
        assembly: the answer in the making.
        speak: who hears its words.
        pause: the scope whose deadline is moved on with every piece,
        ends_at: but not beyond this, on trio's clock.
    """

    def __init__(
        self,
        reading: Reading,
        assembly: Assembly,
        speak: Speak,
        pause: trio.CancelScope,
        ends_at: float,
    ) -> None:
        self.assembly = assembly
        self.request_id = ""
        self.is_answered = False
        """Whether the response's headers have come."""

        self.has_begun = False
        """Whether a byte of its body has come."""

        self._reading = reading
        self._speak = speak
        self._pause = pause
        self._ends_at = ends_at

    def take(self, chunk: bytes, idle_timeout: float) -> None:
        """Take the next bytes of the response.

        Raises:
            ModelError: they break the protocol or bring an error.
            TooLargeError: a bound is passed.
        """
        self.has_begun = True
        words = self._reading.feed(chunk)
        if words:
            self._speak(words)
        allowed = AFTER_END if self.assembly.is_whole else idle_timeout
        deadline = min(trio.current_time() + allowed, self._ends_at)
        # Many pieces come at once, and trio takes a while to move a deadline.
        if abs(deadline - self._pause.deadline) >= DEADLINE_STEP:
            self._pause.deadline = deadline

    def end(self) -> None:
        """Learn that the body has ended cleanly.

        Raises:
            ModelError: what came is no answer, or an error.
        """
        words = self._reading.end()
        if words:
            self._speak(words)


def kind_of(error: httpx.HTTPError, exchange: Exchange) -> ModelFault:
    """Tell what a failed connection is."""
    if isinstance(error, httpx.PoolTimeout):
        return "overload"  # ours: more calls at once than connections
    if isinstance(error, httpx.TimeoutException):
        return "timeout"
    if isinstance(error, httpx.ProtocolError) and exchange.is_answered:
        return "protocol"
    return "network"


async def read_beginning(chunks: AsyncIterator[bytes]) -> bytes:
    """Read the first `MAX_ERROR_BYTES` of a body, or all of it if it is shorter."""
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) >= MAX_ERROR_BYTES:
            break
    return bytes(body[:MAX_ERROR_BYTES])


async def abandon(chunks: AsyncIterator[bytes]) -> None:
    """Unwind a response that was not read to its end.

    Why by a cancelled read: httpx stacks five generators on each other, and closing
    the outermost leaves the others to the garbage collector, of which trio warns.
    `Cancelled` passes through all of them.
    """
    # What a broken connection says now is no news: the answer is whole or lost.
    with contextlib.suppress(httpx.HTTPError), trio.CancelScope() as scope:
        scope.cancel()
        async for _ in chunks:
            pass
