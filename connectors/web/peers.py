"""The other nodes of a company: passes requests on to the one that works on a chat.

Lives on the edge's loop. A request of a named conversation is answered by the node that
has the part of its chat, so that all that belongs to it (streams, drafts, waiting) is
in one process. Any node takes it, and passes it on. A message that was passed on
carries an `Idempotency-Key`: it is sent again when its node has died meanwhile, and is
taken once. What else may have been taken, as a webhook, is not sent again: its sender
is told 503.
"""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from starlette.requests import ClientDisconnect, Request

from connectors.web.server import (
    MISDIRECTED,
    ApiError,
    abort_connection,
    error_body,
    refuse,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx
    from starlette.types import ASGIApp, Receive, Scope, Send

PASSED_ON = b"x-callboard-passed-on"
"""Header of a request that another node has passed on."""

PER_HOP = frozenset(
    {b"connection", b"keep-alive", b"transfer-encoding", b"upgrade", b"te", b"trailer"}
)
"""Headers that concern one connection only. Source: RFC 9110 7.6.1."""

HELD_FOR = 30.0
"""Seconds that a request waits for a node that can take it."""

CONNECT_WITHIN = 2.0
AGAIN = 0.05
"""Seconds between two looks where a chat is worked on."""

LOOK_EVERY = 0.1
"""Seconds between two looks whether the node that was asked still works on it."""


GONE = "the node that was asked is gone, and may have taken it; ask again"

EVENTS = b"text/event-stream"

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that may be asked again. Source: RFC 9110 9.2.1."""


class NodePlace(msgspec.Struct, frozen=True):
    """Where something is worked on."""

    owner: str
    """The node; empty: none."""

    host: str = ""
    port: int = 0
    """Where it listens; 0: it is just moving, or nobody knows: wait."""

    is_here: bool = False


class Peers(Protocol):
    """What a node knows of the others; any thread may ask."""

    def where(self, connector: str, chat: str) -> NodePlace:
        """Say where a chat is worked on."""
        ...

    def where_rest(self, connector: str) -> NodePlace:
        """Say where what is not shared is done."""
        ...

    def seal(self, text: str) -> str:
        """Give what only a node can give, and all give alike, for a text."""
        ...

    def entering(
        self, connector: str, chat: str, *, may_move: bool = False
    ) -> AbstractContextManager[None]:
        """Keep a chat here while a message is being stored; on the kernel's side.

        Args:
            may_move: whether its sender finds the answer at another node, too.

        Raises:
            actors.errors.MisdirectedError: it is not here, or perhaps not for long.
        """
        ...


@dataclass(frozen=True)
class PassedRequest:
    """A request as it is sent to another node."""

    scope: Scope
    body: bytes
    connector: str
    """To which it came; there, too, it is for the connector of this name."""

    further: tuple[tuple[bytes, bytes], ...] = ()
    """Headers that it gets in addition."""

    has_host: bool = True
    """Whether the other node is told which host the client asked for. Without a key a
    server takes only what is sent to its own address, which was looked at already."""

    may_repeat: bool = True
    """Whether it is sent again when a node that may have taken it does not answer."""

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """All headers that are sent."""
        left_out = PER_HOP if self.has_host else PER_HOP | {b"host"}
        kept = [each for each in self.scope["headers"] if each[0] not in left_out]
        return [*kept, (PASSED_ON, b"1"), *self.further]


def is_passed_on(scope: Scope) -> bool:
    """Whether a request came from another node."""
    return any(name == PASSED_ON for name, _ in scope["headers"])


class RequestPasser:
    """Sends requests to the nodes that are to answer them."""

    def __init__(self, peers: Peers) -> None:
        # Why here: the only node of a company passes nothing on.
        import httpx  # noqa: PLC0415

        self._peers = peers
        self._stopping = asyncio.Event()
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(None, connect=CONNECT_WITHIN),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=64),
            trust_env=False,  # no proxy stands between nodes
        )

    def has_rest(self, connector: str) -> bool:
        """Whether what is not shared is done here."""
        return self._peers.where_rest(connector).is_here

    def stop(self) -> None:
        """End what waits for other nodes, because the server stops."""
        self._stopping.set()

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def pass_on(
        self,
        asked: PassedRequest,
        chat: str | None,
        receive: Receive,
        send: Send,
    ) -> bool:
        """Have a request answered where it belongs; False: that is here.

        Args:
            chat: which it is for; None: none, and so it is for who has the rest.

        Raises:
            ApiError: nobody can take it now.
        """
        peers, name = self._peers, asked.connector
        where = partial(peers.where, name, chat) if chat is not None else None
        where = where or partial(peers.where_rest, name)
        end = asyncio.get_running_loop().time() + HELD_FOR
        while asyncio.get_running_loop().time() < end and not self._stopping.is_set():
            place = where()
            if place.is_here:
                return False
            if place.port:
                if is_passed_on(asked.scope):
                    raise ApiError(MISDIRECTED, "ask another node", code="misdirected")
                if await self._is_answered(asked, place, where, receive, send):
                    return True
            await asyncio.sleep(AGAIN)
        text = "no node can take this now; try again"
        raise ApiError(503, text, code="unavailable", retry_after=1.0)

    async def _is_answered(
        self,
        asked: PassedRequest,
        place: NodePlace,
        where: Callable[[], NodePlace],
        receive: Receive,
        send: Send,
    ) -> bool:
        """Ask one node; False: it did not answer, or does not work on it any more."""
        answer = PassedAnswer(send, asked.scope)
        asking = asyncio.ensure_future(self._ask(asked, place, answer))
        gone = asyncio.ensure_future(wait_gone(receive))
        moved = asyncio.ensure_future(wait_moved(place, where))
        stopping = asyncio.ensure_future(self._stopping.wait())
        tasks: set[asyncio.Future[Any]] = {asking, gone, moved, stopping}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                return asking.result()
            if gone.done():
                return True
            return await self._is_broken_off(asked, answer)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(
        self, asked: PassedRequest, place: NodePlace, answer: PassedAnswer
    ) -> bool:
        import httpx  # noqa: PLC0415  as above

        scope = asked.scope
        host = f"[{place.host}]" if ":" in place.host else place.host
        query = scope["query_string"].decode("latin-1")
        url = httpx.URL(
            f"http://{host}:{place.port}",
            raw_path=scope["raw_path"] + (f"?{query}".encode() if query else b""),
        )
        request = self._client.build_request(
            scope["method"], url, headers=asked.headers, content=asked.body
        )
        try:
            response = await self._client.send(request, stream=True)
            async with contextlib.aclosing(response):
                if response.status_code == MISDIRECTED:
                    return False
                if not await answer.give(response, may_repeat=asked.may_repeat):
                    return False
        except (httpx.ConnectError, httpx.ConnectTimeout):
            return False
        except httpx.TransportError:
            return await self._is_broken_off(asked, answer)
        return True

    async def _is_broken_off(self, asked: PassedRequest, answer: PassedAnswer) -> bool:
        """End a request whose node has gone; False: another one may be asked."""
        if answer.is_begun:
            await answer.break_off()
        elif not asked.may_repeat:
            raise ApiError(503, GONE, code="gone", retry_after=1.0)
        return answer.is_begun


class PassedAnswer:
    """The answer of another node, on its way to the client."""

    def __init__(self, send: Send, scope: Scope) -> None:
        self._send = send
        self._scope = scope
        self._has_events = False
        self.is_begun = False

    async def give(self, response: httpx.Response, *, may_repeat: bool) -> bool:
        """Hand it on, piece by piece if it is a stream.

        Args:
            may_repeat: whether another node may be asked.

        Returns:
            False: nothing was handed on, because the other node ends, and its
            successor is to be asked.

        Raises:
            httpx.TransportError: it broke off.
        """
        headers = [
            (name.lower(), value)
            for name, value in response.headers.raw
            if name.lower() not in PER_HOP
        ]
        if any(name == b"content-length" for name, _ in headers):
            # First whole: a broken one can then be asked for again.
            whole = b"".join([part async for part in response.aiter_raw()])
            if may_repeat and response.status_code == 503 and is_ending(whole):
                return False
            await self._start(response.status_code, headers)
            await self._body(whole, is_last=True)
            return True
        await self._start(response.status_code, headers)
        async for part in response.aiter_raw():
            await self._body(part)
        await self._body(b"", is_last=True)
        return True

    async def break_off(self) -> None:
        """End an answer whose rest does not come any more.

        A stream of events can say so. Any other answer ends with its connection: an
        end in order would make a whole of a part.
        """
        if not self._has_events:
            abort_connection(self._scope)
            return
        error = ApiError(503, GONE, code="gone")
        with contextlib.suppress(OSError):
            await self._body(b"data: " + error_body(error) + b"\n\n", is_last=True)

    async def _start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self.is_begun = True
        kind = dict(headers).get(b"content-type", b"")
        self._has_events = kind.partition(b";")[0].strip().lower() == EVENTS
        await self._send(
            {"type": "http.response.start", "status": status, "headers": headers}
        )

    async def _body(self, part: bytes, *, is_last: bool = False) -> None:
        await self._send(
            {"type": "http.response.body", "body": part, "more_body": not is_last}
        )


class RefusalCode(msgspec.Struct):
    """What is read of an error."""

    code: str = ""


class PeerRefusal(msgspec.Struct):
    """What is read of a refusal, as `connectors.web.server` writes it."""

    error: RefusalCode


def is_ending(body: bytes) -> bool:
    """Whether a node refused a request because it ends."""
    try:
        return msgspec.json.decode(body, type=PeerRefusal).error.code == "stopping"
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False


async def wait_gone(receive: Receive) -> None:
    """Wait until the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def wait_moved(place: NodePlace, where: Callable[[], NodePlace]) -> None:
    """Wait until another node works on it, or none."""
    while where().owner == place.owner:  # noqa: ASYNC110  the kernel's thread knows
        await asyncio.sleep(LOOK_EVERY)


class RestEndpoint:
    """What is not shared, as an ASGI application: here, or at the node that has it.

    Args:
        most_bytes: longest body that is passed on.
    """

    def __init__(
        self, app: ASGIApp, passer: RequestPasser, connector: str, most_bytes: int
    ) -> None:
        self._app = app
        self._passer = passer
        self._connector = connector
        self._most = most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if self._passer.has_rest(self._connector):
            await self._app(scope, receive, send)
            return
        try:
            body = await self._read(Request(scope, receive))
            may_repeat = scope["method"] in SAFE  # what comes in may bring no id
            asked = PassedRequest(scope, body, self._connector, may_repeat=may_repeat)
            if await self._passer.pass_on(asked, None, receive, send):
                return
            text = "the company is just moving; ask again"
            error = ApiError(503, text, code="unavailable", retry_after=1.0)
        except ClientDisconnect:
            return
        except ApiError as refusal:
            error = refusal
        await refuse(scope, error)(scope, receive, send)

    async def _read(self, request: Request) -> bytes:
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > self._most:
                text = f"the body is longer than {self._most} bytes"
                raise ApiError(413, text, code="request_too_large")
        return bytes(body)
