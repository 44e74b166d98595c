"""A model that is asked over HTTP, whatever format its provider speaks.

Does the talking and keeps the deadlines; what is sent and what comes back is the
format's (`connectors/models/format.py`). Nothing is tried again here: who asks knows
for how long.

The body of an answer is read sans-I/O: fed with the chunks of a response in any split,
a framing cuts the bytes into events (server-sent events, or one JSON object in each
line), and an assembly puts the events together. Embeddings and transcriptions, whose
providers stream nothing, are read in one piece (`answer`).
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import Protocol

import httpx
import msgspec
import trio

from actors.errors import ModelError, ModelFault
from actors.messages.inbound import ModelAnswer, ModelRequest, TranscriptLine
from actors.ports import Speak
from actors.rules.prompt.estimate import without_calls, without_images
from connectors.config.models import HttpModelConfig
from connectors.models.format import Assembly, Format, Framing, Question
from connectors.models.http.connections import (
    KeptConnections,
    address,
    check_address,
    likely_base,
    request_headers,
    sendable_key,
    with_extra,
)
from connectors.models.provider_errors import (
    ErrorContext,
    read_headers,
    read_openai_error,
)

MAX_ERROR_BYTES = 64 * 1024
"""Most bytes read of an error's body; its text shows 200 characters of them."""

AFTER_END = 1.0
"""Seconds for the response to end after the answer has.

Worth waiting for: a connection that is read to its end is used again.
"""

DEADLINE_STEP = 0.001
"""Seconds by which a deadline may be early, counted from the last piece."""


class Exchange:
    """What has come of one answer so far, and how long the next piece may take.

    Args:
        reading: takes the body's bytes.
        ends_at: but not beyond this, on trio's clock.
    """

    def __init__(
        self,
        reading: Reading,
        assembly: Assembly,
        speak: Speak,
        pause: trio.CancelScope,
        ends_at: float,
    ) -> None:
        self.assembly = assembly
        self.request_id = ""
        self.is_answered = False
        """Whether the response's headers have come."""

        self.has_begun = False
        """Whether a byte of its body has come."""

        self._reading = reading
        self._speak = speak
        self._pause = pause
        self._ends_at = ends_at

    def take(self, chunk: bytes, idle_timeout: float) -> None:
        """Take the next bytes of the response.

        Raises:
            ModelError: they break the protocol or bring an error.
            TooLargeError: a bound is passed.
        """
        self.has_begun = True
        words = self._reading.feed(chunk)
        if words:
            self._speak(words)
        allowed = AFTER_END if self.assembly.is_whole else idle_timeout
        deadline = min(trio.current_time() + allowed, self._ends_at)
        # Many pieces come at once, and trio takes a while to move a deadline.
        if abs(deadline - self._pause.deadline) >= DEADLINE_STEP:
            self._pause.deadline = deadline

    def end(self) -> None:
        """Learn that the body has ended cleanly.

        Raises:
            ModelError: what came is no answer, or an error.
        """
        words = self._reading.end()
        if words:
            self._speak(words)


def kind_of(error: httpx.HTTPError, exchange: Exchange) -> ModelFault:
    """Tell what a failed connection is."""
    if isinstance(error, httpx.PoolTimeout):
        return "overload"  # ours: more calls at once than connections
    if isinstance(error, httpx.TimeoutException):
        return "timeout"
    if isinstance(error, httpx.ProtocolError) and exchange.is_answered:
        return "protocol"
    return "network"


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


BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class SseEvent(msgspec.Struct, frozen=True):
    """One event of a stream."""

    data: bytes
    """Its `data` lines, joined by line feeds; not yet decoded."""

    name: bytes = b""
    """Its `event` line; empty if it had none."""


class TooLargeError(ValueError):
    """What came is above its bound; its reader is of no more use."""


class SseTooLargeError(TooLargeError):
    """An event, or a line of one, is above the bound; the parser is of no more use."""


class SseParser:
    """Cuts a byte stream into events.

    An event that is not ended by an empty line is never given out, so a stream
    that breaks off gives no half event.

    Args:
        max_event_bytes: most bytes of one event's data and of one line.
    """

    def __init__(self, max_event_bytes: int = 1024 * 1024) -> None:
        self._max_bytes = max_event_bytes
        self._line = bytearray()
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._name = b""
        self._is_first_line = True
        self._after_return = False

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Take the next bytes; give back the events they complete, in order.

        Raises:
            SseTooLargeError: an event is above the bound.
        """
        if self._after_return and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            self._after_return = False
        if not chunk:
            return []
        # A line that ends in CR is complete at once; the LF of a CR LF that was
        # split between two chunks is dropped when it comes.
        self._after_return = chunk.endswith(b"\r")
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        first, *rest = chunk.split(b"\n")
        self._bound(len(self._line) + len(first))
        self._line += first
        if not rest:
            return []
        events: list[SseEvent] = []
        line = bytes(self._line)
        for following in rest:
            event = self._take_line(line)
            if event is not None:
                events.append(event)
            line = following
            self._bound(len(line))
        self._line = bytearray(line)
        return events

    def _bound(self, size: int) -> None:
        if self._data_bytes + size > self._max_bytes:
            raise SseTooLargeError(f"an event is above {self._max_bytes} bytes")

    def _take_line(self, line: bytes) -> SseEvent | None:
        if self._is_first_line:
            self._is_first_line = False
            line = line.removeprefix(BYTE_ORDER_MARK)
        if not line:
            return self._end_event()
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._data_bytes += len(value) + 1
        elif field == b"event":
            self._name = value
        return None

    def _end_event(self) -> SseEvent | None:
        data, name = self._data, self._name
        self._data, self._data_bytes, self._name = [], 0, b""
        # The standard drops an event whose data is the empty string.
        joined = b"\n".join(data)
        return SseEvent(joined, name) if joined else None


MAX_BODY = 16 * 1024 * 1024
"""Most bytes of an answer in one piece: four megabytes of words, escaped."""


class Reading(Protocol):
    """A body that is being read."""

    def feed(self, chunk: bytes) -> str:
        """Take the next bytes; gives back the words they bring.

        Raises:
            TooLargeError: a bound is passed.
            actors.errors.ModelError: see `Assembly.take`.
        """
        ...

    def end(self) -> str:
        """Learn of the body's clean end; gives back the words that this brings."""
        ...


