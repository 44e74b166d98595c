"""One client: let in by its request and first frame, then served until it is gone.

A session reads the answers from the database, behind the last message that this
connection sent: nothing twice, in order, and a client that reads slowly costs no
memory.

All visits of one connector share metrics, settings, and caches.
"""

from __future__ import annotations

import contextlib
import hmac
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import pykka
import trio
from wsproto.events import Pong

from actors.errors import (
    NOT_STORED,
    ChatError,
    MessageRefusedError,
    MisdirectedError,
    OverloadedError,
    SenderRefusedError,
    StoppingError,
    UnconfirmedError,
)
from actors.messages.deliveries import Draft, Typing
from actors.messages.inbound import Address, Inbound
from actors.transport import Ingress, RefusedAttempt
from connectors.chat.inbound import attachment
from connectors.chat.outbox import ClientOutbox, platform_id
from connectors.chat.server_transport import AwaitedMessages, caller_at
from connectors.chat.websocket import frames
from connectors.chat.websocket.connection import (
    PING_EVERY,
    PONG_WITHIN,
    ClientConnection,
    Head,
    close_code,
)
from connectors.chat.websocket.frames import (
    CODES,
    MOVED,
    NORMAL,
    Ack,
    ClientGoneError,
    ClientRefusedError,
    FrameError,
    Hello,
    Ping,
    Say,
)
from connectors.chat.websocket.platform import WebSocketConfig
from connectors.chat.websocket.relay import client_of
from runtime.clock import Clock
from runtime.errors import KernelError, StoreError
from runtime.ids import IdSource
from runtime.telemetry.logs import EventLog
from runtime.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from connectors.web.peers import Peers

HELLO_WITHIN = 10.0
"""Seconds a client has to ask for a WebSocket, and where needed to show a key."""

KEY_HINT = 'send "Authorization: Bearer <key>", or the key in the first frame'


class Guest(msgspec.Struct, frozen=True):
    """A client that was let in."""

    hello: Hello
    first: tuple[str, ...]
    """What it sent meanwhile, and is still to be read."""

    has_said_hello: bool
    caller: str = ""
    """See `Inbound.caller`."""

    where: str = ""
    """Its address."""

    is_passed_on: bool = False
    """Whether it came in at another node."""

    last: int = 0
    """The number of the last message that was said to it."""


async def receive(wire: ClientConnection, shared: SocketShared, where: str) -> Guest:
    """Let a client in.

    Args:
        where: its address: one client never takes all places, and those who were not
            let in are put on record.

    Raises:
        RefusedError: it is not let in.
        GoneError: it has gone.
    """
    head = await hear_head(wire, HELLO_WITHIN)
    passed_on = client_of(head, shared.peers)
    where = where if passed_on is None else passed_on
    try:
        check_head(head, shared)
        has_key = check_key(head.key, shared)
    except ClientRefusedError as error:
        shared.ingress.refuse(RefusedAttempt(error.code, where))
        raise
    await wire.accept()
    guest = await first_words(wire, shared)
    if not has_key and not check_key(guest.hello.key, shared):
        shared.ingress.refuse(RefusedAttempt("bad_key", where))
        raise ClientRefusedError("unauthorized", "the key is missing", KEY_HINT)
    # Why not the key: all clients have the same.
    return msgspec.structs.replace(
        guest,
        caller=caller_at(where),
        where=where,
        is_passed_on=passed_on is not None,
    )


async def hear_head(wire: ClientConnection, within: float) -> Head:
    """Wait for the request for a WebSocket.

    Raises:
        RefusedError: it does not come.
        GoneError: the client has gone.
    """
    try:
        with trio.fail_after(within):
            return await wire.hear_head()
    except trio.TooSlowError as error:
        told = f"no request within {within:g} s"
        cure = "ask for the WebSocket at once"
        raise ClientRefusedError("too_slow", told, cure) from error


