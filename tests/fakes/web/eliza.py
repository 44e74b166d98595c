"""A running web channel on a free port, and agents that answer by themselves."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import trio

from actors.messages.deliveries import Delivery, Draft
from actors.messages.inbound import Inbound
from connectors.asyncio_bridge.bridge import Bridge
from connectors.web.eliza.messages import to_uuid
from connectors.web.eliza.platform import WebConfig
from connectors.web.eliza.transport import ElizaTransport
from runtime.telemetry.metrics import Metrics
from tests.fakes.chat.ingress import FakeIngress
from tests.fakes.store.in_memory import MemoryStore
from tests.fakes.tools.sent_files import SentFiles
from tests.fakes.web.backstage import FakeCompany
from tests.support.transport_parts import transport_parts

AGENTS = ("anna", "ben")
ANNA, BEN = to_uuid("anna"), to_uuid("ben")
ZOE, SAM = to_uuid("Zoe"), to_uuid("Sam")
ZERO = "00000000-0000-0000-0000-000000000000"
API = "/api/messaging"


class WebBed:
    """What a test needs of a running web channel."""

    def __init__(
        self, bridge: Bridge, transport: ElizaTransport, company: FakeCompany
    ) -> None:
        self.bridge = bridge
        self.company = company
        self.transport = transport
        self.ingress = FakeIngress()
        self.port = 0
        self.serving = trio.CancelScope()
        self.ended = trio.Event()
        self.client: httpx.AsyncClient
        self.metrics: Metrics
        self.kept_open: list[trio.SocketStream] = []
        """Connections of a test; it ends them itself."""

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"http://127.0.0.1:{self.port}"

    async def ask(self, method: str, path: str, **rest: Any) -> Any:
        """Ask for something that is to be given; gives `data`, or the body."""
        response = await self.client.request(method, path, **rest)
        assert response.status_code < 300, (response.status_code, response.text)
        if response.status_code == 204:
            return None
        body = response.json()
        return body["data"] if "success" in body else body

    async def refused(self, method: str, path: str, **rest: Any) -> tuple[int, str]:
        """Ask for something that is refused; gives status and code."""
        response = await self.client.request(method, path, **rest)
        body = response.json()
        assert body["success"] is False
        assert body["error"]["message"]
        assert "Traceback" not in response.text
        return response.status_code, body["error"]["code"]

    async def channel(self, *participants: str, kind: str = "GROUP") -> str:
        """Make a channel; gives its id."""
        asked = {
            "name": "room",
            "type": kind,
            "participantCentralUserIds": list(participants),
        }
        made = await self.ask("POST", f"{API}/channels", json=asked)
        return str(made["id"])

    async def say(self, channel: str, text: str, author: str = ZOE, **rest: Any) -> Any:
        """Say something; gives the message."""
        asked = {"content": text, "author_id": author, "message_server_id": ZERO}
        path = f"{API}/channels/{channel}/messages"
        return (await self.ask("POST", path, json=asked | rest))["userMessage"]

    async def messages(self, channel: str, **params: Any) -> list[Any]:
        """Read a channel, the newest message first."""
        path = f"{API}/channels/{channel}/messages"
        found: list[Any] = (await self.ask("GET", path, params=params))["messages"]
        return found

    async def answer(self, inbound: Inbound, text: str, agent: str = "anna") -> str:
        """Deliver an answer; gives the receipt."""
        return await self.transport.deliver(reply(inbound, text, agent))

    async def answer_all(self) -> None:
        """Answer every message with its own words, in two drafts; until cancelled."""
        while True:
            inbound = await self.ingress.next_or_wait()
            agent = inbound.agent or inbound.present[0]
            text = f"you said: {inbound.text}"
            for piece in ("you said: ", inbound.text):
                self.transport.show_draft(draft(inbound, piece, agent))
            await self.answer(inbound, text, agent)
            await self.transport.settle(inbound, "replied:ok")


def reply(inbound: Inbound, text: str, agent: str = "anna") -> Delivery:
    """Make an answer."""
    return Delivery(
        id=f"{inbound.id}/{agent}/{text}",
        correlation_id=inbound.correlation_id,
        reply_id=f"{inbound.id}/{agent}",
        address=inbound.address,
        agent=agent,
        text=text,
        reply_to=inbound.platform_id,
    )


def draft(inbound: Inbound, text: str, agent: str = "anna") -> Draft:
    """Make a piece of an answer."""
    return Draft(
        correlation_id=inbound.correlation_id,
        reply_id=f"{inbound.id}/{agent}",
        turn_id=f"{inbound.id}/{agent}",
        address=inbound.address,
        agent=agent,
        text=text,
    )


@asynccontextmanager
async def open_web(
    config: WebConfig | None = None,
    store: MemoryStore | None = None,
    **company: Any,
) -> AsyncGenerator[WebBed]:
    """Run a web channel over a fake ingress, on a free port of this machine.

    Args:
        config: its settings.
        store: what there is already.
        company: what is behind it; see `FakeCompany`.
    """
    bridge, store = Bridge(shutdown_timeout=3), store or MemoryStore()
    behind, metrics = FakeCompany(store, **company), Metrics()
    parts = transport_parts(
        bridge=bridge,
        store=store,
        metrics=metrics,
        agents=lambda: behind.names,
        backstage=behind.backstage(),
        blobs=SentFiles(),
    )
    transport = ElizaTransport("web", config or WebConfig(port=0), parts)
    bed = WebBed(bridge, transport, behind)
    bed.metrics = metrics
    await bridge.start()
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve, bed)
            _, bed.port = await bed.transport.wait_listening()
            async with httpx.AsyncClient(base_url=bed.url, timeout=10) as bed.client:
                yield bed
            nursery.cancel_scope.cancel()
    finally:
        await bridge.aclose()


async def serve(bed: WebBed) -> None:
    """Listen until the bed's scope is cancelled."""
    with bed.serving:
        await bed.transport.listen(bed.ingress)
    bed.ended.set()
