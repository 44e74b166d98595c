"""A connection to a server of tools: the port, errors, limits, and one over pipes.

`ServerConnection` is what a session needs of it, whatever carries it; `protocol.py`,
which alone knows the protocol's library, implements it, and tests have one in memory. A
server that sends without end costs us time though nobody asked it anything, so lines
that are no messages and messages that answer nothing are counted (`Traffic`), and too
many of them are taken for a broken server.

A server's standard input and output become streams of the protocol's library here. The
library's own transport starts programs itself, and bounds neither a line nor how many
come.

McpError
├── McpMissingError     the program's part that speaks the protocol is not installed
├── ServerLostError     the connection has ended, or has to
└── ServerAnswerError   one question was not answered as it should be
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Literal, Protocol

import anyio
import msgspec
import trio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse
from mcp_types import jsonrpc_message_adapter as messages

from actors.rules.text.cleaning import one_line
from runtime.errors import KernelError
from runtime.telemetry.logs import EventLog, Quoted

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from connectors.sandbox.runner import Confined


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


LOG = EventLog("mcp")

PIECE = 64 * 1024

# Chosen: lines of a server's complaints that are written to the log while it runs;
# what follows is read and thrown away.
MOST_COMPLAINTS = 200

# Chosen: seconds a program has to end by itself when its input ends, as the protocol
# wants it; then it is killed.
GRACE = 2.0

Item = SessionMessage | Exception
Streams = tuple["MemoryObjectReceiveStream[Item]", "MemoryObjectSendStream[Item]"]


class Traffic:
    """Looks at every message before the library does, whatever carries it.

    Args:
        gate: counts what should not come.
        ending: is told when it was too much.
    """

    def __init__(self, gate: Gate, ending: ServerEnd) -> None:
        self._gate = gate
        self._ending = ending
        self._owed = 0

    def note_sent(self, item: SessionMessage) -> None:
        """Count what the server has to answer."""
        self._owed += isinstance(item.message, JSONRPCRequest)

    def lets_in(self, item: Item) -> bool:
        """Tell whether the library is to see this; False: what came was nothing.

        Raises:
            ServerLostError: too much came that nobody asked for.
        """
        now = trio.current_time()
        if isinstance(item, Exception):
            self._gate.take_garbage(now)
            return False
        is_answer = isinstance(item.message, JSONRPCResponse | JSONRPCError)
        if is_answer and self._owed > 0:
            self._owed -= 1
        else:
            self._gate.take_unasked(now)
        return True


def read(line: bytes) -> Item:
    """Make a message of a line, or the error that it is none."""
    try:
        return SessionMessage(messages.validate_json(line, by_name=False))
    except (ValueError, RecursionError) as error:
        return ValueError(f"no message: {type(error).__name__}")


@asynccontextmanager
async def piped(
    server: str, program: Confined, traffic: Traffic, ending: ServerEnd
) -> AsyncGenerator[Streams]:
    """Carry messages to and from a program until the block ends.

    Args:
        server: its name, for the log.
        program: just started.
        traffic: looks at what comes.
        ending: comes when the program ends, or sends what no server may.
    """
    to_session, incoming = anyio.create_memory_object_stream[Item](0)
    outgoing, to_program = anyio.create_memory_object_stream[Item](0)
    async with (
        to_session,
        incoming,
        outgoing,
        to_program,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(hear, program, traffic, ending, to_session)
        nursery.start_soon(say, program, traffic, ending, to_program)
        nursery.start_soon(log_complaints, server, program, ending.complaints)
        try:
            yield incoming, outgoing
        finally:
            # Why shielded: most ends are cancellations, and a server may have
            # something to put away.
            with trio.move_on_after(GRACE, shield=True):
                await program.stdin.aclose()
                await program.wait()
            nursery.cancel_scope.cancel()


async def hear(
    program: Confined,
    traffic: Traffic,
    ending: ServerEnd,
    to_session: MemoryObjectSendStream[Item],
) -> None:
    """Read what the program writes, until it ends or writes what it must not."""
    lines = Lines()
    async with to_session:
        try:
            while piece := await program.stdout.receive_some(PIECE):
                for line in lines.feed(bytes(piece)):
                    item = read(line) if line.strip() else None
                    if item is not None and traffic.lets_in(item):
                        await to_session.send(item)
        except ServerLostError as error:
            ending.come(str(error))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # nobody listens any more
        # Why inside: the session learns of the end by this stream's, and asks why.
        await tell_end(program, ending, "its program closed its output")


async def tell_end(program: Confined, ending: ServerEnd, reason: str) -> None:
    """Find out why a program is not to be spoken with any more."""
    code = None
    with trio.move_on_after(GRACE):
        code = await program.wait()
        await ending.complaints.over.wait()
    if code is not None:
        reason = f"its program ended with code {code}"
    ending.come(reason, is_clean=code == 0)


async def say(
    program: Confined,
    traffic: Traffic,
    ending: ServerEnd,
    to_program: MemoryObjectReceiveStream[Item],
) -> None:
    """Write what the session says; a program that does not read it is lost."""
    try:
        async for item in to_program:
            if not isinstance(item, SessionMessage):
                continue
            traffic.note_sent(item)
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            await program.stdin.send_all(text.encode() + b"\n")
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        await tell_end(program, ending, "its program closed its input")


async def log_complaints(
    server: str, program: Confined, complaints: Complaints
) -> None:
    """Write what the program complains to the log, up to a bound; keep the last."""
    rest = b""
    left = MOST_COMPLAINTS
    try:
        while piece := await program.stderr.receive_some(PIECE):
            *lines, rest = (rest + piece).split(b"\n")
            rest = rest[-LONGEST_COMPLAINT:]
            complaints.lines.extend(line[:LONGEST_COMPLAINT] for line in lines)
            for line in lines[:left]:
                left -= 1
                LOG.info("server complains", server=server, line=Quoted(readable(line)))
                if left == 0:
                    text = "server complains too much; no more is shown"
                    LOG.info(text, server=server)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass
    finally:
        complaints.lines.append(rest)
        complaints.over.set()
