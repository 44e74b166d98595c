"""One client that is connected: hears it, tells it, sees whether it is still there.

What was said to the client is read from the database behind the last message that this
connection told: nothing twice, in order, and whoever reads slowly costs no memory.
"""

from __future__ import annotations

import contextlib
from collections import deque
from typing import TYPE_CHECKING

import trio
from wsproto.events import Pong

from connectors.chat.websocket import frames
from connectors.chat.websocket.errors import FrameError, GoneError, RefusedError
from connectors.chat.websocket.frames import Ack, Hello, Ping, Say
from connectors.chat.websocket.saying import Pace, hand_in, too_fast
from connectors.chat.websocket.wire import close_code
from runtime.errors import StoreError
from runtime.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from actors.deliveries import Draft, Typing
    from connectors.chat.websocket.house import House
    from connectors.chat.websocket.reception import Guest
    from connectors.chat.websocket.wire import Wire

LOG = EventLog("websocket")

PAGE = 100
"""Messages that are read from the database at once."""

MOST_ASIDE = 256
"""Frames beside messages (drafts, typing) that may wait; further ones are left out."""

LONGEST_DRAFT = 16_384
"""Characters of one draft that may wait. A piece that is left out is seen as a gap in
`at`; the whole answer comes all the same."""

GOING, TRY_LATER, NORMAL = 1001, 1013, 1000
CODES = {"idle": NORMAL, "stopping": GOING, "store": TRY_LATER, "replaced": NORMAL}


