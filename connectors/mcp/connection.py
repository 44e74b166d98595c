"""What a session needs of a connection to a server, whatever carries it.

Implemented by `protocol.py`, which alone knows the protocol's library; tests have one
in memory.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

import trio

from actors.rules.text.cleaning import one_line

if TYPE_CHECKING:
    from connectors.mcp.messages import ToolListing


class ServerConnection(Protocol):
    """A server that has been spoken to."""

    @property
    def ending(self) -> ServerEnd:
        """Whether it has ended, and why."""
        ...

    async def list_tools(self) -> ToolListing:
        """Ask for all tools.

        Raises:
            ServerLostError: the connection has ended.
            ServerAnswerError: the answer is none.
        """
        ...

    async def call(self, name: str, arguments: dict[str, object]) -> object:
        """Have a tool run; gives the answer as JSON. Cancelling tells the server.

        Raises:
            ServerLostError: the connection has ended.
            ServerAnswerError: the server refused, or what came is no answer.
        """
        ...

    async def wait_changed(self) -> None:
        """Wait until the server says that it has other tools now."""
        ...


Connect = Callable[[], AbstractAsyncContextManager[ServerConnection]]
"""Begins to speak to a server; ends it with the block. Raises `McpError`."""


# Chosen: an error of Node is followed by a trace of some twenty lines.
LAST_LINES = 40
LONGEST_COMPLAINT = 500

NAMES_AN_ERROR = re.compile(r"[\w.]*(Error|Exception)\b")


class Complaints:
    """What a server's program complained at last; none of one at an address."""

    def __init__(self) -> None:
        self.lines = deque[bytes](maxlen=LAST_LINES)
        self.over = trio.Event()
        """Set when no more come."""

    @property
    def last(self) -> str:
        """The line that says most about an end: the last error, else the last line."""
        lines = [readable(each) for each in self.lines if each.strip()]
        errors = [each for each in lines if NAMES_AN_ERROR.match(each)]
        return (errors or lines or [""])[-1]


def readable(line: bytes) -> str:
    """Make a line of what a program wrote fit to be shown."""
    return one_line(line.decode(errors="replace"), LONGEST_COMPLAINT)


class ServerEnd:
    """The end of a connection; the first reason given counts."""

    def __init__(self) -> None:
        self._event = trio.Event()
        self.reason = ""
        self.is_clean = False
        """Whether the server ended as programs do that have nothing more to do."""

        self.refusal = ""
        """What a server at an address answered last, if it was no success: the likely
        reason of an end that nothing else explains."""

        self.complaints = Complaints()
        """The server's own words: for people only, never for a model."""

    @property
    def has_come(self) -> bool:
        """Whether the connection has ended, or has to."""
        return self._event.is_set()

    def come(self, reason: str, *, is_clean: bool = False) -> None:
        """Have it end.

        Args:
            reason: for a model or a person; nothing of what the server said.
            is_clean: see the attribute.
        """
        if not self.has_come:
            self.reason = reason
            self.is_clean = is_clean
            self._event.set()

    async def wait(self) -> None:
        """Wait for it."""
        await self._event.wait()
