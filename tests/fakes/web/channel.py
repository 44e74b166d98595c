"""A running HTTP channel on a free port, and agents that answer by themselves."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx
import trio

from actors.messages.deliveries import Delivery, Draft
from actors.messages.inbound import Inbound
from connectors.asyncio_bridge.bridge import Bridge
from connectors.chat.platforms import Gates, IncomingWebhooks, NodeQuestions, Operations
from connectors.web.openai.transport import HttpTransport
from connectors.web.server import HttpSettings
from runtime.clock import SystemClock
from runtime.ids import IdSource
from tests.fakes.chat.ingress import FakeIngress
from tests.support.transport_parts import transport_parts

AGENTS = ("anna", "ben")


class Channel:
    """What a test needs of a running HTTP channel."""

    def __init__(self, bridge: Bridge, transport: HttpTransport) -> None:
        self.bridge = bridge
        self.transport = transport
        self.ingress = FakeIngress()
        self.not_ready: tuple[str, ...] = ()
        self.port = 0
        self.serving = trio.CancelScope()
        self.ended = trio.Event()

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"http://127.0.0.1:{self.port}"

    async def answer_all(self) -> None:
        """Answer every message with its own words, in two drafts; until cancelled."""
        while True:
            inbound = await self.ingress.next_or_wait()
            await self.draft(inbound, "you said: ")
            await self.say(inbound, f"you said: {inbound.text}")

    async def waiting(self) -> int:
        """Count the requests that wait for answers."""

        async def count() -> int:
            completions = self.transport._completions
            return len(completions.waiting) if completions is not None else 0

        return await self.bridge.call(count)

    async def reading(self) -> int:
        """Count the requests whose bodies are being read."""

        async def count() -> int:
            completions = self.transport._completions
            return len(completions.context.bodies) if completions is not None else 0

        return await self.bridge.call(count)

    async def draft(self, inbound: Inbound, text: str, agent: str = "") -> None:
        """Show a piece of an answer."""
        agent = agent or inbound.agent
        self.transport.show_draft(
            Draft(
                correlation_id=inbound.correlation_id,
                turn_id=f"{inbound.id}-{agent}",
                address=inbound.address,
                agent=agent,
                text=text,
            )
        )

    async def say(
        self, inbound: Inbound, text: str, agent: str = "", *, left: int = 0
    ) -> str:
        """Deliver an answer."""
        agent = agent or inbound.agent
        return await self.transport.deliver(
            Delivery(
                id=f"{inbound.id}-{agent}-{text}",
                correlation_id=inbound.correlation_id,
                address=inbound.address,
                agent=agent,
                text=text,
                answers_left=left,
            )
        )


@asynccontextmanager
async def open_channel(
    settings: HttpSettings | None = None,
    doors: IncomingWebhooks | None = None,
    gates: Gates | None = None,
    nodes: NodeQuestions | None = None,
) -> AsyncGenerator[Channel]:
    """Run an HTTP channel over a fake ingress, on a free port of this machine.

    Args:
        nodes: what other nodes are answered by; None: there are none.
    """
    bridge = Bridge(shutdown_timeout=3)
    holder: list[Channel] = []

    async def readiness() -> tuple[str, ...]:
        await trio.lowlevel.checkpoint()
        return holder[0].not_ready

    transport = HttpTransport(
        settings or HttpSettings(port=0),
        bridge,
        agents=lambda: AGENTS,
        operations=Operations(
            lambda _accept, _is_fresh: (b"answer_total 42\n", "text/plain"),
            readiness,
            nodes=nodes,
        ),
        clock=SystemClock(),
        ids=IdSource(SystemClock()),
    )
    transport.use(transport_parts(doors=doors, gates=gates or Gates()))
    channel = Channel(bridge, transport)
    holder.append(channel)
    await bridge.start()
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve, channel)
            _, channel.port = await transport.wait_listening()
            yield channel
            nursery.cancel_scope.cancel()
    finally:
        await bridge.aclose()


async def serve(channel: Channel) -> None:
    """Listen until the channel's scope is cancelled."""
    with channel.serving:
        await channel.transport.listen(channel.ingress)
    channel.ended.set()


def content_of(line: str) -> str:
    """Give what one line of a stream, or an error, shows to the person."""
    text = line.removeprefix("data: ")
    if not text.startswith("{"):
        return ""
    event = httpx.Response(200, text=text).json()
    if "error" in event:
        return str(event["error"]["message"])
    return "".join(c["delta"].get("content", "") for c in event["choices"])
