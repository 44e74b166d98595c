"""Proves what a client gets that asks again, and one whose message has no answer."""

from __future__ import annotations

from base64 import b64encode

import httpx
import msgspec
import pytest
import trio

from actors.errors import DeliveryRefusedError
from actors.messages.deliveries import Delivery, Trouble
from actors.messages.inbound import Inbound
from actors.transport import Earlier
from connectors.web.exchange import HttpExchange
from connectors.web.server import HttpSettings
from runtime.errors import StoreUnavailableError
from tests.connectors.web.openai.test_openai_api import (
    COMPLETIONS,
    Posting,
    body,
    content_of,
    error_of,
)
from tests.fakes.actors.neighbours import words
from tests.fakes.media import PNG
from tests.fakes.web.channel import Channel, open_channel

KEY = {"idempotency-key": "k"}
FIELDS = body(user="zoe")


def delivery(inbound: Inbound, text: str, trouble: Trouble = "") -> Delivery:
    return Delivery(
        id=f"{inbound.id}:0",
        correlation_id=inbound.correlation_id,
        address=inbound.address,
        agent="" if trouble else "anna",
        text=text,
        trouble=trouble,
    )


def named(said: Delivery, name: str) -> Delivery:
    """Give a delivery an id of its own, as apologies have."""
    return msgspec.structs.replace(said, id=f"{said.id}:{name}")


async def repeat(
    channel: Channel, fields: dict[str, object] = FIELDS, **headers: str
) -> httpx.Response:
    """Ask again under the key that was used before."""
    async with httpx.AsyncClient(base_url=channel.url, timeout=10) as client:
        return await client.post(COMPLETIONS, json=fields, headers=KEY | headers)


async def asked_before(
    channel: Channel, fields: dict[str, object] = FIELDS, **headers: str
) -> Inbound:
    """Have a first request with this key break off without an answer."""
    async with trio.open_nursery() as nursery:
        posting = Posting(channel, nursery)
        inbound = await posting.begin(fields, **KEY, **headers)
        nursery.cancel_scope.cancel()
    with trio.fail_after(5):
        while await channel.waiting():  # until the server has noticed, too
            await trio.lowlevel.checkpoint()
    return inbound


def knows(channel: Channel, inbound: Inbound, outcome: str, *said: Delivery) -> None:
    """Say what the store knows of a message."""
    key = (inbound.address.connector, inbound.platform_id)
    channel.ingress.answered[key] = Earlier(inbound, outcome, said)


class SickDisk(dict[tuple[str, str], Earlier]):
    """What became of messages, until the disk fails.

    Args:
        known: what can be read.
        reads: how often.
    """

    def __init__(self, known: dict[tuple[str, str], Earlier], reads: int) -> None:
        super().__init__(known)
        self.reads = reads

    def get(self, key: tuple[str, str]) -> Earlier | None:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        if not self.reads:
            raise StoreUnavailableError("unreadable, to order")
        self.reads -= 1
        return super().get(key)


async def test_who_asks_again_after_the_answer_gets_that_answer() -> None:
    async with open_channel() as channel:
        inbound = await asked_before(channel)
        knows(channel, inbound, "replied:ok", delivery(inbound, "42"))
        response = await repeat(channel)
    assert content_of(response) == "42"
    assert response.json()["id"] == f"chatcmpl-{inbound.id}"
    assert len(channel.ingress.accepted) == 1


async def test_who_asks_again_before_the_answer_waits_for_it() -> None:
    async with open_channel() as channel, trio.open_nursery() as nursery:
        inbound = await asked_before(channel)
        knows(channel, inbound, "")
        nursery.start_soon(speak_when_waited_for, channel, inbound)
        assert content_of(await repeat(channel)) == "at last"


async def speak_when_waited_for(
    channel: Channel, inbound: Inbound, draft: str = "", text: str = "at last"
) -> None:
    """Say something as soon as somebody waits for it."""
    with trio.fail_after(5):
        while True:
            try:
                if draft:
                    await channel.draft(inbound, draft)
                await channel.transport.deliver(delivery(inbound, text))
            except DeliveryRefusedError:
                await trio.lowlevel.checkpoint()
            else:
                return


async def test_two_who_ask_at_the_same_time_get_the_same_answer() -> None:
    async with open_channel() as channel, trio.open_nursery() as nursery:
        first = Posting(channel, nursery)
        inbound = await first.begin(FIELDS, **KEY)
        knows(channel, inbound, "", delivery(inbound, "both"))
        second = await repeat(channel)
        await channel.transport.deliver(delivery(inbound, "both"))
        assert content_of(await first.response()) == content_of(second) == "both"


