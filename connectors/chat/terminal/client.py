"""A terminal's way to its company: says hello, sends, comes back when it breaks.

What a terminal and its company send each other are frames. Each frame is one line of
JSON. Both ends are the same program; the first frame of each names its release, so that
a server that was not restarted after an upgrade is noticed.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, Protocol

import msgspec
import trio

from actors.errors import ChatError
from actors.messages.deliveries import Draft
from runtime.errors import KernelError
from runtime.ids import IdSource

CHAT: Final = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
"""What a terminal's conversation may be called."""

MOST_FILE = 8_388_608
"""Bytes of the files that a person sends with one message."""

# Chosen: a file of the largest size in Base64, and the longest text besides.
MOST_FRAME = 16_777_216
"""Bytes of one frame; who sends more is disconnected."""

BLOCK = 65_536


class FrameTooLongError(ChatError):
    """The other end sent more than one frame may have, or no frame at all."""


class TerminalFile(msgspec.Struct, frozen=True):
    """A file that a person sends."""

    name: str
    content: bytes


class TerminalHello(msgspec.Struct, frozen=True, tag="hello"):
    """A terminal's first frame."""

    release: str
    chat: str = ""
    """Its conversation; empty: the first one at which no terminal is."""

    after: int = -1
    """The number of the last answer that it has; -1: the company knows."""

    user: str = ""
    """Name of the person; empty: as the settings say."""

    agent: str = ""
    """Whom messages are for; empty: routes decide."""


class TerminalSay(msgspec.Struct, frozen=True, tag="say"):
    """A person's message."""

    id: str
    """Of the terminal's making: sent again under the same one, it counts once."""

    text: str
    files: tuple[TerminalFile, ...] = ()


class TerminalHas(msgspec.Struct, frozen=True, tag="has"):
    """The terminal has shown all answers up to this number."""

    number: int


FromTerminal = TerminalHello | TerminalSay | TerminalHas


class ShownAgent(msgspec.Struct, frozen=True):
    """One agent, for banner and completion."""

    name: str
    shown: str
    description: str
    model: str


class TerminalWelcome(msgspec.Struct, frozen=True, tag="welcome"):
    """The company's first frame."""

    release: str
    chat: str
    after: int
    """Answers with a higher number follow."""

    user: str


class TerminalRoster(msgspec.Struct, frozen=True, tag="roster"):
    """Who is here and which commands there are; sent again when that changes."""

    agents: tuple[ShownAgent, ...]
    answers: str
    """Name of the agent that answers when nobody is named; empty: routes say."""

    commands: tuple[tuple[str, str], ...]
    """Word and meaning of each slash command."""


class TerminalTold(msgspec.Struct, frozen=True, tag="told"):
    """An answer or a notice."""

    number: int
    agent: str
    """Empty for a notice of the runtime."""

    shown: str
    """What people call the agent."""

    text: str
    correlation_id: str
    is_aside: bool = False
    reply_to: str = ""
    """The terminal's id of the message that it answers; empty: it answers none."""


class TerminalDraft(msgspec.Struct, frozen=True, tag="draft"):
    """A piece of an answer that is being written."""

    draft: Draft
    shown: str


class TerminalTyping(msgspec.Struct, frozen=True, tag="typing"):
    """An agent works at an answer, or has stopped."""

    shown: str
    is_over: bool


class TerminalTaken(msgspec.Struct, frozen=True, tag="taken"):
    """A message was stored; or was not, with the reason."""

    id: str
    correlation_id: str = ""
    """Of answers to it; empty if it was refused."""

    refused: str = ""
    is_final: bool = False
    """Whether it is useless to send it again."""


class TerminalSettled(msgspec.Struct, frozen=True, tag="settled"):
    """Nothing more will be said to a message."""

    id: str
    correlation_id: str
    reason: str
    """As in `Transport.settle`."""


class TerminalRefused(msgspec.Struct, frozen=True, tag="refused"):
    """The terminal is not let in."""

    why: str


FromCompany = (
    TerminalWelcome
    | TerminalRoster
    | TerminalTold
    | TerminalDraft
    | TerminalTyping
    | TerminalTaken
    | TerminalSettled
    | TerminalRefused
)

READS_TERMINAL: Final[msgspec.json.Decoder[FromTerminal]] = msgspec.json.Decoder(
    FromTerminal
)
READS_COMPANY: Final[msgspec.json.Decoder[FromCompany]] = msgspec.json.Decoder(
    FromCompany
)


async def send(stream: trio.abc.SendStream, frame: FromTerminal | FromCompany) -> None:
    """Send one frame.

    Raises:
        trio.BrokenResourceError: the other end has gone.
    """
    await stream.send_all(msgspec.json.encode(frame) + b"\n")


class FrameReader:
    """Reads lines from a stream."""

    def __init__(self, stream: trio.abc.ReceiveStream) -> None:
        self._stream = stream
        self._rest = bytearray()

    async def line(self) -> bytes | None:
        """Wait for the next line; None: the other end has gone.

        Raises:
            FrameTooLongError: it is longer than any frame.
            trio.BrokenResourceError: the connection broke.
        """
        looked = 0
        while (at := self._rest.find(b"\n", looked)) < 0:
            looked = len(self._rest)
            if looked > MOST_FRAME:
                raise FrameTooLongError(f"a frame of more than {MOST_FRAME} bytes")
            block = await self._stream.receive_some(BLOCK)
            if not block:
                return None
            self._rest += block
        line = bytes(self._rest[:at])
        del self._rest[: at + 1]
        return line


RETRY_EVERY = 1.0
"""Seconds between two tries to come back."""

