"""Requests that wait for an agent's answer, whole or as a stream; on the edge's loop.

The message itself is durable: when the client closes the connection, the agents go on,
and their answer is stored in the channel.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import msgspec
from starlette.responses import Response, StreamingResponse

from connectors.web.eliza.errors import fields_of
from connectors.web.eliza.messages import Json, content_fields, message_shown
from connectors.web.eliza.request import both
from connectors.web.errors import ApiError
from connectors.web.exchange import (
    HttpExchange,
    OpenExchanges,
    unanswered,
    watch_client,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

    from starlette.requests import Request

    from actors.transport import Earlier
    from connectors.web.eliza.services.messages import NewMessage, PostOutcome
    from runtime.ids import IdSource

Recall = Callable[[str], Awaitable["Earlier | None"]]
Post = Callable[[], Awaitable["PostOutcome"]]

EVENT_STREAM = {"cache-control": "no-cache", "x-accel-buffering": "no"}


class AnswerWaiter:
    """Waits for the answers to messages.

    Args:
        ids: makes the ids of messages.
        earlier: gives what became of a message, by its id.
        timeout: most seconds that a request waits.
        heartbeat: seconds between the comments that keep a silent stream open.
    """

    def __init__(
        self, ids: IdSource, earlier: Recall, timeout: float, heartbeat: float
    ) -> None:
        self._ids = ids
        self._earlier = earlier
        self._timeout = timeout
        self._heartbeat = heartbeat
        self.waiting = OpenExchanges()

    def new_id(self) -> str:
        """Make the id of a message that is to be handed in."""
        return self._ids.new()

    def stop(self) -> None:
        """End all requests that wait, because the server stops."""
        text = "the server is stopping; the message is kept, its answer will be, too"
        for exchange in self.waiting.all():
            exchange.fail(unanswered(503, text, "stopping"))

    async def whole(
        self, request: Request, said: NewMessage, post: Post, beside: Json
    ) -> Response:
        """Post a message and wait for the whole answer.

        Raises:
            ApiError: it was not accepted, no agent hears it, or there is no answer.
        """
        posted, exchange = await self.answer(request, said, post)
        shown: Json = {"userMessage": message_shown(posted.message)}
        shown["agentResponse"] = content_of(exchange)
        return both(shown | beside, 201)

    async def answer(
        self, request: Request, said: NewMessage, post: Post
    ) -> tuple[PostOutcome, HttpExchange]:
        """Post a message, and give the exchange with its whole answer.

        Raises:
            ApiError: it was not accepted, no agent hears it, or there is no answer.
        """
        async with self._asked(request, said, post, is_live=False) as (
            posted,
            exchange,
        ):
            while not exchange.is_over:
                await exchange.wait_news()
            if exchange.failure is not None:
                raise exchange.failure
            return posted, exchange

    async def stream(self, request: Request, said: NewMessage, post: Post) -> Response:
        """Post a message and stream the answer as server-sent events.

        Raises:
            ApiError: it was not accepted, or no agent hears it.
        """
        stack = AsyncExitStack()
        asked = self._asked(request, said, post, is_live=True)
        posted, exchange = await stack.enter_async_context(asked)

        async def events() -> AsyncIterator[bytes]:
            async with stack:
                async for event in self._events(posted, exchange):
                    yield event

        headers = EVENT_STREAM
        return StreamingResponse(events(), 200, headers, "text/event-stream")

    async def _events(
        self, posted: PostOutcome, exchange: HttpExchange
    ) -> AsyncIterator[bytes]:
        shown = message_shown(posted.message)
        yield event_of("user_message", shown)
        index, message_id = 0, posted.message.id
        while True:
            is_over = exchange.is_over
            if text := exchange.take():
                piece: Json = {"messageId": message_id, "chunk": text, "index": index}
                yield event_of("chunk", piece | {"type": "chunk", "text": text})
                index += 1
            if is_over:
                break
            if not await exchange.wait_news(self._heartbeat):
                yield b": still here\n\n"
        if exchange.failure is None:
            done = content_of(exchange) | {"type": "complete"}
            yield event_of("done", done)
        else:
            yield event_of("error", failed(exchange.failure))

    @asynccontextmanager
    async def _asked(
        self, request: Request, said: NewMessage, post: Post, *, is_live: bool
    ) -> AsyncGenerator[tuple[PostOutcome, HttpExchange]]:
        """Post a message and collect its answers; a repeated one gets those it had.

        Raises:
            ApiError: it was not accepted, or no agent hears it.
        """
        with ExitStack() as stack:
            live = self._exchange(request, said.inbound_id, is_live=is_live)
            exchange = stack.enter_context(live)
            posted = await answerable(post)
            if not posted.is_new:
                known = await self._recall(posted)
                again = self._exchange(
                    request, known.inbound.correlation_id, is_live=is_live
                )
                exchange = stack.enter_context(again)
                exchange.catch_up(await self._earlier(posted.message.id) or known)
            yield posted, exchange

    async def _recall(self, posted: PostOutcome) -> Earlier:
        known = await self._earlier(posted.message.id)
        if known is None:
            text = f"message {posted.message.id} was said before; read its channel"
            raise ApiError(409, text, code="duplicate_message", may_repeat=False)
        return known

    @contextmanager
    def _exchange(
        self, request: Request, correlation_id: str, *, is_live: bool
    ) -> Generator[HttpExchange]:
        """Collect the answers to one message, until the deadline at most."""
        exchange = HttpExchange(correlation_id, "", is_live=is_live)
        late = unanswered(
            504, f"no whole answer within {self._timeout:g} s", "answer_timeout"
        )
        loop = asyncio.get_running_loop()
        deadline = loop.call_later(self._timeout, exchange.fail, late)
        watch = asyncio.ensure_future(watch_client(request.receive, exchange))
        try:
            with self.waiting.holding(correlation_id, exchange):
                yield exchange
        finally:
            deadline.cancel()
            watch.cancel()


async def answerable(post: Post) -> PostOutcome:
    """Post a message that needs an answer.

    Raises:
        ApiError: it was not accepted, or no agent hears it.
    """
    posted = await post()
    if posted.is_new and not posted.heard:
        text = "no agent is in this channel; add one, or name it in targetAgentId"
        raise ApiError(400, text, code="no_agent", may_repeat=False)
    return posted


def content_of(exchange: HttpExchange) -> Json:
    """Give a whole answer as agents of ElizaOS give theirs."""
    content = content_fields(exchange.text, exchange.thought, exchange.actions)
    return content | {"source": "callboard"}


def failed(error: ApiError) -> Json:
    """Show an error in a stream, for clients of both spellings."""
    return {
        "error": error.text,
        "type": "error",
        "text": error.text,
        "code": fields_of(error)["code"],
    }


def event_of(name: str, shown: Json) -> bytes:
    """Write one event."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), msgspec.json.encode(shown))