async def test_one_key_for_two_messages_is_refused() -> None:
    async with open_channel() as channel:
        inbound = await asked_before(channel)
        knows(channel, inbound, "replied:ok", delivery(inbound, "42"))
        response = await repeat(channel, body("something else", user="zoe"))
    assert response.status_code == 409
    assert "for another message" in error_of(response)["message"]


BEFORE = [
    {"role": "user", "content": "my name is Zoe"},
    {"role": "assistant", "content": "hello Zoe"},
    {"role": "user", "content": "hello"},
]
PICTURE = f"data:image/png;base64,{b64encode(PNG).decode()}"
OTHERS: dict[str, dict[str, object]] = {
    "agent": {"model": "ben"},
    "history": {"messages": BEFORE},
    "words": {"messages": [{"role": "user", "content": "bye"}]},
    "picture": {
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "hello"},
                    {"type": "image_url", "image_url": {"url": PICTURE}},
                ],
            }
        ]
    },
}


@pytest.mark.parametrize("other", OTHERS)
async def test_nobody_gets_the_answer_to_another_s_question(other: str) -> None:
    async with open_channel() as channel:
        inbound = await asked_before(channel, body())
        knows(channel, inbound, "replied:ok", delivery(inbound, "secret"))
        again = await repeat(channel, body())
        response = await repeat(channel, body() | OTHERS[other])
    assert content_of(again) == "secret"
    assert response.status_code == 409
    assert error_of(response)["code"] == "duplicate"
    assert "secret" not in response.text


async def test_another_person_in_the_same_conversation_gets_no_answer_of_theirs() -> (
    None
):
    room = {"x-callboard-conversation": "room"}
    async with open_channel() as channel:
        inbound = await asked_before(channel, FIELDS, **room)
        knows(channel, inbound, "replied:ok", delivery(inbound, "secret"))
        again = await repeat(channel, FIELDS, **room)
        response = await repeat(channel, body(user="max"), **room)
    assert content_of(again) == "secret"
    assert response.status_code == 409


async def test_another_agent_in_the_same_conversation_is_another_question() -> None:
    async with open_channel() as channel:
        inbound = await asked_before(channel)
        knows(channel, inbound, "replied:ok", delivery(inbound, "anna's"))
        response = await repeat(channel, FIELDS | {"model": "ben"})
    assert response.status_code == 409


@pytest.mark.parametrize("reads", [0, 1])
async def test_a_disk_that_fails_is_asked_again_later(reads: int) -> None:
    async with open_channel() as channel:
        inbound = await asked_before(channel)
        knows(channel, inbound, "replied:ok", delivery(inbound, "42"))
        channel.ingress.answered = SickDisk(channel.ingress.answered, reads)
        response = await repeat(channel)
    assert response.status_code == 503
    assert error_of(response)["code"] == "unavailable"
    assert response.headers["retry-after"] == "5"


async def test_an_answer_after_an_apology_is_the_answer() -> None:
    async with open_channel() as channel:
        inbound = await asked_before(channel)
        sorry = named(delivery(inbound, "sorry", "broken"), "sorry")
        later = delivery(inbound, "it works now")
        knows(channel, inbound, "replied:ok", sorry, later)
        assert content_of(await repeat(channel)) == "it works now"


async def test_the_newest_of_several_apologies_counts() -> None:
    async with open_channel() as channel:
        inbound = await asked_before(channel)
        first = named(delivery(inbound, "sorry", "broken"), "first")
        second = named(delivery(inbound, "too slow", "timeout"), "second")
        knows(channel, inbound, "dead:timeout", first, second)
        response = await repeat(channel)
    assert response.status_code == 504
    assert error_of(response)["message"] == "too slow"


def test_who_asks_while_it_is_tried_again_by_hand_waits_for_the_answer() -> None:
    inbound = words(platform_id="zoe k")
    sorry = named(delivery(inbound, "sorry", "broken"), "sorry")
    exchange = HttpExchange(inbound.id, "anna", is_live=False)
    exchange.catch_up(Earlier(inbound, "", (sorry,)))
    assert not exchange.is_over
    assert exchange.deliver(delivery(inbound, "at last"))
    assert exchange.failure is None
    assert exchange.text == "at last"


async def test_a_message_that_was_dropped_before_is_still_dropped() -> None:
    async with open_channel() as channel:
        inbound = await asked_before(channel)
        knows(channel, inbound, "dropped:no_route")
        assert (await repeat(channel)).status_code == 422


