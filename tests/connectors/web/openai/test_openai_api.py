"""The official client, unmodified, talks to agents through the HTTP channel."""

from __future__ import annotations

import asyncio  # noqa: TID251  the official client's side of the tests
from collections.abc import Callable
from typing import Any

import httpx
import openai
import pytest
import trio

from actors import errors
from actors.messages.inbound import Inbound
from connectors.web.openai.protocol import CLIENT_INSTRUCTIONS
from connectors.web.server import HttpSettings
from runtime.errors import StoreUnavailableError
from tests.fakes.web.channel import Channel, open_channel

COMPLETIONS = "/v1/chat/completions"


def body(text: str = "hello", **fields: object) -> dict[str, object]:
    """Make the body of a request to anna."""
    return {
        "model": "anna",
        "messages": [{"role": "user", "content": text}],
    } | fields


class Posting:
    """A request that runs while the test plays the agents."""

    def __init__(self, channel: Channel, nursery: trio.Nursery) -> None:
        self._channel = channel
        self._nursery = nursery
        self._done = trio.Event()
        self._responses: list[httpx.Response] = []

    async def begin(self, fields: dict[str, object], **headers: str) -> Inbound:
        """Send a request; gives the message that it became."""
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        self._nursery.start_soon(self._run, fields, names)
        return await self._channel.ingress.next()

    async def response(self) -> httpx.Response:
        """Wait for the whole response."""
        with trio.fail_after(5):
            await self._done.wait()
        return self._responses[0]

    async def _run(self, fields: dict[str, object], headers: dict[str, str]) -> None:
        async with httpx.AsyncClient(base_url=self._channel.url, timeout=10) as client:
            response = await client.post(COMPLETIONS, json=fields, headers=headers)
        self._responses.append(response)
        self._done.set()


def content_of(response: httpx.Response) -> str:
    """Give the answer inside a completion."""
    completion: dict[str, Any] = response.json()
    assert response.status_code == 200, completion
    assert completion["choices"][0]["finish_reason"] == "stop"
    text: str = completion["choices"][0]["message"]["content"]
    return text


def error_of(response: httpx.Response) -> dict[str, Any]:
    """Give the error inside a response, after checking its shape."""
    error: dict[str, Any] = response.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert "Traceback" not in response.text
    return error


async def with_client(channel: Channel, use: Callable[..., Any]) -> None:
    """Run `use` with the official asynchronous client, agents answering meanwhile."""

    async def run() -> None:
        async with openai.AsyncOpenAI(
            base_url=f"{channel.url}/v1", api_key="any", max_retries=0
        ) as client:
            await use(client)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(channel.answer_all)
        with trio.fail_after(20):
            await channel.bridge.call(run)
        nursery.cancel_scope.cancel()


async def test_the_official_client_gets_an_answer() -> None:
    async def use(client: openai.AsyncOpenAI) -> None:
        completion = await client.chat.completions.create(
            model="anna", messages=[{"role": "user", "content": "hello"}]
        )
        assert completion.choices[0].message.content == "you said: hello"
        assert completion.usage is not None
        assert completion.usage.total_tokens > 0

    async with open_channel() as channel:
        await with_client(channel, use)


