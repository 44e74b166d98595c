"""What the transports that are servers have in common; the kernel's side.

These are the HTTP server (`openai`), the ElizaOS channel, the page and the plain
WebSocket. Their addresses are taken before the company starts, so that an address that
another program has ends the start with a message.
"""

from __future__ import annotations

import errno
import hashlib
import secrets
import socket
from contextlib import contextmanager, suppress
from ipaddress import IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, TypeAlias, cast

import trio

from actors.errors import DeliveryBusyError, SenderRefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from actors.messages.deliveries import Delivery, Draft, Typing
    from actors.messages.inbound import Inbound
    from actors.transport import Ingress


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
        text: what is wrong, and what to do.
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
        raise SenderRefusedError("you may not write here")
    return False