@pytest.mark.parametrize(
    ("trouble", "status", "code", "may_repeat"),
    [
        ("busy", 429, "conversation_busy", True),
        ("unavailable", 503, "model_unavailable", True),
        ("refused", 502, "model_refused", False),
        ("budget", 429, "insufficient_quota", False),
        ("timeout", 504, "turn_timeout", False),
        ("broken", 500, "no_answer", False),
    ],
)
async def test_trouble_is_a_status(
    trouble: Trouble, status: int, code: str, *, may_repeat: bool
) -> None:
    async with open_channel() as channel, trio.open_nursery() as nursery:
        posting = Posting(channel, nursery)
        inbound = await posting.begin(body())
        await channel.transport.deliver(delivery(inbound, "because", trouble))
        response = await posting.response()
    assert (response.status_code, error_of(response)["code"]) == (status, code)
    assert error_of(response)["message"] == "because"
    assert ("retry-after" in response.headers) is may_repeat
    assert ("x-should-retry" in response.headers) is not may_repeat


async def test_who_waits_while_it_is_tried_again_goes_on_waiting() -> None:
    async with open_channel() as channel, trio.open_nursery() as nursery:
        posting = Posting(channel, nursery)
        inbound = await posting.begin(body())
        later = delivery(inbound, "I will try again in 2 minutes", "waiting")
        await channel.transport.deliver(later)
        await channel.say(inbound, "now it works")
        assert content_of(await posting.response()) == "now it works"


async def test_who_is_not_let_in_is_put_on_record() -> None:
    settings = HttpSettings(port=0, api_key="right-key-of-this-test")
    async with open_channel(settings) as channel:
        async with httpx.AsyncClient(base_url=channel.url) as client:
            for path in (COMPLETIONS, "/v1/models", "/v1/models/anna", "/metrics"):
                await client.request("POST" if path == COMPLETIONS else "GET", path)
        seen = channel.ingress.refused
    assert [each.reason for each in seen] == ["invalid_api_key"] * 4
    assert {each.sender_id for each in seen} == {"127.0.0.1"}


async def test_who_asks_again_in_mid_answer_reads_it_from_its_beginning() -> None:
    async with open_channel() as channel, trio.open_nursery() as nursery:
        inbound = await asked_before(channel)
        knows(channel, inbound, "")
        words = (" middle end", "beginning middle end")
        nursery.start_soon(speak_when_waited_for, channel, inbound, *words)
        response = await repeat(channel, FIELDS | {"stream": True})
    assert "beginning middle end" in response.text
    assert response.text.count("middle") == 1


async def test_what_could_not_be_answered_is_taken_up_again_under_its_key() -> None:
    async with open_channel() as channel, trio.open_nursery() as nursery:
        before = first = await asked_before(channel)
        posting = Posting(channel, nursery)
        for number in (2, 3):
            sorry = delivery(before, "no model", "unavailable")
            knows(channel, before, "replied:model", sorry)
            again = await posting.begin(FIELDS, **KEY)
            assert again.platform_id == f"{first.platform_id} {number}"
            assert again.text == first.text
            assert again.id not in {first.id, before.id}
            if number == 2:
                sorry = delivery(again, "still no model", "unavailable")
                await channel.transport.deliver(sorry)
                response = await posting.response()
                assert response.status_code == 503
                assert "retry-after" in response.headers
                posting = Posting(channel, nursery)
            before = again
        await channel.say(before, "now it works")
        assert content_of(await posting.response()) == "now it works"


async def test_what_will_never_be_answered_is_not_taken_up_again() -> None:
    async with open_channel() as channel:
        inbound = await asked_before(channel)
        refused = delivery(inbound, "it will not", "refused")
        knows(channel, inbound, "replied:refused", refused)
        response = await repeat(channel)
        assert len(channel.ingress.accepted) == 1
    assert (response.status_code, error_of(response)["message"]) == (502, "it will not")
    assert "retry-after" not in response.headers
    assert response.headers["x-should-retry"] == "false"


async def test_a_body_under_way_when_the_server_stops_is_refused() -> None:
    async with open_channel() as channel:
        stream = await trio.open_tcp_stream("127.0.0.1", channel.port)
        head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n"
        head += b"content-type: application/json\r\ncontent-length: 999\r\n\r\n{"
        await stream.send_all(head)
        with trio.fail_after(5):
            while not await channel.reading():
                await trio.lowlevel.checkpoint()
            channel.serving.cancel()
            said = b"".join([bytes(each) async for each in stream])
        await stream.aclose()
    assert said.startswith(b"HTTP/1.1 503 ")
    assert b'"code":"stopping"' in said