async def test_the_official_client_streams_an_answer() -> None:
    async def use(client: openai.AsyncOpenAI) -> None:
        stream = await client.chat.completions.create(
            model="anna",
            messages=[{"role": "user", "content": "hello"}],
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
        deltas = [c.choices[0].delta.content or "" for c in chunks if c.choices]
        assert deltas == ["", "you said: ", "hello", ""]
        assert chunks[-2].choices[0].finish_reason == "stop"
        assert chunks[-1].usage is not None

    async with open_channel() as channel:
        await with_client(channel, use)


async def test_the_official_client_lists_agents_as_models() -> None:
    async def use(client: openai.AsyncOpenAI) -> None:
        assert [model.id async for model in client.models.list()] == ["anna", "ben"]
        assert (await client.models.retrieve("ben")).id == "ben"
        with pytest.raises(openai.NotFoundError, match="known: anna, ben") as caught:
            await client.models.retrieve("zoe")
        assert caught.value.code == "model_not_found"

    async with open_channel() as channel:
        await with_client(channel, use)


async def test_the_official_client_in_a_thread_gets_an_answer() -> None:
    def ask(url: str) -> str | None:
        with openai.OpenAI(base_url=f"{url}/v1", api_key="any") as client:
            completion = client.chat.completions.create(
                model="ben", messages=[{"role": "user", "content": "hello"}]
            )
        return completion.choices[0].message.content

    async with open_channel() as channel, trio.open_nursery() as nursery:
        nursery.start_soon(channel.answer_all)
        assert await trio.to_thread.run_sync(ask, channel.url) == "you said: hello"
        nursery.cancel_scope.cancel()


async def test_64_conversations_at_once_each_keep_their_order() -> None:
    async def converse(client: openai.AsyncOpenAI, chat: str) -> None:
        for number in range(3):
            text = f"{chat} {number}"
            stream = await client.chat.completions.create(
                model="anna",
                messages=[{"role": "user", "content": text}],
                user=chat,
                stream=True,
            )
            said = "".join([c.choices[0].delta.content or "" async for c in stream])
            assert said == f"you said: {text}"

    async def use(client: openai.AsyncOpenAI) -> None:
        await asyncio.gather(
            *(converse(client, f"chat-{number}") for number in range(64))
        )

    async with open_channel() as channel:
        await with_client(channel, use)
        for number in range(64):
            chat = f"chat-{number}"
            said = [i.text for i in channel.ingress.accepted if i.address.chat == chat]
            assert said == [f"{chat} 0", f"{chat} 1", f"{chat} 2"]


async def test_an_unknown_model_is_an_error_that_names_the_known_ones() -> None:
    async def use(client: openai.AsyncOpenAI) -> None:
        with pytest.raises(openai.NotFoundError, match="known: anna, ben") as caught:
            await client.chat.completions.create(
                model="gpt-9", messages=[{"role": "user", "content": "hello"}]
            )
        assert (caught.value.code, caught.value.param) == ("model_not_found", "model")

    async with open_channel() as channel:
        await with_client(channel, use)


async def test_a_request_without_a_name_brings_its_own_history() -> None:
    messages = [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "three"},
    ]
    async with open_channel() as channel, trio.open_nursery() as nursery:
        posting = Posting(channel, nursery)
        inbound = await posting.begin(body(messages=messages))
        await channel.say(inbound, "four")
        assert content_of(await posting.response()) == "four"
    assert inbound.text == "three"
    assert [line.text for line in inbound.history] == [
        f"{CLIENT_INSTRUCTIONS}be kind",
        "one",
        "two",
    ]
    assert (inbound.agent, inbound.platform) == ("anna", "http")
    assert inbound.is_direct
    assert inbound.address.connector == "http"
    assert inbound.platform_id == inbound.id == inbound.address.chat


async def test_a_named_conversation_sends_only_the_newest_words() -> None:
    messages = [
        {"role": "user", "content": "one"},
        {"role": "user", "content": "two"},
    ]
    async with open_channel() as channel, trio.open_nursery() as nursery:
        posting = Posting(channel, nursery)
        inbound = await posting.begin(
            body(messages=messages, user="zoe"),
            x_callboard_conversation="room-1",
            idempotency_key="k1",
        )
        await channel.say(inbound, "three")
        response = await posting.response()
    assert (inbound.text, inbound.history) == ("two", ())
    assert (inbound.address.chat, inbound.sender_id) == ("room-1", "zoe")
    assert inbound.platform_id == "room-1 k1"
    assert response.headers["x-callboard-conversation"] == "room-1"


