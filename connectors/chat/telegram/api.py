"""Asks the Bot API on behalf of one bot.

Keeps the deadlines and says what went wrong; who asks knows whether to ask again.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Self, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from connectors.chat.errors import BusyError, LostError, PlatformError, RefusedError
from connectors.chat.requests import OK, HttpAnswer, HttpPool, Upload
from connectors.chat.telegram.errors import error_of
from connectors.chat.telegram.types import ApiAnswer, whole

if TYPE_CHECKING:
    from runtime.secret import Secret

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
