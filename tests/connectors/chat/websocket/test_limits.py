"""What one client may cost, on virtual time."""

from __future__ import annotations

import trio
from trio.testing import MockClock
from wsproto.events import BytesMessage, Ping, TextMessage

from connectors.chat.websocket.platform import WebSocketConfig
from runtime.secret import Secret
from tests.support.chat.websocket_bed import ZOE, open_sockets, reply


async def test_who_does_not_answer_a_ping_is_not_there(
    autojump_clock: MockClock,
) -> None:
    _ = autojump_clock
    async with open_sockets() as bed:
        client = await bed.near()
        client.pongs = False
        began = trio.current_time()
        await client.wait_ended()
        assert 20 < trio.current_time() - began < 45
        await bed.wait_figure("ended_total", why="silent")


async def test_who_answers_pings_may_be_quiet_for_long_but_not_for_ever(
    autojump_clock: MockClock,
) -> None:
    _ = autojump_clock
    async with open_sockets(WebSocketConfig(port=0, idle_timeout=1000.0)) as bed:
        client = await bed.near()
        await trio.sleep(905)
        await client.send("ping")
        await trio.sleep(905)
        assert not client.has_ended
        with trio.fail_after(200):
            await client.wait_ended()
        assert client.closed == (1000, "idle")


async def test_who_does_not_read_is_let_go_and_loses_nothing(
    autojump_clock: MockClock,
) -> None:
    _ = autojump_clock
    async with open_sockets() as bed:
        client = await bed.near()
        await client.send("message", content="hello")
        inbound = await bed.ingress.next()
        client.reads = trio.Event()
        for number in range(50):
            await bed.transport.deliver(reply(inbound, f"words {number}"))
        await trio.sleep(60)
        await bed.wait_figure("ended_total", why="slow")
        later = await bed.near()
        await later.next_of("message", 50)
        assert later.said() == [f"words {each}" for each in range(50)]


async def test_messages_too_fast_are_told_when_to_come_again(
    autojump_clock: MockClock,
) -> None:
    _ = autojump_clock
    async with open_sockets(WebSocketConfig(port=0, messages_per_minute=3)) as bed:
        client = await bed.near()
        for number in range(4):
            await client.send("message", content="hello", id=str(number))
        told = await client.next_of("error")
        assert (told["code"], told["id"]) == ("too_fast", "3")
        await trio.sleep(told["retry_after"] + 0.1)
        await client.send("message", content="hello", id="3")
        await client.next_of("received", 4)


async def test_a_first_frame_that_never_comes_ends_it_where_a_key_is_needed(
    autojump_clock: MockClock,
) -> None:
    _ = autojump_clock
    config = WebSocketConfig(port=0, api_key=Secret("a-key-nobody-guesses"))
    async with open_sockets(config) as bed:
        silent = bed.beside()
        await silent.wait_ended()
        await bed.wait_figure("ended_total", why="too_slow")
        polite = bed.beside()
        await polite.open()
        began = trio.current_time()
        await polite.wait_ended()
        assert trio.current_time() - began < 15
        assert polite.of("error")[0]["code"] == "unauthorized"


async def test_who_waits_before_the_first_word_may_still_speak(
    autojump_clock: MockClock,
) -> None:
    _ = autojump_clock
    async with open_sockets() as bed:
        client = bed.beside()
        await client.open()
        await trio.sleep(300)
        await client.send("message", content="at last")
        assert (await bed.ingress.next()).text == "at last"


async def test_a_frame_too_long_is_refused_before_it_is_whole() -> None:
    async with open_sockets(WebSocketConfig(port=0, max_frame_bytes=1000)) as bed:
        client = await bed.join()
        await client.event(TextMessage("ü" * 400, message_finished=False))
        await client.event(TextMessage("ü" * 400, message_finished=False))
        await client.wait_ended()
        assert client.of("error")[0]["code"] == "too_long"
        assert client.closed is not None
        assert client.closed[0] == 1009


async def test_bytes_are_not_taken() -> None:
    async with open_sockets() as bed:
        client = await bed.join()
        await client.event(BytesMessage(b"\x00\x01"))
        await client.wait_ended()
        assert client.closed is not None
        assert client.closed[0] == 1003


async def test_what_is_no_websocket_frame_ends_the_connection_alone() -> None:
    async with open_sockets() as bed:
        other, client = await bed.join(), await bed.join(ZOE.replace("zoe", "kim"))
        await client.put(b"\xff" * 40)
        await client.wait_ended()
        await bed.wait_figure("ended_total", why="protocol")
        await other.send("ping")
        await other.next_of("pong")


async def test_pings_of_clients_are_answered() -> None:
    async with open_sockets() as bed:
        client = await bed.join()
        for _ in range(20):
            await client.event(Ping(b"are you there"))
        await client.send("ping")
        await client.next_of("pong")


async def test_when_the_server_ends_everybody_is_told() -> None:
    async with open_sockets() as bed:
        clients = [await bed.join() for _ in range(3)]
        bed.serving.cancel()
        for each in clients:
            await each.wait_ended()
            assert each.closed == (1001, "stopping")
        await bed.ended.wait()
