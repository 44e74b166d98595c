"""A model that is asked over HTTP, whatever format its provider speaks.

Does the talking and keeps the deadlines; what is sent and what comes back is the
format's (`connectors/models/format.py`). Nothing is tried again here: who asks knows
for how long.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

import httpx
import msgspec
import trio

from actors.errors import ModelError
from actors.rules.prompt.estimate import without_calls, without_images
from connectors.models.http.account import (
    address,
    check_address,
    likely_base,
    request_headers,
    sendable_key,
    with_extra,
)
from connectors.models.http.connections import KeptConnections
from connectors.models.http.exchange import Exchange, abandon, kind_of, read_beginning
from connectors.models.http.reading import (
    Reading,
    StreamReading,
    TooLargeError,
    WholeReading,
)
from connectors.models.provider_errors import ErrorContext, read_headers

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.messages.inbound import ModelAnswer, ModelRequest, TranscriptLine
    from actors.ports import Speak
    from connectors.config.models import HttpModelConfig
    from connectors.models.format import Assembly, Format, Question


JSON = "application/json"


class HttpModel:
    """A provider behind one pool of connections.

    Args:
        config: the account and its deadlines.
        form: the format that it speaks.
        wall_clock: gives Unix seconds, for a `Retry-After` that is a date.
        transport: what carries the requests; None is the network.

    Raises:
        SettingsError: `base_url` is no HTTP address, or the key cannot be sent.
    """

    def __init__(
        self,
        config: HttpModelConfig,
        form: Format,
        *,
        wall_clock: Callable[[], float],
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._config = config
        self._format = form
        url = check_address(config.base_url)
        self._host = url.host
        self._likely_base = likely_base(config)
        self._key = sendable_key(config)
        self._wall_clock = wall_clock
        # Why no `AsyncClient`: cookies, redirects, proxies and authentication are none
        # of ours, and looking for them was an eighth of what an answer cost.
        self._transport = transport or KeptConnections(
            url,
            most=config.max_connections,
            connect_timeout=config.connect_timeout,
            write_timeout=config.idle_timeout,
        )
        # Read once: httpx takes longer for them than for all else of a request.
        self._headers = httpx.Headers(request_headers(config, url, self._key, form))
        self._media_type = form.stream_type if config.stream else JSON

    async def answer(self, request: ModelRequest, speak: Speak) -> ModelAnswer:
        """Ask the provider once.

        Raises:
            ModelBusyError: rate limit, overload, network, a deadline, a stream that
                was cut off or breaks the protocol.
            ModelRefusedError: key, quota, content, or a request it will never take.
        """
        config = self._config
        name = f"{self._host} ({request.model})"
        place = config.api_key.place if config.api_key else ""
        provider = ErrorContext(name, self._key, place, self._likely_base)
        request = fitted(
            request,
            sees=config.takes_images,
            calls=config.takes_tools,
            names=self._format.takes_names,
        )
        question = msgspec.structs.replace(
            self._format.ask(request, provider),
            extra_body=request.extra_body,
            traceparent=request.traceparent,
        )
        try:
            return await self._ask(question, speak, provider)
        except ModelError as error:
            # What was told before it broke off has to be paid for all the same.
            error.tokens = msgspec.structs.astuple(question.assembly.usage)
            raise

    async def _ask(
        self, question: Question, speak: Speak, provider: ErrorContext
    ) -> ModelAnswer:
        config = self._config
        assembly = question.assembly
        now = trio.current_time()
        ends_at = now + config.total_timeout
        first_by = min(now + config.first_byte_timeout, ends_at)
        pause = trio.CancelScope(deadline=first_by)
        exchange = Exchange(self._reading(assembly), assembly, speak, pause, ends_at)
        with pause:
            try:
                await self._exchange(question, exchange, provider)
            except TooLargeError as error:
                raise provider.broken(str(error)) from error
            except httpx.HTTPError as error:
                if not assembly.is_whole:
                    text = provider.quote(str(error)) or f": {type(error).__name__}"
                    kind = kind_of(error, exchange)
                    text = f"connection failed{text}"
                    raise provider.busy(text, kind, plain=text) from error
        if pause.cancelled_caught and not assembly.is_whole:
            late = self._late(exchange, is_total=pause.deadline >= ends_at)
            raise provider.busy(late, "timeout", plain=late)
        return assembly.finish(exchange.request_id)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()

    def _reading(self, assembly: Assembly) -> Reading:
        if self._config.stream:
            return StreamReading(self._format.framing(), assembly)
        return WholeReading(assembly)

    def _headers_of(self, question: Question) -> httpx.Headers:
        """Give the headers of a request; those that all have are made only once."""
        if not question.traceparent:
            return self._headers
        headers = httpx.Headers(self._headers)
        headers["traceparent"] = question.traceparent
        return headers

    async def _exchange(
        self, question: Question, exchange: Exchange, provider: ErrorContext
    ) -> None:
        body = question.body
        if question.extra_body:
            body = with_extra(body, question.extra_body)
        http_request = httpx.Request(
            "POST",
            address(self._config.base_url, question.path),
            headers=self._headers_of(question),
            content=body,
        )
        response = await self._transport.handle_async_request(http_request)
        exchange.is_answered = True
        chunks = response.aiter_raw()
        is_read = False
        try:
            headers = response.headers
            encoding = headers.get("content-encoding", "identity")
            if encoding != "identity":
                # Not asked for, and a small compressed body can fill the memory.
                raise provider.broken("the answer is compressed")
            if response.status_code != HTTPStatus.OK:
                body = await read_beginning(chunks)
                raise provider.status_error(
                    response.status_code,
                    body,
                    self._format.read_error(body),
                    read_headers(headers, self._wall_clock()),
                )
            kind = headers.get("content-type", "nothing")
            if not kind.lower().startswith(self._media_type):
                text = f"answered no {self._media_type} but{provider.quote(kind)}"
                raise provider.busy(text + provider.elsewhere, "protocol")
            if self._format.request_id_header:
                exchange.request_id = headers.get(self._format.request_id_header, "")
            idle_timeout = self._config.idle_timeout
            async for chunk in chunks:
                exchange.take(chunk, idle_timeout)
            is_read = True
            exchange.end()
        finally:
            try:
                if not is_read:
                    await abandon(chunks)
            finally:
                # Also if nobody waits any more: its connection would never be free.
                await response.aclose()

    def _late(self, exchange: Exchange, *, is_total: bool) -> str:
        if is_total:
            return f"not done after {self._config.total_timeout:g} s"
        if exchange.has_begun:
            return f"silent for {self._config.idle_timeout:g} s in mid-answer"
        return f"no answer within {self._config.first_byte_timeout:g} s"


def fitted(
    request: ModelRequest, *, sees: bool, calls: bool, names: bool
) -> ModelRequest:
    """Fit a request to its model; unchanged if there is nothing to leave out.

    Args:
        request: what is to be asked.
        sees: whether the model takes pictures.
        calls: whether it takes tools.
        names: whether a line can say who spoke.
    """
    lines = request.lines
    if not sees and any(line.images for line in lines):
        lines = tuple(map(without_images, lines))
    if not calls and any(line.tool_calls or line.tool_call_id for line in lines):
        lines = tuple(without_calls(lines))
    if not names and has_several_speakers(lines):
        lines = tuple(map(with_name, lines))
    tools = request.tools if calls else ()
    if lines is request.lines and tools is request.tools:
        return request
    return msgspec.structs.replace(request, lines=lines, tools=tools)


def has_several_speakers(lines: tuple[TranscriptLine, ...]) -> bool:
    """Tell whether it matters who said what: in a chat of two it does not."""
    return len({line.name for line in lines if line.role == "user" and line.name}) > 1


def with_name(line: TranscriptLine) -> TranscriptLine:
    """Put the speaker's name before a person's words."""
    if line.role != "user" or not line.name:
        return line
    return msgspec.structs.replace(line, text=f"{line.name}: {line.text}", name="")
