"""The Slack transport between a workspace in memory and an ingress that keeps all."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial

import trio
import trio.testing

from actors.messages.deliveries import Delivery
from actors.messages.inbound import Address
from connectors.chat.platforms import Gates
from connectors.chat.slack.account import SlackWire
from connectors.chat.slack.platform import SlackAccountConfig, SlackConfig
from connectors.chat.slack.transport import SlackTransport
from runtime.secret import Secret
from runtime.telemetry.metrics import Metrics
from tests.fakes.chat.ingress import FakeIngress
from tests.fakes.slack.line import FakeWire
from tests.fakes.slack.workspace import FakeSlack
from tests.fakes.tools.sent_files import SentFiles
from tests.support.chat.matrix_bed import KeptBookmarks
from tests.support.chat.shared import delivery_to, figure
from tests.support.transport_parts import transport_parts

ANNA, BEN, ZOE, SAM = "UANNA", "UBEN", "UZOE", "USAM"
CREW, DIRECT = "C1CREW", "D1ANNA"
SIGNING = "signing-secret-of-the-app"


class SlackBed:
    """One workspace and what is connected to it.

    Args:
        agents: who has an app.
        is_called: whether Slack calls the HTTP server, instead of Socket Mode.
        more: further settings of the connector.
    """

    def __init__(self, *agents: str, is_called: bool = False, **more: object) -> None:
        self.slack = FakeSlack()
        self.slack.person(ZOE, "Zoe", is_admin=True)
        self.slack.person(SAM, "Sam")
        self.bookmarks = KeptBookmarks()
        self.ingress = FakeIngress()
        self.blobs = SentFiles()
        self.gates = Gates()
        self.metrics = Metrics()
        self.agents = agents or ("anna", "ben")
        for name in self.agents:
            self.slack.app(name)
        users = [f"U{name.upper()}" for name in self.agents]
        self.slack.channel(CREW, ZOE, SAM, *users)
        self.slack.channel(DIRECT, ZOE, ANNA)
        accounts = {name: account(name, is_called=is_called) for name in self.agents}
        self.config = SlackConfig(
            **{"accounts": accounts, **more}  # type: ignore[arg-type]
        )
        self.wire = FakeWire(self.slack)
        self.transport = self.make()

    def make(self, wire: SlackWire | None = None) -> SlackTransport:
        """Make the transport, as a new process would."""
        self.metrics = Metrics()
        parts = transport_parts(
            metrics=self.metrics, gates=self.gates, blobs=self.blobs
        )
        wire = wire or self.wire
        return SlackTransport("slack", self.config, parts, self.bookmarks, wire)

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[FakeSlack]:
        """Listen until the block ends; begins when all apps are in step."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.transport.listen, self.ingress)
            await trio.testing.wait_all_tasks_blocked()
            yield self.slack
            nursery.cancel_scope.cancel()

    async def make_another_look_up(self, said: Delivery) -> str | None:
        """Ask what remembers nothing whether something was said."""
        self.transport._shared.said._receipts.clear()
        return await self.transport.look_up(said)

    async def wait(self, is_so: Callable[[], bool], within: float = 300) -> None:
        """Wait for something to become true; looks again when something changes."""
        with trio.fail_after(within):
            while not is_so():
                with trio.move_on_after(0.05):
                    await self.slack.wait_change()

    def texts(self) -> list[str]:
        """Give what was accepted."""
        return [each.text for each in self.ingress.accepted]

    def shown(self, channel: str = CREW) -> list[str]:
        """Give what our apps wrote."""
        return [each["text"] for each in self.slack.said(channel)]

    def counted(self, name: str, **labels: str) -> float:
        """Give a figure; 0 if there is none."""
        return figure(self.metrics, f"slack_{name}", **labels)


def account(name: str, *, is_called: bool = False) -> SlackAccountConfig:
    """Make the settings of one app."""
    return SlackAccountConfig(
        bot_token=Secret(f"xoxb-{name}"),
        app_token=None if is_called else Secret(f"xapp-{name}"),
        signing_secret=Secret(SIGNING) if is_called else None,
    )


delivery = partial(delivery_to, Address("slack", CREW))
"""Makes something to say in the channel."""
