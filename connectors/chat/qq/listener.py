"""Follows one bot's gateway: hears, brings in, and goes on where it stopped.

A session is resumed from the last message that was accepted, also after a restart: QQ
then tells all events after that again, if it still has the session. It keeps nothing
else, so what a lost session had is a gap that nobody can fill.
"""

from __future__ import annotations

from collections import deque
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec
import trio
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    CloseConnection,
    Event,
    Ping,
    RejectConnection,
    Request,
    TextMessage,
)
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from actors.messages.inbound import Address, Attachment, Inbound, Quoted
from connectors.chat.accounts import AccountHealth, ReadMarks, read_bookmark
from connectors.chat.inbound import (
    MOST_IN_ALL,
    Lanes,
    Submission,
    Trouble,
    Waits,
    fetch_files,
)
from connectors.chat.qq.events import QQMessage, QQPlace, QQSkipped, read
from connectors.chat.requests import (
    BusyError,
    Json,
    LostError,
    PlatformError,
    ShutOutError,
    decode,
    fetch_linked,
    table,
    text,
    whole,
)
from runtime.errors import StoreError
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from actors.transport import Ingress
    from connectors.chat.qq.api import QQAccount
    from connectors.chat.qq.transport import Outcome, QQShared

    Tell = Callable[[QQAccount, QQPlace, str, str, str], Awaitable[object]]
    """Says words in a place, under a key, as an answer to a message."""

LOG = EventLog("qq")

# Source: QQ, "事件订阅与通知", "OpCode 含义" and "事件订阅Intents".
DISPATCH, HEARTBEAT, IDENTIFY, RESUME = 0, 1, 2, 6
RECONNECT, INVALID, HELLO = 7, 9, 10
CHATS = 1 << 25
GUILDS = 1 << 30 | 1 << 12

# Source: QQ, "websocket 错误码"; 9001 and 9005 as in botpy.
BANNED = frozenset({4914, 4915})
NO_LEAVE = frozenset({4010, 4011, 4012, 4013, 4014})
BAD_TOKEN = 4004
SESSION_OVER = frozenset({4006, 4007, 9001, 9005, *range(4900, 4914)})

BLOCK = 16_384
MOST_MESSAGE = 4 * 1024 * 1024
"""Bytes of one message of the gateway."""

LONGEST_BEAT = 120.0
"""Seconds between two heartbeats, whatever the gateway asks for."""

CHATS_AT_ONCE = 8
"""Chats whose messages are brought in side by side."""

WELL_AFTER = 300.0
"""Seconds that a connection must have lasted for its end to count as a first one."""

# Source: QQ, "获取带分片 WSS 接入点": 1,000 sessions a day. At 120 seconds it is 720.
CALM = 120.0
"""Seconds between two connections, after several."""

SEVERAL = 6

CURE = "mend that at q.qq.com, see {place} in the settings, and start again"


