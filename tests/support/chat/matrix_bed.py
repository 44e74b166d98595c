"""The Matrix transport between a homeserver in memory and an ingress that keeps all."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial

import trio
import trio.testing

from actors.config.presence import PresenceConfig
from actors.messages.inbound import Address
from connectors.chat.matrix.platform import MatrixAccountConfig, MatrixConfig
from connectors.chat.matrix.transport import MatrixTransport
from runtime.secret import Secret
from runtime.telemetry.metrics import Metrics
from tests.fakes.chat.ingress import FakeIngress
from tests.fakes.matrix.homeserver import BASE, FakeHomeserver
from tests.fakes.tools.sent_files import SentFiles
from tests.support.chat.shared import delivery_to, figure
from tests.support.transport_parts import transport_parts

ANNA, BEN, ZOE, SAM = "@anna:hs.test", "@ben:hs.test", "@zoe:hs.test", "@sam:hs.test"
ROOM = "!crew:hs.test"


class KeptBookmarks:
    """Keeps in memory how far each account has read."""

    def __init__(self) -> None:
        self.tokens: dict[str, str] = {}
        self.on_write: Callable[[], object] = int

    async def read(self, user: str) -> str:
        await trio.lowlevel.checkpoint()
        return self.tokens.get(user, "")

    async def write(self, user: str, token: str) -> None:
        await trio.lowlevel.checkpoint()
        self.tokens[user] = token
        self.on_write()


class MatrixBed:
    """One homeserver and what is connected to it.

    Args:
        agents: who has an account.
        password: with which they log in; empty: they have tokens.
        more: further settings of the connector.
    """

    def __init__(self, *agents: str, password: str = "", **more: object) -> None:
        self.server = FakeHomeserver()
        self.bookmarks = KeptBookmarks()
        self.ingress = FakeIngress()
        self.blobs = SentFiles()
        self.metrics = Metrics()
        self.presence = PresenceConfig()
        accounts = {
            name: self._account(f"@{name}:hs.test", password)
            for name in agents or ("anna", "ben")
        }
        self.config = MatrixConfig(
            **{"homeserver": BASE, "accounts": accounts, **more}  # type: ignore[arg-type]
        )
        self.transport = self.make()

    def _account(self, user: str, password: str) -> MatrixAccountConfig:
        if password:
            self.server.passwords[user] = password
            return MatrixAccountConfig(user=user, password=Secret(password))
        token = Secret(self.server.user(user))
        return MatrixAccountConfig(user=user, access_token=token)

    def make(self) -> MatrixTransport:
        """Make the transport, as a new process would."""
        self.metrics = Metrics()
        return MatrixTransport(
            "matrix",
            self.config,
            transport_parts(
                metrics=self.metrics,
                owners=(f"matrix/{ZOE}",),
                network=self.server.network,
                blobs=self.blobs,
                presence=lambda: self.presence,
            ),
            self.bookmarks,
        )

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[FakeHomeserver]:
        """Listen until the block ends; begins when all accounts are in step."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.transport.listen, self.ingress)
            await self.wait(lambda: len(self.bookmarks.tokens) == len(self.accounts))
            await trio.testing.wait_all_tasks_blocked()
            yield self.server
            nursery.cancel_scope.cancel()

    @property
    def accounts(self) -> list[str]:
        """The ids of the accounts."""
        return [each.user for each in self.config.accounts.values()]

    async def wait(self, is_so: Callable[[], bool], within: float = 300) -> None:
        """Wait for something to become true; looks again when something is said."""
        with trio.fail_after(within):
            while not is_so():
                with trio.move_on_after(0.05):
                    await self.server.wait_change()

    def counted(self, name: str, **labels: str) -> float:
        """Give a figure; 0 if there is none."""
        return figure(self.metrics, f"matrix_{name}", **labels)


delivery = partial(delivery_to, Address("matrix", ROOM))
"""Makes something to say in the room."""
