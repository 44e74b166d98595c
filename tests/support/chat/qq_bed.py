"""The QQ transport between a QQ in memory and an ingress that keeps all."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import trio

from actors.messages.inbound import Address
from connectors.chat.qq.platform import QQAccountConfig, QQConfig
from connectors.chat.qq.transport import QQTransport
from runtime.secret import Secret
from runtime.telemetry.metrics import Metrics
from tests.fakes.chat.ingress import FakeIngress
from tests.fakes.qq.gateway import Gateway, open_gateway
from tests.fakes.qq.server import API, FILES, TOKENS, FakeQQ
from tests.fakes.tools.sent_files import SentFiles
from tests.support.chat.shared import Hand, delivery_to, figure
from tests.support.transport_parts import transport_parts

ANNA, BEN = "1001", "1002"
IDS = {"anna": ANNA, "ben": BEN}
ZOE = "E4F4AEA33253A2797FB897C50B81D7ED"
GROUP = "C9F778FE6ADF9D1D1DBE395BF744A33A"
HERE = Address("qq", f"{ANNA}:user:{ZOE}")


class KeptBookmarks:
    """Keeps in memory how far each bot was heard."""

    def __init__(self) -> None:
        self.tokens: dict[str, str] = {}
        self.error: Exception | None = None
        self.on_write: Callable[[], object] = int

    async def read(self, user: str) -> str:
        await trio.lowlevel.checkpoint()
        return self.tokens.get(user, "")

    async def write(self, user: str, token: str) -> None:
        await trio.lowlevel.checkpoint()
        if self.error is not None:
            raise self.error
        self.tokens[user] = token
        self.on_write()


class QQBed:
    """QQ, and the bots that are connected to it.

    Args:
        gateway: of the QQ in memory.
        agents: who has a bot.
        more: further settings of the connector.
    """

    def __init__(self, gateway: Gateway, *agents: str, **more: Any) -> None:
        self.gateway = gateway
        self.server = gateway.server
        self.bookmarks = KeptBookmarks()
        self.bookmarks.on_write = self.server.note_change
        self.ingress = FakeIngress()
        self.blobs = SentFiles()
        self.clock = Hand()
        self.metrics = Metrics()
        accounts = {
            name: QQAccountConfig(
                app_id=IDS[name], app_secret=Secret(self.server.bot(IDS[name]))
            )
            for name in agents or ("anna",)
        }
        given: dict[str, Any] = {
            "accounts": accounts,
            "api": API,
            "token_url": TOKENS,
            "files": (FILES,),
        }
        self.config = QQConfig(**{**given, **more})
        self.transport = self.make()

    def make(self) -> QQTransport:
        """Make the transport, as a new process would."""
        self.metrics = Metrics()
        return QQTransport(
            "qq",
            self.config,
            transport_parts(
                clock=self.clock,
                metrics=self.metrics,
                network=self.server.network,
                blobs=self.blobs,
            ),
            self.bookmarks,
        )

    def all_hear(self) -> bool:
        """Whether all bots hear the gateway."""
        return not any(each.trouble for each in self.transport.accounts.values())

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[FakeQQ]:
        """Listen until the block ends; begins when all bots hear."""
        async with self.listening_when(self.all_hear) as server:
            yield server

    @asynccontextmanager
    async def listening_when(self, is_so: Callable[[], bool]) -> AsyncGenerator[FakeQQ]:
        """Listen until the block ends; begins when something is true."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.transport.listen, self.ingress)
            await self.server.wait(is_so)
            yield self.server
            nursery.cancel_scope.cancel()

    async def event(self, kind: str, bot: str = ANNA, **said: Any) -> str:
        """Have the gateway tell of a message; gives its id."""
        known = str(said.setdefault("id", self.server.next_id("ROBOT1.0")))
        self.server.answerable.setdefault(known, 5)
        await self.gateway.sessions[bot].tell(kind, said)
        return known

    async def write(self, text: str, **more: Any) -> str:
        """Have Zoe write to anna alone; gives the message's id."""
        said: dict[str, Any] = {"author": {"user_openid": ZOE}, "content": text}
        return await self.event("C2C_MESSAGE_CREATE", **{**said, **more})

    def place(self, bot: str = ANNA) -> int:
        """Give the last event up to which all was accepted, as it is kept."""
        kept = self.bookmarks.tokens.get(bot, "  0")
        return int(kept.rpartition(" ")[2])

    def counted(self, name: str, **labels: str) -> float:
        """Give a counter of anna's; 0 if there is none."""
        labels = {"account": "anna", "connector": "qq", **labels}
        return figure(self.metrics, f"qq_{name}_total", **labels)


@asynccontextmanager
async def open_qq(*agents: str, **more: Any) -> AsyncGenerator[QQBed]:
    """Make a QQ in memory, whose gateway serves until the block ends."""
    async with open_gateway(FakeQQ()) as gateway:
        yield QQBed(gateway, *agents, **more)


delivery = partial(delivery_to, HERE)
"""Makes something to say to Zoe."""
