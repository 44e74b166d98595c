"""The way through slack_sdk to a server, and slack_sdk's own clients against that."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from slack_sdk.errors import SlackApiError
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_client import AsyncWebClient

from connectors.asyncio_bridge.bridge import Bridge
from connectors.chat.requests import (
    BusyError,
    GoneError,
    LostError,
    PlatformError,
    RefusedError,
    ShutOutError,
)
from connectors.chat.slack.sdk import QUIET, SdkLine, SdkWire
from connectors.chat.slack.transport import SlackTransport
from tests.fakes.slack.replies import Reply, refusal
from tests.fakes.slack.server import SlackServer, serving
from tests.fakes.slack.workspace import FakeSlack
from tests.support.chat.slack_bed import CREW, ZOE, SlackBed, delivery

TOKEN = "xoxb-anna"  # noqa: S105  nobody's


@asynccontextmanager
async def served(slack: FakeSlack) -> AsyncGenerator[tuple[SlackServer, Bridge]]:
    bridge = Bridge()
    await bridge.start()
    try:
        async with serving(slack, bridge) as server:
            yield server, bridge
    finally:
        await bridge.aclose()


@asynccontextmanager
async def line_to(
    slack: FakeSlack, ping_every: float = 15.0
) -> AsyncGenerator[tuple[SdkLine, SlackServer]]:
    async with served(slack) as (server, bridge):
        wire = SdkWire(bridge, f"{server.url}/api", 5.0, ping_every)
        async with wire.open() as line:
            yield line, server


async def test_a_message_goes_out_and_one_comes_in() -> None:
    bed = SlackBed("anna")
    async with served(bed.slack) as (server, bridge), trio.open_nursery() as nursery:
        wire = SdkWire(bridge, f"{server.url}/api/", 5.0, 15.0)
        transport = bed.transport = bed.make(wire)
        nursery.start_soon(transport.listen, bed.ingress)
        with trio.fail_after(20):
            await wait_up(transport)
            bridge.post_edge(bed.slack.say, CREW, ZOE, "hello")
            inbound = await bed.ingress.next()
            assert (inbound.text, inbound.sender_name) == ("hello", "Zoe")
            said = delivery("**hi**")
            receipt = await transport.deliver(said)
            assert await bed.make_another_look_up(said) == receipt
            await bridge.call(server.drop)
            bridge.post_edge(bed.slack.say, CREW, ZOE, "still there?")
            assert (await bed.ingress.next()).text == "still there?"
        nursery.cancel_scope.cancel()
    assert bed.shown() == ["*hi*"]


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (refusal("channel_not_found"), RefusedError),
        (refusal("invalid_auth"), ShutOutError),
        (Reply(429, {}, {"Retry-After": "3"}), BusyError),
        (Reply(502, {}), LostError),
        (ConnectionResetError(), LostError),
    ],
)
async def test_refusals_and_faults_say_what_they_are(
    fault: Reply | Exception, expected: type[PlatformError]
) -> None:
    slack = SlackBed("anna").slack
    async with line_to(slack) as (line, _):
        slack.faults.append(("auth.test", fault))
        with pytest.raises(expected) as caught:
            await line.ask("auth.test", TOKEN, {})
        assert TOKEN not in str(caught.value)
        if isinstance(caught.value, BusyError):
            assert caught.value.retry_after == 3.0
        assert (await line.ask("auth.test", TOKEN, {}))["user_id"] == "UANNA"


async def test_nobody_there_is_busy_and_an_ended_loop_is_gone() -> None:
    slack = SlackBed("anna").slack
    bridge = Bridge()
    await bridge.start()
    async with SdkWire(bridge, "http://127.0.0.1:9/api/", 5.0, 15.0).open() as line:
        with pytest.raises(BusyError):
            await line.ask("auth.test", TOKEN, {})
        await bridge.aclose()
        with pytest.raises(GoneError):
            await line.ask("auth.test", TOKEN, {})
    with pytest.raises(BusyError):
        async with SdkWire(bridge, "http://127.0.0.1:9/", 5.0, 15.0).open():
            pass
    assert slack.asked == []


async def test_files_are_fetched_from_slack_alone() -> None:
    slack = SlackBed("anna").slack
    slack.files["cat.png"] = b"cat"
    async with line_to(slack) as (line, server):
        url = f"{server.url}/files/cat.png"
        assert await line.fetch(url, TOKEN, 10) == (b"cat", "image/png")
        with pytest.raises(RefusedError, match="above 2 bytes"):
            await line.fetch(url, TOKEN, 2)
        for elsewhere in (
            "https://slack.com.example.org/cat.png",
            "http://files.slack.com/cat.png",  # the token would go in the open
        ):
            with pytest.raises(RefusedError, match="does not lie at Slack"):
                await line.fetch(elsewhere, TOKEN, 10)


async def test_a_file_is_brought_wherever_slack_or_its_proxy_says(
    tmp_path: Path,
) -> None:
    slack = SlackBed("anna").slack
    path = tmp_path / "cat.png"
    path.write_bytes(b"cat")
    async with line_to(slack) as (line, server):
        slack.uploads.base = f"{server.url}/upload".replace("127.0.0.1", "localhost")
        offer = await line.ask(
            "files.getUploadURLExternal", TOKEN, {"filename": path.name, "length": 3}
        )
        await line.put(str(offer["upload_url"]), path, 5.0)
    assert [each.content for each in slack.uploads.uploads.values()] == [b"cat"]


async def test_no_file_goes_out_unencrypted_where_the_api_is_encrypted(
    tmp_path: Path,
) -> None:
    slack = SlackBed("anna").slack
    async with (
        served(slack) as (_, bridge),
        SdkWire(bridge, "https://slack.com/api/", 5.0, 15.0).open() as line,
    ):
        with pytest.raises(RefusedError, match="not encrypted"):
            await line.put("http://files.slack.com/1", tmp_path / "cat.png", 5.0)


async def test_a_command_is_answered_at_its_address_without_a_token() -> None:
    slack = SlackBed("anna").slack
    async with line_to(slack) as (line, server):
        url = f"{server.url}/respond/1"
        await line.respond(url, {"text": "hi"})
        slack.used_up.add(url)
        with pytest.raises(RefusedError, match="404"):
            await line.respond(url, {"text": "again"})
    assert slack.responses == [(url, {"text": "hi"})]


async def test_a_connection_that_answers_no_ping_is_left() -> None:
    slack = SlackBed("anna").slack
    async with line_to(slack, ping_every=0.2) as (line, server):
        server.answers_pings = False
        connection = await line.connect("xapp-anna")
        assert (await connection.receive())["type"] == "hello"
        with trio.fail_after(5), pytest.raises(LostError):
            await connection.receive()
        await connection.close()


async def test_slack_sdk_finds_the_server_right() -> None:
    bed = SlackBed("anna")
    async with served(bed.slack) as (server, bridge):
        base_url = f"{server.url}/api/"
        assert await bridge.call(converse, base_url) == ["hi", "hello"]
        assert len(bed.slack.acknowledged) == 2
        await bridge.call(mistake, base_url)


async def wait_up(transport: SlackTransport) -> None:
    """Wait until an app hears Slack."""
    while transport.trouble:  # noqa: ASYNC110  the transport tells nobody
        await trio.sleep(0.01)


async def converse(base_url: str) -> list[str]:
    """Speak and hear by slack_sdk's own clients; gives what was heard."""
    web: Any = AsyncWebClient(token=TOKEN, base_url=base_url)
    assert (await web.auth_test())["user_id"] == "UANNA"
    client: Any = SocketModeClient("xapp-anna", web_client=web, logger=QUIET)
    heard: list[str] = []
    try:

        async def listen(client: Any, request: Any) -> None:
            heard.append(request.payload["event"]["text"])
            await client.send_socket_mode_response(
                SocketModeResponse(envelope_id=request.envelope_id)
            )

        client.socket_mode_request_listeners.append(listen)
        await client.connect()
        for text in ("hi", "hello"):
            posted = await web.chat_postMessage(channel=CREW, text=text)
            await web.reactions_add(
                channel=CREW, timestamp=str(posted["ts"]), name="eyes"
            )
            while text not in heard:
                await web.auth_test()
    finally:
        await client.close()
    return heard


async def mistake(base_url: str) -> None:
    """Ask for what cannot be done."""
    web: Any = AsyncWebClient(token=TOKEN, base_url=base_url)
    with pytest.raises(SlackApiError, match="channel_not_found"):
        await web.chat_postMessage(channel="C9", text="hi")
    ts = str((await web.chat_postMessage(channel=CREW, text="hi"))["ts"])
    with pytest.raises(SlackApiError, match="msg_too_long"):
        await web.chat_update(channel=CREW, ts=ts, text="x" * 4001)
