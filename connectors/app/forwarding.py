"""What a node that stands by does with connections: it passes them on.

`nodes.py` knows where the company runs. What is here listens for its connectors until
it runs in this process, and answers the probes of operators.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from types import MappingProxyType

import msgspec
import trio

from connectors.app.nodes import CompanyNode, doors_of_company
from connectors.chat.server_transport import listen_on
from connectors.config.app import ADMIN_PORT, AppConfig
from runtime.errors import StoreUnavailableError
from runtime.telemetry.logs import EventLog

LOG = EventLog("nodes")

HELD_FOR = 20.0
"""Seconds beyond `ttl` that a connection waits for a node that can take it."""

MOST_PASSED_ON = 512
"""Connections to one connector that are passed on at once; more are closed."""

READ_WITHIN = 2.0
"""Seconds that a client has to read why it is refused."""

CHUNK = 65_536
AGAIN = 0.1
"""Seconds between two tries to reach a node that is about to listen."""

STANDING_BY = "callboard_node_standing_by"
"""All that `/metrics` shows of a node that stands by."""


class ConnectionForwarder:
    """Listens for the connectors while this node stands by.

    Connections are passed on to the node that runs the company, byte by byte; those
    that come while none does wait for it, also if it is this one in the end.

    Args:
        tell: told in a line where it listens.
    """

    def __init__(
        self, node: CompanyNode, nursery: trio.Nursery, tell: Callable[[str], object]
    ) -> None:
        self._tell = tell
        self._node = node
        self._nursery = nursery
        self._open: dict[str, int] = {}

    async def stand(
        self,
        config: AppConfig,
        until: Callable[[], Awaitable[object]],
        *,
        beside: Collection[str] = (),
        given: Mapping[str, socket.socket] = MappingProxyType({}),
        has_probes: bool = True,
    ) -> dict[str, socket.socket]:
        """Listen until something has happened; gives what listens, by connector.

        Args:
            until: waits for that.
            beside: connectors that run in this process.
            given: by connector, what listens for it already.
            has_probes: whether probes are answered here, too.

        Raises:
            ListenError: an address cannot be listened on.
        """
        sockets: dict[str, socket.socket] = {}
        with contextlib.ExitStack() as stack:
            for name, (host, port) in doors_of_company(config).items():
                if name in beside:
                    continue
                if name in given:
                    sockets[name] = given[name]
                    continue
                sockets[name] = listen_on(f"connectors.{name}", host, port)
                stack.callback(sockets[name].close)
                place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
                self._tell(f"{name}: standing by, listening on {place}")
            async with trio.open_nursery() as nursery:
                for name, door in sockets.items():
                    nursery.start_soon(self._accept, name, door)
                if config.admin.is_on and has_probes:
                    nursery.start_soon(self._answer_probes, config)
                await until()
                nursery.cancel_scope.cancel()
            stack.pop_all()
        return sockets

    async def _accept(self, connector: str, door: socket.socket) -> None:
        with trio.socket.from_stdlib_socket(door.dup()) as listener:
            while True:
                try:
                    accepted, _ = await listener.accept()
                except OSError as error:  # no file is left to open, or it has gone
                    LOG.warning("a connection was not taken", why=str(error))
                    await trio.sleep(AGAIN)
                    continue
                self._nursery.start_soon(
                    self._pass_on, connector, trio.SocketStream(accepted)
                )

    async def _pass_on(self, connector: str, client: trio.SocketStream) -> None:
        count = self._open.get(connector, 0)
        async with client:
            if count >= MOST_PASSED_ON:
                return
            self._open[connector] = count + 1
            try:
                with contextlib.suppress(OSError, trio.BrokenResourceError):
                    try:
                        await self._connect(connector, client)
                    except StoreUnavailableError as error:
                        await refuse(client, str(error))
            finally:
                self._open[connector] -= 1

    async def _connect(self, connector: str, client: trio.SocketStream) -> None:
        """Have a client served where its connector runs."""
        server: trio.SocketStream | None = None
        owner = ""
        with trio.move_on_after(self._node.ttl + HELD_FOR):
            while server is None:
                host, port = await self._node.place_of(connector)
                owner = self._node.owner
                try:
                    server = await trio.open_tcp_stream(host, port)
                except OSError:  # it has gone, or does not listen yet
                    await trio.sleep(AGAIN)
        if server is None:
            raise StoreUnavailableError("no node can take this now")
        async with server, trio.open_nursery() as nursery:

            async def end_after(wait: Callable[[], Awaitable[object]]) -> None:
                await wait()
                nursery.cancel_scope.cancel()

            nursery.start_soon(pump, client, server)
            # What the server has ended is over, whatever the client still sends.
            nursery.start_soon(end_after, partial(pump, server, client))
            # A node that was stopped never ends a connection.
            await end_after(partial(self._node.wait_moved, owner))

    async def _answer_probes(self, config: AppConfig) -> None:
        """Serve `/healthz`, `/readyz` and `/metrics` where operators look."""
        port = ADMIN_PORT if config.admin.port is None else config.admin.port
        try:
            door = listen_on("admin", config.admin.host, port)
        except OSError as error:
            if config.admin.port is not None:
                raise
            LOG.warning("nobody can ask how this node is doing", why=str(error))
            return
        with trio.socket.from_stdlib_socket(door) as listener:
            await trio.serve_listeners(self._probed, [trio.SocketListener(listener)])

    async def _probed(self, client: trio.SocketStream) -> None:
        """Answer one request for a probe."""
        with contextlib.suppress(trio.BrokenResourceError), trio.move_on_after(5.0):
            head = b""
            while b"\r\n\r\n" not in head and len(head) < CHUNK:
                part = await client.receive_some(CHUNK)
                if not part:
                    return
                head += part
            way = [*head.split(b" ", 2), b""][1].partition(b"?")[0]
            await client.send_all(
                probe_answer(way, self._node.standing(), self._node.name)
            )


def probe_answer(way: bytes, trouble: str, node: str) -> bytes:
    """Write the HTTP answer to a probe of a node that stands by."""
    status, kind, body = "404 Not Found", "text/plain; charset=utf-8", b"not found\n"
    if way == b"/healthz":
        status, body = "200 OK", b"ok\n"
    elif way == b"/metrics":
        status, kind = "200 OK", "text/plain; version=0.0.4; charset=utf-8"
        shown = f'{STANDING_BY}{{node="{node}"}} 1'  # a name needs no escapes
        body = f"# TYPE {STANDING_BY} gauge\n{shown}\n".encode()
    elif way == b"/readyz":
        reasons = (trouble,) if trouble else ()
        status = "503 Service Unavailable" if trouble else "200 OK"
        kind = "application/json"
        body = msgspec.json.encode(
            {"ready": not reasons, "reasons": reasons, "standing_by": True}
        )
    head = (
        f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n"
        "connection: close\r\n\r\n"
    )
    return head.encode() + body


async def refuse(client: trio.SocketStream, why: str) -> None:
    """Tell a client that it is to try again: what listens here speaks HTTP.

    In the shape of OpenAI's errors, as the servers do that would have answered.
    """
    told = {"message": f"{why}; try again", "type": "server_error"}
    body = msgspec.json.encode({"error": told | {"param": None, "code": "unavailable"}})
    head = (
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\nretry-after: 1\r\nconnection: close\r\n\r\n"
    )
    with trio.move_on_after(READ_WITHIN):
        await client.send_all(head.encode() + body)
        await client.send_eof()
        # Why: closed while something of the client's is unread, a connection is reset,
        # and the client may never see the answer.
        while await client.receive_some(CHUNK):
            pass


async def pump(source: trio.SocketStream, target: trio.SocketStream) -> None:
    """Hand bytes on until the source has ended."""
    with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        while part := await source.receive_some(CHUNK):
            await target.send_all(part)
        await target.send_eof()


def close_moved(
    sockets: dict[str, socket.socket],
    before: Mapping[str, tuple[str, int]],
    after: Mapping[str, tuple[str, int]],
) -> None:
    """Close and take out what listens for connectors that listen elsewhere by now.

    Args:
        sockets: by connector, what listens for it.
        before: where that is; see `doors_of_company`.
        after: where connectors are to listen.
    """
    for name in [*sockets]:
        if before[name] != after.get(name):
            sockets.pop(name).close()
