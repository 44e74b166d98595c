"""One agent's bot: its login, its requests, and the chats in which it must wait.

What a refusal of the Bot API means is said in the kinds of
`connectors/chat/requests.py`, and two finer ones: of `BusyError`, `ConflictError`, and
of `RefusedError`, `MovedError`.

`TelegramApi` keeps the deadlines and says what went wrong; who asks knows whether to
ask again.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Self, TypeVar
from urllib.parse import quote

import httpx
import msgspec
import trio

from actors.commands.registry import COMMANDS
from actors.rules.text.limits import RecentMap
from connectors.chat.accounts import (
    TYPING_TIMEOUT,
    AccountHealth,
    AgentAccount,
    BackgroundTyping,
)
from connectors.chat.requests import (
    LONGEST_ASKED,
    LONGEST_QUOTE,
    OK,
    BusyError,
    HttpAnswer,
    HttpPool,
    LostError,
    PlatformError,
    RefusedError,
    ShutOutError,
    Upload,
)
from connectors.chat.telegram.events import ApiAnswer, Parameters, User, whole
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from actors.rules.text.translations import Translate, Voices
    from connectors.chat.telegram.platform import TelegramAccountConfig, TelegramConfig
    from connectors.chat.telegram.senders import TelegramShared
    from runtime.secret import Secret


UNAUTHORIZED, NOT_FOUND, CONFLICT, TOO_MANY, SERVER_FAULT = 401, 404, 409, 429, 500


class ConflictError(BusyError):
    """Another program asks for this bot's messages, or a webhook gets them."""


class MovedError(RefusedError):
    """The group became a supergroup."""

    def __init__(self, text: str, chat: int) -> None:
        super().__init__(text)
        self.chat = chat


def error_of(
    status: int, description: str, parameters: Parameters, *, is_known: bool = True
) -> PlatformError:
    """Say what an answer that is no result means.

    Args:
        is_known: whether the bot was let in before. A 404 means an unknown token, or
            an unknown method.
    """
    words = " ".join(description.split())[:LONGEST_QUOTE]
    told = f"HTTP {status}: {words}" if words else f"HTTP {status}"
    if parameters.migrate_to_chat_id:
        return MovedError(told, parameters.migrate_to_chat_id)
    if status == TOO_MANY:
        asked = max(parameters.retry_after, 0.0)
        return BusyError(told, min(asked, LONGEST_ASKED) if asked else None)
    if status == CONFLICT:
        return ConflictError(told)
    if status == UNAUTHORIZED or (status == NOT_FOUND and not is_known):
        return ShutOutError(told)
    if status >= SERVER_FAULT or status < 400:
        return LostError(told)
    return RefusedError(told)


MARK = b"/bot~/"
"""Stands where the token belongs."""


