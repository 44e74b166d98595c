"""Clients whose chats another node works on."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from functools import partial

import pytest
import trio
from hypothesis import given, strategies as st
from wsproto import ConnectionType
from wsproto.connection import Connection
from wsproto.events import CloseConnection, Ping, TextMessage
from wsproto.utilities import LocalProtocolError

from actors.errors import MisdirectedError
from connectors.chat.websocket import relay
from connectors.chat.websocket.frames import chat_of
from connectors.chat.websocket.platform import WebSocketConfig
from connectors.chat.websocket.relay import CLIENT, WholeFrames, with_seal
from connectors.web.peers import NodePlace
from tests.fakes.store.in_memory import MemoryStore
from tests.support.chat.websocket_bed import SAM, ZOE, SocketBed, open_sockets

NOBODY = NodePlace("")
ANY_PORT = WebSocketConfig(port=0)


class Around:
    """What one node knows of the others, as the test says."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.places: dict[str, NodePlace] = {}
        """By chat, who works on it; others are worked on here."""

        self.is_closed = False
        """Whether nothing may be stored here any more."""

    def where(self, connector: str, chat: str) -> NodePlace:
        """Say where a chat is worked on."""
        del connector
        return self.places.get(chat, NodePlace(self.name, is_here=True))

    def where_rest(self, connector: str) -> NodePlace:
        """Say that nobody does the rest."""
        del connector
        return NOBODY

    def seal(self, text: str) -> str:
        """Seal a text, as all nodes do."""
        return hashlib.sha256(f"secret {text}".encode()).hexdigest()

    def entering(
        self, connector: str, chat: str, *, may_move: bool = False
    ) -> AbstractContextManager[None]:
        """Let in what is for this node."""
        assert may_move
        if self.is_closed or not self.where(connector, chat).is_here:
            raise MisdirectedError("another node answers this")
        return nullcontext()


class Nodes:
    """Two nodes on one store; `b` works on the chat of Zoe."""

    def __init__(
        self, a: SocketBed, b: SocketBed, around: tuple[Around, Around]
    ) -> None:
        self.a, self.b = a, b
        self.of_a, self.of_b = around

    def move_to(self, name: str) -> None:
        """Have another node work on the chat of Zoe."""
        chat = chat_of(ZOE)
        self.of_a.places[chat] = self._place(self.a if name == "a" else self.b, name)
        self.of_b.places[chat] = self.of_a.places[chat]
        here = self.of_a if name == "a" else self.of_b
        here.places[chat] = NodePlace(name, is_here=True)

    @staticmethod
    def _place(bed: SocketBed, name: str) -> NodePlace:
        return NodePlace(name, "127.0.0.1", bed.port)


@asynccontextmanager
async def two_nodes(
    config: WebSocketConfig = ANY_PORT,
) -> AsyncGenerator[Nodes]:
    """Serve at both."""
    store, around = MemoryStore(), (Around("a"), Around("b"))
    with trio.fail_after(20):
        async with (
            open_sockets(config, store, around[0]) as a,
            open_sockets(config, store, around[1]) as b,
        ):
            nodes = Nodes(a, b, around)
            nodes.move_to("b")
            yield nodes


async def test_a_client_talks_with_the_node_of_its_chat_wherever_it_came_in() -> None:
    async with two_nodes() as nodes:
        client = await nodes.a.join(drafts=True, typing=True)
        await client.send("message", content="hello", id="m1")
        inbound = await nodes.b.ingress.next()
        assert (inbound.text, inbound.address.chat) == ("hello", chat_of(ZOE))
        await nodes.b.answer(inbound, "good morning")
        await nodes.b.transport.settle(inbound, "replied")
        await client.next_of("settled")
        assert client.said() == ["good morning"]
        assert client.of("received") == [
            {"type": "received", "id": "m1", "again": False}
        ]
        assert nodes.a.ingress.accepted == []
        direct = await nodes.b.join()
        await direct.send("message", content="me, too", id="m2")
        # Whom the other node passed on counts by the client's own address.
        assert (await nodes.b.ingress.next()).caller == inbound.caller