FILE = re.compile(r"(?<!\S)@((?:~/|\.{0,2}/)\S+)")
"""A file that a message names: `@./plan.pdf`, `@~/plan.pdf`, `@/tmp/plan.pdf`."""

GONE = (
    trio.BrokenResourceError,
    trio.ClosedResourceError,
    FrameTooLongError,
    msgspec.MsgspecError,
    OSError,
)
"""How a connection may end."""


class TerminalRefusedError(KernelError):
    """The company refuses this terminal; the text says why, and what to do."""


class Face(Protocol):
    """What a person sees; all calls come from one task, in order, and never wait."""

    def hear(self, frame: FromCompany) -> None:
        """Show what the company sends."""
        ...

    def lose(self) -> None:
        """Show that the connection broke, and will be tried again."""
        ...


class TerminalClient:
    """One conversation, over as many connections as it takes.

    Args:
        dial: connects; raises `OSError` if nobody listens.
    """

    def __init__(
        self,
        dial: Callable[[], Awaitable[trio.abc.Stream]],
        hello: TerminalHello,
        face: Face,
        ids: IdSource,
    ) -> None:
        self._dial = dial
        self._hello = hello
        self._face = face
        self._ids = ids
        self._stream: trio.abc.Stream | None = None
        self._sending = trio.Lock()
        self._is_leaving = False
        self._ended = trio.Event()
        self._open: dict[str, TerminalSay] = {}
        """Messages that are neither settled nor refused, by id. They are repeated over
        each new connection: one may be lost, and a company that began anew does not
        know who waits for answers."""

    async def run(self, first: trio.abc.Stream | None = None) -> None:
        """Talk until it leaves or is cancelled; when the connection breaks, come back.

        Args:
            first: an open connection; None: dial.

        Raises:
            TerminalRefusedError: it is not let in.
        """
        try:
            await self._run(first)
        finally:
            self._ended.set()

    async def leave(self) -> None:
        """Go, as soon as the company has taken in all that was sent."""
        async with self._sending:
            stream = self._stream
            if not isinstance(stream, trio.abc.HalfCloseableStream):
                return
            self._is_leaving = True
            try:
                await stream.send_eof()
            except GONE:
                return
        await self._ended.wait()

    async def _run(self, first: trio.abc.Stream | None) -> None:
        stream = first or await self._redial()
        while True:
            try:
                await self._talk(stream)
            except GONE:
                pass  # as at the end of all that it sent
            finally:
                self._stream = None
                with trio.CancelScope(shield=True):
                    await trio.aclose_forcefully(stream)
            if self._is_leaving:
                return
            self._face.lose()
            await trio.sleep(RETRY_EVERY)
            stream = await self._redial()

    def new_message(
        self, text: str, files: tuple[TerminalFile, ...] = ()
    ) -> TerminalSay:
        """Give a message an id of its own; bytes that were no UTF-8 become `?`."""
        files = tuple([TerminalFile(written(x.name), x.content) for x in files])
        return TerminalSay(self._ids.new(), written(text), files)

    async def say(self, said: TerminalSay) -> None:
        """Send a message now, or as soon as there is a connection."""
        self._open[said.id] = said
        await self._send(said)

    async def have(self, number: int) -> None:
        """Say that all answers up to this one were shown."""
        await self._send(TerminalHas(number))

    async def _send(self, frame: TerminalSay | TerminalHas) -> None:
        try:
            async with self._sending:
                # Why here: it may have broken while others were sending.
                if self._stream is not None:
                    await send(self._stream, frame)
        except GONE:
            pass  # the reader notices, and it is said again

    async def _redial(self) -> trio.abc.Stream:
        while True:
            try:
                return await self._dial()
            except OSError:
                await trio.sleep(RETRY_EVERY)

    async def _talk(self, stream: trio.abc.Stream) -> None:
        await send(stream, self._hello)
        reader = FrameReader(stream)
        while (line := await reader.line()) is not None:
            frame = READS_COMPANY.decode(line)
            match frame:
                case TerminalRefused():
                    raise TerminalRefusedError(frame.why)
                case TerminalWelcome():
                    await self._welcome(stream, frame)
                case TerminalTaken(refused=why) if why:
                    self._open.pop(frame.id, None)
                case TerminalSettled():
                    self._open.pop(frame.id, None)
                case TerminalTold():
                    self._hello = msgspec.structs.replace(
                        self._hello, after=frame.number
                    )
                case _:
                    pass
            self._face.hear(frame)

    async def _welcome(self, stream: trio.abc.Stream, frame: TerminalWelcome) -> None:
        """Keep the conversation for the next connection; repeat what is open."""
        self._hello = msgspec.structs.replace(
            self._hello, chat=frame.chat, after=frame.after
        )
        async with self._sending:  # new messages are sent after these
            for said in tuple(self._open.values()):
                await send(stream, said)
            self._stream = stream


def written(text: str) -> str:
    """Give a text that can be sent: terminals and paths may have halves of characters.

    Source: Python's error handler `surrogateescape`.
    """
    return text.encode(errors="replace").decode()


def files_in(text: str) -> tuple[TerminalFile, ...]:
    """Read the files that a message names by path.

    Raises:
        OSError: one cannot be read, or they are too large.
    """
    found: list[TerminalFile] = []
    left = MOST_FILE
    for name in FILE.findall(text):
        path = Path(name).expanduser()
        seen = path.stat()
        if not stat.S_ISREG(seen.st_mode):  # a pipe or device need not have an end
            raise OSError(22, "is no plain file", name)
        if seen.st_size > left:
            raise OSError(27, f"more than {MOST_FILE >> 20} MiB in one message", name)
        found.append(TerminalFile(path.name, path.read_bytes()[:left]))
        left -= len(found[-1].content)
    return tuple(found)
