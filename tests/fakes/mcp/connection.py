"""A server of tools in memory, for sessions in virtual time."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import trio

from connectors.mcp.connection import ServerEnd, ToolListing
from connectors.mcp.session import listing_of


class FakeConnection:
    """Answers each call after `delay` seconds, with the name of the tool."""

    def __init__(self, *names: str, delay: float = 0.0, is_mute: bool = False) -> None:
        self.names = names
        self.delay = delay
        self.is_mute = is_mute
        self.ending = ServerEnd()
        self.opened = 0
        self.calls: list[str] = []
        self.cancelled: list[str] = []
        self._changed = trio.Event()

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[FakeConnection]:
        self.opened += 1
        self.ending = ServerEnd()
        await trio.lowlevel.checkpoint()
        yield self

    async def list_tools(self) -> ToolListing:
        if self.is_mute:
            await trio.sleep_forever()
        await trio.lowlevel.checkpoint()
        return listing_of({"name": name, "inputSchema": {}} for name in self.names)

    async def call(self, name: str, arguments: dict[str, object]) -> object:
        self.calls.append(name)
        self.cancelled.append(name)
        await trio.sleep(self.delay)
        self.cancelled.remove(name)
        text: dict[str, Any] = {"type": "text", "text": f"{name} {len(arguments)}"}
        return {"content": [text]}

    async def wait_changed(self) -> None:
        await self._changed.wait()
        self._changed = trio.Event()

    def change(self, *names: str) -> None:
        self.names = names
        self._changed.set()