class GatewayClosedError(LostError):
    """The gateway ended the connection."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"the gateway closed: {code} {reason}".strip())
        self.code = code


class GatewaySocket:
    """One WebSocket to the gateway, for JSON objects."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream
        self._protocol = WSConnection(ConnectionType.CLIENT)
        self._sending = trio.Lock()
        self._part = ""
        self._waiting: deque[Json] = deque()
        self._is_open = False

    async def begin(self, host: str, target: str) -> None:
        """Ask for a WebSocket.

        Raises:
            LostError: there is none.
        """
        await self._send(Request(host=host, target=target))
        while not self._is_open:
            await self._read()

    async def hear(self, within: float) -> Json:
        """Return the next message.

        Args:
            within: seconds; so long a silence means that nobody is there.

        Raises:
            GatewayClosedError: the gateway ended it.
            LostError: the connection is gone.
        """
        with trio.move_on_after(within):
            while not self._waiting:
                await self._read()
            return self._waiting.popleft()
        raise LostError(f"the gateway said nothing for {within:g} s")

    async def tell(self, frame: Json) -> None:
        """Send a message; raises `LostError`."""
        await self._send(TextMessage(msgspec.json.encode(frame).decode()))

    async def _read(self) -> None:
        try:
            block = bytes(await self._stream.receive_some(BLOCK))
            self._protocol.receive_data(block or None)
            for event in list(self._protocol.events()):
                await self._take(event)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise LostError(broken(error)) from error
        except (RemoteProtocolError, LocalProtocolError) as error:
            raise LostError(f"the gateway speaks no WebSocket: {error}") from error
        if not block:
            raise LostError("the connection broke")

    async def _take(self, event: Event) -> None:
        match event:
            case AcceptConnection():
                self._is_open = True
            case RejectConnection(status_code=status):
                raise LostError(f"the gateway says HTTP {status}")
            case Ping():
                await self._send(event.response())
            case CloseConnection(code=code, reason=reason):
                raise GatewayClosedError(int(code), reason or "")
            case TextMessage():
                self._add(event)
            case _:
                pass

    def _add(self, event: TextMessage) -> None:
        self._part += event.data
        if len(self._part) > MOST_MESSAGE:
            raise LostError(f"a message of more than {MOST_MESSAGE} bytes")
        if event.message_finished:
            whole_text, self._part = self._part, ""
            try:
                self._waiting.append(decode(whole_text.encode()))
            except (ValueError, RecursionError) as error:
                LOG.warning("message not read", why=str(error))

    async def _send(self, event: Event) -> None:
        async with self._sending:
            try:
                await self._stream.send_all(self._protocol.send(event))
            except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
                raise LostError(broken(error)) from error
            except LocalProtocolError as error:
                raise LostError("the connection is closing") from error


def broken(error: Exception) -> str:
    """Say how a connection broke; a certificate that is not trusted is a cause."""
    why = error.__cause__
    return "the connection broke" if why is None else f"the connection broke: {why}"


@asynccontextmanager
async def open_socket(url: str, within: float) -> AsyncGenerator[GatewaySocket]:
    """Connect to a gateway, until the block ends.

    Args:
        within: seconds.

    Raises:
        BusyError: it is not reached.
    """
    parts = urlsplit(url)
    host, is_safe = parts.hostname or "", parts.scheme == "wss"
    port = parts.port or (443 if is_safe else 80)
    stream: trio.abc.Stream | None = None
    try:
        with trio.fail_after(within):
            if is_safe:
                stream = await trio.open_ssl_over_tcp_stream(host, port)
            else:
                stream = await trio.open_tcp_stream(host, port)
            socket = GatewaySocket(stream)
            query = f"?{parts.query}" if parts.query else ""
            await socket.begin(parts.netloc, f"{parts.path or '/'}{query}")
        yield socket
    except (OSError, trio.TooSlowError) as error:
        raise BusyError(f"the gateway is not reached: {error}") from error
    finally:
        if stream is not None:
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(stream)


