"""Requests that are passed on to the node that works on their chat."""

from __future__ import annotations

import asyncio  # noqa: TID251  what is tested lives there
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from typing import Any

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from connectors.chat.server_transport import listen_on
from connectors.web import peers as peering
from connectors.web.peers import NodePlace, PassedRequest, RequestPasser, RestEndpoint
from connectors.web.server import (
    ABORT,
    ApiError,
    HttpSettings,
    abort_connection,
    serve,
)

HERE = NodePlace("a", is_here=True)
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Id: 7\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: "
STREAM = CHUNKED + b"text/event-stream; charset=utf-8\r\n\r\n"
MISDIRECTED = b"HTTP/1.1 421 Misdirected Request\r\nContent-Length: 0\r\n\r\n"


class Around:
    """The other nodes, as the test says; each place is given once, the last for ever.

    Args:
        places: where it is worked on, one look after the other.
    """

    def __init__(self, *places: NodePlace) -> None:
        self._places = [*places]
        self.asked: list[tuple[str, str]] = []

    def where(self, connector: str, chat: str) -> NodePlace:
        """Give the next place."""
        self.asked.append((connector, chat))
        return self._places.pop(0) if len(self._places) > 1 else self._places[0]

    def where_rest(self, connector: str) -> NodePlace:
        """Give the next place."""
        return self.where(connector, "")

    def seal(self, text: str) -> str:
        """Seal nothing."""
        return text

    def entering(
        self, connector: str, chat: str, *, may_move: bool = False
    ) -> AbstractContextManager[None]:
        """Let everybody in."""
        del connector, chat, may_move
        return nullcontext()