async def test_the_same_idempotency_key_is_taken_once() -> None:
    async with (
        open_channel() as channel,
        httpx.AsyncClient(base_url=channel.url) as client,
        trio.open_nursery() as nursery,
    ):
        fields, key = body(user="zoe"), {"idempotency-key": "k"}
        nursery.start_soon(channel.answer_all)
        first = await client.post(COMPLETIONS, json=fields, headers=key)
        second = await client.post(COMPLETIONS, json=fields, headers=key)
        nursery.cancel_scope.cancel()
    assert (first.status_code, second.status_code) == (200, 409)
    assert error_of(second)["code"] == "duplicate"
    assert second.headers["x-should-retry"] == "false"
    assert len(channel.ingress.accepted) == 1


async def test_a_delegates_answer_is_appended_under_its_name() -> None:
    async with open_channel() as channel, trio.open_nursery() as nursery:
        posting = Posting(channel, nursery)
        inbound = await posting.begin(body())
        await channel.say(inbound, "Ben knows.", left=1)
        await channel.say(inbound, "It is 42.", "ben")
        text = content_of(await posting.response())
    assert text == "Ben knows.\n\n**ben:** It is 42."


async def test_two_agents_streaming_at_once_come_out_one_after_the_other() -> None:
    async with open_channel() as channel, trio.open_nursery() as nursery:
        posting = Posting(channel, nursery)
        inbound = await posting.begin(body(stream=True))
        await channel.draft(inbound, "It ", "ben")
        await channel.draft(inbound, "Ben ")
        await channel.draft(inbound, "is ", "ben")
        await channel.say(inbound, "Ben knows.", left=1)
        await channel.say(inbound, "It is 42.", "ben")
        response = await posting.response()
    assert streamed(response) == "Ben knows.\n\n**ben:** It is 42."


def streamed(response: httpx.Response) -> str:
    """Give the text of a whole stream."""
    events = [e.removeprefix("data: ") for e in response.text.split("\n\n") if e]
    assert events.pop() == "[DONE]"
    chunks = [httpx.Response(200, text=event).json() for event in events]
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    return "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)


@pytest.mark.parametrize("is_streaming", [False, True])
@pytest.mark.parametrize(
    ("reason", "status", "code"),
    [("dropped:loop", 422, "dropped"), ("dead", 500, "no_answer")],
)
async def test_a_message_without_an_answer_is_an_error_that_is_not_to_be_repeated(
    reason: str, status: int, code: str, *, is_streaming: bool
) -> None:
    async with open_channel() as channel, trio.open_nursery() as nursery:
        posting = Posting(channel, nursery)
        inbound = await posting.begin(body(stream=is_streaming))
        await channel.transport.settle(inbound, reason)
        response = await posting.response()
    assert response.status_code == status
    assert error_of(response)["code"] == code
    assert response.headers["x-should-retry"] == "false"


async def test_a_cancelled_answer_gives_what_was_written() -> None:
    async with open_channel() as channel, trio.open_nursery() as nursery:
        for is_streaming in (False, True):
            posting = Posting(channel, nursery)
            inbound = await posting.begin(body(stream=is_streaming))
            await channel.draft(inbound, "half an ")
            await channel.transport.settle(inbound, "cancelled")
            response = await posting.response()
            text = streamed(response) if is_streaming else content_of(response)
            assert text == "half an "


async def test_a_stream_that_fails_half_way_raises_in_the_official_client() -> None:
    async def ask() -> None:
        async with openai.AsyncOpenAI(
            base_url=f"{channel.url}/v1", api_key="any"
        ) as client:
            stream = await client.chat.completions.create(
                model="anna", messages=[{"role": "user", "content": "x"}], stream=True
            )
            with pytest.raises(openai.APIError, match="could not answer"):
                _ = [chunk async for chunk in stream]

    async with open_channel() as channel, trio.open_nursery() as nursery:
        nursery.start_soon(channel.bridge.call, ask)
        inbound = await channel.ingress.next()
        await channel.draft(inbound, "half an ")
        await channel.transport.settle(inbound, "dead")