class QQSession:
    """The id of a bot's gateway session and its last sequence number, stored."""

    def __init__(self, account: QQAccount, shared: QQShared) -> None:
        self._account = account
        self._shared = shared
        self._news = trio.Event()
        self._kept = ""
        self.id = ""
        """Empty: there is none that could go on."""

        self.marks = ReadMarks(0)
        self.seen = 0
        """Number of the last event that came."""

        self.has_gap = False
        """Whether something may have been said that nobody told us."""

    async def recall(self) -> None:
        """Read which session there was; waits for the disk."""
        read_it = partial(self._shared.bookmarks.read, self._account.id)
        self._kept = await read_bookmark(read_it, LOG)
        known, _, rest = self._kept.partition(" ")
        user, _, place = rest.partition(" ")
        if place.isdecimal():
            self.id, self._account.user = known, user
            self.marks, self.seen = ReadMarks(int(place)), int(place)

    def begin(self, known: str, user: str) -> None:
        """Begin a new one."""
        self.id, self._account.user = known, user
        self.marks, self.seen = ReadMarks(0), 0

    def forget(self) -> None:
        """Note that it cannot go on: what was said meanwhile is lost."""
        self.has_gap = self.has_gap or bool(self.id)
        self.id = ""

    def end_event(self, marks: ReadMarks, number: int) -> None:
        """Note that an event was accepted, or will never be."""
        marks.end(number)
        self._news.set()

    async def keep(self) -> None:
        """Write down how far it was heard, whenever that changes; until cancelled."""
        while True:
            await self._news.wait()
            self._news = trio.Event()
            now = f"{self.id} {self._account.user} {self.marks.place}"
            if not self.id or now == self._kept:
                continue
            try:
                await self._shared.bookmarks.write(self._account.id, now)
            except StoreError as error:
                # After a restart more is told again, and known to the database.
                LOG.warning("place not kept", why=str(error))
            else:
                self._kept = now


