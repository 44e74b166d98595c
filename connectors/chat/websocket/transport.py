"""The transport of plain WebSockets; see the port.

Each client is a conversation of its own. An answer is stored first, then told to
whoever is connected, and to whoever comes back.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import trio
from msgspec import structs

from actors.errors import DeliveryBusyError, DeliveryRefusedError
from actors.messages.deliveries import Abilities, Delivery, Draft, Typing
from actors.messages.inbound import Inbound
from actors.transport import Ingress
from connectors.chat.outbox import ClientOutbox, client_name
from connectors.chat.platforms import TransportParts
from connectors.chat.server_transport import (
    AwaitedMessages,
    ListenError,
    MessageOver,
    ServerTransport,
    listen_on,
)
from connectors.chat.websocket import frames
from connectors.chat.websocket.connection import ClientConnection
from connectors.chat.websocket.frames import MOVED, ClientGoneError, ClientRefusedError
from connectors.chat.websocket.platform import WebSocketConfig
from connectors.chat.websocket.relay import LOOK_EVERY, ClientRelay
from connectors.chat.websocket.session import (
    HELLO_WITHIN,
    Guest,
    SocketCounters,
    SocketMetrics,
    SocketShared,
    Visit,
    let_go,
    receive,
)
from connectors.config.checks import is_loopback
from runtime.errors import StoreError, StoreUnavailableError
from runtime.fairness import PlacesHeld
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from connectors.web.peers import Peers

LOG = EventLog("websocket")

STALLED_AFTER = 30.0
"""Seconds a client may leave unread what is sent to it."""

# Chosen: by far enough as long as this node works on any chats.
MOST_IDS = 1000
"""Ids that are tried for a client that brings none."""

NOT_LISTENING = "the WebSocket server is not listening"
SILENCE = "nothing to say"

TIDY_EVERY, DAY = 3_600.0, 86_400.0
RETRY_FULL = 30.0


class WebSocketTransport(ServerTransport):
    """The server of one connector."""

    scheme = "ws"
    presence = None
    """What was said stays as it was: a client need not know of edits. Drafts are frames
    of their own, for those who ask."""

    def __init__(
        self,
        name: str,
        config: WebSocketConfig,
        parts: TransportParts,
        make_client: Callable[[], str] = secrets.token_urlsafe,
    ) -> None:
        super().__init__(partial(open_socket, name, config))
        self._name = name
        self._config = config
        self._parts = parts
        self._make_client = make_client
        self.kept = ClientOutbox(parts.store, parts.clock, name, config.keep_messages)
        self._metrics = SocketMetrics(parts.once(SocketCounters), name)
        self._visits: dict[str, list[Visit]] = {}
        self._awaited = AwaitedMessages(name, self._settle)
        self._guests = PlacesHeld()
        """Clients that were let in, by address."""

        self._waiting: dict[ClientConnection, trio.CancelScope] = {}
        """Connections that are not, or not yet, let in; the oldest first."""

        self._ingress: Ingress | None = None
        """None: it is not listening."""

    @property
    def abilities(self) -> Abilities:
        """The abilities: an answer is kept once under one id."""
        return Abilities(
            is_idempotent=True,
            counts_answers=True,
            shows_typing=True,
            ends_typing=True,
        )

    async def listen(self, ingress: Ingress) -> None:
        """Serve until cancelled; then let everybody go.

        Raises:
            OSError: the address cannot be listened on.
            StoreError: what there is cannot be read.
        """
        shared = self.shared(ingress)

        async def serve(stream: trio.SocketStream) -> None:
            await self.serve(stream, shared, address_of(stream))

        with self.listening() as sock:
            listener = trio.SocketListener(trio.socket.from_stdlib_socket(sock))
            await self.kept.load(self._stays)
            self._ingress = ingress
            self.announce(sock)
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._tidy)
                    if self._parts.peers is not None:
                        nursery.start_soon(self._let_moved_go, self._parts.peers)
                    await trio.serve_listeners(serve, [listener])
            finally:
                self._ingress = None

    async def deliver(self, delivery: Delivery) -> str:
        """Keep an answer for its client, and tell it; see the port."""
        if self._ingress is None:
            raise DeliveryBusyError(NOT_LISTENING)
        if delivery.kind == "silence":
            await self._awaited.answered(self._ingress, delivery)
            return SILENCE
        try:
            said = await self.kept.add(delivery)
        except StoreUnavailableError as error:
            raise DeliveryBusyError(str(error)) from error
        except StoreError as error:
            raise DeliveryRefusedError(str(error)) from error
        if said is None:
            text = "the client has gone, and said no id by which it could come back"
            raise DeliveryRefusedError(text)
        for visit in self._of(delivery.address.chat):
            visit.end_draft(delivery.reply_id)
            visit.ring()
        await self._awaited.answered(self._ingress, delivery)
        return str(said.number)

    def show_draft(self, draft: Draft) -> None:
        """Show a piece of an answer to clients that ask for that."""
        for visit in self._of(draft.address.chat):
            visit.show_draft(draft)

    def show_typing(self, typing: Typing) -> None:
        """Show that an answer is being written, likewise."""
        for visit in self._of(typing.address.chat):
            visit.show_typing(typing)

    async def settle(self, inbound: Inbound, reason: str) -> None:
        """Tell clients that ask for that, that nothing more will be said."""
        await trio.lowlevel.checkpoint()
        self._awaited.settled(inbound, reason)

    async def serve(
        self, stream: trio.abc.Stream, shared: SocketShared, where: str = ""
    ) -> None:
        """Be there for one connection, until it ends.

        Args:
            where: its address, for the record of those who are not let in.
        """
        config = self._config
        wire = ClientConnection(
            stream,
            config.max_frame_bytes,
            STALLED_AFTER,
            keeps_start=self._parts.peers is not None,
        )
        why = "refused"
        try:
            guest = await self._let_in(wire, shared, where)
            self._guests.add((guest.caller,))
            try:
                why = await self._visit(wire, guest, shared)
            finally:
                self._guests.remove((guest.caller,))
        except ClientRefusedError as error:
            why = error.code
            await let_go(wire, error)
        except ClientGoneError as error:
            why = str(error)
        except StoreError as error:
            why = "store"
            LOG.warning("client let go", why=str(error))
        except Exception as error:  # noqa: BLE001  the others must not end with it
            why = "bug"
            LOG.fault("connection ended by a mistake in Callboard", error)
        finally:
            self._metrics.end(why, wire.bytes_in, wire.bytes_out)
            await wire.aclose()

    async def _let_in(
        self, wire: ClientConnection, shared: SocketShared, where: str
    ) -> Guest:
        """Let a client in; of too many that wait for that, the oldest makes room.

        So nobody who only holds connections open keeps others out.
        """
        with trio.CancelScope() as waiting:
            self._waiting[wire] = waiting
            if len(self._waiting) > self._config.max_connections:
                next(iter(self._waiting.values())).cancel()
            try:
                if self._is_full:
                    with trio.move_on_after(HELLO_WITHIN):
                        await wire.hear_head()
                else:
                    guest = await receive(wire, shared, where)
                    owner, most = (guest.caller,), self._config.max_connections
                    has_room = len(self._guests) < most  # others came meanwhile
                    if has_room and self._guests.may_add(owner, most):
                        return guest
            finally:
                del self._waiting[wire]
            most = self._config.max_connections
            text = f"{most} clients are connected, or three quarters of that by you"
            raise ClientRefusedError(
                "full", text, "try again later", status=503, retry_after=RETRY_FULL
            )
        raise ClientGoneError("full")

    @property
    def _is_full(self) -> bool:
        return len(self._guests) >= self._config.max_connections

    async def _visit(
        self, wire: ClientConnection, guest: Guest, shared: SocketShared
    ) -> str:
        hello = guest.hello
        name = hello.client or self._new_client()
        chat = frames.chat_of(name)
        if (peers := self._parts.peers) is not None:
            relay = ClientRelay(wire, peers, self._name)
            may_pass_on = not guest.is_passed_on
            why = await relay.pass_on(chat, guest.where, may_pass_on=may_pass_on)
            if why:
                return why
            wire.forget_start()
        await self._make_room(chat)
        is_passing = not guest.has_said_hello
        client = await self.kept.see(chat, is_passing=is_passing, claims=hello.after)
        cursor = hello.after if 0 <= hello.after <= client.last else client.has
        hello = structs.replace(hello, client=name)
        guest = structs.replace(guest, hello=hello, last=client.last)
        visit = Visit(wire, guest, chat, shared, cursor)
        here = self._visits.setdefault(chat, [])
        here.append(visit)
        if len(here) > self._config.max_per_client:
            here[0].leave("replaced")
        self._show()
        try:
            await visit.run()
        finally:
            here.remove(visit)
            if not here:
                self._visits.pop(chat, None)
            self._show()
            # Why a shield: the client gets its close frame when all ends, too.
            with trio.CancelScope(shield=True):
                await visit.say_goodbye()
                if client.is_passing:
                    await self.kept.forget(chat)
        return visit.why

    async def _make_room(self, chat: str) -> None:
        """Make sure that one more client can be remembered."""
        is_new = self.kept.get(chat) is None
        if not is_new or len(self.kept) < self._config.max_clients:
            return
        if not await self.kept.make_room(self._stays):
            text = f"{self._config.max_clients} clients are remembered"
            raise ClientRefusedError(
                "full", text, "try again later", retry_after=RETRY_FULL
            )

    async def _tidy(self) -> None:
        while True:
            await trio.sleep(TIDY_EVERY)
            before = self._parts.clock.wall() - self._config.keep_days * DAY
            try:
                if self._parts.peers is not None:  # clients were at other nodes, too
                    await self.kept.load(self._stays)
                await self.kept.forget_old(before, self._stays)
            except StoreError as error:
                LOG.warning("old clients not forgotten yet", why=str(error))

    def shared(self, ingress: Ingress) -> SocketShared:
        """Return what all visits share."""
        parts = self._parts
        return SocketShared(
            connector=self._name,
            config=self._config,
            clock=parts.clock,
            ids=parts.ids,
            kept=self.kept,
            metrics=self._metrics,
            agents=parts.agents,
            ingress=ingress,
            awaited=self._awaited,
            peers=parts.peers,
        )

    def _settle(self, over: MessageOver) -> None:
        """Tell a client's visits that all that a message is owed was said."""
        if over.message:
            for visit in self._of(over.chat):
                visit.settle(client_name(over.chat, over.message), over.reason)

    def _new_client(self) -> str:
        """Make an id for a client that brings none; its chat is one of this node's."""
        peers, made = self._parts.peers, self._make_client()
        if peers is not None:
            for _ in range(MOST_IDS):
                if peers.where(self._name, frames.chat_of(made)).is_here:
                    break
                made = self._make_client()
        return made

    async def _let_moved_go(self, peers: Peers) -> None:
        """Have clients come again whose chats other nodes work on by now."""
        while True:
            await trio.sleep(LOOK_EVERY)
            for chat in [*self._visits]:
                place = peers.where(self._name, chat)
                if place.port and not place.is_here:
                    for visit in self._of(chat):
                        visit.leave(MOVED)

    def _stays(self, chat: str) -> bool:
        """Whether a client is here, or its chat is another node's."""
        peers = self._parts.peers
        is_mine = peers is None or peers.where(self._name, chat).is_here
        return chat in self._visits or not is_mine

    def _of(self, chat: str) -> tuple[Visit, ...]:
        return tuple(self._visits.get(chat, ()))

    def _show(self) -> None:
        self._metrics.show(sum(map(len, self._visits.values())))


def address_of(stream: trio.SocketStream) -> str:
    """Say where a client is."""
    try:
        return str(stream.socket.getpeername()[0])
    except OSError:  # it has gone
        return ""


def open_socket(
    name: str, config: WebSocketConfig, given: socket.socket | None = None
) -> socket.socket:
    """Listen where the settings say, unless what is given listens there already.

    Raises:
        ListenError: the address is taken, does not exist, or is open to others
            without a key.
    """
    host, port = config.host, config.port
    if config.api_key is None and not is_loopback(host):
        text = f"host {host!r} can be reached from other machines; set api_key"
        raise ListenError(f"connectors.{name}: {text}")
    return given or listen_on(f"connectors.{name}", host, port)


make_transport = WebSocketTransport
