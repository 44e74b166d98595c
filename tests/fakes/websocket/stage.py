"""The plain WebSocket on a real socket, with a client that asks for drafts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fakes.websocket.client import SocketClient
    from tests.support.chat.websocket_bed import SocketBed


class SocketStage:
    """A person at a program that shows drafts until the whole answer comes."""

    can_repeat = True

    def __init__(self, bed: SocketBed, client: SocketClient) -> None:
        self.bed = bed
        self.transport = bed.transport
        self.ingress = bed.ingress
        self.listening = bed.serving
        self.ended = bed.ended
        self._client = client
        self._count = 0

    async def write(self, text: str, key: str = "") -> None:
        self._count += 1
        await self._client.send("message", content=text, id=key or f"n{self._count}")

    def acknowledged(self) -> int:
        """Count the messages that were said to be stored."""
        return len(self._client.of("received"))

    def shown(self) -> str:
        """Give what stands there: a draft goes when its answer comes."""
        said = [f"{each.get('agent', '')}: {each['content']}" for each in self._said()]
        return "\n".join(said + [e["message"] for e in self._client.of("error")])

    async def wait_change(self) -> None:
        await self._client.wait_change()

    def _said(self) -> list[dict[str, str]]:
        told = self._client.frames
        lasts = [n for n, each in enumerate(told) if each["type"] == "message"]
        drafts = told[lasts[-1] + 1 if lasts else 0 :]
        return self._client.of("message") + [
            each for each in drafts if each["type"] == "draft"
        ]
