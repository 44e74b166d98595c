"""A terminal's way to its company: says hello, sends, comes back when it breaks."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec
import trio

from connectors.chat.terminal.frames import (
    MOST_FILE,
    READS_COMPANY,
    FrameReader,
    FrameTooLongError,
    FromCompany,
    TerminalFile,
    TerminalHas,
    TerminalHello,
    TerminalRefused,
    TerminalSay,
    TerminalSettled,
    TerminalTaken,
    TerminalTold,
    TerminalWelcome,
    send,
)
from runtime.errors import KernelError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from runtime.ids import IdSource

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
        hello: says who this is.
        face: what the person sees.
        ids: names messages.
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
        stream = self._stream
        if not isinstance(stream, trio.abc.HalfCloseableStream):
            return
        self._is_leaving = True
        try:
            async with self._sending:
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
        self._stream = stream
        for said in tuple(self._open.values()):
            await self._send(said)


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
