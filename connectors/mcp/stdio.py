"""A server's standard input and output, as streams of the protocol's library.

Loaded only with `protocol.py`. The library's own transport starts programs itself, and
bounds neither a line nor how many come.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import trio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    JSONRPCError,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter as messages,
)

from connectors.mcp.connection import (
    LONGEST_COMPLAINT,
    Complaints,
    Gate,
    Lines,
    ServerEnd,
    ServerLostError,
    readable,
)
from connectors.sandbox.runner import Confined
from runtime.telemetry.logs import EventLog, Quoted

LOG = EventLog("mcp")

PIECE = 64 * 1024

# Chosen: lines of a server's complaints that are written to the log while it runs;
# what follows is read and thrown away.
MOST_COMPLAINTS = 200

# Chosen: seconds a program has to end by itself when its input ends, as the protocol
# wants it; then it is killed.
GRACE = 2.0

Item = SessionMessage | Exception
Streams = tuple[MemoryObjectReceiveStream[Item], MemoryObjectSendStream[Item]]


class Traffic:
    """Looks at every message before the library does, whatever carries it."""

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
