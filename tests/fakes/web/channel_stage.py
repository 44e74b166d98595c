"""The web channel on a real socket: somebody alone with an agent, who streams."""

from __future__ import annotations

from contextlib import AsyncExitStack

import httpx
import trio

from connectors.web.eliza.messages import to_uuid
from tests.fakes.web.eliza import API, ZOE as ZOE_ID, WebBed


class WebStage:
    """The web channel on a real socket: somebody alone with an agent, who streams."""

    can_repeat = True

    def __init__(self, bed: WebBed, channel: str, nursery: trio.Nursery) -> None:
        self.bed = bed
        self.transport = bed.transport
        self.ingress = bed.ingress
        self.listening = bed.serving
        self.ended = bed.ended
        self._channel = channel
        self._nursery = nursery
        self._changed = trio.Event()
        self._posting = trio.Lock()
        self._begun = 0
        self._shown = ""

    async def write(self, text: str, key: str = "") -> None:
        self._nursery.start_soon(self._post, text, key)

    def acknowledged(self) -> int:
        """Count the responses that have begun."""
        return self._begun

    def shown(self) -> str:
        return self._shown

    async def wait_change(self) -> None:
        await self._changed.wait()

    async def _post(self, text: str, key: str) -> None:
        body = {"content": text, "author_id": ZOE_ID, "transport": "sse"}
        if key:
            body["message_id"] = to_uuid(key)
        path = f"{API}/channels/{self._channel}/messages"
        async with AsyncExitStack() as stack:
            async with self._posting:
                stream = self.bed.client.stream("POST", path, json=body)
                response = await stack.enter_async_context(stream)
                self._begun += 1
                self._note_change()
            async for line in response.aiter_lines():
                self._shown += said_in(line)
                self._note_change()

    def _note_change(self) -> None:
        self._changed.set()
        self._changed = trio.Event()


def said_in(line: str) -> str:
    """Give what one line of a stream, or an error, shows to the person."""
    text = line.removeprefix("data: ")
    if not text.startswith("{"):
        return ""
    event = httpx.Response(200, text=text).json()
    if "success" in event:
        return str(event["error"]["message"])
    return str(event.get("error") or event.get("chunk", ""))