async def test_who_has_no_id_is_served_where_it_came_in() -> None:
    async with two_nodes() as nodes:
        names = ("made-up-client-0000", "made-up-client-0001")
        other = nodes.of_a.places[chat_of(ZOE)]
        nodes.of_a.places[chat_of(names[0])] = other
        client = await nodes.a.dial()
        await client.open()
        await client.send("message", content="hello")
        inbound = await nodes.a.ingress.next()
        assert inbound.address.chat == chat_of(names[1])
        await nodes.a.answer(inbound, "hi")
        await client.next_of("message")


async def test_who_is_with_a_node_that_dies_is_told_to_come_again() -> None:
    async with two_nodes() as nodes:
        client = await nodes.a.join()
        await client.send("message", content="hello", id="m1")
        await client.next_of("received")
        nodes.b.nursery.cancel_scope.cancel()
        await client.wait(lambda: client.has_ended)
        # It ended in order: so it says itself that it stops.
        assert client.closed == (1001, "stopping")
        nodes.move_to("a")
        client = await nodes.a.join()
        await client.send("message", content="hello", id="m1")
        await nodes.a.ingress.next()


@pytest.mark.parametrize("dies", [True, False])
async def test_a_node_that_breaks_off_or_hangs_is_left_in_order(
    *, dies: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "LOOK_EVERY", 0.01)

    async def hang(stream: trio.SocketStream) -> None:
        async with stream:
            await stream.receive_some()
            # The head of an answer, and half a frame.
            await stream.send_all(b"HTTP/1.1 101 Hm\r\n\r\n\x81\x02{}\x81\x7e\x01")
            await stream.receive_some()
            if not dies:
                await trio.sleep_forever()

    async with two_nodes() as nodes, trio.open_nursery() as nursery:
        serve = partial(trio.serve_tcp, host="127.0.0.1")
        listeners: list[trio.SocketListener] = await nursery.start(serve, hang, 0)
        port = listeners[0].socket.getsockname()[1]
        nodes.of_a.places[chat_of(ZOE)] = NodePlace("c", "127.0.0.1", port)
        client = await nodes.a.dial()
        await client.open()
        await client.send("hello", client=ZOE)
        await client.wait(lambda: bool(client.frames))
        if not dies:
            nodes.move_to("b")
        await client.wait(lambda: client.has_ended)
        assert client.closed == (1012, "moved")
        assert client.frames == [{}]
        nursery.cancel_scope.cancel()


async def test_whose_chat_moves_comes_again_and_nothing_is_lost_or_doubled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("connectors.chat.websocket.transport.LOOK_EVERY", 0.01)
    async with two_nodes() as nodes:
        client = await nodes.b.join()
        await client.send("message", content="hello", id="m1")
        inbound = await nodes.b.ingress.next()
        await nodes.b.answer(inbound, "one")
        await client.next_of("message")
        nodes.move_to("a")
        await client.wait(lambda: client.has_ended)
        assert client.closed == (1012, "moved")
        # What this one has in memory of the client is older than what `b` stored.
        await nodes.a.answer(inbound, "two")
        await nodes.a.answer(inbound, "one")  # the receipt was lost with `b`
        client = await nodes.b.join(after=1)
        await client.next_of("message")
        assert [(each["id"], each["content"]) for each in client.of("message")] == [
            (2, "two")
        ]


async def test_what_comes_while_its_chat_moves_is_not_taken() -> None:
    async with two_nodes() as nodes:
        client = await nodes.b.join()
        nodes.of_b.is_closed = True
        await client.send("message", content="hello", id="m1")
        await client.wait(lambda: client.has_ended)
        assert client.closed == (1012, "moved")
        assert not client.of("received")
        assert not client.of("error")
        assert nodes.b.ingress.accepted == []


