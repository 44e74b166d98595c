"""A client of Socket.IO for a running web channel."""

# The library says nothing of its types:
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import asyncio  # noqa: TID251  its clients live there
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import socketio

from tests.fakes.web.eliza import ZOE, WebBed


class Client:
    """A client of Socket.IO, on the bridge's loop; hears everything."""

    def __init__(self, bed: WebBed, key: str = "") -> None:
        self.bed = bed
        self.key = key
        self.heard: list[tuple[str, Any]] = []
        self.sio: Any = None

    async def connect(self, entity: str, way: str = "websocket") -> None:
        self.sio = socketio.AsyncClient(reconnection=False, handle_sigint=False)
        self.sio.on("*", self._hear)
        auth = {"entityId": entity, "apiKey": self.key}
        await self.sio.connect(self.bed.url, auth=auth, transports=[way])

    async def _hear(self, event: str, payload: Any) -> None:
        self.heard.append((event, payload))

    async def emit(self, event: str, payload: Any) -> None:
        await self.sio.emit(event, payload)

    async def close(self) -> None:
        await self.sio.disconnect()

    async def next(self, event: str) -> Any:
        """Wait for the next event of a kind."""
        async with asyncio.timeout(5):
            while True:
                for index, (name, payload) in enumerate(self.heard):
                    if name == event:
                        del self.heard[: index + 1]
                        return payload
                await asyncio.sleep(0.01)

    async def before(self, end: str, event: str) -> list[Any]:
        """Wait for an event; give what came of another kind before it."""
        async with asyncio.timeout(5):
            while True:
                if end in [name for name, _ in self.heard]:
                    return [payload for name, payload in self.heard if name == event]
                await asyncio.sleep(0.01)


@asynccontextmanager
async def client_of(
    bed: WebBed, entity: str = ZOE, key: str = ""
) -> AsyncGenerator[Client]:
    """Connect somebody."""
    client = Client(bed, key)
    await bed.bridge.call(client.connect, entity)
    try:
        yield client
    finally:
        await bed.bridge.call(client.close)


async def on(bed: WebBed, fn: Callable[..., Awaitable[Any]], *args: Any) -> Any:
    """Do something on the edge's loop."""
    return await bed.bridge.call(fn, *args)
