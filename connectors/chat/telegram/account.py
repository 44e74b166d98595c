"""One agent's bot: its login, its requests, and the chats in which it must wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import trio

from actors.commands.registry import COMMANDS
from actors.rules.text.limits import RecentMap
from connectors.chat.accounts import TYPING_TIMEOUT, AccountHealth, AgentAccount
from connectors.chat.errors import BusyError, PlatformError, RefusedError, ShutOutError
from connectors.chat.telegram.api import BotApi, TelegramCall
from connectors.chat.telegram.errors import ConflictError
from connectors.chat.telegram.types import User
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    import httpx

    from connectors.chat.telegram.platform import TelegramAccountConfig, TelegramConfig
    from connectors.chat.telegram.shared import TelegramShared

MOST_HELD = 2_000
"""Chats in which it waits; the oldest is forgotten first, and asked for again."""

EVERYWHERE = 0
"""Stands for what belongs to no chat."""

T = TypeVar("T")

LOG = EventLog("telegram")

MOST_EXPLAINED = 256
"""Characters of a command's description. Source: Bot API, "BotCommand"."""


def menu() -> list[dict[str, str]]:
    """Describe the commands that everybody may use."""
    return [
        {"command": word, "description": each.meaning[:MOST_EXPLAINED]}
        for word, each in COMMANDS.items()
        if each.who == "everyone"
    ]


class TelegramAccount(AgentAccount):
    """The bot of one agent.

    Args:
        agent: whose it is.
        account: its token.
        config: where Telegram is, and how long it may take.
        network: what carries the requests; None is the network.
    """

    kind = "bot"

    def __init__(
        self,
        agent: str,
        account: TelegramAccountConfig,
        config: TelegramConfig,
        network: httpx.AsyncBaseTransport | None,
    ) -> None:
        super().__init__(agent, "Telegram")
        self.id = id_of(account.token.reveal())
        self.user = User(self.id, is_bot=True, first_name=agent)
        """Who it is, as far as it is known."""

        self._has_menu = config.slash_commands
        """Whether its menu is still to be made."""

        self.timeout = config.request_timeout
        self.api = BotApi(config.api_url, account.token, network)
        self._held: RecentMap[int, float] = RecentMap(MOST_HELD)
        """By chat: until when nothing is asked there (trio's clock)."""

    async def open(self) -> None:
        """Log in; raises as `learn_name`."""
        await self.learn_name()
        self.api.is_known = True
        if self._has_menu:
            await self._make_menu()

    async def learn_name(self) -> None:
        """Ask what the bot is called: people mention it by its username.

        Raises:
            ShutOutError: it is not let in.
            BusyError: not now, or there is no Bot API at this address.
        """
        call = TelegramCall(method="getMe", timeout=self.timeout)
        try:
            user = await self.api.ask(call, User)
        except RefusedError as error:
            raise BusyError(f"this is no Bot API: {error}") from error
        if user.id != self.id:
            raise ShutOutError(f"the token belongs to bot {user.id}, not to {self.id}")
        self.user = user

    async def _make_menu(self) -> None:
        """Tell Telegram once which commands there are; without them all else works."""
        call = TelegramCall(
            method="setMyCommands", params={"commands": menu()}, timeout=self.timeout
        )
        try:
            await self.api.ask_raw(call)
        except ShutOutError:
            raise
        except PlatformError as error:
            LOG.warning("no menu of commands", bot=self.agent, why=str(error))
        else:
            self._has_menu = False

    async def ask(self, call: TelegramCall, kind: type[T], chat: int = EVERYWHERE) -> T:
        """Ask for something; raises as `BotApi.ask`.

        Args:
            call: what.
            kind: of the answer.
            chat: which chat it concerns. Where Telegram asked to wait, it is asked
                nothing before: whoever goes on asking waits for longer.
        """
        self._check_held(chat)
        try:
            return await self.api.ask(call, kind)
        except BusyError as error:
            self._hold(chat, error)
            raise

    async def do(self, call: TelegramCall, chat: int = EVERYWHERE) -> None:
        """Ask for something whose answer does not matter; raises as `ask`."""
        self._check_held(chat)
        try:
            await self.api.ask_raw(call)
        except BusyError as error:
            self._hold(chat, error)
            raise

    async def show_typing(self, place: tuple[int, int], **_: object) -> None:
        """Show for five seconds that it is writing; raises as `ask`.

        Args:
            place: the chat and the topic; 0: none.
        """
        chat, topic = place
        params: dict[str, object] = {"chat_id": chat, "action": "typing"}
        if topic:
            params["message_thread_id"] = topic
        call = TelegramCall(
            method="sendChatAction", params=params, timeout=TYPING_TIMEOUT
        )
        await self.do(call, chat)

    def _check_held(self, chat: int) -> None:
        left = self._held.get(chat, 0.0) - trio.current_time()
        if left > 0:
            raise BusyError("Telegram asked to wait in this chat", left)
        self._held.pop(chat, None)

    def _hold(self, chat: int, error: BusyError) -> None:
        if error.retry_after is None or chat == EVERYWHERE:
            return
        self._held[chat] = trio.current_time() + error.retry_after


def id_of(token: str) -> int:
    """Return the bot's id, with which its token begins; 0 if it is no token."""
    number = token.strip().partition(":")[0]
    return int(number) if number.isascii() and number.isdigit() else 0


class TelegramHealth(AccountHealth):
    """Reports whether one bot hears Telegram, or another program hears it instead."""

    def __init__(self, bot: TelegramAccount, shared: TelegramShared) -> None:
        super().__init__(bot, shared.metrics, shared.clock, LOG)
        self._count = shared.metrics.count
        self._agent = bot.agent

    def heard(self) -> bool:
        """Note that Telegram answered; whether it did not, a moment ago."""
        was_away = super().heard()
        if was_away:
            self._count("reconnects", self._agent)
        return was_away

    def note(self, error: PlatformError) -> None:
        """Note trouble; conflicts with other programs are counted."""
        if isinstance(error, ConflictError):
            self._count("conflicts", self._agent)
        super().note(error)