@pytest.mark.parametrize(
    ("error", "status", "code", "retry"),
    [
        (errors.OverloadedError("full"), 429, "overloaded", "1"),
        (errors.UnconfirmedError("not confirmed"), 503, "unavailable", "1"),
        (errors.MessageRefusedError("too long"), 400, "message_refused", None),
        (StoreUnavailableError("disk full"), 503, "unavailable", "5"),
        (errors.UnknownAgentError("anna", ("ben",)), 404, "model_not_found", None),
    ],
)
async def test_a_message_that_is_not_taken_says_when_to_try_again(
    error: Exception, status: int, code: str, retry: str | None
) -> None:
    async with open_channel() as channel, httpx.AsyncClient() as client:
        channel.ingress.error = error
        response = await client.post(channel.url + COMPLETIONS, json=body())
    assert response.status_code == status
    assert error_of(response)["code"] == code
    assert response.headers.get("retry-after") == retry


async def test_a_client_that_goes_away_leaves_nothing_behind() -> None:
    async with open_channel() as channel:
        async with trio.open_nursery() as nursery:
            posting = Posting(channel, nursery)
            inbound = await posting.begin(body(stream=True))
            await channel.draft(inbound, "hal")
            nursery.cancel_scope.cancel()
        with trio.fail_after(5):
            while await channel.waiting():
                await trio.lowlevel.checkpoint()
        with pytest.raises(errors.DeliveryRefusedError, match="the client has gone"):
            await channel.say(inbound, "half")


async def test_an_answer_that_does_not_come_in_time_is_an_error() -> None:
    settings = HttpSettings(port=0, answer_timeout=0.05)
    async with open_channel(settings) as channel, httpx.AsyncClient() as client:
        response = await client.post(channel.url + COMPLETIONS, json=body())
    assert response.status_code == 504
    assert error_of(response)["code"] == "answer_timeout"


async def test_a_silent_stream_is_kept_open_by_comments() -> None:
    async with (
        open_channel(HttpSettings(port=0, heartbeat=0.01)) as channel,
        httpx.AsyncClient() as client,
        client.stream(
            "POST", channel.url + COMPLETIONS, json=body(stream=True)
        ) as response,
    ):
        lines = response.aiter_lines()
        with trio.fail_after(5):
            while await anext(lines) != ": still here":
                pass
            await channel.say(await channel.ingress.next(), "at last")
            rest = [line async for line in lines]
    assert rest[-2] == "data: [DONE]"


async def test_requests_that_wait_for_what_can_never_be_stored_are_ended() -> None:
    async with open_channel() as channel, trio.open_nursery() as nursery:
        posting = Posting(channel, nursery)
        await posting.begin(body())
        channel.transport.give_up("the database is damaged")
        response = await posting.response()
        assert response.status_code == 503
        assert error_of(response)["code"] == "unavailable"
        assert "the database is damaged" in error_of(response)["message"]


async def test_a_stopping_server_ends_the_requests_that_wait() -> None:
    async with open_channel() as channel, trio.open_nursery() as nursery:
        posting = Posting(channel, nursery)
        inbound = await posting.begin(body())
        channel.serving.cancel()
        response = await posting.response()
        assert response.status_code == 503
        assert error_of(response)["code"] == "stopping"
        with pytest.raises(errors.DeliveryRefusedError):
            await channel.say(inbound, "too late")


async def test_clients_are_told_apart_by_address_and_proxies_believed() -> None:
    callers: list[str] = []
    for trusted in ((), ("127.0.0.1",)):
        settings = HttpSettings(port=0, trusted_proxies=trusted)
        async with open_channel(settings) as channel:
            for client in ("203.0.113.7", "2001:db8::1", "2001:db8::2"):
                async with trio.open_nursery() as nursery:
                    posting = Posting(channel, nursery)
                    headers = {"x-forwarded-for": client}
                    inbound = await posting.begin(body(), **headers)
                    callers.append(inbound.caller)
                    nursery.cancel_scope.cancel()
    one, also_one, and_one, first, second, third = callers
    assert one == also_one == and_one, "anybody may write such a header"
    assert second == third, "of one network"
    assert len({one, first, second}) == 3
    assert not any("203" in caller for caller in callers)
