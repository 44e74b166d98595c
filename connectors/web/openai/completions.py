"""`POST /v1/chat/completions`: one request, from its body to its answer.

Runs on the edge's loop. Each request that waits is one `HttpExchange`, which ends with
the request. The message itself is durable: when the client closes the connection, the
agents go on, and only the answer is lost.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from actors.messages.inbound import Address, Inbound, Usage as Tokens
from actors.transport import Earlier
from connectors.chat.server_transport import caller_at
from connectors.web.exchange import (
    HttpExchange,
    OpenExchanges,
    unanswered,
    watch_client,
)
from connectors.web.openai import protocol as wire
from connectors.web.peers import PassedRequest, Peers, RequestPasser, is_passed_on
from connectors.web.request import (
    RequestContext,
    check_access,
    client_host,
    read_traceparent,
)
from connectors.web.server import (
    MISDIRECTED,
    ApiError,
    error_body,
    log_refusal,
    refuse,
    unknown_model,
)
from runtime.ids import IdSource

CONVERSATION_HEADER = "x-callboard-conversation"
KEY_HEADER = "idempotency-key"

NAME = re.compile(r"[\x21-\x7e]{1,200}")
"""Allowed names of conversations and keys: they become keys of the store."""


@dataclass(kw_only=True)
class CompletionContext(RequestContext):
    """What a request for a completion needs of the server, beside the usual."""

    agents: Callable[[], tuple[str, ...]]
    ids: IdSource
    accept: Callable[[Inbound], Awaitable[bool]]
    """Takes a message in; returns when it is stored. On the kernel's side."""

    earlier: Callable[[str], Awaitable[Earlier | None]]
    """Gives what became of a message, by its platform id. On the kernel's side."""

    peers: Peers | None = None
    """The other nodes of the company; None: there are none."""


# Chosen: clients give up far earlier; each repetition looks the ones before it up.
MOST_IDS = 1000
"""Ids that are tried; by far enough as long as this node works on any chats."""

MOST_UNDER_ONE_KEY = 20
"""How often one message is taken up under one `Idempotency-Key`."""


class CompletionCall(msgspec.Struct, frozen=True):
    """One valid request."""

    request: wire.ChatRequest
    inbound: Inbound
    created: int
    """Unix seconds."""

    body: bytes
    """The request's, as it came."""

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


