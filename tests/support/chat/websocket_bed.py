"""The plain WebSocket over a fake ingress, and clients that connect to it."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trio
import trio.testing

from actors.messages.deliveries import Delivery, Draft
from actors.messages.inbound import Inbound
from connectors.chat.websocket.platform import WebSocketConfig
from connectors.chat.websocket.session import SocketShared
from connectors.chat.websocket.transport import WebSocketTransport
from connectors.web.peers import Peers
from runtime.store.port import Store
from runtime.telemetry.metrics import Metrics
from tests.fakes.chat.ingress import FakeIngress
from tests.fakes.store.in_memory import MemoryStore
from tests.fakes.websocket.client import SocketClient
from tests.support.transport_parts import transport_parts

ZOE = "zoe-2f1c6f0e-0000-4000-8000-000000000001"
SAM = "sam-2f1c6f0e-0000-4000-8000-000000000002"


class SocketBed:
    """A server and those who connect to it.

    Args:
        config: its settings.
        store: where all is kept.
        peers: the other nodes.
    """

    def __init__(
        self,
        config: WebSocketConfig | None = None,
        store: Store | None = None,
        peers: Peers | None = None,
    ) -> None:
        self.peers = peers
        self.config = config or WebSocketConfig(port=0)
        self.store = store or MemoryStore()
        self.metrics = Metrics()
        self.ingress = FakeIngress()
        self.ingress.remembers = True
        self.transport = self.make()
        self.port = 0
        self.nursery: trio.Nursery
        self.serving = trio.CancelScope()
        self.ended = trio.Event()
        self._shared: SocketShared | None = None

    def make(self) -> WebSocketTransport:
        """Make the transport, as a new process would."""
        numbers = itertools.count()
        self.metrics = Metrics()
        return WebSocketTransport(
            "websocket",
            self.config,
            transport_parts(store=self.store, metrics=self.metrics, peers=self.peers),
            make_client=lambda: f"made-up-client-{next(numbers):04d}",
        )

    async def dial(self, where: str = "127.0.0.1") -> SocketClient:
        """Connect by TCP from an address, and ask for nothing yet."""
        stream = await trio.open_tcp_stream("127.0.0.1", self.port, local_address=where)
        return self._client(stream)

    def beside(self) -> SocketClient:
        """Connect in memory, for tests on virtual time.

        Nothing is buffered there: who does not read is noticed at once.
        """
        here, there = trio.testing.lockstep_stream_pair()
        if self._shared is None:
            self._shared = self.transport.shared(self.ingress)
        self.nursery.start_soon(self.transport.serve, there, self._shared, "127.0.0.1")
        return self._client(here)

    async def join(self, client: str = ZOE, **more: object) -> SocketClient:
        """Connect by TCP, and say who it is."""
        made = await self.dial()
        await made.open()
        await made.send("hello", client=client, **more)
        await made.next_of("welcome")
        return made

    async def near(self, client: str = ZOE, **more: object) -> SocketClient:
        """Connect in memory, and say who it is."""
        made = self.beside()
        await made.open()
        await made.send("hello", client=client, **more)
        await made.next_of("welcome")
        return made

    async def answer(self, inbound: Inbound, text: str, agent: str = "anna") -> str:
        """Have an agent say something."""
        return await self.transport.deliver(reply(inbound, text, agent))

    async def wait_figure(self, name: str, **labels: str) -> None:
        """Wait until a figure is no longer 0."""
        with trio.fail_after(5):
            while not self.figure(name, **labels):
                await trio.testing.wait_all_tasks_blocked()

    def figure(self, name: str, **labels: str) -> float:
        """Give a figure."""
        want = {"connector": "websocket", **labels}
        told = ",".join(f'{k}="{v}"' for k, v in want.items())
        for line in self.metrics.render().decode().splitlines():
            if line.startswith(f"callboard_websocket_{name}{{{told}}}"):
                return float(line.rpartition(" ")[2])
        return 0.0

    def _client(self, stream: trio.abc.Stream) -> SocketClient:
        client = SocketClient(stream)
        self.nursery.start_soon(client.run)
        return client


def reply(inbound: Inbound, text: str, agent: str = "anna") -> Delivery:
    """Make an answer."""
    return Delivery(
        id=f"{inbound.id}/{agent}/{text}",
        correlation_id=inbound.id,
        reply_id=f"{inbound.id}/{agent}",
        address=inbound.address,
        agent=agent,
        text=text,
        reply_to=inbound.platform_id,
    )


def piece(inbound: Inbound, text: str, at: int = 0) -> Draft:
    """Make a piece of an answer that is still being written."""
    return Draft(
        correlation_id=inbound.id,
        reply_id=f"{inbound.id}/anna",
        turn_id=f"{inbound.id}/anna",
        address=inbound.address,
        agent="anna",
        text=text,
        begins_at=at,
    )


@asynccontextmanager
async def open_sockets(
    config: WebSocketConfig | None = None,
    store: Store | None = None,
    peers: Peers | None = None,
) -> AsyncGenerator[SocketBed]:
    """Serve on a free port of this machine until the block ends."""
    bed = SocketBed(config, store, peers)
    async with trio.open_nursery() as bed.nursery:
        bed.nursery.start_soon(serve, bed)
        _, bed.port = await bed.transport.wait_listening()
        yield bed
        bed.nursery.cancel_scope.cancel()


async def serve(bed: SocketBed) -> None:
    """Listen until the bed's scope is cancelled."""
    with bed.serving:
        await bed.transport.listen(bed.ingress)
    bed.ended.set()


async def gone(bed: SocketBed) -> None:
    """Wait until nobody is connected."""
    with trio.fail_after(5):
        while bed.figure("connected") > 0:
            await trio.testing.wait_all_tasks_blocked()