class Node:
    """A server that takes one request, and answers with bytes."""

    def __init__(self, *answers: bytes, hangs: bool = False) -> None:
        self._answers = [*answers]
        self._hangs = hangs
        self.heard = b""
        self.server: asyncio.Server

    async def open(self, owner: str = "b") -> NodePlace:
        """Listen; gives where."""
        self.server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        return NodePlace(owner, "127.0.0.1", self.server.sockets[0].getsockname()[1])

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        # A client that gave up before it asked is no fault of this server.
        with closing(writer), suppress(asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            self.heard = head + await reader.readexactly(2)
            if self._answers:
                writer.write(self._answers.pop(0))
            if self._hangs:
                await reader.read()


class Client:
    """Who asked, and what came back."""

    def __init__(self) -> None:
        self.got: list[Message] = []
        self.gone = asyncio.Event()

    async def receive(self) -> Message:
        """Wait until the client goes."""
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Take a piece of the answer."""
        self.got.append(message)

    @property
    def body(self) -> bytes:
        """All that came."""
        return b"".join(each.get("body", b"") for each in self.got)


def scope_of(**more: Any) -> Scope:
    headers = [(b"host", b"there"), (b"connection", b"close"), (b"x-own", b"1")]
    return {
        "type": "http",
        "method": "POST",
        "raw_path": b"/v1/chat",
        "query_string": b"a=1",
        "headers": headers,
        **more,
    }


def run(test: Callable[[Client], Coroutine[Any, Any, None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(20):
            await test(Client())

    asyncio.run(limited())


async def passed(
    client: Client, *places: NodePlace, scope: Scope | None = None, host: bool = True
) -> bool:
    passer = RequestPasser(Around(*places))
    further = ((b"idempotency-key", b"k"),)
    asked = PassedRequest(scope or scope_of(), b"hi", "http", further, has_host=host)
    try:
        return await passer.pass_on(asked, "chat", client.receive, client.send)
    finally:
        await passer.aclose()


def test_the_other_node_gets_the_request_and_the_client_its_answer() -> None:
    async def test(client: Client) -> None:
        node = Node(WHOLE + b"hello")
        assert await passed(client, await node.open())
        node.server.close()
        assert node.heard.startswith(b"POST /v1/chat?a=1 HTTP/1.1\r\n")
        assert node.heard.endswith(b"\r\n\r\nhi")
        for header in (b"host: there", b"x-own: 1", b"idempotency-key: k"):
            assert header in node.heard.lower()
        assert b"x-callboard-passed-on: 1" in node.heard.lower()
        assert b"connection: close" not in node.heard.lower()
        assert client.got[0]["status"] == 200
        assert (b"x-id", b"7") in client.got[0]["headers"]
        assert client.body == b"hello"

    run(test)


def test_a_node_is_asked_under_its_own_name_where_the_client_s_was_checked() -> None:
    async def test(client: Client) -> None:
        node = Node(WHOLE + b"hello")
        place = await node.open()
        assert await passed(client, place, host=False)
        node.server.close()
        assert f"host: 127.0.0.1:{place.port}".encode() in node.heard.lower()

    run(test)


def test_what_is_worked_on_here_is_left_to_this_node() -> None:
    async def test(client: Client) -> None:
        assert not await passed(client, NodePlace(""), NodePlace("b"), HERE)
        assert client.got == []

    run(test)


def test_a_dead_node_and_one_that_gave_the_chat_away_are_not_the_last_asked() -> None:
    async def test(client: Client) -> None:
        dead = Node()
        gone = await dead.open("c")
        dead.server.close()
        before, after = (
            Node(MISDIRECTED),
            Node(STREAM + b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"),
        )
        places = [gone, gone, await before.open("b"), await after.open("d")]
        assert await passed(client, *places)
        assert client.body == b"hello"
        before.server.close()
        after.server.close()

    run(test)


def test_a_node_that_is_stopped_is_left_when_another_has_taken_over() -> None:
    async def test(client: Client) -> None:
        stopped = Node(hangs=True)
        place = await stopped.open()
        assert not await passed(client, place, place, HERE)
        stopped.server.close()

    run(test)


def refusing(code: str) -> bytes:
    """Write a whole 503."""
    body = b'{"error": {"message": "no", "code": "%s"}}' % code.encode()
    return b"HTTP/1.1 503 No\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


def test_a_node_that_ends_refuses_nobody_who_came_by_way_of_another() -> None:
    async def test(client: Client) -> None:
        ending, after = Node(refusing("stopping")), Node(WHOLE + b"hello")
        place = await ending.open()
        assert await passed(client, place, place, await after.open("c"))
        assert (client.got[0]["status"], client.body) == (200, b"hello")
        ending.server.close()
        after.server.close()

    run(test)


@pytest.mark.parametrize(
    ("code", "may_repeat"), [("overloaded", True), ("stopping", False)]
)
def test_another_refusal_and_of_what_may_have_been_taken_is_the_client_s(
    code: str,
    may_repeat: bool,  # noqa: FBT001
) -> None:
    async def test(client: Client) -> None:
        node, after = Node(refusing(code)), Node(WHOLE + b"hello")
        place = await node.open()
        passer = RequestPasser(Around(place, place, await after.open("c")))
        asked = PassedRequest(scope_of(), b"hi", "http", may_repeat=may_repeat)
        assert await passer.pass_on(asked, "chat", client.receive, client.send)
        assert client.got[0]["status"] == 503
        assert client.body in refusing(code)
        await passer.aclose()
        node.server.close()
        after.server.close()

    run(test)


@pytest.mark.parametrize("hangs", [False, True])
def test_what_may_not_be_repeated_is_sent_again_only_if_nobody_took_it(
    hangs: bool,  # noqa: FBT001
) -> None:
    async def test(client: Client) -> None:
        dead, node, other = Node(), Node(hangs=hangs), Node(WHOLE + b"hello")
        gone, place, last = [await each.open() for each in (dead, node, other)]
        dead.server.close()
        around = Around(gone, gone, place, place, NodePlace("d", last.host, last.port))
        passer = RequestPasser(around)
        asked = PassedRequest(scope_of(), b"hi", "http", may_repeat=False)
        with pytest.raises(ApiError) as refused:
            await passer.pass_on(asked, "chat", client.receive, client.send)
        assert (refused.value.status, refused.value.code) == (503, "gone")
        assert (node.heard[-2:], other.heard, client.got) == (b"hi", b"", [])
        await passer.aclose()
        node.server.close()
        other.server.close()

    run(test)


@pytest.mark.parametrize("hangs", [False, True])
def test_a_stream_that_breaks_off_ends_with_an_error(hangs: bool) -> None:  # noqa: FBT001
    async def test(client: Client) -> None:
        node = Node(STREAM + b"2\r\nhe\r\n", hangs=hangs)
        place = await node.open()
        assert await passed(client, place, place, NodePlace("c"))
        node.server.close()
        assert client.body.startswith(b"hedata: ")
        assert b"ask again" in client.body
        assert not client.got[-1]["more_body"]

    run(test)


@pytest.mark.parametrize("hangs", [False, True])
def test_what_breaks_off_and_is_no_stream_of_events_is_not_made_whole(
    hangs: bool,  # noqa: FBT001
) -> None:
    async def test(client: Client) -> None:
        node = Node(CHUNKED + b"text/plain\r\n\r\n2\r\nhe\r\n", hangs=hangs)
        place = await node.open()
        ended: list[str] = []
        state = {ABORT: lambda: ended.append("aborted")}
        scope = scope_of(state=state)
        assert await passed(client, place, place, NodePlace("c"), scope=scope)
        node.server.close()
        assert (client.body, ended) == (b"he", ["aborted"])
        assert client.got[-1]["more_body"]

    run(test)


def test_whose_answer_breaks_off_sees_that_it_is_not_whole(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"he", "more_body": True})
        abort_connection(scope)
        await asyncio.sleep(0)

    async def test(_client: Client) -> None:
        sock = listen_on("test", "127.0.0.1", 0)
        settings = HttpSettings(name="test", host="127.0.0.1", port=0)
        serving = asyncio.ensure_future(serve(app, sock, settings, lambda: None))
        async with httpx.AsyncClient() as asker:
            with pytest.raises(httpx.TransportError):
                await asker.get(f"http://127.0.0.1:{sock.getsockname()[1]}/")
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        assert not caplog.records

    run(test)


def test_who_has_gone_is_not_answered() -> None:
    async def test(client: Client) -> None:
        node = Node(hangs=True)
        place = await node.open()
        client.gone.set()
        assert await passed(client, place)
        assert client.got == []
        node.server.close()

    run(test)


def test_nobody_waits_for_another_node_when_the_server_stops() -> None:
    async def test(client: Client) -> None:
        node = Node(hangs=True)
        passer = RequestPasser(Around(await node.open()))
        asked = PassedRequest(scope_of(), b"hi", "http")
        asyncio.get_running_loop().call_later(0.1, passer.stop)
        with pytest.raises(ApiError) as refused:
            await passer.pass_on(asked, "chat", client.receive, client.send)
        assert refused.value.status == 503
        await passer.aclose()
        node.server.close()

    run(test)


def test_what_another_node_has_passed_on_is_not_passed_on_again() -> None:
    async def test(client: Client) -> None:
        scope = scope_of(headers=[(peering.PASSED_ON, b"1")])
        with pytest.raises(ApiError) as refused:
            await passed(client, NodePlace("b", "127.0.0.1", 1), scope=scope)
        assert refused.value.status == 421

    run(test)


def test_nobody_waits_for_ever_for_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peering, "HELD_FOR", 0.1)

    async def test(client: Client) -> None:
        with pytest.raises(ApiError) as refused:
            await passed(client, NodePlace(""))
        assert (refused.value.status, refused.value.retry_after) == (503, 1.0)

    run(test)


async def answer_here(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})


def test_what_is_not_shared_is_answered_where_it_is() -> None:
    async def test(client: Client) -> None:
        node = Node(WHOLE + b"hello")
        place = await node.open()

        bodies = [b"hi", b"hi"]

        async def receive() -> Message:
            if bodies:
                body = bodies.pop()
                return {"type": "http.request", "body": body, "more_body": False}
            return await client.receive()

        for here, most in ((True, 2), (False, 1), (False, 2)):
            passer = RequestPasser(Around(HERE if here else place))
            rest = RestEndpoint(answer_here, passer, "http", most)
            await rest(scope_of(), receive, client.send)
            await passer.aclose()
        node.server.close()
        statuses = [each["status"] for each in client.got if "status" in each]
        assert statuses == [204, 413, 200]

    run(test)