class CompletionsEndpoint:
    """The endpoint, as an ASGI application."""

    def __init__(self, context: CompletionContext) -> None:
        self.context = context
        self.waiting = OpenExchanges()
        self.passer = None if context.peers is None else RequestPasser(context.peers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope, receive)
        try:
            asked = await self._understand(request)
        except ClientDisconnect:
            return
        except ApiError as error:
            self.context.record(scope, error)
            await refuse(scope, error)(scope, receive, send)
            return
        try:
            if self.passer is None:
                await self._answer(asked, scope, receive, send)
                return
            while await self._is_misdirected(asked, scope, receive, send):
                pass  # its chat is moving just now
        except ApiError as error:
            await refuse(scope, error, asked.headers)(scope, receive, send)

    async def _is_misdirected(
        self, asked: CompletionCall, scope: Scope, receive: Receive, send: Send
    ) -> bool:
        """Answer, or have the node answer that works on the chat.

        Returns:
            True: it was this node, but no longer is; ask again.
        """
        if await self._is_passed_on(asked, scope, receive, send):
            return False
        try:
            await self._answer(asked, scope, receive, send)
        except ApiError as error:
            if error.status != MISDIRECTED or is_passed_on(scope):
                raise
            return True
        return False

    async def _is_passed_on(
        self, asked: CompletionCall, scope: Scope, receive: Receive, send: Send
    ) -> bool:
        """Have another node answer, if that one works on the chat."""
        if self.passer is None:
            return False
        address = asked.inbound.address
        names = {name for name, _ in scope["headers"]}
        # So that it is taken once, however often it is sent.
        key = (KEY_HEADER.encode(), f"node-{asked.inbound.id}".encode())
        further = () if key[0] in names else (key,)
        request = PassedRequest(
            scope, asked.body, address.connector, further, has_host=False
        )
        return await self.passer.pass_on(request, address.chat, receive, send)

    def stop(self) -> None:
        """End all requests that wait, because the server stops."""
        self.context.bodies.stop()
        if self.passer is not None:
            self.passer.stop()
        self.give_up("the server is stopping; the message is kept, its answer is not")

    def give_up(self, text: str, code: str = "stopping") -> None:
        """End all requests that wait for an answer with 503."""
        for exchange in self.waiting.all():
            exchange.fail(unanswered(503, text, code))

    async def _understand(self, request: Request) -> CompletionCall:
        context = self.context
        check_access(request, context.settings)
        body = await context.bodies.read(request, context.settings)
        asked, known = wire.decode_request(body), context.agents()
        if asked.model not in known:
            raise unknown_model(asked.model, known)
        received_at = context.clock.wall()
        inbound = self._make_inbound(request, asked, received_at)
        return CompletionCall(asked, inbound, int(received_at), body)

    def _make_inbound(
        self, request: Request, asked: wire.ChatRequest, received_at: float
    ) -> Inbound:
        conversation = wire.read_conversation(asked)
        user = check_name(asked.user or "", "user")
        header = request.headers.get(CONVERSATION_HEADER, "")
        chat = check_name(header, CONVERSATION_HEADER) or user
        new_id = self.context.ids.new()
        if self.passer is not None and not chat:
            new_id = self._id_of_ours(new_id)
        key = check_name(request.headers.get(KEY_HEADER, ""), KEY_HEADER)
        return Inbound(
            id=new_id,
            correlation_id=new_id,
            platform="http",
            # Why a blank: no name has one, so that different pairs give different ids.
            platform_id=f"{chat} {key}" if key else new_id,
            address=Address(self.context.settings.name, chat or new_id),
            sender_id=user or chat or new_id,
            sender_name=user or "user",
            # Why not the key: all clients of this connector have the same.
            caller=caller_at(client_host(request.scope)),
            text=conversation.text,
            attachments=conversation.attachments,
            received_at=received_at,
            agent=asked.model,
            wants_drafts=bool(asked.stream),
            traceparent=read_traceparent(request.headers.get("traceparent", "")),
            # A conversation with a name has its history in the store.
            history=() if chat else conversation.history,
        )

    def _id_of_ours(self, new_id: str) -> str:
        """Choose an id that, as the name of a chat, this node works on."""
        name, peers = self.context.settings.name, self.context.peers
        for _ in range(MOST_IDS):
            if peers is None or peers.where(name, new_id).is_here:
                break
            new_id = self.context.ids.new()
        return new_id

    async def _answer(
        self, asked: CompletionCall, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Hand the message in and answer; a repeated one gets the answers it had.

        One that ended in a failure that may pass is taken up again under its key.
        """
        for number in range(1, MOST_UNDER_ONE_KEY + 1):
            taken = asked if number == 1 else self._again(asked, number)
            exchange = self._open(taken)
            with self.waiting.holding(taken.inbound.correlation_id, exchange):
                if await self.context.ask(self.context.accept, taken.inbound):
                    await self._serve(taken, exchange, scope, receive, send)
                    return
            before, known = await self._recall(taken)
            if self.passer and await self._is_passed_on(before, scope, receive, send):
                return
            exchange = self._open(before, hears_drafts=False)
            with self.waiting.holding(before.inbound.correlation_id, exchange):
                # Read again: more may have been said before this one could listen.
                exchange.catch_up(await self._look_up(before.inbound) or known)
                failure = exchange.failure
                is_last = number == MOST_UNDER_ONE_KEY
                if failure is not None and failure.may_repeat and not is_last:
                    continue
                if failure is not None:
                    # The same key gives the same failure: a retry cannot help.
                    failure.may_repeat, failure.retry_after = False, None
                await self._serve(before, exchange, scope, receive, send)
                return

    def _again(self, asked: CompletionCall, number: int) -> CompletionCall:
        """Make the same message once more, under the same key."""
        new_id, inbound = self.context.ids.new(), asked.inbound
        again = msgspec.structs.replace(
            inbound,
            id=new_id,
            correlation_id=new_id,
            # No key has a blank, so no other message has this id.
            platform_id=f"{inbound.platform_id} {number}",
        )
        return msgspec.structs.replace(asked, inbound=again)

    def _open(
        self, asked: CompletionCall, *, hears_drafts: bool = True
    ) -> HttpExchange:
        return HttpExchange(
            asked.inbound.correlation_id,
            asked.inbound.agent,
            is_live=bool(asked.request.stream),
            hears_drafts=hears_drafts,
        )

    async def _serve(
        self,
        asked: CompletionCall,
        exchange: HttpExchange,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """Write the answer until it is whole, too late, or the client has gone."""
        settings = self.context.settings
        text = f"no whole answer within {settings.answer_timeout:g} s"
        too_late = unanswered(504, text, "answer_timeout")
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

    async def _recall(self, asked: CompletionCall) -> tuple[CompletionCall, Earlier]:
        """Go on with the message that first used this key."""
        inbound = asked.inbound
        known = await self._look_up(inbound)
        if known is None or question_of(known.inbound) != question_of(inbound):
            text = (
                f"{KEY_HEADER} was used before in this conversation, for another "
                "message; give each message a key of its own"
            )
            raise unanswered(409, text, "duplicate")
        return msgspec.structs.replace(asked, inbound=known.inbound), known

    async def _look_up(self, inbound: Inbound) -> Earlier | None:
        return await self.context.ask(self.context.earlier, inbound.platform_id)

    async def _reply(self, asked: CompletionCall, exchange: HttpExchange) -> Response:
        while not exchange.is_over:
            await exchange.wait_news()
        if exchange.failure is not None:
            raise exchange.failure
        message = wire.AssistantMessage(exchange.text)
        body = wire.Completion(
            id=asked.completion_id,
            created=asked.created,
            model=asked.request.model,
            choices=(wire.CompletionChoice(message),),
            usage=wire.usage_of(asked.request, exchange.text, exchange.usage),
        )
        return Response(
            msgspec.json.encode(body),
            headers=asked.headers,
            media_type="application/json",
        )

    async def _stream(
        self, asked: CompletionCall, exchange: HttpExchange, scope: Scope, send: Send
    ) -> None:
        heartbeat = self.context.settings.heartbeat
        # Why: a failure before the first words can still be an HTTP status.
        await exchange.wait_news(heartbeat)
        if exchange.failure is not None:
            raise exchange.failure
        stream = CompletionStream(asked, send)
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


class CompletionStream:
    """The response to a streaming request, event by event.

    Args:
        send: writes to the client; waits while its buffers are full.
    """

    def __init__(self, asked: CompletionCall, send: Send) -> None:
        self._asked = asked
        self._send = send
        options = asked.request.stream_options
        self._has_usage = options is not None and bool(options.include_usage)

    async def begin(self) -> None:
        """Write the headers and the first chunk, which has the role."""
        headers = self._asked.headers | {
            "content-type": "text/event-stream; charset=utf-8",
            "x-accel-buffering": "no",
        }
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": 200, "headers": raw})
        delta = wire.ChunkDelta(role="assistant", content="")
        await self._write_chunk((wire.ChunkChoice(delta),))

    async def say(self, text: str) -> None:
        """Write the next words; nothing if there are none."""
        if text:
            await self._write_chunk((wire.ChunkChoice(wire.ChunkDelta(content=text)),))

    async def finish(self, answer: str, told: Tokens) -> None:
        """Write the end of a whole answer."""
        await self._write_chunk(
            (wire.ChunkChoice(wire.ChunkDelta(), finish_reason="stop"),)
        )
        if self._has_usage:
            usage = wire.usage_of(self._asked.request, answer, told)
            await self._write_chunk((), usage)
        await self.write(wire.STREAM_END, is_last=True)

    async def fail(self, error: ApiError) -> None:
        """Write an error in place of the rest; client libraries raise it."""
        await self.write(b"data: " + error_body(error) + b"\n\n", is_last=True)

    async def write(self, event: bytes, *, is_last: bool = False) -> None:
        """Write one event as it is."""
        await self._send(
            {"type": "http.response.body", "body": event, "more_body": not is_last}
        )

    async def _write_chunk(
        self,
        choices: tuple[wire.ChunkChoice, ...],
        usage: wire.CompletionUsage | None = None,
    ) -> None:
        chunk = wire.CompletionChunk(
            id=self._asked.completion_id,
            created=self._asked.created,
            model=self._asked.request.model,
            choices=choices,
            # Source: with include_usage every chunk has the field, null but once.
            usage=usage if self._has_usage else msgspec.UNSET,
        )
        await self.write(wire.encode_event(chunk))


def question_of(inbound: Inbound) -> tuple[object, ...]:
    """Give everything in a message that its client chose.

    Why: unnamed conversations share one space of keys, and a client must not get the
    answer to another's message. Whether the answer is streamed does not count.
    """
    names: tuple[object, ...] = (
        inbound.address,
        inbound.sender_id,
        inbound.sender_name,
    )
    if inbound.address.chat == inbound.id:
        # Without a name, conversation and sender have the id of the message.
        names = (inbound.address.connector, "", inbound.sender_name)
    what = inbound.text, inbound.attachments, inbound.history
    return (*names, inbound.agent, *what)


def check_name(name: str, param: str) -> str:
    """Check the name of a conversation, a user or a key.

    Raises:
        ApiError: 400; an empty name is fine and means none.
    """
    if name and not NAME.fullmatch(name):
        text = f"{param} must be 1 to 200 visible ASCII characters without blanks"
        raise ApiError(400, text, code="invalid_field", param=param)
    return name