def check_head(head: Head, shared: SocketShared) -> None:
    """Check what a client said when it connected.

    Raises:
        RefusedError: it is not let in.
    """
    if head.query:
        told = "nothing is taken from the address: it ends up in logs"
        cure = 'send it in the first frame: {"type": "hello", ...}'
        raise ClientRefusedError("in_address", told, cure)
    origin, origins = head.headers.get("origin", ""), shared.config.origins
    if origin and origin not in origins and "*" not in origins:
        told = f"pages of {origin[:80]} may not connect"
        cure = f"list it in [connectors.{shared.connector}] origins"
        raise ClientRefusedError("bad_origin", told, cure, status=403)


def check_key(given: str, shared: SocketShared) -> bool:
    """Check a key; False: none was given, and one is needed.

    Raises:
        RefusedError: it is wrong.
    """
    if shared.config.api_key is None:
        return True
    if not given:
        return False
    # Why bytes: compare_digest refuses text that is not ASCII.
    needed = shared.config.api_key.reveal().encode()
    if not hmac.compare_digest(given.encode(errors="replace"), needed):
        raise ClientRefusedError("bad_key", "the key is wrong", KEY_HINT, status=401)
    return True


async def first_words(wire: ClientConnection, shared: SocketShared) -> Guest:
    """Wait a moment for a `hello`; whoever says nothing may still speak later.

    Raises:
        RefusedError: the first frame is none.
        GoneError: the client has gone.
    """
    heard: list[str] = []
    with trio.move_on_after(HELLO_WITHIN):
        while not heard:
            heard = [each for each in await wire.hear() if isinstance(each, str)]
    if heard:
        try:
            frame = frames.read(heard[0])
        except FrameError as error:
            if shared.config.api_key is not None:
                raise ClientRefusedError(error.code, error.text, error.cure) from error
        else:
            if isinstance(frame, Hello):
                shared.metrics.frame("hello")
                return Guest(frame, tuple(heard[1:]), has_said_hello=True)
    return Guest(Hello(), tuple(heard), has_said_hello=False)


LOG = EventLog("websocket")

PAGE = 100
"""Messages that are read from the database at once."""

MOST_ASIDE = 256
"""Frames beside messages (drafts, typing) that may wait; further ones are left out."""

LONGEST_DRAFT = 16_384
"""Characters of one draft that may wait. A piece that is left out is seen as a gap in
`at`; the whole answer comes all the same."""


