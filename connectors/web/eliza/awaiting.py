"""Requests that wait for an agent's answer: the whole of it, or piece by piece.

Lives on the edge's loop only. The message itself is durable: when the client goes
away, the agents go on, and their answer stands in the channel.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import msgspec
from starlette.responses import StreamingResponse

from connectors.web.completions import watch_client
from connectors.web.eliza.desk import both
from connectors.web.eliza.errors import fields_of
from connectors.web.eliza.shapes import message_shown
from connectors.web.errors import ApiError
from connectors.web.exchange import Exchange, refused_answer
from connectors.web.waiting import Waiting

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

    from starlette.requests import Request
    from starlette.responses import Response

    from actors.ingress import Earlier
    from connectors.web.eliza.shapes import Json
    from connectors.web.eliza.speech import Posted, Said
    from runtime.ids import IdSource

Recall = Callable[[str], Awaitable["Earlier | None"]]
Post = Callable[[], Awaitable["Posted"]]

EVENT_STREAM = {"cache-control": "no-cache", "x-accel-buffering": "no"}


class Awaiting:
    """All that wait.

    Args:
        ids: makes the ids of messages.
        earlier: asks the kernel what became of a message, by its id.
        timeout: seconds that one waits at most.
        heartbeat: seconds between the comments that keep a silent stream open.
    """

    def __init__(
        self, ids: IdSource, earlier: Recall, timeout: float, heartbeat: float
    ) -> None:
        self._ids = ids
        self._earlier = earlier
        self._timeout = timeout
        self._heartbeat = heartbeat
        self.waiting = Waiting()

    def new_id(self) -> str:
        """Make the id under which a message is handed in."""
        return self._ids.new()

    def stop(self) -> None:
        """End all that wait, because the server stops."""
        text = "the server is stopping; the message is kept, its answer will be, too"
        for exchange in self.waiting.all():
            exchange.fail(refused_answer(503, text, "stopping"))

    async def whole(
        self, request: Request, said: Said, post: Post, beside: Json
    ) -> Response:
        """Say something and wait for the whole answer.

        Raises:
            ApiError: it was not taken, nobody hears it, or there is no answer.
        """
        posted, answer = await self.answer(request, said, post)
        shown: Json = {"userMessage": message_shown(posted.message)}
        shown["agentResponse"] = content_of(answer)
        return both(shown | beside, 201)

    async def answer(
        self, request: Request, said: Said, post: Post
    ) -> tuple[Posted, str]:
        """Say something, and give the text of its whole answer.

        Raises:
            ApiError: it was not taken, nobody hears it, or there is no answer.
        """
        async with self._asked(request, said, post, is_live=False) as (
            posted,
            exchange,
        ):
            while not exchange.is_over:
                await exchange.wait_news()
            if exchange.failure is not None:
                raise exchange.failure
            return posted, exchange.text

    async def stream(self, request: Request, said: Said, post: Post) -> Response:
        """Say something and stream the answer as server-sent events.

        Raises:
            ApiError: it was not taken, or nobody hears it.
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

    async def _events(self, posted: Posted, exchange: Exchange) -> AsyncIterator[bytes]:
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
            done = content_of(exchange.text) | {"type": "complete"}
            yield event_of("done", done)
        else:
            yield event_of("error", failed(exchange.failure))

    @asynccontextmanager
    async def _asked(
        self, request: Request, said: Said, post: Post, *, is_live: bool
    ) -> AsyncGenerator[tuple[Posted, Exchange]]:
        """Say something and have its answers heard; what was said before has its own.

        Raises:
            ApiError: it was not taken, or nobody hears it.
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

    async def _recall(self, posted: Posted) -> Earlier:
        known = await self._earlier(posted.message.id)
        if known is None:
            text = f"message {posted.message.id} was said before; read its channel"
            raise ApiError(409, text, code="duplicate_message", may_repeat=False)
        return known

    @contextmanager
    def _exchange(
        self, request: Request, correlation_id: str, *, is_live: bool
    ) -> Generator[Exchange]:
        """Have the answers to one message heard, until the deadline at most."""
        exchange = Exchange(correlation_id, "", is_live=is_live)
        late = refused_answer(
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


async def answerable(post: Post) -> Posted:
    """Say something that somebody is to answer.

    Raises:
        ApiError: it was not taken, or nobody hears it.
    """
    posted = await post()
    if posted.is_new and not posted.heard:
        text = "no agent is in this channel; add one, or name it in targetAgentId"
        raise ApiError(400, text, code="no_agent", may_repeat=False)
    return posted


def content_of(text: str) -> Json:
    """Show an answer as agents of ElizaOS give theirs."""
    return {"text": text, "thought": "", "actions": [], "source": "callboard"}


def failed(error: ApiError) -> Json:
    """Show an error in a stream, for both kinds of readers."""
    return {
        "error": error.text,
        "type": "error",
        "text": error.text,
        "code": fields_of(error)["code"],
    }


def event_of(name: str, shown: Json) -> bytes:
    """Write one event."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), msgspec.json.encode(shown))
