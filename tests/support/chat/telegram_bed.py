"""The Telegram transport between a Bot API in memory and an ingress that keeps all."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial

import trio
import trio.testing

from actors.messages.inbound import Address
from connectors.chat.platforms import Gates
from connectors.chat.telegram.platform import TelegramAccountConfig, TelegramConfig
from connectors.chat.telegram.transport import TelegramTransport
from runtime.secret import Secret
from runtime.telemetry.metrics import Metrics
from tests.fakes.chat.ingress import FakeIngress
from tests.fakes.store.in_memory import MemoryStore
from tests.fakes.telegram.api import BASE, FakeTelegram
from tests.fakes.telegram.chats import FakeBot, Json
from tests.fakes.tools.sent_files import SentFiles
from tests.fakes.web.backstage import FakeCompany
from tests.support.chat.shared import delivery_to, figure
from tests.support.transport_parts import transport_parts

ZOE: Json = {"id": 1, "is_bot": False, "first_name": "Zoe", "username": "zoe_1"}
SAM: Json = {"id": 2, "is_bot": False, "first_name": "Sam"}
GROUP = -100123
BASIC = -77
SECRET = "a-webhook-secret-of-forty-letters-or-so"  # noqa: S105  nobody's


class KeptBookmarks:
    """Keeps in memory how far each bot was heard, and which groups moved."""

    def __init__(self) -> None:
        self.offsets: dict[int, int] = {}
        self.moves: dict[int, int] = {}
        self.error: Exception | None = None
        self.on_write: Callable[[], object] = int

    async def read(self, bot: int) -> int:
        await trio.lowlevel.checkpoint()
        return self.offsets.get(bot, 0)

    async def write(self, bot: int, offset: int) -> None:
        await trio.lowlevel.checkpoint()
        if self.error is not None:
            raise self.error
        self.offsets[bot] = offset
        self.on_write()

    async def moved(self, chat: int) -> int:
        await trio.lowlevel.checkpoint()
        return self.moves.get(chat, 0)

    async def move(self, old: int, new: int) -> None:
        await trio.lowlevel.checkpoint()
        self.moves[new] = old


class BotBed:
    """A Bot API and the bots that are connected to it.

    Args:
        agents: who has a bot; a name with `+` reads all that is said in groups.
        shown: what people call agents, if not by their names.
        more: further settings of the connector.
    """

    def __init__(
        self, *agents: str, shown: dict[str, str] | None = None, **more: object
    ) -> None:
        self.company = FakeCompany(MemoryStore(), shown=shown or {})
        self.server = FakeTelegram()
        self.bookmarks = KeptBookmarks()
        self.gates = Gates()
        self.ingress = FakeIngress()
        self.blobs = SentFiles()
        self.metrics = Metrics()
        accounts: dict[str, TelegramAccountConfig] = {}
        for number, given in enumerate(agents or ("anna",), 7):
            name = given.removesuffix("+")
            reads_all = given.endswith("+")
            token = self.server.bot(number, f"{name}_bot", reads_all=reads_all)
            accounts[name] = TelegramAccountConfig(
                token=Secret(token), webhook_secret=Secret(SECRET)
            )
        self.config = TelegramConfig(
            **{"accounts": accounts, "api_url": BASE, **more}  # type: ignore[arg-type]
        )
        self.transport = self.make()

    def bot(self, agent: str = "anna") -> FakeBot:
        """Give an agent's bot, as Telegram has it."""
        return self.server.named(f"{agent}_bot")

    def make(self) -> TelegramTransport:
        """Make the transport, as a new process would."""
        self.metrics = Metrics()
        return TelegramTransport(
            "telegram",
            self.config,
            transport_parts(
                metrics=self.metrics,
                gates=self.gates,
                network=self.server.network,
                blobs=self.blobs,
                backstage=self.company.backstage(),
            ),
            self.bookmarks,
        )

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[FakeTelegram]:
        """Listen until the block ends; begins when all bots hear Telegram."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.transport.listen, self.ingress)
            bots = self.transport._shared.bots.values()
            await self.wait(lambda: not any(bot.trouble for bot in bots))
            await trio.testing.wait_all_tasks_blocked()
            yield self.server
            nursery.cancel_scope.cancel()

    async def wait(self, is_so: Callable[[], bool], within: float = 300) -> None:
        """Wait for something to become true; looks again when something is said."""
        with trio.fail_after(within):
            while not is_so():
                with trio.move_on_after(0.05):
                    await self.server.wait_change()

    def counted(self, name: str, **labels: str) -> float:
        """Give a figure; 0 if there is none."""
        labels = {"account": "anna", "connector": "telegram", **labels}
        return figure(self.metrics, f"telegram_{name}", **labels)

    def texts(self) -> list[str]:
        """Give what was handed in."""
        return [inbound.text for inbound in self.ingress.accepted]


delivery = partial(delivery_to, Address("telegram", "1@anna"))
"""Makes something to say in Zoe's chat with Anna."""