class Visit:
    """One connection of a client, from its welcome to its end.

    Args:
        cursor: the number of the last message that it has.
    """

    def __init__(
        self,
        wire: ClientConnection,
        guest: Guest,
        chat: str,
        shared: SocketShared,
        cursor: int,
    ) -> None:
        self._wire = wire
        self._guest = guest
        self.chat = chat
        self._shared = shared
        self._cursor = cursor
        self._bell = trio.Event()
        self._bell.set()  # what was said meanwhile
        self._aside: deque[tuple[str, str]] = deque()
        self._behind: deque[tuple[str, str]] = deque()
        """Frames that come behind the messages."""

        self._drafts: dict[str, tuple[Draft, str]] = {}
        self._pong = trio.Event()
        self._pace = ClientPace(shared.config.messages_per_minute)
        self._busy_at = trio.current_time()
        self._scope = trio.CancelScope()
        self.why = ""
        """Why it ended: one bounded word."""

        self._fault: ClientRefusedError | None = None

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
            self._shared.metrics.told("draft_left_out")
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
            self._shared.metrics.told(f"{kind}_left_out")
            return
        where.append((kind, text))
        self._bell.set()

    # --- to the client ------------------------------------------------------------

    async def _while_there(self, do: Callable[[], Awaitable[None]]) -> None:
        """Do something until the client goes, which ends the visit."""
        try:
            await do()
        except ClientRefusedError as error:
            self._fault = error
            self.leave(error.code)
        except ClientGoneError as error:
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
        while page := await self._shared.kept.after(self.chat, self._cursor, PAGE):
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
        self._shared.metrics.told(kind)

    def _welcome(self) -> str:
        return frames.welcome(
            self._guest.hello.client,
            self.chat,
            last=self._guest.last,
            after=self._cursor,
            most=self._shared.config.max_frame_bytes,
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
        except ClientRefusedError:
            raise
        except FrameError as error:
            self._shared.metrics.frame(error.code)
            await self._tell_one("error", frames.error(error, name))
        else:
            self._shared.metrics.frame(kind)

    async def _do(self, frame: frames.Frame) -> str:
        """Do what a frame asks for; give its type."""
        match frame:
            case Say():
                await self._say(frame)
                return "message"
            case Ack():
                await self._shared.kept.has(self.chat, min(frame.id, self._cursor))
                return "ack"
            case Ping():
                await self._tell_one("pong", frames.pong())
                return "ping"
            case Hello():
                cure = "connect again, and send it first"
                raise FrameError("late_hello", "this is not the first frame", cure)

    async def _say(self, say: Say) -> None:
        wait = self._pace.wait(trio.current_time())
        if wait:
            raise too_fast(self._shared.config.messages_per_minute, wait)
        again = await submit(say, self._guest, self.chat, self._shared)
        if say.id:
            received = frames.received(say.id, is_new=not again)
            await self._tell_one("received", received)
        self._shared.awaited.tell_again(again)

    async def _take_pong(self, payload: bytes) -> None:
        self._pong.set()
        if payload.isdigit() and len(payload) <= 15 and not self._guest.hello.acks:
            number = min(int(payload), self._cursor)
            await self._shared.kept.has(self.chat, number)

    async def _watch(self) -> None:
        """Let a client go that is not there any more, or has nothing to say."""
        config = self._shared.config
        while True:
            await trio.sleep(PING_EVERY)
            self._pong = trio.Event()
            await self._wire.ping(str(self._cursor).encode())
            with trio.move_on_after(PONG_WITHIN) as late:
                await self._pong.wait()
            if late.cancelled_caught:
                raise ClientGoneError("silent")
            quiet = trio.current_time() - self._busy_at
            if config.idle_timeout and quiet > config.idle_timeout:
                raise ClientGoneError("idle")


async def let_go(wire: ClientConnection, error: ClientRefusedError) -> None:
    """Tell a client why it is let go, and end the connection."""
    LOG.info("client refused", code=error.code, error=error.text)
    if not wire.is_open:
        await wire.refuse(error)
        return
    with contextlib.suppress(ClientGoneError):
        await wire.tell(frames.error(error))
    await wire.close(close_code(error), error.text)


NOT_TAKEN = (ChatError, KernelError, pykka.ActorDeadError, pykka.Timeout)
"""What submitter a message in may raise; anything else is a bug."""

MINUTE = 60.0
RETRY_SOON, RETRY_LATER = 2.0, 10.0
AGAIN = "send it again, under the same id"


class ClientPace:
    """How many messages came of late; pure.

    Args:
        most: of them in a minute; 0: any.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._times: deque[float] = deque(maxlen=most or 1)

    def wait(self, now: float) -> float:
        """Count a message; give seconds to wait if it is one too many, else 0."""
        is_full = self._most and len(self._times) == self._most
        if is_full and now - self._times[0] < MINUTE:
            return self._times[0] + MINUTE - now
        self._times.append(now)
        return 0.0


def entering(chat: str, shared: SocketShared) -> AbstractContextManager[None]:
    """Keep a chat at this node while a message of it is being stored."""
    peers = shared.peers
    if peers is None:
        return nullcontext()
    # A client whose chat moves comes again, and is told there what it has missed.
    return peers.entering(shared.connector, chat, may_move=True)


async def submit(say: Say, guest: Guest, chat: str, shared: SocketShared) -> str:
    """Have a message stored.

    Returns:
        If it was stored before: its correlation id. Else nothing.

    Raises:
        FrameError: it was not taken.
        ClientGoneError: another node works on its chat by now.
    """
    inbound = inbound_of(say, guest, chat, shared)
    known = shared.agents()
    if inbound.agent and inbound.agent not in known:
        told = f"there is no agent {inbound.agent[:64]!r}"
        raise FrameError("unknown_agent", told, f"known: {', '.join(known)}")
    try:
        with entering(chat, shared):
            return await shared.awaited.hand_in(shared.ingress, inbound)
    except MisdirectedError as error:
        raise ClientGoneError(MOVED) from error
    except NOT_TAKEN as error:
        raise fault_of(error) from error


def inbound_of(say: Say, guest: Guest, chat: str, shared: SocketShared) -> Inbound:
    """Return the inbound message of a client's frame."""
    hello = guest.hello
    own = platform_id(chat, say.id) if say.id else f"{chat}/{shared.ids.new()}"
    return Inbound(
        id=shared.ids.new(),
        platform="websocket",
        platform_id=own,
        address=Address(shared.connector, chat),
        sender_id=chat,
        sender_name=hello.name or "user",
        caller=guest.caller,
        text=say.content,
        received_at=shared.clock.wall(),
        agent=say.agent or hello.agent,
        wants_drafts=hello.drafts,
        attachments=tuple(attachment(x.name, x.content) for x in say.files),
    )


def fault_of(error: Exception) -> FrameError:
    """Say to a client why its message was not taken."""
    text = str(error)
    match error:
        case SenderRefusedError():
            cure = "ask whoever runs this to let you in, by the name in `welcome.you`"
            return FrameError("not_admitted", text, cure)
        case MessageRefusedError():
            return FrameError("refused", text, "say it otherwise")
        case OverloadedError():
            is_sure = not isinstance(error, UnconfirmedError)
            code = "busy" if is_sure else "unavailable"
            return FrameError(code, text, AGAIN, RETRY_SOON)
        case StoppingError():
            return FrameError("stopping", text, AGAIN, RETRY_LATER)
        case StoreError():
            return FrameError("unavailable", NOT_STORED, AGAIN, RETRY_LATER)
        case _:
            return FrameError("unavailable", text, AGAIN, RETRY_LATER)


def too_fast(most: int, wait: float) -> FrameError:
    """Say that too much comes."""
    told = f"more than {most} messages in a minute"
    return FrameError("too_fast", told, AGAIN, round(wait, 1))


class SocketCounters:
    """The metrics that all WebSocket connectors share."""

    def __init__(self, metrics: Metrics) -> None:
        labels = ("connector",)
        self.connected = metrics.gauge(
            "callboard_websocket_connected", "Clients that are connected now.", labels
        )
        self.ended = metrics.counter(
            "callboard_websocket_ended",
            "Connections that ended, by why: closed, broken, slow, silent, idle, …",
            (*labels, "why"),
        )
        self.frames = metrics.counter(
            "callboard_websocket_frames",
            "Frames of clients, by what became of them: a type, or an error's code.",
            (*labels, "outcome"),
        )
        self.told = metrics.counter(
            "callboard_websocket_told",
            "Frames that clients were told: message, draft, lost, …",
            (*labels, "type"),
        )
        self.bytes = metrics.counter(
            "callboard_websocket_bytes",
            "Bytes of connections that have ended, by direction: in, out.",
            (*labels, "direction"),
        )


class SocketMetrics:
    """The metrics of one connector."""

    def __init__(self, counters: SocketCounters, connector: str) -> None:
        self._counters = counters
        self._connector = connector

    def show(self, connected: int) -> None:
        """Show how many clients are connected."""
        self._counters.connected.set(connected, self._connector)

    def end(self, why: str, bytes_in: int, bytes_out: int) -> None:
        """Count a connection that ended."""
        self._counters.ended.add(1, self._connector, why)
        self._counters.bytes.add(bytes_in, self._connector, "in")
        self._counters.bytes.add(bytes_out, self._connector, "out")

    def frame(self, outcome: str) -> None:
        """Count a frame of a client."""
        self._counters.frames.add(1, self._connector, outcome)

    def told(self, kind: str) -> None:
        """Count a frame that a client was told."""
        self._counters.told.add(1, self._connector, kind)


@dataclass(frozen=True)
class SocketShared:
    """What all visits of one connector share: metrics, settings, and caches."""

    connector: str
    config: WebSocketConfig
    clock: Clock
    ids: IdSource
    kept: ClientOutbox
    metrics: SocketMetrics
    agents: Callable[[], tuple[str, ...]]
    """Names those that people can speak to now."""

    ingress: Ingress
    awaited: AwaitedMessages
    peers: Peers | None = None
    """The other nodes; None: there are none."""
