"""A chat platform that knows no ids: what a bot says twice, people read twice.

It speaks lines of JSON with the bot, tells again what the bot did not take, and notes
who said what: which process, and how many deliveries that had called in doubt by then.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable

import msgspec
import trio

SAID = "platform-has-it"
"""The bot dies when the platform has shown its words, and has not answered yet."""

CHATS = 3
AT_ONCE = 2
"""Messages of one chat that are under way together."""

MOST = 100_000
"""Bytes of one line."""


class Wrote(msgspec.Struct, frozen=True, tag=True):
    """To the bot: somebody wrote this."""

    id: str
    chat: str
    text: str


class Shown(msgspec.Struct, frozen=True, tag=True):
    """To the bot: its words are shown, under this id."""

    id: str


class Here(msgspec.Struct, frozen=True, tag=True):
    """From the bot: it is there."""

    pid: int


class Took(msgspec.Struct, frozen=True, tag=True):
    """From the bot: it has stored a message."""

    id: str


class Say(msgspec.Struct, frozen=True, tag=True):
    """From the bot: show this."""

    answers: str
    """The message it replies to."""

    text: str
    in_doubt: int
    """Its counter of deliveries that may have been said before it was started."""


ToBot = Wrote | Shown
FromBot = Here | Took | Say


class Saying(msgspec.Struct, frozen=True):
    """Words that people saw."""

    message: Wrote
    text: str
    pid: int
    in_doubt: int


async def send(stream: trio.SocketStream, line: ToBot | FromBot) -> None:
    """Send one line.

    Raises:
        trio.BrokenResourceError: nobody is there any more.
    """
    await stream.send_all(msgspec.json.encode(line) + b"\n")


async def lines(stream: trio.SocketStream) -> AsyncGenerator[bytes]:
    """Give line after line until the connection ends, however it does."""
    received = b""
    with contextlib.suppress(trio.BrokenResourceError):
        while more := await stream.receive_some():
            *whole, received = (received + bytes(more)).split(b"\n")
            assert len(received) < MOST
            for line in whole:
                yield line


class Platform:
    """A few chats in each of which somebody goes on as soon as they are answered."""

    def __init__(self) -> None:
        self.port = 0
        self.written: list[Wrote] = []
        self.taken: set[str] = set()
        self.sayings: list[Saying] = []
        self.strange: list[str] = []
        """What a bot said to no message, or ahead of being asked."""

        self._is_over = False
        self._point = ""
        self._left = 0
        self._kill: Callable[[], object] = int
        for number in range(CHATS * AT_ONCE):
            self._write(f"chat{number % CHATS}")

    def arm(self, point: str, number: int, kill: Callable[[], object]) -> None:
        """End the bot when its NUMBERth words are shown; `""` disarms."""
        self._point, self._left, self._kill = point, number, kill

    def end(self) -> None:
        """Write nothing new."""
        self._is_over = True

    @property
    def is_quiet(self) -> bool:
        """Whether all that was written is answered."""
        return {w.id for w in self.written} == {s.message.id for s in self.sayings}

    async def serve(self, stream: trio.SocketStream) -> None:
        """Serve one bot until it is gone."""
        pid = 0
        async with stream, contextlib.aclosing(lines(stream)) as received:
            async for line in received:
                told: FromBot = msgspec.json.decode(line, type=FromBot)
                try:
                    match told:
                        case Here(pid=pid):
                            await self._tell(stream, set(self.taken))
                        case Took(id=taken):
                            self.taken.add(taken)
                        case Say() as say:
                            await self._show(stream, say, pid)
                except trio.BrokenResourceError:
                    return

    async def _tell(self, stream: trio.SocketStream, known: set[str]) -> None:
        for message in self.written:
            if message.id not in known:
                await send(stream, message)

    async def _show(self, stream: trio.SocketStream, say: Say, pid: int) -> None:
        asked = [each for each in self.written if each.id == say.answers]
        if not asked:
            self.strange.append(say.text)
            return
        is_new = all(each.message.id != say.answers for each in self.sayings)
        self.sayings.append(Saying(asked[0], say.text, pid, say.in_doubt))
        next_one = None
        if is_new and not self._is_over:
            next_one = self._write(asked[0].chat)
        if self._point == SAID:
            self._left -= 1
            if self._left == 0:
                # The bot waits for us, and has stored nothing of this.
                self._kill()
                return
        await send(stream, Shown(f"shown{len(self.sayings)}"))
        if next_one is not None:
            await send(stream, next_one)

    def _write(self, chat: str) -> Wrote:
        number = len(self.written)
        message = Wrote(f"message{number}", chat, f"word {number} in {chat}")
        self.written.append(message)
        return message


@contextlib.asynccontextmanager
async def open_platform() -> AsyncGenerator[Platform]:
    """Listen on loopback during the block."""
    platform = Platform()
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    platform.port = listeners[0].socket.getsockname()[1]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, platform.serve, listeners)
        yield platform
        nursery.cancel_scope.cancel()