class SseFraming:
    """Server-sent events; what they are called is left out, as their data says it."""

    def __init__(self) -> None:
        self._parser = SseParser()

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next bytes; see `SseParser`."""
        return [event.data for event in self._parser.feed(chunk)]

    def end(self) -> list[bytes]:
        """Give nothing: the standard drops an event that is not ended."""
        return []


class StreamReading:
    """A streamed answer."""

    def __init__(self, framing: Framing, assembly: Assembly) -> None:
        self._framing = framing
        self._assembly = assembly

    def feed(self, chunk: bytes) -> str:
        """Take the next bytes; see `Reading`."""
        words = ""
        for event in self._framing.feed(chunk):
            words += self._assembly.take(event)
        return words

    def end(self) -> str:
        """Learn of the body's clean end; see `Reading`."""
        words = "".join(map(self._assembly.take, self._framing.end()))
        self._assembly.end()
        return words


class WholeReading:
    """An answer in one piece."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._body = bytearray()

    def feed(self, chunk: bytes) -> str:
        """Take the next bytes; no words come before the end."""
        self._body += chunk
        if len(self._body) > MAX_BODY:
            raise TooLargeError(f"the answer is above {MAX_BODY} bytes")
        return ""

    def end(self) -> str:
        """Learn of the body's clean end; gives back all words."""
        words = self._assembly.take_whole(bytes(self._body))
        self._assembly.end()
        return words


MAX_LINE = 1024 * 1024
"""Most bytes of one line."""


class LineFraming:
    """Cuts a byte stream into its lines; empty ones are left out."""

    def __init__(self) -> None:
        self._line = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next bytes; give back the lines they complete, in order.

        Raises:
            TooLargeError: a line is above the bound.
        """
        self._line += chunk
        if b"\n" not in chunk:
            self._check(self._line)
            return []
        *lines, rest = bytes(self._line).split(b"\n")
        self._line = bytearray(rest)
        for line in (*lines, rest):
            self._check(line)
        return [line for each in lines if (line := each.strip())]

    def end(self) -> list[bytes]:
        """Give the last line, at the stream's clean end: it need not be ended."""
        line = bytes(self._line).strip()
        self._line.clear()
        return [line] if line else []

    @staticmethod
    def _check(line: bytes | bytearray) -> None:
        if len(line) > MAX_LINE:
            raise TooLargeError(f"a line is above {MAX_LINE} bytes")


JSON = "application/json"


class HttpModel:
    """A provider behind one pool of connections.

    Args:
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
        sees: whether the model takes pictures.
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


HEADERS = {"Accept-Encoding": "identity", "User-Agent": "callboard"}
"""To be sent with each request: nothing compressed is read."""

MOST_OF_ERROR = 65_536
"""Bytes of an error that are looked at."""


class SingleAnswerParts(msgspec.Struct, frozen=True):
    """How a provider is asked."""

    provider: ErrorContext
    most: int
    """Bytes of an answer."""

    timeout: float
    """Seconds that an answer may take, for what is said of one that takes longer."""

    wall_clock: Callable[[], float]
    """Gives Unix seconds, for a `Retry-After` that is a date."""


async def answer(
    client: httpx.AsyncClient, request: httpx.Request, asking: SingleAnswerParts
) -> bytes:
    """Send a request; give all of its answer.

    Raises:
        ModelError: what the network or the provider says; see `ErrorContext`.
    """
    provider = asking.provider
    try:
        response = await client.send(request, stream=True)
        try:
            body = await read(response, asking)
        finally:
            await response.aclose()
    except httpx.TimeoutException as error:
        late = f"not done after {asking.timeout:g} s"
        raise provider.busy(late, "timeout", plain=late) from error
    except httpx.HTTPError as error:
        text = provider.quote(str(error)) or f": {type(error).__name__}"
        text = f"connection failed{text}"
        raise provider.busy(text, "network", plain=text) from error
    if not response.is_success:
        wait = read_headers(response.headers, asking.wall_clock())
        said = body[:MOST_OF_ERROR]
        raise provider.status_error(
            response.status_code, said, read_openai_error(said), wait
        )
    return body


async def read(response: httpx.Response, asking: SingleAnswerParts) -> bytes:
    """Read a body, up to a bound.

    Raises:
        ModelError: it is longer, or compressed.
    """
    if response.headers.get("content-encoding", "identity") != "identity":
        # Not asked for, and a small compressed body can fill the memory.
        raise asking.provider.broken("its answer is compressed")
    body = bytearray()
    chunks = response.aiter_bytes()
    try:
        async for chunk in chunks:
            body += chunk
            if len(body) > asking.most:
                text = f"its answer is above {asking.most} bytes"
                raise asking.provider.broken(text)
    finally:
        await abandon(chunks)
    return bytes(body)
