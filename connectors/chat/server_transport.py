"""What the transports that are servers have in common; the kernel's side.

These are the HTTP server (`openai`), the ElizaOS channel, the page and the plain
WebSocket. Their addresses are taken before the company starts, so that an address that
another program has ends the start with a message.

`AwaitedMessages` is for those whose clients are told when a message has all its
answers; the terminals have it, too.
"""

from __future__ import annotations

import errno
import hashlib
import secrets
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from ipaddress import IPv6Address, ip_address, ip_network
from typing import NamedTuple, TypeAlias, cast

import trio

from actors.errors import DeliveryBusyError, SenderRefusedError
from actors.messages.deliveries import Delivery, Draft, Owed, Typing
from actors.messages.inbound import Inbound
from actors.rules.text.limits import RecentMap
from actors.transport import Earlier, Ingress
from runtime.errors import StoreError
from runtime.telemetry.logs import EventLog

OpenSocket: TypeAlias = "Callable[[socket.socket | None], socket.socket]"

SALT = secrets.token_bytes(16)
"""Of this process: what is stored of an address tells nobody the address."""

NETWORK_BITS = 64
"""Bits of an IPv6 address that are one client's: any machine has all behind them."""


def caller_at(host: str) -> str:
    """Name who calls from a network address, as `Inbound.caller`."""
    with suppress(ValueError):
        address = ip_address(host.partition("%")[0])
        if isinstance(address, IPv6Address):
            # As a socket of both families, such as a proxy's, writes it.
            address = address.ipv4_mapped or address
        bits = NETWORK_BITS if isinstance(address, IPv6Address) else 32
        host = str(ip_network((address, bits), strict=False))
    digest = hashlib.blake2b(host.encode(), key=SALT, digest_size=8)
    return f"address {digest.hexdigest()}"


class ListenError(OSError):
    """A server cannot listen where the settings say; the text says why.

    Args:
        is_taken: whether another program has the address.
    """

    def __init__(self, text: str, *, is_taken: bool = False) -> None:
        super().__init__(text)
        self.is_taken = is_taken


def listen_on(table: str, host: str, port: int) -> socket.socket:
    """Listen on an address of this machine.

    Args:
        table: the table of settings that names the address, for the text of an error.
        host: an address, or a name that has one.
        port: 0: one that is free.

    Raises:
        ListenError: the address is taken, or does not exist.
    """
    try:
        found = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, _, _, _, address = found[0]
        # Why a cast: typeshed counts addresses of families that TCP never has.
        place = cast("tuple[str, int]", address)
        listening = socket.create_server(place, family=family, backlog=1024)
        # Why here: asyncio sets this only on sockets that name their protocol, which
        # those made by `create_server` do not; without it each answer on a kept
        # connection waits 40 ms for the client's acknowledgement of its head.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError as error:
        # Python repeats the address in its text.
        why = (error.strerror or str(error)).partition(" (while")[0].lower()
        raise ListenError(
            f"{table}: cannot listen on {host}:{port}: {why}; "
            "end the other program or set another host or port",
            is_taken=error.errno == errno.EADDRINUSE,
        ) from error
    return listening