class QQListener:
    """Listens to one bot; connects anew when the connection ends."""

    def __init__(self, account: QQAccount, shared: QQShared, tell: Tell) -> None:
        self._account = account
        self._shared = shared
        self._health = AccountHealth(account, shared.metrics, shared.clock, LOG)
        self._submitter = QQSubmitter(account, shared, tell)
        self._session = QQSession(account, shared)

    async def listen(self, ingress: Ingress) -> None:
        """Follow the bot until cancelled."""
        await self._health.keep_listening(partial(self._listen, ingress))

    async def _listen(self, ingress: Ingress) -> None:
        self._session = QQSession(self._account, self._shared)
        with self._health.listening():
            async with self._account.pool, trio.open_nursery() as nursery:
                await self._session.recall()
                nursery.start_soon(self._session.keep)
                lanes = Lanes(nursery, at_once=CHATS_AT_ONCE)
                error = await self._follow(lanes, ingress)
                nursery.cancel_scope.cancel()
            self._health.shut_out(error, self._shared.connector, CURE)

    async def _follow(self, lanes: Lanes, ingress: Ingress) -> ShutOutError:
        """Follow one connection after the other; gives why there is none any more."""
        waits, ends = Waits(), 0
        while True:
            begun = trio.current_time()
            error = await self._live(lanes, ingress)
            if isinstance(error, GatewayClosedError):
                error = self._judged(error)
            if isinstance(error, ShutOutError):
                return error
            if trio.current_time() - begun >= WELL_AFTER:
                waits, ends = Waits(), 0
            ends += 1
            asked = error.retry_after if isinstance(error, BusyError) else None
            wait = max(waits.next(asked), CALM if ends > SEVERAL else 0.0)
            self._health.lost(str(error))
            LOG.warning(
                "gateway left", account=self._account.agent, why=str(error), after=wait
            )
            await trio.sleep(wait)

    def _judged(self, error: GatewayClosedError) -> PlatformError:
        """Say what a close means, by its code."""
        if error.code in BANNED:
            return ShutOutError(f"QQ has taken the bot down: {error}")
        if error.code in NO_LEAVE:
            told = f"the bot may not hear all that it asks for: {error}; see `guilds`"
            return ShutOutError(told)
        if error.code == BAD_TOKEN:
            self._account.forget_token()
        if error.code in SESSION_OVER:
            self._session.forget()
        return error

    async def _live(self, lanes: Lanes, ingress: Ingress) -> PlatformError:
        """Follow one connection; gives what ended it."""
        ended: list[PlatformError] = []
        try:
            url = text((await self._account.ask("GET", "/gateway")).get("url"))
            self._check(url)
            timeout = self._shared.config.request_timeout
            async with open_socket(url, timeout) as socket:
                hello = await socket.hear(timeout)
                interval = whole(table(hello.get("d")).get("heartbeat_interval")) / 1000
                if hello.get("op") != HELLO or interval <= 0:
                    raise LostError("the gateway does not say how often we are to beat")
                beat = min(interval, LONGEST_BEAT)
                await socket.tell(await self._greeting())
                await self._both(socket, beat, lanes, ingress, ended)
        except PlatformError as error:
            ended.append(error)
        return ended[0]

    def _check(self, url: str) -> None:
        """Refuse a gateway to which the token would travel in the open."""
        is_local = self._shared.config.api.startswith("http://")
        if urlsplit(url).scheme not in ({"ws", "wss"} if is_local else {"wss"}):
            raise LostError(f"{url!r} is no encrypted gateway")

    async def _both(
        self,
        socket: GatewaySocket,
        beat: float,
        lanes: Lanes,
        ingress: Ingress,
        ended: list[PlatformError],
    ) -> None:
        """Hear and beat, until either fails."""
        async with trio.open_nursery() as nursery:

            async def guard(run: Callable[[], Awaitable[object]]) -> None:
                try:
                    await run()
                except PlatformError as error:
                    ended.append(error)
                    nursery.cancel_scope.cancel()

            nursery.start_soon(guard, partial(self._beat, socket, beat))
            hear = partial(self._hear, socket, 2 * beat + 5.0, lanes, ingress)
            nursery.start_soon(guard, hear)

    async def _greeting(self) -> Json:
        token = f"QQBot {await self._account.token()}"
        if self._session.id:
            return {
                "op": RESUME,
                "d": {
                    "token": token,
                    "session_id": self._session.id,
                    "seq": self._session.seen,
                },
            }
        intents = CHATS | (GUILDS if self._shared.config.guilds else 0)
        return {
            "op": IDENTIFY,
            "d": {"token": token, "intents": intents, "shard": [0, 1]},
        }

    async def _beat(self, socket: GatewaySocket, every: float) -> None:
        while True:
            await socket.tell(self._heartbeat())
            await trio.sleep(every)

    def _heartbeat(self) -> Json:
        return {"op": HEARTBEAT, "d": self._session.seen or None}

    async def _hear(
        self, socket: GatewaySocket, silence: float, lanes: Lanes, ingress: Ingress
    ) -> None:
        """Take what the gateway tells; raises when it is to be left."""
        while True:
            frame = await socket.hear(silence)
            code = frame.get("op")
            if code == DISPATCH:
                await self._take(frame, lanes, ingress)
            elif code == HEARTBEAT:
                await socket.tell(self._heartbeat())
            elif code == RECONNECT:
                raise LostError("QQ asks to connect again")
            elif code == INVALID:
                self._session.forget()
                raise LostError("the session cannot go on")

    async def _take(self, frame: Json, lanes: Lanes, ingress: Ingress) -> None:
        session, kind = self._session, text(frame.get("t"))
        said, number = table(frame.get("d")), whole(frame.get("s"))
        self._shared.metrics.heard(self._account.agent, self._shared.clock.wall())
        if kind == "READY":
            user = text(table(said.get("user")).get("id"))
            session.begin(text(said.get("session_id")), user)
        if kind in {"READY", "RESUMED"}:
            self._hears(is_resumed=kind == "RESUMED")
        marks, session.seen = session.marks, max(session.seen, number)
        marks.begin(number)
        message = read(kind, said, self._account.id, self._account.user)
        if isinstance(message, QQSkipped):
            if message.reason != "other":
                self._shared.metrics.event(self._account.agent, message.reason)
            session.end_event(marks, number)
            return
        # QQ repeats old events after a break, and refuses answers to the oldest.
        now = self._shared.clock.wall()
        self._shared.windows.heard(message.place, message.id, now)
        submit = partial(self._submit, message, marks, number, ingress)
        await lanes.put(message.place.chat, submit)

    async def _submit(
        self, message: QQMessage, marks: ReadMarks, number: int, ingress: Ingress
    ) -> None:
        await self._submitter.submit(message, ingress)
        self._session.end_event(marks, number)

    def _hears(self, *, is_resumed: bool) -> None:
        account, session, metrics = self._account, self._session, self._shared.metrics
        account.is_open = True
        if self._health.heard():
            metrics.count("reconnects", account.agent)
        if is_resumed or session.has_gap:
            metrics.gap(account.agent, is_filled=is_resumed)
        if session.has_gap:
            LOG.warning(
                "what was said meanwhile is lost",
                account=account.agent,
            )
        session.has_gap = False


