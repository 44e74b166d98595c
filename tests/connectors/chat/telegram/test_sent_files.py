"""Files that agents send on Telegram: each by the method that shows it, whole."""

from __future__ import annotations

import httpx
import pytest
from trio.testing import MockClock

from actors.errors import DeliveryBusyError, DeliveryRefusedError, DeliveryUnknownError
from tests.fakes.media import OGG, PNG
from tests.fakes.telegram.api import refusal
from tests.support.chat.telegram_bed import BotBed, delivery

MP3, MP4 = b"ID3" + bytes(9), b"\0\0\0\x18ftypisom"


@pytest.mark.parametrize(
    ("content", "kind", "field"),
    [
        (PNG, "image", "photo"),
        (PNG, "document", "document"),
        (b"GIF89a" + bytes(9), "image", "animation"),
        (b"%PDF-1.4", "document", "document"),
        (OGG, "voice", "voice"),
        (OGG, "audio", "document"),
        (MP3, "audio", "audio"),
        (MP4, "video", "video"),
    ],
)
async def test_each_kind_has_its_method(
    content: bytes, kind: str, field: str, autojump_clock: MockClock
) -> None:
    del autojump_clock
    bed = BotBed()
    chat = bed.server.private(1, "anna_bot")
    file = bed.blobs.sent(content, "größe 1.bin", kind=kind)
    async with bed.listening() as server:
        receipt = await bed.transport.deliver(delivery("a **b**", file=file))
    assert server.brought == [(field, "größe 1.bin", content)]
    (message,) = chat.by(bed.bot())
    assert (message["caption"], str(message["message_id"])) == ("a b", receipt[2])
    assert message["caption_entities"][0]["type"] == "bold"


async def test_a_file_without_words_in_a_topic_as_a_reply(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed("anna+", "ben+")
    chat = bed.server.group(-100123, "anna_bot", "ben_bot")
    chat.topics.add(5)
    file = bed.blobs.sent(PNG)
    where = type(delivery("").address)("telegram", "-100123", "5")
    async with bed.listening() as server:
        await bed.transport.deliver(delivery("", "cleo", address=where, file=file))
    (asked,) = server.asked_with("sendPhoto")
    assert (asked["message_thread_id"], asked["chat_id"]) == ("5", "-100123")
    assert asked["caption"] == "cleo:"
    assert "parse_mode" in asked


@pytest.mark.parametrize("name", ["tall.png", "PHOTO"])
async def test_a_picture_that_is_not_shown_goes_out_as_a_file(
    name: str, autojump_clock: MockClock
) -> None:
    del autojump_clock
    bed = BotBed()
    bed.server.private(1, "anna_bot")
    content = PNG if name == "tall.png" else b"\x89PNG\r\n\x1a\n" + bytes(10_000_000)
    bed.server.odd.add("tall.png")
    file = bed.blobs.sent(content, name, kind="image")
    async with bed.listening() as server:
        await bed.transport.deliver(delivery("", file=file))
    assert server.brought == [("document", name, content)]


async def test_words_that_cannot_be_read_go_out_plain(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed()
    bed.server.private(1, "anna_bot")
    fault = refusal(400, "Bad Request: can't parse entities: no")
    async with bed.listening() as server:
        server.faults.append(("sendPhoto", fault))
        file = bed.blobs.sent(PNG)
        await bed.transport.deliver(delivery("a **b**", file=file))
    assert [each["caption"] for each in server.asked_with("sendPhoto")] == ["a **b**"]
    assert len(server.brought) == 1


async def test_a_group_that_moved_gets_it_where_it_is_now(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed("anna+")
    old = bed.server.group(-77, "anna_bot", kind="group")
    where = type(delivery("").address)("telegram", "-77")
    async with bed.listening() as server:
        new = server.migrate(old, -100777)
        file = bed.blobs.sent(PNG)
        await bed.transport.deliver(delivery("", address=where, file=file))
        assert [m["chat"]["id"] for m in new.by(bed.bot()) if "photo" in m] == [-100777]


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (refusal(429, "Too Many", {"retry_after": 3}), DeliveryBusyError),
        (refusal(413, "Request Entity Too Large"), DeliveryRefusedError),
        (refusal(403, "Forbidden: bot was blocked"), DeliveryRefusedError),
        (refusal(502, "Bad Gateway"), DeliveryUnknownError),
        (httpx.ReadError("reset"), DeliveryUnknownError),
        (httpx.WriteTimeout("slow"), DeliveryUnknownError),
        (httpx.ConnectError("refused"), DeliveryBusyError),
        (None, DeliveryUnknownError),
    ],
)
async def test_what_fails_says_whether_it_may_stand_there(
    fault: httpx.Response | Exception | None,
    error: type[Exception],
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed()
    bed.server.private(1, "anna_bot")
    async with bed.listening() as server:
        server.faults.append(("sendPhoto", fault))
        with pytest.raises(error):
            await bed.transport.deliver(delivery("", file=bed.blobs.sent(PNG)))
        assert len(server.brought) == (fault is None)


async def test_no_token_stands_in_what_is_known_of_a_request(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed()
    bed.server.private(1, "anna_bot")
    async with bed.listening() as server:
        server.faults.append(("sendPhoto", httpx.ReadError("reset")))
        with pytest.raises(DeliveryUnknownError) as caught:
            await bed.transport.deliver(delivery("", file=bed.blobs.sent(PNG)))
    assert "AAAA" not in repr(caught.value.__cause__)


async def test_bytes_that_cannot_be_read_now_are_tried_again(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed()
    chat = bed.server.private(1, "anna_bot")
    said = delivery("", file=bed.blobs.sent(PNG))
    async with bed.listening():
        bed.blobs.is_ill = True
        with pytest.raises(DeliveryBusyError, match="cannot be read"):
            await bed.transport.deliver(said)
        bed.blobs.is_ill = False
        await bed.transport.deliver(said)
    assert len(chat.by(bed.bot())) == 1