class ServerTransport:
    """Base of transports that listen on an address of this machine.

    Args:
        open_socket: opens the listening socket, or checks the one it is given; raises
            `OSError` if it cannot.
    """

    scheme = "http"
    """What its address begins with."""

    advice = ""
    """One line for whoever starts it; empty: none."""

    def __init__(self, open_socket: OpenSocket) -> None:
        self._open_socket = open_socket
        self._reserved: socket.socket | None = None
        self._bound = trio.Event()
        self._address = ("", 0)

    def reserve(self, given: socket.socket | None = None) -> None:
        """Take the address; clients that connect before `listen` wait.

        Call `release` in the end.

        Args:
            given: listens there already; None: a new one is opened.

        Raises:
            ListenError: the address cannot be listened on.
        """
        self._reserved = self._open_socket(given)
        self._keep_address(self._reserved)

    def give_up(self, reason: str) -> None:
        """End what clients wait for: nothing more will be stored, so nothing will come.

        Here nobody waits.
        """
        del reason

    def release(self) -> None:
        """Give the address back, unless `listen` has used it."""
        if self._reserved is not None:
            self._reserved.close()
            self._reserved = None

    @property
    def is_reserved(self) -> bool:
        """Whether the address is taken and waits for `listen`."""
        return self._reserved is not None

    @property
    def address(self) -> tuple[str, int]:
        """Host and port; empty and 0 before they are taken."""
        return self._address

    async def wait_listening(self) -> tuple[str, int]:
        """Wait until clients can connect; gives host and port."""
        await self._bound.wait()
        return self._address

    @contextmanager
    def listening(self) -> Generator[socket.socket]:
        """Use the address during the block, and close it then.

        Raises:
            ListenError: the address cannot be listened on.
        """
        sock = self._reserved or self._open_socket(None)
        self._reserved = None
        try:
            yield sock
        finally:
            sock.close()
            self._bound = trio.Event()

    def announce(self, sock: socket.socket) -> None:
        """Wake those in `wait_listening`: clients can connect now."""
        self._keep_address(sock)
        self._bound.set()

    def _keep_address(self, sock: socket.socket) -> None:
        host, port = sock.getsockname()[:2]
        self._address = (str(host), int(port))

    async def look_up(self, delivery: Delivery) -> str | None:
        """Refuse: `abilities` say that deliveries are repeated without asking.

        Raises:
            DeliveryBusyError: always.
        """
        await trio.lowlevel.checkpoint()
        raise DeliveryBusyError(f"{delivery.id} is simply said again")

    def show_draft(self, draft: Draft) -> None:
        """Do nothing; see the port."""

    def show_typing(self, typing: Typing) -> None:
        """Do nothing; see the port."""


async def hand_in(ingress: Ingress, inbound: Inbound) -> bool:
    """Hand a message in; False: it was handed in before.

    Raises:
        SenderRefusedError: its author is not let in.
        ChatError: it was not taken; see `Ingress.accept`.
    """
    if await ingress.accept(inbound):
        return True
    connector = inbound.address.connector
    if await ingress.earlier(connector, inbound.platform_id) is None:
        raise SenderRefusedError(NOT_LET_IN)
    return False


LOG = EventLog("server")

NOT_LET_IN = "you may not write here"

MOST_AWAITED = 4_096
"""Messages that are remembered for who waits; of others the store is asked."""

REPLIED = "replied"


class MessageOver(NamedTuple):
    """A message to which nothing more will be said."""

    correlation_id: str
    chat: str
    message: str
    """The platform's id of it; empty: an agent spoke by itself."""

    reason: str
    """As in `Transport.settle`."""

    error: str = ""
    """The words in which a failure was told; empty: it did not fail."""


class AwaitedMessage:
    """The answers that one message is still to get; `over` once it has them all."""

    __slots__ = ("_name", "_owed", "over")

    def __init__(self, correlation_id: str, chat: str, message: str) -> None:
        self._name = (correlation_id, chat, message)
        self._owed = Owed()
        self.over: MessageOver | None = None

    def count(self, delivery: Delivery) -> bool:
        """Take an answer off; True if it was the last."""
        if self.over is not None or delivery.is_aside or delivery.trouble == "waiting":
            return False
        if delivery.ends:
            self.end(delivery.ends)
        elif self._owed.count(delivery):
            error = delivery.text if delivery.trouble else ""
            self.end(REPLIED, error)
        return self.over is not None

    def end(self, reason: str, error: str = "") -> None:
        """Note that nothing more will be said, unless that was noted before."""
        if self.over is None:
            self.over = MessageOver(*self._name, reason, error)