class TokenCarrier(httpx.AsyncBaseTransport):
    """Puts the bot's token into the address of each request."""

    def __init__(
        self, token: Secret, network: httpx.AsyncBaseTransport | None, most: int
    ) -> None:
        self._token = token
        self._network = network or httpx.AsyncHTTPTransport(
            limits=httpx.Limits(max_connections=most), trust_env=False
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Carry one request, with `/bot~/` made `/bot<token>/`."""
        token = self._token.reveal().strip().encode()
        path = request.url.raw_path
        begin, mark, rest = path.partition(MARK)
        url = request.url.copy_with(raw_path=begin + b"/bot" + token + b"/" + rest)
        carried = httpx.Request(
            request.method,
            url if mark else request.url,
            headers=request.headers,
            stream=request.stream,
            extensions=request.extensions,
        )
        return await self._network.handle_async_request(carried)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._network.aclose()


# Chosen: a hundred updates, each with a message of 4,096 letters and what it replies
# to, are some MB; this is far above, and far below what fills a machine.
MOST_ANSWER = 32 * 1024 * 1024
"""Bytes of any answer that is no file."""

MOST_CONNECTIONS = 20
"""Of one bot: one polls, the others carry what is said and fetched."""

T = TypeVar("T")


class TelegramCall(msgspec.Struct, frozen=True, kw_only=True):
    """One request."""

    method: str
    params: Mapping[str, object] = {}
    timeout: float
    """Seconds for all of it."""

    silence: float | None = None
    """Seconds Telegram may say nothing, if that is less."""

    upload: Upload | None = None
    may_repeat: bool = True
    """Whether, where its answer is lost, it may simply be asked again. Not so for what
    says something: it would stand there twice."""


class BotApi:
    """The Bot API, for one bot.

    Args:
        url: its address, without the token.
        token: the bot's; never a part of an error, nor of what httpx knows.
        network: what carries the requests; None is the network.
    """

    def __init__(
        self, url: str, token: Secret, network: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._url = url.strip().rstrip("/")
        self._token = token
        self._network = network
        self._pool = HttpPool(network, MOST_CONNECTIONS, RefusedError)
        self.is_known = False
        """Whether the bot was let in."""

    async def __aenter__(self) -> Self:
        """Open the connections."""
        carrier = TokenCarrier(self._token, self._network, MOST_CONNECTIONS)
        self._pool = HttpPool(carrier, MOST_CONNECTIONS, RefusedError)
        await self._pool.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close them."""
        await self._pool.__aexit__()

    async def ask(self, call: TelegramCall, kind: type[T]) -> T:
        """Ask for something.

        Raises:
            BusyError: it cannot be reached, or not now.
            LostError: it was asked, and no whole answer came.
            RefusedError: it will never do this.
            ShutOutError: the token is not taken.
        """
        answer = decoded(await self.ask_raw(call), ApiAnswer[kind])  # type: ignore[valid-type]
        if answer.result is None:
            raise LostError(f"{call.method}: its answer holds no result")
        return answer.result

    async def ask_raw(self, call: TelegramCall) -> bytes:
        """Ask for something; gives the whole answer as it came, which is no refusal."""
        try:
            answer = await self._send(call)
        except LostError as error:
            if call.may_repeat:
                raise BusyError(f"{call.method}: {error}") from error
            raise LostError(f"{call.method}: {error}") from error
        except PlatformError as error:
            raise type(error)(f"{call.method}: {error}") from error
        if answer.status == OK:
            return answer.body
        raise self._refusal(call, answer.status, answer.body)

    async def _send(self, call: TelegramCall) -> HttpAnswer:
        send = partial(
            self._pool.send,
            "POST",
            f"{self._url}/bot~/{call.method}",
            within=call.timeout,
            silence=call.silence,
            most=MOST_ANSWER,
        )
        if call.upload is None:
            return await send(json=call.params)
        form = {key: form_value(value) for key, value in call.params.items()}
        return await send(data=form, upload=call.upload)

    def _refusal(self, call: TelegramCall, status: int, body: bytes) -> PlatformError:
        try:
            said = decoded(body, ApiAnswer[msgspec.Raw])
        except LostError:
            said = ApiAnswer[msgspec.Raw]()
        words = f"{call.method}: {said.description}".rstrip(": ")
        error = error_of(status, words, said.parameters, is_known=self.is_known)
        if isinstance(error, LostError) and call.may_repeat:
            return BusyError(str(error))
        return error

    async def fetch(self, path: str, within: float, most: int) -> bytes:
        """Fetch a file; raises as `ask`.

        Args:
            path: as `getFile` gave it.
            within: seconds for all of it.
            most: bytes.
        """
        url = f"{self._url}/file/bot~/{quote(path.lstrip('/'))}"
        try:
            status, _, body = await self._pool.send(
                "GET", url, within=within, most=most
            )
        except LostError as error:
            raise BusyError(f"the file did not come: {error}") from error
        if status == OK:
            return body
        text = f"the file did not come: HTTP {status}"
        raise BusyError(text) if status >= 429 else RefusedError(text)


def form_value(value: object) -> str:
    """Write a parameter as a field of a form: words as they are, the rest as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def decoded(body: bytes, kind: type[T]) -> T:
    """Read an answer.

    Raises:
        LostError: it makes no sense.
    """
    try:
        try:
            return msgspec.json.decode(body, type=kind)
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError:
            return msgspec.json.decode(whole(body), type=kind)
    except (ValueError, RecursionError) as error:
        raise LostError("its answer makes no sense") from error


MOST_HELD = 2_000
"""Chats in which it waits; the oldest is forgotten first, and asked for again."""

EVERYWHERE = 0
"""Stands for what belongs to no chat."""


LOG = EventLog("telegram")

MOST_EXPLAINED = 256
"""Characters of a command's description. Source: Bot API, "BotCommand"."""


def menu(say: Translate) -> list[dict[str, str]]:
    """Describe the commands that everybody may use."""
    return [
        {"command": word, "description": say(each.meaning)[:MOST_EXPLAINED]}
        for word, each in COMMANDS.items()
        if each.who == "everyone"
    ]


class TelegramAccount(AgentAccount):
    """The bot of one agent.

    Args:
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
        self.typing = BackgroundTyping(self.show_typing, LOG, agent)
        self.id = id_of(account.token.reveal())
        self.user = User(self.id, is_bot=True, first_name=agent)
        """Who it is, as far as it is known."""

        self._wants_menu = config.slash_commands
        """Whether its menu is still to be made."""

        self.timeout = config.request_timeout
        self.api = BotApi(config.api_url, account.token, network)
        self._held: RecentMap[int, float] = RecentMap(MOST_HELD)
        """By chat: until when nothing is asked there (trio's clock)."""

    async def open(self) -> None:
        """Log in; raises as `learn_name`."""
        await self.learn_name()
        self.api.is_known = True

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

    async def make_menus(self, voices: Voices) -> None:
        """Tell Telegram once which commands there are, in every language.

        Without them all else works.

        Raises:
            ShutOutError: it is not let in.
        """
        if not self._wants_menu:
            return
        usual = menu(voices.speak())
        try:
            await self._tell_menu({"commands": usual})
            for language in voices.languages:
                own = menu(voices.speak(language))
                if own != usual:
                    await self._tell_menu({"commands": own, "language_code": language})
        except ShutOutError:
            raise
        except PlatformError as error:
            LOG.warning("no menu of commands", bot=self.agent, why=str(error))
        else:
            self._wants_menu = False

    async def _tell_menu(self, params: Mapping[str, object]) -> None:
        call = TelegramCall(method="setMyCommands", params=params, timeout=self.timeout)
        await self.api.ask_raw(call)

    async def ask(self, call: TelegramCall, kind: type[T], chat: int = EVERYWHERE) -> T:
        """Ask for something; raises as `BotApi.ask`.

        Args:
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
