"""What people write on WhatsApp comes in whole, once, and in its order."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import trio
import trio.testing
from trio.testing import MockClock

from actors.errors import MessageRefusedError, OverloadedError
from connectors.chat.whatsapp.inbound import MOST_WAITING, WORKERS
from tests.fakes.whatsapp.graph import refusal
from tests.support.chat.whatsapp_bed import ANNA, BEN, ROY, ZOE, WhatsAppBed, delivery

PICTURE: dict[str, Any] = {
    "type": "image",
    "image": {"id": "m1", "mime_type": "image/png"},
}


async def test_all_messages_of_one_call_are_kept_in_their_order() -> None:
    bed = WhatsAppBed("anna", "ben")
    async with bed.listening() as server:
        messages = [server.message(text) for text in ("one", "two", "three")]
        other = server.message("four", "491702")
        assert (await bed.call(server.webhook(ANNA, *messages, other))).status == 200
        assert (await bed.call(server.webhook(BEN, server.message("5")))).status == 200
    got = [(each.text, each.agent, each.address.chat) for each in bed.ingress.accepted]
    assert got == [
        ("one", "anna", f"{ANNA}:{ZOE}"),
        ("two", "anna", f"{ANNA}:{ZOE}"),
        ("three", "anna", f"{ANNA}:{ZOE}"),
        ("four", "anna", f"{ANNA}:491702"),
        ("5", "ben", f"{BEN}:{ZOE}"),
    ]


async def test_what_comes_after_one_that_is_not_stored_waits_with_it() -> None:
    bed = WhatsAppBed()
    async with bed.listening() as server:
        body = server.webhook(ANNA, server.message("one"), server.message("two"))
        bed.ingress.error = OverloadedError("full")
        assert (await bed.call(body)).status == 503
        bed.ingress.error = None
        assert (await bed.call(body)).status == 200
        assert (await bed.call(body)).status == 200
    assert [each.text for each in bed.ingress.accepted] == ["one", "two"]


async def test_the_user_id_comes_before_the_phone_number() -> None:
    bed = WhatsAppBed()
    async with bed.listening() as server:
        both = server.message("hi", ZOE, from_user_id=ROY)
        await bed.call(server.webhook(ANNA, both, name="Roy"))
        await bed.write("hi", ROY)
        beside = server.message("hi", ZOE)
        await bed.call(server.webhook(ANNA, beside, user_id=ROY))
        first, second, third = bed.ingress.accepted
        assert first.sender_id == second.sender_id == third.sender_id == ROY
        assert first.sender_name == "Roy"
        assert first.platform_fields["phone"] == ZOE
        assert "phone" not in second.platform_fields
        await bed.transport.deliver(delivery("yes", address=second.address))
        assert (server.said[0]["recipient"], server.said[0].get("to")) == (ROY, None)


async def test_a_reply_brings_what_it_replies_to() -> None:
    bed = WhatsAppBed()
    async with bed.listening():
        said = await bed.transport.deliver(delivery("It is four."))
        await bed.write("sure?", context={"from": "15550001", "id": said})
        await bed.write("and this?", context={"from": "15550001", "id": "wamid.old"})
        known, unknown = bed.ingress.accepted
    assert known.reply_to == said
    assert known.quoted is not None
    assert (known.quoted.text, known.quoted.agent) == ("It is four.", "anna")
    assert (unknown.reply_to, unknown.quoted) == ("wamid.old", None)


async def test_nobody_is_told_what_was_said_in_another_chat() -> None:
    bed = WhatsAppBed()
    async with bed.listening():
        said = await bed.transport.deliver(delivery("The code is 1234."))
        await bed.write("sure?", "491702", context={"from": "15550001", "id": said})
        (other,) = bed.ingress.accepted
    assert (other.reply_to, other.quoted) == (said, None)


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"type": "button", "button": {"text": "Yes", "payload": "y"}}, "Yes"),
        (
            {
                "type": "interactive",
                "interactive": {"type": "list_reply", "list_reply": {"title": "Two"}},
            },
            "Two",
        ),
        (
            {
                "type": "location",
                "location": {"latitude": 52.5, "longitude": 13.4, "name": "Berlin"},
            },
            "[location: Berlin, 52.5 13.4]",
        ),
        (
            {
                "type": "contacts",
                "contacts": [
                    {"name": {"formatted_name": "Sam"}, "phones": [{"phone": "+1"}]}
                ],
            },
            "[contact: Sam, +1]",
        ),
        (
            {"type": "unsupported"},
            "[a message of the kind 'unsupported', which cannot be read here]",
        ),
    ],
)
async def test_what_is_no_text_comes_as_words(more: dict[str, Any], text: str) -> None:
    bed = WhatsAppBed()
    async with bed.listening():
        assert (await bed.write("-", **more)).status == 200
    assert [each.text for each in bed.ingress.accepted] == [text]


async def test_signs_and_strange_things_are_counted_and_acknowledged() -> None:
    bed = WhatsAppBed()
    async with bed.listening() as server:
        sign = {"message_id": "wamid.1", "emoji": "👍"}
        strange: tuple[dict[str, Any], ...] = (
            {"id": ""},
            {"from": "nobody at all"},
            {"type": 7},
            {"id": "a b"},
        )
        messages = [server.message("x", **each) for each in strange]
        messages.append(server.message("x", type="reaction", reaction=sign))
        assert (await bed.call(server.webhook(ANNA, *messages))).status == 200
        foreign = server.webhook("9999", server.message("x"))
        assert (await bed.call(foreign)).status == 200
        assert bed.counted("events", outcome="malformed") == 4
        assert bed.counted("events", outcome="reaction") == 1
        unknown = bed.counted("events", outcome="foreign_number", account="(unknown)")
        assert unknown == 1
    assert bed.ingress.accepted == []


async def test_a_file_comes_with_its_caption() -> None:
    bed = WhatsAppBed()
    bed.server.put_media("m1", "image/png", b"\x89PNG")
    async with bed.listening():
        picture = {**PICTURE["image"], "caption": "look"}
        await bed.write("", type="image", image=picture)
        (inbound,) = bed.ingress.accepted
    (attachment,) = inbound.attachments
    assert (inbound.text, attachment.content) == ("look", b"\x89PNG")
    assert (attachment.kind, attachment.media_type) == ("image", "image/png")


async def test_no_file_is_fetched_for_a_stranger() -> None:
    bed = WhatsAppBed()
    bed.server.put_media("m1", "image/png", b"\x89PNG")
    bed.ingress.strangers.add(ZOE)
    async with bed.listening() as server:
        assert (await bed.write("", **PICTURE)).status == 200
        await server.wait(lambda: bool(bed.ingress.turned_away))
        assert not [each for each in server.asked if "m1" in each]
        assert server.read == []
    assert bed.ingress.turned_away[0].attachments == ()


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (refusal(400, 100, "no object", 33), "100/33"),
        (refusal(400, 131052, "expired"), "could not be fetched"),
        (httpx.Response(200, json={"file_size": 99_000_000, "url": "x"}), "larger"),
        (httpx.Response(200, json={"url": "http://evil.test/f"}), "not encrypted"),
        (httpx.Response(200, json={}), "no address"),
        (100.0, "not done after"),
    ],
)
async def test_a_file_that_cannot_be_had_is_told_of(
    fault: Any, why: str, autojump_clock: MockClock
) -> None:
    del autojump_clock
    bed = WhatsAppBed()
    bed.server.put_media("m1", "image/png", b"\x89PNG")
    async with bed.listening() as server:
        server.faults.append(("/m1", fault))
        assert (await bed.write("", **PICTURE)).status == 200
        (inbound,) = bed.ingress.accepted
    assert inbound.attachments == ()
    assert why in inbound.text
    assert inbound.text.startswith("[image without a name was not fetched")
    assert bed.counted("events", outcome="media_left_out") == 1


async def test_a_busy_file_server_is_asked_again(autojump_clock: MockClock) -> None:
    del autojump_clock
    bed = WhatsAppBed()
    bed.server.put_media("m1", "image/png", b"\x89PNG")
    async with bed.listening() as server:
        server.faults.append(("/m1", httpx.Response(429)))
        server.faults.append(("/m1", httpx.ConnectError("refused")))
        await bed.write("", **PICTURE)
        assert bed.ingress.accepted[0].attachments[0].content == b"\x89PNG"


async def test_people_see_that_their_words_were_read() -> None:
    for is_shown in (True, False):
        bed = WhatsAppBed(mark_read=is_shown)
        async with bed.listening() as server:
            await bed.write("hi")
            await trio.testing.wait_all_tasks_blocked()
            ids = [each["message_id"] for each in server.read]
        assert ids == ["wamid.in1"] * is_shown


async def test_of_small_requests_those_without_room_are_counted_and_no_others(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = WhatsAppBed()
    shared = bed.transport._shared
    (number,) = shared.numbers
    async with bed.listening() as server:
        shared.run_soon(number, "have a look", trio.lowlevel.checkpoint)
        await bed.write("hi")
        await trio.testing.wait_all_tasks_blocked()
        assert len(server.read) == 1
        assert bed.counted("events", outcome="errand_left_out") == 0
        for _ in range(MOST_WAITING + WORKERS + 5):
            shared.run_soon(number, "never end", trio.sleep_forever)
        assert bed.counted("events", outcome="errand_left_out") == 5
        await bed.write("hi again")
        assert bed.counted("events", outcome="errand_left_out") == 6


async def test_who_is_refused_is_told_why_and_not_asked_again() -> None:
    bed = WhatsAppBed()
    bed.ingress.error = MessageRefusedError("it is too long; shorten it")
    async with bed.listening() as server:
        assert (await bed.write("hi")).status == 200
        await server.wait(lambda: bool(server.texts()))
        assert "it is too long" in server.texts(ZOE)[0]
        assert server.said[0]["context"] == {"message_id": "wamid.in1"}