class AwaitedMessages:
    """The messages whose senders are told when nothing more will be said to them.

    A message is over with the last answer that is owed, or when it is settled without
    one. Its sender is told then, and again each time the message comes again, also if
    a process before this one accepted or ended it.

    Args:
        tell: called with each message that is over.
    """

    def __init__(self, connector: str, tell: Callable[[MessageOver], None]) -> None:
        self._connector = connector
        self._tell = tell
        self._known: RecentMap[str, AwaitedMessage] = RecentMap(MOST_AWAITED)

    async def hand_in(self, ingress: Ingress, inbound: Inbound) -> str:
        """Hand a message in.

        Returns:
            Empty: it is new. Else it was handed in before, with this correlation id;
            tell the sender that the message is known, and then `tell_again`.

        Raises:
            SenderRefusedError: its author is not let in.
            ChatError: it was not taken; see `Ingress.accept`.
            StoreError: the store cannot be read now.
        """
        # Why before: answers may come before it is known to be stored.
        self._begin(inbound)
        is_new = False
        try:
            is_new = await ingress.accept(inbound)
        finally:
            if not is_new:
                self._known.pop(inbound.correlation_id, None)
        if is_new:
            return ""
        again = await self.recall(ingress, inbound.platform_id)
        if not again:
            raise SenderRefusedError(NOT_LET_IN)
        return again

    def _begin(self, inbound: Inbound) -> None:
        name = inbound.correlation_id
        known = AwaitedMessage(name, inbound.address.chat, inbound.platform_id)
        self._known[name] = known

    async def recall(self, ingress: Ingress, platform_id: str) -> str:
        """Learn what became of a message that comes again.

        Returns:
            Its correlation id, for `tell_again`; empty: it is unknown or forgotten.

        Raises:
            StoreError: the store cannot be read now.
        """
        found = await ingress.earlier(self._connector, platform_id)
        if found is None:
            return ""
        name = found.inbound.correlation_id
        if name not in self._known:
            self._begin(found.inbound)
            # Why again: answers that are given from now on are counted, those before
            # must be among what was read.
            found = await ingress.earlier(self._connector, platform_id) or found
        self._take_in(self._known[name], found)
        return name

    def tell_again(self, correlation_id: str) -> None:
        """Tell who sent a message again that it is over, if it is."""
        known = self._known.get(correlation_id)
        if known is not None and known.over is not None:
            self._tell(known.over)

    async def answered(self, ingress: Ingress | None, delivery: Delivery) -> None:
        """Count an answer that its sender has, or can read."""
        name = delivery.correlation_id
        if name not in self._known:
            chat, message = delivery.address.chat, delivery.reply_to
            self._known[name] = AwaitedMessage(name, chat, message)
            if ingress is not None and message:
                await self._learn(ingress, delivery)
        known = self._known.get(name)
        if known is not None and known.count(delivery) and known.over is not None:
            self._tell(known.over)

    def settled(self, inbound: Inbound, reason: str) -> None:
        """Take notice that no more answers to a message will come."""
        name = inbound.correlation_id
        known = self._known.get(name)
        if known is None:
            if not inbound.answered_id:
                return  # an agent did something by itself: nobody waits
            chat, message = inbound.address.chat, inbound.answered_id
            known = AwaitedMessage(name, chat, message)
            self._known[name] = known
        if known.over is None:
            known.end(reason)
            self.tell_again(name)

    async def _learn(self, ingress: Ingress, delivery: Delivery) -> None:
        """Count what a process before this one gave in answer to the same message."""
        try:
            found = await ingress.earlier(self._connector, delivery.reply_to)
        except StoreError as error:
            LOG.warning("earlier answers not counted", why=str(error))
            return
        known = self._known.get(delivery.correlation_id)
        is_same = found is not None and (
            found.inbound.correlation_id == delivery.correlation_id
        )
        if found is not None and known is not None and is_same:
            for each in found.current:
                if each.id in found.ended and each.id != delivery.id:
                    known.count(each)

    def _take_in(self, known: AwaitedMessage, found: Earlier) -> None:
        for each in found.current:
            if each.id in found.ended:
                known.count(each)
        if found.is_unanswered:
            known.end(found.outcome)
