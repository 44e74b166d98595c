"""Any provider that speaks OpenAI's Chat Completions, streaming.

Does the talking and keeps the deadlines; what is sent is in `openai_request.py`,
what comes back in `sse.py` and `openai_stream.py`, what went wrong in
`openai_errors.py`. Nothing is tried again here: who asks knows for how long.
"""

from __future__ import annotations

import base64
import contextlib
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated

import httpx
import msgspec
import trio

from connectors.models.connections import KeptConnections
from connectors.models.openai_errors import Provider, read_retry_after
from connectors.models.openai_request import MaxTokensName, ToolNames, encode_request
from connectors.models.openai_stream import Assembly
from connectors.models.sse import SseParser, SseTooLargeError
from runtime.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from actors.messages import ModelAnswer, ModelRequest
    from actors.ports import Model, Speak
    from connectors.config import OpenAIModelConfig

Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]
Connections = Annotated[int, msgspec.Meta(ge=1, le=10_000)]

MAX_ERROR_BYTES = 64 * 1024
"""Most bytes read of an error's body; its text shows 200 characters of them."""

AFTER_END = 1.0
"""Seconds for the response to end after the answer has.

Worth waiting for: a connection that is read to its end is used again.
"""

DEADLINE_STEP = 0.001
"""Seconds by which a deadline may be early, counted from the last piece."""


