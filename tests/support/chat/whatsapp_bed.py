"""The WhatsApp transport between Meta in memory and an ingress that keeps all."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import trio

from actors.messages.inbound import Address
from connectors.chat.platforms import Gates, PlatformAnswer, PlatformCall
from connectors.chat.whatsapp.inbound import WhatsAppWebhooks
from connectors.chat.whatsapp.platform import WhatsAppAccountConfig, WhatsAppConfig
from connectors.chat.whatsapp.transport import WhatsAppTransport
from runtime.secret import Secret
from runtime.telemetry.metrics import Metrics
from tests.fakes.chat.ingress import FakeIngress
from tests.fakes.tools.sent_files import SentFiles
from tests.fakes.whatsapp.graph import BASE, SECRET, FakeGraph, sign
from tests.support.chat.shared import Hand, delivery_to, figure
from tests.support.transport_parts import transport_parts

ANNA, BEN = "1001", "1002"
IDS = {"anna": ANNA, "ben": BEN}
ZOE = "491701"
ROY = "US.13491208655302741918"
TOKEN = "a-token-to-verify"  # noqa: S105  nobody's
HERE = Address("whatsapp", f"{ANNA}:{ZOE}")
PLACE = "whatsapp", ""


class WhatsAppBed:
    """One app with numbers, and what is connected to it.

    Args:
        agents: who has a number.
        more: further settings of the connector.
    """

    def __init__(self, *agents: str, **more: Any) -> None:
        self.server = FakeGraph()
        self.ingress = FakeIngress()
        self.gates = Gates()
        self.clock = Hand()
        self.metrics = Metrics()
        self.blobs = SentFiles()
        accounts = {
            name: WhatsAppAccountConfig(
                phone_number_id=IDS[name],
                access_token=Secret(self.server.number(IDS[name])),
            )
            for name in agents or ("anna",)
        }
        given: dict[str, Any] = {
            "app_secret": Secret(SECRET),
            "verify_token": Secret(TOKEN),
            "accounts": accounts,
            "graph_url": BASE,
        }
        self.config = WhatsAppConfig(**{**given, **more})
        self.transport = self.make()

    def make(self) -> WhatsAppTransport:
        """Make the transport, as a new process would."""
        self.metrics = Metrics()
        return WhatsAppTransport(
            "whatsapp",
            self.config,
            transport_parts(
                clock=self.clock,
                metrics=self.metrics,
                gates=self.gates,
                network=self.server.network,
                blobs=self.blobs,
            ),
        )

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[FakeGraph]:
        """Listen until the block ends."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.transport.listen, self.ingress)
            await self.server.wait(self.is_open)
            yield self.server
            nursery.cancel_scope.cancel()

    def is_open(self) -> bool:
        """Whether anybody takes what Meta brings."""
        return self.gates.find(PLACE) is not None

    @property
    def calls(self) -> WhatsAppWebhooks:
        """Who takes what Meta brings."""
        calls = self.gates.find(PLACE)
        assert isinstance(calls, WhatsAppWebhooks)
        return calls

    async def call(self, body: bytes, signature: str | None = None) -> PlatformAnswer:
        """Have Meta call with a body, signed rightly unless something else is given."""
        given = sign(body) if signature is None else signature
        call = PlatformCall(headers={"x-hub-signature-256": given}, body=body)
        return self.calls.check(call) or await self.calls.answer(call)

    async def write(self, text: str, sender: str = ZOE, **more: Any) -> PlatformAnswer:
        """Have somebody write to anna."""
        message = self.server.message(text, sender, **more)
        return await self.call(self.server.webhook(ANNA, message))

    def counted(self, name: str, **labels: str) -> float:
        """Give a counter of anna's; 0 if there is none."""
        labels = {"account": "anna", "connector": "whatsapp", **labels}
        return figure(self.metrics, f"whatsapp_{name}_total", **labels)


delivery = partial(delivery_to, HERE)
"""Makes something to say to Zoe."""
