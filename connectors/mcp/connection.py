"""What a session needs of a connection to a server of tools, whatever carries it.

`ServerConnection` is a port: `protocol.py`, which alone knows the protocol's library,
implements it, and tests have one in memory. A server that sends without end costs us
time though nobody asked it anything, so lines that are no messages and messages that
answer nothing are counted, and too many of them are taken for a broken server.

McpError
├── McpMissingError     the program's part that speaks the protocol is not installed
├── ServerLostError     the connection has ended, or has to
└── ServerAnswerError   one question was not answered as it should be
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol

import msgspec
import trio

from actors.rules.text.cleaning import one_line
from runtime.errors import KernelError


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
        """
        if not self.has_come:
            self.reason = reason
            self.is_clean = is_clean
            self._event.set()

    async def wait(self) -> None:
        """Wait for it."""
        await self._event.wait()


class McpError(KernelError):
    """Base of everything that goes wrong with a server of tools."""


class McpMissingError(McpError):
    """What speaks the protocol is not installed."""


class ServerLostError(McpError):
    """The connection to a server has ended, or is not to be trusted any more."""


class ServerAnswerError(McpError):
    """A server refused a question, or what came was no answer to it.

    Args:
        text: what happened; the server's own words are cleaned.
        in_doubt: whether what was asked for may have been done.
    """

    def __init__(self, text: str, *, in_doubt: bool) -> None:
        super().__init__(text)
        self.in_doubt = in_doubt


class ServerTool(msgspec.Struct, frozen=True):
    """A tool as its server lists it, cleaned and bounded."""

    name: str
    """As the server calls it."""

    description: str
    parameters: bytes
    """JSON schema of the arguments, an object, without references."""


class ToolListing(msgspec.Struct, frozen=True):
    """All tools of a server."""

    tools: tuple[ServerTool, ...] = ()
    left_out: tuple[str, ...] = ()
    """Why each further tool that it listed cannot be used."""


class ListTools(msgspec.Struct, frozen=True):
    """Ask a server which tools it has; the answer is a `Shelf`.

    Before its first start has come to an end, the answer waits for that.
    """


State = Literal["starting", "open", "down", "ended"]
"""`starting` for the first time; `open`; `down`, to be started again; `ended` for
good."""


class Shelf(msgspec.Struct, frozen=True):
    """What a server has to offer now."""

    state: State
    listing: ToolListing
    """As it was last known, also while the server is down."""

    reason: str = ""
    """Why it is not `open`, for a model or a person."""

    said: str = ""
    """What its program complained before it ended, for a person; its own words."""


class CallTool(msgspec.Struct, frozen=True):
    """Ask a server to run a tool; the answer is an `actors.messages.ToolResult`.

    The ask fails with `ToolError` if the server cannot run it, or does not answer.
    """

    number: int
    """By which `CancelCall` means it; unique in the process."""

    name: str
    """As the server calls it."""

    arguments: bytes
    """JSON text."""

    owner: str = ""
    """The person for whom it runs: whose share of the places it takes."""


class CancelCall(msgspec.Struct, frozen=True):
    """Tell a server that nobody waits for a call any more."""

    number: int


class SessionOpened(msgspec.Struct, frozen=True):
    """A session told its server: it stands, and these are the tools."""

    listing: ToolListing


class ToolsListed(msgspec.Struct, frozen=True):
    """A session told its server: these are the tools now."""

    listing: ToolListing


class SessionEnded(msgspec.Struct, frozen=True):
    """A session told its server: it has ended."""

    reason: str
    is_final: bool
    """Whether it is not started again."""

    said: str = ""
    """What its program complained at last, for a person; its own words."""


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
        self._since = 0.0
        self._in_period = {"garbage": 0, "unasked": 0}

    def take_garbage(self, now: float) -> None:
        """Count what is no message.

        Args:
            now: seconds on any clock that does not go backwards.

        Raises:
            ServerLostError: that was one too many.
        """
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