class OpenAISettings(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """One account with a provider."""

    base_url: str
    """Up to the version, as in `https://api.openai.com/v1`."""

    api_key: str | None = None
    connect_timeout: Seconds = 10.0
    """Seconds to open a connection, or to get a free one."""

    first_byte_timeout: Seconds = 60.0
    """Seconds from asking to the first byte of the answer, connecting included."""

    idle_timeout: Seconds = 60.0
    """Seconds between two pieces of the answer."""

    total_timeout: Seconds = 300.0
    """Seconds for the whole answer."""

    max_connections: Connections = 128
    """Most answers at once; more wait up to `connect_timeout`."""

    max_tokens_name: MaxTokensName = "max_tokens"
    """How the provider calls the bound on an answer's tokens."""

    def __repr__(self) -> str:
        """Show which account it is; never the key."""
        key = "None" if self.api_key is None else "'[key]'"
        return f"OpenAISettings(base_url={self.base_url!r}, api_key={key}, ...)"


class Exchange:
    """What has come of one answer so far, and how long the next piece may take.

    Args:
        assembly: the answer in the making.
        speak: who hears its words.
        pause: the scope whose deadline is moved on with every piece.
    """

    def __init__(
        self, assembly: Assembly, speak: Speak, pause: trio.CancelScope
    ) -> None:
        self.assembly = assembly
        self.has_begun = False
        self._speak = speak
        self._pause = pause
        self._parser = SseParser()

    def take(self, chunk: bytes, idle_timeout: float) -> None:
        """Take the next bytes of the response.

        Raises:
            ModelError: they break the protocol or bring an error.
            SseTooLargeError: an event is too large.
        """
        self.has_begun = True
        for event in self._parser.feed(chunk):
            words = self.assembly.take(event)
            if words:
                self._speak(words)
        allowed = AFTER_END if self.assembly.is_whole else idle_timeout
        deadline = trio.current_time() + allowed
        # Many pieces come at once, and trio takes a while to move a deadline.
        if abs(deadline - self._pause.deadline) >= DEADLINE_STEP:
            self._pause.deadline = deadline


class OpenAIModel:
    """A Chat Completions provider behind one pool of connections.

    Args:
        settings: the account and its deadlines.
        wall_clock: gives Unix seconds, for a `Retry-After` that is a date.
        transport: what carries the requests; None is the network.

    Raises:
        SettingsError: `base_url` is no HTTP address, or the key cannot be sent.
    """

    def __init__(
        self,
        settings: OpenAISettings,
        *,
        wall_clock: Callable[[], float],
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._settings = settings
        self._url = completions_url(settings.base_url)
        self._key = sendable_key(settings.api_key)
        self._wall_clock = wall_clock
        # Why no `AsyncClient`: cookies, redirects, proxies and authentication are none
        # of ours, and looking for them was an eighth of what an answer cost.
        self._transport = transport or KeptConnections(
            self._url,
            most=settings.max_connections,
            connect_timeout=settings.connect_timeout,
            write_timeout=settings.idle_timeout,
        )
        self._headers = request_headers(self._url, self._key)

    async def answer(self, request: ModelRequest, speak: Speak) -> ModelAnswer:
        """Ask the provider once.

        Raises:
            ModelBusyError: rate limit, overload, network, a deadline, a stream that
                was cut off or breaks the protocol.
            ModelRefusedError: key, quota, content, or a request it will never take.
        """
        settings = self._settings
        provider = Provider(f"{self._url.host} ({request.model})", self._key)
        names = ToolNames(request.tools)
        body = encode_request(request, names, settings.max_tokens_name)
        assembly = Assembly(request, names, provider)
        pause = trio.CancelScope()
        exchange = Exchange(assembly, speak, pause)
        with trio.move_on_after(settings.total_timeout) as total, pause:
            pause.deadline = trio.current_time() + settings.first_byte_timeout
            try:
                await self._exchange(body, exchange, provider)
            except SseTooLargeError as error:
                raise provider.busy(f"broke the protocol: {error}") from error
            except httpx.HTTPError as error:
                if not assembly.is_whole:
                    text = provider.quote(str(error)) or f": {type(error).__name__}"
                    raise provider.busy(f"connection failed{text}") from error
        if (pause.cancelled_caught or total.cancelled_caught) and not assembly.is_whole:
            raise provider.busy(self._late(exchange, is_total=total.cancelled_caught))
        return assembly.finish()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()

    async def _exchange(
        self, body: bytes, exchange: Exchange, provider: Provider
    ) -> None:
        http_request = httpx.Request(
            "POST", self._url, headers=self._headers, content=body
        )
        response = await self._transport.handle_async_request(http_request)
        chunks = response.aiter_raw()
        is_read = False
        try:
            encoding = response.headers.get("content-encoding", "identity")
            if encoding != "identity":
                # Not asked for, and a small compressed body can fill the memory.
                raise provider.busy("broke the protocol: the answer is compressed")
            if response.status_code != HTTPStatus.OK:
                said = await read_beginning(chunks)
                retry_after = read_retry_after(
                    response.headers.get("retry-after"), self._wall_clock()
                )
                raise provider.status_error(
                    response.status_code, said, retry_after=retry_after
                )
            kind = response.headers.get("content-type", "nothing")
            if not kind.lower().startswith("text/event-stream"):
                quote = provider.quote(kind)
                raise provider.busy(f"answered no event stream but{quote}")
            async for chunk in chunks:
                exchange.take(chunk, self._settings.idle_timeout)
            is_read = True
        finally:
            if not is_read:
                await abandon(chunks)
            await response.aclose()

    def _late(self, exchange: Exchange, *, is_total: bool) -> str:
        if is_total:
            return f"not done after {self._settings.total_timeout:g} s"
        if exchange.has_begun:
            return f"silent for {self._settings.idle_timeout:g} s in mid-answer"
        return f"no answer within {self._settings.first_byte_timeout:g} s"


async def read_beginning(chunks: AsyncIterator[bytes]) -> bytes:
    """Read the first `MAX_ERROR_BYTES` of a body, or all of it if it is shorter."""
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) >= MAX_ERROR_BYTES:
            break
    return bytes(body[:MAX_ERROR_BYTES])


async def abandon(chunks: AsyncIterator[bytes]) -> None:
    """Unwind a response that was not read to its end.

    Why by a cancelled read: httpx stacks five generators on each other, and closing
    the outermost leaves the others to the garbage collector, of which trio warns.
    `Cancelled` passes through all of them.
    """
    # What a broken connection says now is no news: the answer is whole or lost.
    with contextlib.suppress(httpx.HTTPError), trio.CancelScope() as scope:
        scope.cancel()
        async for _ in chunks:
            pass


def completions_url(base_url: str) -> httpx.URL:
    """Find where to ask.

    Raises:
        SettingsError: `base_url` is no HTTP address.
    """
    try:
        url = httpx.URL(base_url.strip().rstrip("/") + "/chat/completions")
    except httpx.InvalidURL as error:
        raise SettingsError(f"base_url is no address: {error}") from error
    if url.scheme not in {"http", "https"} or not url.host:
        raise SettingsError(
            "base_url must start with http:// or https:// and name a host, as in "
            "https://api.openai.com/v1"
        )
    return url


def sendable_key(api_key: str | None) -> str:
    """Strip the space around a key, which files end with; empty if there is none.

    Raises:
        SettingsError: it holds characters that no header may carry.
    """
    key = (api_key or "").strip()
    if not (key.isascii() and key.isprintable()):
        raise SettingsError(
            "api_key holds characters that cannot be sent; copy it again"
        )
    return key


def request_headers(url: httpx.URL, key: str) -> dict[str, str]:
    """Make the headers of every request."""
    headers = {
        "Host": url.netloc.decode("ascii"),
        "Accept": "text/event-stream",
        "Accept-Encoding": "identity",
        "Content-Type": "application/json",
        "User-Agent": "callboard",
    }
    if url.userinfo:
        # Some servers at home stand behind a name and a password in their address.
        word = base64.b64encode(f"{url.username}:{url.password}".encode()).decode()
        return headers | {"Authorization": f"Basic {word}"}
    return headers | {"Authorization": f"Bearer {key}"} if key else headers


def make_model(config: OpenAIModelConfig, wall_clock: Callable[[], float]) -> Model:
    """Make the model that an account's settings describe."""
    settings = OpenAISettings(
        base_url=config.base_url,
        api_key=config.api_key.reveal() if config.api_key else None,
        connect_timeout=config.connect_timeout,
        first_byte_timeout=config.first_byte_timeout,
        idle_timeout=config.idle_timeout,
        total_timeout=config.total_timeout,
        max_connections=config.max_connections,
        max_tokens_name=config.max_tokens_name,
    )
    return OpenAIModel(settings, wall_clock=wall_clock)
