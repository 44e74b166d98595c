"""Clients of Socket.IO that lose their connection: nothing is lost or doubled."""

# The library says nothing of its types:
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import asyncio  # noqa: TID251  its clients live there
from typing import Any

import pytest
import socketio

from tests.fakes.web.eliza import ANNA, SAM, ZERO, ZOE, WebBed, open_web

CLIENT_ID = "33333333-3333-3333-3333-333333333333"


class Client:
    """A client that says one thing, and may be cut off before it is acknowledged."""

    def __init__(self, url: str, channel: str, way: str) -> None:
        self._url = url
        self._channel = channel
        self._way = way
        self._sio: Any = socketio.AsyncClient(reconnection=False, handle_sigint=False)
        self._acknowledged = asyncio.Event()
        self.told: list[str] = []

    async def connect(self) -> None:
        self._sio.on("messageAck", self._ack)
        self._sio.on("messageBroadcast", self._hear)
        auth = {"entityId": ZOE}
        await self._sio.connect(self._url, auth=auth, transports=[self._way])
        join = {"type": 1, "payload": {"roomId": self._channel}}
        await self._sio.emit("message", join)

    async def say(self) -> None:
        payload = {
            "channelId": self._channel,
            "senderId": ZOE,
            "message": "hello",
            "messageServerId": ZERO,
            "messageId": CLIENT_ID,
        }
        await self._sio.emit("message", {"type": 2, "payload": payload})

    async def wait_acknowledged(self) -> None:
        async with asyncio.timeout(5):
            await self._acknowledged.wait()

    async def leave(self) -> None:
        # Without a word: who says goodbye waits for the answer to the poll under way.
        await self._sio.eio.disconnect(abort=True)

    async def _ack(self, _payload: Any) -> None:
        self._acknowledged.set()

    async def _hear(self, payload: Any) -> None:
        self.told.append(payload["text"])


async def say_and_be_cut_off(bed: WebBed, channel: str, way: str) -> None:
    client = Client(bed.url, channel, way)
    await bed.bridge.call(client.connect)
    await bed.bridge.call(client.say)
    await bed.ingress.is_asked.wait()
    await bed.bridge.call(client.leave)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("polling", "websocket"),
        ("websocket", "polling"),
        ("websocket", "websocket"),
        ("polling", "polling"),
    ],
)
async def test_what_is_said_again_after_a_reconnect_counts_once(
    before: str, after: str
) -> None:
    async with open_web() as bed:
        channel = await bed.channel(ZOE, SAM, ANNA)
        await say_and_be_cut_off(bed, channel, before)
        client = Client(bed.url, channel, after)
        await bed.bridge.call(client.connect)
        await bed.bridge.call(client.say)
        await bed.bridge.call(client.wait_acknowledged)
        await bed.say(channel, "and more", SAM)
        assert [each.text for each in bed.ingress.accepted] == ["hello", "and more"]
        said = [each["content"] for each in await bed.messages(channel)]
        assert said == ["and more", "hello"]
        assert client.told.count("hello") <= 1
        await bed.bridge.call(client.leave)
