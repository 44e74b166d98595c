"""One agent's bot: how it is let in, what it asks, and where it must wait."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, TypeVar

import trio

from connectors.chat.faults import BusyError, RefusedError, ShutOutError
from connectors.chat.telegram.api import BotApi, Call
from connectors.chat.telegram.wire import User

if TYPE_CHECKING:
    import httpx

    from connectors.telegram_config import TelegramAccountConfig, TelegramConfig

MOST_HELD = 2_000
"""Chats in which it waits; the oldest is forgotten first, and asked for again."""

EVERYWHERE = 0
"""Stands for what belongs to no chat."""

T = TypeVar("T")


class Bot:
    """The bot of one agent.

    Args:
        agent: whose it is.
        account: its token.
        config: where Telegram is, and how long it may take.
        network: what carries the requests; None is the network.
    """

    def __init__(
        self,
        agent: str,
        account: TelegramAccountConfig,
        config: TelegramConfig,
        network: httpx.AsyncBaseTransport | None,
    ) -> None:
        self.agent = agent
        self.id = id_of(account.token.reveal())
        self.user = User(self.id, is_bot=True, first_name=agent)
        """Who it is, as far as it is known."""

        self.is_open = False
        """Whether it listens, so that it may speak."""

        self.refused = ""
        """Why it is not let in; empty: nobody said that it is not."""

        self.trouble = "it has not heard from Telegram yet"
        """Why it hears nothing now; empty: it does."""

        self.timeout = config.request_timeout
        self.api = BotApi(config.api_url, account.token, network)
        self._held: OrderedDict[int, float] = OrderedDict()
        """By chat: until when nothing is asked there (trio's clock)."""

    async def open(self) -> None:
        """Be let in, and learn its name.

        Raises:
            ShutOutError: it is not let in.
            BusyError: not now, or there is no Bot API at this address.
        """
        call = Call(method="getMe", timeout=self.timeout)
        try:
            user = await self.api.ask(call, User)
        except RefusedError as error:
            raise BusyError(f"this is no Bot API: {error}") from error
        if user.id != self.id:
            raise ShutOutError(f"the token belongs to bot {user.id}, not to {self.id}")
        self.user = user
        self.api.is_known = True

    async def ask(self, call: Call, kind: type[T], chat: int = EVERYWHERE) -> T:
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

    async def do(self, call: Call, chat: int = EVERYWHERE) -> None:
        """Ask for something whose answer does not matter; raises as `ask`."""
        self._check_held(chat)
        try:
            await self.api.ask_raw(call)
        except BusyError as error:
            self._hold(chat, error)
            raise

    def _check_held(self, chat: int) -> None:
        left = self._held.get(chat, 0.0) - trio.current_time()
        if left > 0:
            raise BusyError("Telegram asked to wait in this chat", left)
        self._held.pop(chat, None)

    def _hold(self, chat: int, error: BusyError) -> None:
        if error.retry_after is None or chat == EVERYWHERE:
            return
        self._held[chat] = trio.current_time() + error.retry_after
        self._held.move_to_end(chat)
        while len(self._held) > MOST_HELD:
            self._held.popitem(last=False)


def id_of(token: str) -> int:
    """Give the bot's id, with which its token begins; 0 if it is no token."""
    number = token.strip().partition(":")[0]
    return int(number) if number.isascii() and number.isdigit() else 0