async def test_what_was_passed_on_is_not_passed_on_again() -> None:
    async with two_nodes() as nodes:
        nodes.of_b.places[chat_of(ZOE)] = NodePlace("a", "127.0.0.1", nodes.a.port)
        client = await nodes.a.dial()
        await client.open()
        await client.send("hello", client=ZOE)
        await client.wait(lambda: client.has_ended)
        assert client.closed == (1012, "moved")


async def test_nobody_waits_for_ever_for_a_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(relay, "HELD_FOR", 0.1)
    async with two_nodes() as nodes:
        nodes.of_a.places[chat_of(ZOE)] = NOBODY
        client = await nodes.a.dial()
        await client.open()
        await client.send("hello", client=ZOE)
        await client.wait(lambda: client.has_ended)
        assert client.closed is not None
        assert (client.closed[0], client.of("error")[0]["code"]) == (
            1013,
            "unavailable",
        )


async def test_a_node_that_is_full_has_its_client_come_later() -> None:
    async with two_nodes(WebSocketConfig(port=0, max_connections=1)) as nodes:
        await nodes.b.join(SAM)
        client = await nodes.a.dial()
        await client.open()
        await client.send("hello", client=ZOE)
        await client.wait(lambda: client.has_ended)
        assert client.closed == (1013, "full")


async def test_a_client_that_calls_itself_a_node_is_a_client() -> None:
    async with two_nodes() as nodes:
        for header in ("1", "bad 10.0.0.1", f"{nodes.of_a.seal('x')} 10.0.0.1", "\xe9"):
            client = await nodes.a.dial()
            await client.open(x_callboard_node=header)
            await client.send("hello", client=ZOE)
            await client.next_of("welcome")  # it was passed on all the same
            await client.drop()


async def test_what_comes_before_the_first_frame_has_a_bound() -> None:
    async with two_nodes(WebSocketConfig(port=0, max_frame_bytes=256)) as nodes:
        client = await nodes.a.dial()
        await client.open()
        for _ in range(1_000):
            try:
                await client.event(Ping(bytes(100)))
            except (trio.BrokenResourceError, LocalProtocolError):
                break  # it was let go
        await client.wait(lambda: client.has_ended)
        assert client.of("error")[0]["code"] == "too_long"


async def test_clients_that_cannot_come_back_are_forgotten_by_who_has_their_chat() -> (
    None
):
    async with two_nodes() as nodes:
        for chat in (chat_of(ZOE), chat_of(SAM)):
            await nodes.b.transport.kept.see(chat, is_passing=True)
        kept = nodes.a.transport.kept
        await kept.load(nodes.a.transport._stays)
        assert [kept.get(chat_of(each)) is None for each in (ZOE, SAM)] == [False, True]


@given(st.lists(st.tuples(st.binary(max_size=70_000), st.booleans()), max_size=4))
def test_frames_are_cut_where_they_end(
    said: list[tuple[bytes, bool]],
) -> None:
    server = Connection(ConnectionType.SERVER)
    sent = [
        server.send(Ping(body[:125]) if is_ping else TextMessage(body.hex()))
        for body, is_ping in said
    ]
    sent.append(server.send(CloseConnection(1000, "bye")))
    stream = b"".join(sent)
    ends, at = {0}, 0
    for each in sent:
        at += len(each)
        ends.add(at)
    frames, whole = WholeFrames(), b""
    step = max(1, len(stream) // 37)
    for start in range(0, len(stream), step):
        assert not frames.has_closed
        whole += frames.feed(stream[start : start + step])
        assert len(whole) in ends
        assert stream.startswith(whole)
    assert whole == stream
    assert frames.has_closed


@pytest.mark.parametrize("end", [b"\r\n\r\n", b"\n\n", b"\n\r\n"])
def test_a_seal_stands_behind_all_that_the_client_sent(end: bytes) -> None:
    start = b"GET / HTTP/1.1\r\nhost: a\r\nx-callboard-client: mine"
    sent, rest = with_seal(start + end + b"\x81\r\n\r\n", "seal", "10.0.0.1")
    added = f"\r\n{CLIENT}: seal 10.0.0.1".encode()
    assert (sent, rest) == (start + added + end, b"\x81\r\n\r\n")
