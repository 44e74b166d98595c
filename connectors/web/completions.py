"""`POST /v1/chat/completions`: one request, from its body to its answer.

Runs on the edge's loop. Each waiting request is one `Exchange`, in a dict that
holds no more entries than there are connections; an entry leaves with its
request, whatever ends that. The message itself is durable: when the client goes
away, the agents go on, and only the answer has nowhere to go.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from actors.ingress import Earlier, RefusedAttempt
from actors.messages import Address, Inbound
from connectors.web import openai_wire as wire
from connectors.web.bodies import Bodies
from connectors.web.errors import (
    EXPECTED_ERRORS,
    ApiError,
    error_body,
    log_refusal,
    refuse,
    translate,
    unknown_model,
)
from connectors.web.exchange import Exchange, refused_answer
from connectors.web.server import HttpSettings, check_access
from connectors.web.waiting import Waiting
from runtime.clock import Clock
from runtime.ids import IdSource

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from actors.messages import Usage as Tokens

NOT_LET_IN = (401, 403)
CONVERSATION_HEADER = "x-callboard-conversation"
KEY_HEADER = "idempotency-key"

NAME = re.compile(r"[\x21-\x7e]{1,200}")
"""What a conversation or a key may be called: it becomes a key of the store."""


class Desk(msgspec.Struct, frozen=True):
    """What a request needs from outside."""

    settings: HttpSettings
    agents: Callable[[], tuple[str, ...]]
    accept: Callable[[Inbound], Awaitable[bool]]
    """Hands a message in; returns when it is stored (`Ingress.accept`)."""

    earlier: Callable[[str], Awaitable[Earlier | None]]
    """Tells what became of a message that was handed in before, by its platform id."""

    refuse: Callable[[RefusedAttempt], None]
    """Puts on record that somebody was not let in."""

    clock: Clock
    ids: IdSource

    def note_refused(self, scope: Scope, error: ApiError) -> None:
        """Put on record that somebody was not let in, if that is what happened."""
        if error.status in NOT_LET_IN:
            client = scope.get("client")
            self.refuse(RefusedAttempt(error.code, client[0] if client else ""))


class Asked(msgspec.Struct, frozen=True):
    """One request that was understood."""

    request: wire.ChatRequest
    inbound: Inbound
    created: int
    """Unix seconds."""

    @property
    def completion_id(self) -> str:
        """The id of the answer."""
        return f"chatcmpl-{self.inbound.id}"

    @property
    def headers(self) -> dict[str, str]:
        """Headers of every answer."""
        return {
            "x-request-id": self.inbound.id,
            CONVERSATION_HEADER: self.inbound.address.chat,
            "cache-control": "no-cache",
        }


class Completions:
    """The endpoint, as an ASGI application.

    Args:
        desk: what requests need from outside.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.bodies = Bodies()
        self.waiting = Waiting()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope, receive)
        try:
            asked = await self._understand(request)
        except ClientDisconnect:
            return
        except ApiError as error:
            self._desk.note_refused(scope, error)
            await refuse(scope, error)(scope, receive, send)
            return
        try:
            await self._answer(asked, scope, receive, send)
        except ApiError as error:
            await refuse(scope, error, asked.headers)(scope, receive, send)

    def stop(self) -> None:
        """End all that wait, because the server stops."""
        self.bodies.stop()
        text = "the server is stopping; the message is kept, its answer is not"
        for exchange in self.waiting.all():
            exchange.fail(refused_answer(503, text, "stopping"))

    async def _understand(self, request: Request) -> Asked:
        desk = self._desk
        check_access(request, desk.settings)
        asked = wire.decode_request(await self.bodies.read(request, desk.settings))
        known = desk.agents()
        if asked.model not in known:
            raise unknown_model(asked.model, known)
        received_at = desk.clock.wall()
        inbound = self._make_inbound(request, asked, received_at)
        return Asked(asked, inbound, int(received_at))

    def _make_inbound(
        self, request: Request, asked: wire.ChatRequest, received_at: float
    ) -> Inbound:
        conversation = wire.read_conversation(asked)
        new_id = self._desk.ids.new()
        user = check_name(asked.user or "", "user")
        header = request.headers.get(CONVERSATION_HEADER, "")
        chat = check_name(header, CONVERSATION_HEADER) or user
        key = check_name(request.headers.get(KEY_HEADER, ""), KEY_HEADER)
        return Inbound(
            id=new_id,
            correlation_id=new_id,
            platform="http",
            # Why a blank: neither name holds one, so no two pairs look the same.
            platform_id=f"{chat} {key}" if key else new_id,
            address=Address(self._desk.settings.name, chat or new_id),
            sender_id=user or chat or new_id,
            sender_name=user or "user",
            text=conversation.text,
            attachments=conversation.attachments,
            received_at=received_at,
            agent=asked.model,
            wants_drafts=bool(asked.stream),
            # A conversation that has a name keeps its own history.
            history=() if chat else conversation.history,
        )

    async def _answer(
        self, asked: Asked, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Hand the message in and answer; one that is known gets its own answer."""
        exchange = self._open(asked)
        with self.waiting.holding(asked.inbound.correlation_id, exchange):
            if await self._hand_in(asked.inbound):
                await self._serve(asked, exchange, scope, receive, send)
                return
        asked, known = await self._recall(asked)
        exchange = self._open(asked, hears_drafts=False)
        with self.waiting.holding(asked.inbound.correlation_id, exchange):
            # Read again: more may have been said before this request could listen.
            exchange.catch_up(await self._look_up(asked.inbound) or known)
            if exchange.failure is not None:
                # The key stands for that message, and its end: asking again is in vain.
                exchange.failure.may_repeat = False
                exchange.failure.retry_after = None
            await self._serve(asked, exchange, scope, receive, send)

    def _open(self, asked: Asked, *, hears_drafts: bool = True) -> Exchange:
        return Exchange(
            asked.inbound.correlation_id,
            asked.inbound.agent,
            is_live=bool(asked.request.stream),
            hears_drafts=hears_drafts,
        )

    async def _serve(
        self,
        asked: Asked,
        exchange: Exchange,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """Write the answer as it comes, until the deadline, or until nobody reads."""
        settings = self._desk.settings
        text = f"no whole answer within {settings.answer_timeout:g} s"
        too_late = refused_answer(504, text, "answer_timeout")
        loop = asyncio.get_running_loop()
        deadline = loop.call_later(settings.answer_timeout, exchange.fail, too_late)
        watch = asyncio.ensure_future(watch_client(receive, exchange))
        try:
            if asked.request.stream:
                await self._stream(asked, exchange, scope, send)
            else:
                response = await self._reply(asked, exchange)
                await response(scope, receive, send)
        finally:
            deadline.cancel()
            watch.cancel()

    async def _hand_in(self, inbound: Inbound) -> bool:
        try:
            return await self._desk.accept(inbound)
        except EXPECTED_ERRORS as error:
            raise translate(error) from error

    async def _recall(self, asked: Asked) -> tuple[Asked, Earlier]:
        """Go on with the message that first came under this key.

        Raises:
            ApiError: it was another message, or is not known any more.
        """
        inbound = asked.inbound
        known = await self._look_up(inbound)
        if known is None or question(known.inbound) != question(inbound):
            text = (
                f"{KEY_HEADER} was used before in this conversation, for another "
                "message; give each message a key of its own"
            )
            raise refused_answer(409, text, "duplicate")
        return msgspec.structs.replace(asked, inbound=known.inbound), known

    async def _look_up(self, inbound: Inbound) -> Earlier | None:
        try:
            return await self._desk.earlier(inbound.platform_id)
        except EXPECTED_ERRORS as error:
            raise translate(error) from error

    async def _reply(self, asked: Asked, exchange: Exchange) -> Response:
        while not exchange.is_over:
            await exchange.wait_news()
        if exchange.failure is not None:
            raise exchange.failure
        message = wire.AssistantMessage(exchange.text)
        body = wire.Completion(
            id=asked.completion_id,
            created=asked.created,
            model=asked.request.model,
            choices=(wire.Choice(message),),
            usage=wire.usage_of(asked.request, exchange.text, exchange.usage),
        )
        return Response(
            msgspec.json.encode(body),
            headers=asked.headers,
            media_type="application/json",
        )

    async def _stream(
        self, asked: Asked, exchange: Exchange, scope: Scope, send: Send
    ) -> None:
        heartbeat = self._desk.settings.heartbeat
        # Why: until the first words are here, a failure can still be a status.
        await exchange.wait_news(heartbeat)
        if exchange.failure is not None:
            raise exchange.failure
        stream = EventStream(asked, send)
        await stream.begin()
        while not exchange.is_over:
            await stream.say(exchange.take())
            if not await exchange.wait_news(heartbeat):
                await stream.write(wire.HEARTBEAT)
        await stream.say(exchange.take())
        if exchange.failure is None:
            await stream.finish(exchange.text, exchange.usage)
        else:
            log_refusal(scope, exchange.failure)
            await stream.fail(exchange.failure)


class EventStream:
    """The response to a streaming request, event by event.

    Args:
        asked: the request.
        send: writes to the client; waits while its buffers are full.
    """

    def __init__(self, asked: Asked, send: Send) -> None:
        self._asked = asked
        self._send = send
        options = asked.request.stream_options
        self._has_usage = options is not None and bool(options.include_usage)

    async def begin(self) -> None:
        """Write the headers and the chunk that says who speaks."""
        headers = self._asked.headers | {
            "content-type": "text/event-stream; charset=utf-8",
            "x-accel-buffering": "no",
        }
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": 200, "headers": raw})
        delta = wire.Delta(role="assistant", content="")
        await self._write_chunk((wire.ChunkChoice(delta),))

    async def say(self, text: str) -> None:
        """Write the next words, if there are any."""
        if text:
            await self._write_chunk((wire.ChunkChoice(wire.Delta(content=text)),))

    async def finish(self, answer: str, told: Tokens) -> None:
        """Write the end of a whole answer."""
        await self._write_chunk((wire.ChunkChoice(wire.Delta(), finish_reason="stop"),))
        if self._has_usage:
            usage = wire.usage_of(self._asked.request, answer, told)
            await self._write_chunk((), usage)
        await self.write(wire.STREAM_END, is_last=True)

    async def fail(self, error: ApiError) -> None:
        """Write an error in place of the rest; clients raise it."""
        await self.write(b"data: " + error_body(error) + b"\n\n", is_last=True)

    async def write(self, event: bytes, *, is_last: bool = False) -> None:
        """Write one event as it is."""
        await self._send(
            {"type": "http.response.body", "body": event, "more_body": not is_last}
        )

    async def _write_chunk(
        self, choices: tuple[wire.ChunkChoice, ...], usage: wire.Usage | None = None
    ) -> None:
        chunk = wire.Chunk(
            id=self._asked.completion_id,
            created=self._asked.created,
            model=self._asked.request.model,
            choices=choices,
            # Source: with include_usage every chunk has the field, null but once.
            usage=usage if self._has_usage else msgspec.UNSET,
        )
        await self.write(wire.encode_event(chunk))


async def watch_client(receive: Receive, exchange: Exchange) -> None:
    """Tell the exchange when its client closes the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
    exchange.hang_up()


def question(inbound: Inbound) -> tuple[object, ...]:
    """Give all of a message that its request determines.

    Why all: unnamed conversations have their keys in common, and one client must not
    be given another's answer. How the answer is to be shown (streamed or whole) is no
    part of it.
    """
    names: tuple[object, ...] = (
        inbound.address,
        inbound.sender_id,
        inbound.sender_name,
    )
    if inbound.address.chat == inbound.id:
        # Without a name, it and its sender are called after the message.
        names = (inbound.address.connector, "", inbound.sender_name)
    return (*names, inbound.agent, inbound.text, inbound.history)


def check_name(name: str, param: str) -> str:
    """Refuse names that cannot be keys.

    Raises:
        ApiError: 400; an empty name is fine and means none.
    """
    if name and not NAME.fullmatch(name):
        text = f"{param} must be 1 to 200 visible ASCII characters without blanks"
        raise ApiError(400, text, code="invalid_field", param=param)
    return name