class Visit:
    """One connection of a client.

    Args:
        wire: to it.
        guest: who it is.
        chat: its conversation.
        house: what it has come to.
        cursor: the number of the last message that it has.
    """

    def __init__(
        self, wire: Wire, guest: Guest, chat: str, house: House, cursor: int
    ) -> None:
        self._wire = wire
        self._guest = guest
        self.chat = chat
        self._house = house
        self._cursor = cursor
        self._bell = trio.Event()
        self._bell.set()  # what was said meanwhile
        self._aside: deque[tuple[str, str]] = deque()
        self._behind: deque[tuple[str, str]] = deque()
        """Frames that come behind the messages."""

        self._drafts: dict[str, tuple[Draft, str]] = {}
        self._pong = trio.Event()
        self._pace = Pace(house.config.messages_per_minute)
        self._busy_at = trio.current_time()
        self._scope = trio.CancelScope()
        self.why = ""
        """Why it ended: one bounded word."""

        self._fault: RefusedError | None = None

    async def run(self) -> None:
        """Stay with the client until it goes, or is let go."""
        with self._scope:
            async with trio.open_nursery() as nursery:
                for each in (self._listen, self._tell, self._watch):
                    nursery.start_soon(self._while_there, each)

    async def say_goodbye(self) -> None:
        """End the connection."""
        self.why = self.why or "stopping"
        if self._fault is not None:
            await let_go(self._wire, self._fault)
        else:
            await self._wire.close(CODES.get(self.why, NORMAL), self.why)

    def leave(self, why: str) -> None:
        """Have it end."""
        self.why = self.why or why
        self._scope.cancel()

    # --- from the company ---------------------------------------------------------

    def ring(self) -> None:
        """Learn that something was said."""
        self._busy_at = trio.current_time()
        self._bell.set()

    def show_draft(self, draft: Draft) -> None:
        """Show a piece of an answer, if the client wants that."""
        if not self._guest.hello.drafts:
            return
        first, text = self._drafts.get(draft.turn_id, (draft, ""))
        is_next = first.begins_at + len(text) == draft.begins_at or not text
        if not is_next or len(text) + len(draft.text) > LONGEST_DRAFT:
            self._house.figures.told("draft_left_out")
            return
        if text or len(self._drafts) < MOST_ASIDE:
            self._drafts[draft.turn_id] = (first, text + draft.text)
            self.ring()

    def end_draft(self, reply_id: str) -> None:
        """Learn that an answer is whole: pieces that wait are told no more."""
        kept = self._drafts.items()
        self._drafts = {k: v for k, v in kept if v[0].reply_id != reply_id}

    def show_typing(self, typing: Typing) -> None:
        """Show that somebody is writing, if the client wants that."""
        self._put(self._aside, "typing", frames.typing(typing))

    def settle(self, name: str, reason: str) -> None:
        """Tell that nothing more will be said to a message, likewise."""
        self._put(self._behind, "settled", frames.settled(name, reason))

    def _put(self, where: deque[tuple[str, str]], kind: str, text: str) -> None:
        if not self._guest.hello.typing:
            return
        if len(where) >= MOST_ASIDE:
            self._house.figures.told(f"{kind}_left_out")
            return
        where.append((kind, text))
        self._bell.set()

    # --- to the client ------------------------------------------------------------

    async def _while_there(self, do: Callable[[], Awaitable[None]]) -> None:
        """Do something until the client goes, which ends the visit."""
        try:
            await do()
        except RefusedError as error:
            self._fault = error
            self.leave(error.code)
        except GoneError as error:
            self.leave(str(error))
        except StoreError as error:
            LOG.warning("client let go", chat=self.chat, why=str(error))
            self.leave("store")

    async def _tell(self) -> None:
        if self._guest.has_said_hello:
            await self._tell_one("welcome", self._welcome())
        while True:
            await self._bell.wait()
            self._bell = trio.Event()
            while self._aside:
                await self._tell_one(*self._aside.popleft())
            while self._drafts:
                draft, text = self._drafts.pop(next(iter(self._drafts)))
                await self._tell_one("draft", frames.draft(draft, text))
            behind = len(self._behind)  # what comes meanwhile is for messages to come
            await self._tell_said()
            for _ in range(behind):
                await self._tell_one(*self._behind.popleft())

    async def _tell_said(self) -> None:
        before = self._cursor
        while page := await self._house.kept.after(self.chat, self._cursor, PAGE):
            for said in page:
                if said.number > self._cursor + 1:
                    missing = said.number - self._cursor - 1
                    await self._tell_one("lost", frames.lost(missing))
                await self._tell_one("message", frames.message(said))
                self._cursor = said.number
        if self._cursor > before:
            # The client's library answers this behind the messages: what it has.
            await self._wire.ping(str(self._cursor).encode())

    async def _tell_one(self, kind: str, text: str) -> None:
        await self._wire.tell(text)
        self._house.figures.told(kind)

    def _welcome(self) -> str:
        client = self._house.kept.get(self.chat)
        return frames.welcome(
            self._guest.hello.client,
            self.chat,
            last=client.last if client else 0,
            after=self._cursor,
            most=self._house.config.max_frame_bytes,
        )

    # --- from the client ----------------------------------------------------------

    async def _listen(self) -> None:
        for text in self._guest.first:
            await self._take(text)
        while True:
            for heard in await self._wire.hear():
                if isinstance(heard, Pong):
                    await self._take_pong(bytes(heard.payload))
                else:
                    await self._take(heard)

    async def _take(self, text: str) -> None:
        name, self._busy_at = "", trio.current_time()
        try:
            frame = frames.read(text)
            name = frame.id if isinstance(frame, Say) else ""
            kind = await self._do(frame)
        except RefusedError:
            raise
        except FrameError as error:
            self._house.figures.frame(error.code)
            await self._tell_one("error", frames.error(error, name))
        else:
            self._house.figures.frame(kind)

    async def _do(self, frame: frames.Frame) -> str:
        """Do what a frame asks for; give its type."""
        match frame:
            case Say():
                await self._say(frame)
                return "message"
            case Ack():
                await self._house.kept.has(self.chat, frame.id)
                return "ack"
            case Ping():
                await self._tell_one("pong", frames.pong())
                return "ping"
            case Hello():
                cure = "connect anew, and send it first"
                raise FrameError("late_hello", "this is not the first frame", cure)

    async def _say(self, say: Say) -> None:
        wait = self._pace.wait(trio.current_time())
        if wait:
            raise too_fast(self._house.config.messages_per_minute, wait)
        is_new = await hand_in(say, self._guest.hello, self.chat, self._house)
        if say.id:
            received = frames.received(say.id, is_new=is_new)
            await self._tell_one("received", received)

    async def _take_pong(self, payload: bytes) -> None:
        self._pong.set()
        if payload.isdigit() and len(payload) <= 15 and not self._guest.hello.acks:
            number = min(int(payload), self._cursor)
            await self._house.kept.has(self.chat, number)

    async def _watch(self) -> None:
        """Let a client go that is not there any more, or has nothing to say."""
        config = self._house.config
        while True:
            await trio.sleep(config.ping_interval)
            self._pong = trio.Event()
            await self._wire.ping(str(self._cursor).encode())
            with trio.move_on_after(config.ping_timeout) as late:
                await self._pong.wait()
            if late.cancelled_caught:
                raise GoneError("silent")
            quiet = trio.current_time() - self._busy_at
            if config.idle_timeout and quiet > config.idle_timeout:
                raise GoneError("idle")


async def let_go(wire: Wire, error: RefusedError) -> None:
    """Tell a client why it is let go, and end the connection."""
    LOG.info("client refused", code=error.code, error=error.text)
    if not wire.is_open:
        await wire.refuse(error)
        return
    with contextlib.suppress(GoneError):
        await wire.tell(frames.error(error))
    await wire.close(close_code(error), error.text)