class QQSubmitter:
    """Turns what one bot hears into inbound messages, and submits them."""

    def __init__(self, account: QQAccount, shared: QQShared, tell: Tell) -> None:
        self._account = account
        self._shared = shared
        self._say = tell

    async def submit(self, message: QQMessage, ingress: Ingress) -> None:
        """Submit a message, however long that takes."""
        tell = partial(self._tell, message.place)
        submission = Submission(LOG, self._count, tell)
        fill = partial(self._filled, message)
        await submission.submit(self._bare(message), ingress, fill)

    def _count(self, outcome: Outcome) -> None:
        self._shared.metrics.event(self._account.agent, outcome)

    async def _tell(
        self, place: QQPlace, inbound: Inbound, words: str, trouble: Trouble
    ) -> None:
        known = inbound.platform_id
        try:
            await self._say(self._account, place, words, f"{trouble}-{known}", known)
        except PlatformError as error:
            LOG.warning("notice not said", chat=place.chat, why=str(error))

    def _bare(self, message: QQMessage) -> Inbound:
        """Return a message as it came, with nothing fetched."""
        shared, place, agent = self._shared, message.place, self._account.agent
        return Inbound(
            id=shared.ids.new(),
            platform="qq",
            platform_id=message.id,
            address=Address(shared.connector, place.chat),
            sender_id=message.sender,
            sender_name=message.sender_name,
            text=message.text,
            received_at=shared.clock.wall(),
            is_direct=place.is_direct,
            agent=agent if place.is_direct else "",
            wants_drafts=False,
            reply_to=message.reply_to,
            mentions=() if place.is_direct else (agent,),
            present=(agent,),
            roles=message.roles,
            platform_fields=specifics(message),
        )

    async def _filled(self, message: QQMessage, inbound: Inbound) -> Inbound:
        """Add what a message quotes, and fetch what came with it."""
        quotes, place = self._shared.quotes, message.place
        found = quotes.find(place, message.reply_to) if message.reply_to else None
        unknown = Quoted(text=message.quote) if message.quote else None
        reply_to, quoted = found or (message.reply_to, unknown)
        said = Quoted(text=message.text, sender_name=message.sender_name)
        quotes.learn(place, (message.id, message.index), said)
        attachments, lines = await self._fetched(message)
        return msgspec.structs.replace(
            inbound,
            reply_to=reply_to,
            quoted=quoted,
            text="\n".join(line for line in (inbound.text, *lines) if line),
            attachments=attachments,
        )

    async def _fetched(
        self, message: QQMessage
    ) -> tuple[tuple[Attachment, ...], list[str]]:
        """Fetch all files; gives lines for what is missing, too."""
        config, network = self._shared.config, self._shared.network
        most = min(config.max_media_bytes, MOST_IN_ALL)

        def note(why: str) -> None:
            self._count("media_left_out")
            LOG.warning("file not fetched", message=message.id, why=why)

        return await fetch_files(
            message.files,
            lambda file: fetch_linked(file, config.files, most, "QQ", network),
            note,
        )


def specifics(message: QQMessage) -> dict[str, str]:
    """Return the fields that only QQ has."""
    found = {
        "qq_place": message.place.kind,
        "qq_place_id": message.place.id,
        "qq_guild_id": message.guild,
    }
    return {name: value for name, value in found.items() if value}
