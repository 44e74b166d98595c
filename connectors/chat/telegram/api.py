"""Asks the Bot API on behalf of one bot.

Keeps the deadlines and says what went wrong; who asks knows whether to ask again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import ExitStack, aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar, cast
from urllib.parse import quote

import httpx
import msgspec
import trio

from connectors.chat.faults import BusyError, LostError, PlatformError, RefusedError
from connectors.chat.telegram.carrier import TokenCarrier
from connectors.chat.telegram.errors import error_of
from connectors.chat.telegram.wire import Answer, whole

if TYPE_CHECKING:
    from runtime.secret import Secret

OK = 200

CONNECT_TIMEOUT = 10.0
"""Seconds to connect, and again to wait for a free connection."""

# Chosen: a hundred updates, each with a message of 4,096 letters and what it replies
# to, are some MB; this is far above, and far below what fills a machine.
MOST_ANSWER = 32 * 1024 * 1024
"""Bytes of any answer that is no file."""

MOST_CONNECTIONS = 20
"""Of one bot: one polls, the others carry what is said and fetched."""

NOT_ASKED = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
"""Errors after which Telegram surely knows of nothing."""

T = TypeVar("T")


class Upload(msgspec.Struct, frozen=True):
    """A file that goes with a request."""

    field: str
    """The parameter that it is, as `photo`."""

    path: Path
    name: str
    media_type: str


class Call(msgspec.Struct, frozen=True, kw_only=True):
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
    """The way to Telegram, of one bot.

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
        self._client: httpx.AsyncClient | None = None
        self.is_known = False
        """Whether the bot was let in."""

    async def __aenter__(self) -> Self:
        """Open the connections."""
        carrier = TokenCarrier(self._token, self._network, MOST_CONNECTIONS)
        self._client = httpx.AsyncClient(
            transport=carrier,
            headers={"Accept-Encoding": "identity", "User-Agent": "callboard"},
            trust_env=False,
        )
        await trio.lowlevel.checkpoint_if_cancelled()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close them."""
        client, self._client = self._client, None
        if client is not None:
            # Cancelled half-way it would leave connections open.
            with trio.CancelScope(shield=True):
                await client.aclose()

    async def ask(self, call: Call, kind: type[T]) -> T:
        """Ask for something.

        Raises:
            BusyError: it cannot be reached, or not now.
            LostError: it was asked, and no whole answer came.
            RefusedError: it will never do this.
            ShutOutError: the token is not taken.
        """
        answer = decoded(await self.ask_raw(call), Answer[kind])  # type: ignore[valid-type]
        if answer.result is None:
            raise LostError(f"{call.method}: its answer holds no result")
        return answer.result

    async def ask_raw(self, call: Call) -> bytes:
        """Ask for something; gives the whole answer as it came, which is no refusal."""
        try:
            with ExitStack() as stack:
                request = self._request(call, stack)
                status, body = await self._send(request, call.timeout, MOST_ANSWER)
        except LostError as error:
            if call.may_repeat:
                raise BusyError(f"{call.method}: {error}") from error
            raise LostError(f"{call.method}: {error}") from error
        except PlatformError as error:
            raise type(error)(f"{call.method}: {error}") from error
        except OSError as error:  # httpx has its own for the network's
            text = f"{call.method}: the file cannot be read now: {error.strerror}"
            raise BusyError(text) from error
        if status == OK:
            return body
        raise self._refusal(call, status, body)

    def _request(self, call: Call, stack: ExitStack) -> httpx.Request:
        url = f"{self._url}/bot~/{call.method}"
        limits = {"timeout": timeout_of(call.silence or call.timeout)}
        if call.upload is None:
            return httpx.Request("POST", url, json=call.params, extensions=limits)
        upload = call.upload
        file = stack.enter_context(upload.path.open("rb"))
        return httpx.Request(
            "POST",
            url,
            data={key: form_value(value) for key, value in call.params.items()},
            files={upload.field: (upload.name, file, upload.media_type)},
            extensions=limits,
        )

    def _refusal(self, call: Call, status: int, body: bytes) -> PlatformError:
        try:
            said = decoded(body, Answer[msgspec.Raw])
        except LostError:
            said = Answer[msgspec.Raw]()
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
        request = httpx.Request(
            "GET",
            f"{self._url}/file/bot~/{quote(path.lstrip('/'))}",
            extensions={"timeout": timeout_of(within)},
        )
        try:
            status, body = await self._send(request, within, most)
        except LostError as error:
            raise BusyError(f"the file did not come: {error}") from error
        if status == OK:
            return body
        text = f"the file did not come: HTTP {status}"
        raise BusyError(text) if status >= 429 else RefusedError(text)

    async def _send(
        self, request: httpx.Request, within: float, most: int
    ) -> tuple[int, bytes]:
        client = self._client
        if client is None:
            raise BusyError("the bot does not listen now")
        with trio.move_on_after(within):
            try:
                response = await client.send(request, stream=True)
                try:
                    return response.status_code, await read(response, most)
                finally:
                    with trio.CancelScope(shield=True):
                        await response.aclose()
            except NOT_ASKED as error:
                raise BusyError(told(error)) from error
            except (httpx.HTTPError, httpx.InvalidURL, RuntimeError) as error:
                # httpx raises a RuntimeError where another task has closed it.
                raise LostError(told(error)) from error
        raise LostError(f"not done after {within:g} s")


def form_value(value: object) -> str:
    """Write a parameter as a field of a form: words as they are, the rest as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def timeout_of(silence: float) -> dict[str, float | None]:
    """Give the limits of a request, as httpx takes them."""
    return httpx.Timeout(silence, connect=CONNECT_TIMEOUT).as_dict()


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


async def read(response: httpx.Response, most: int) -> bytes:
    """Read a body, but no more than so many bytes.

    Raises:
        RefusedError: there is more.
    """
    if response.headers.get("content-encoding", "identity") != "identity":
        # Not asked for, and a small compressed body can fill the memory.
        raise RefusedError("the answer is compressed")
    pieces: list[bytes] = []
    size = 0
    # Left half read, a generator is found by the collector, which complains.
    async with aclosing(cast("AsyncGenerator[bytes]", response.aiter_bytes())) as body:
        async for piece in body:
            size += len(piece)
            if size > most:
                raise RefusedError(f"it is above {most} bytes")
            pieces.append(piece)
    return b"".join(pieces)


def told(error: Exception) -> str:
    """Say what went wrong; some of httpx's errors have no words."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
