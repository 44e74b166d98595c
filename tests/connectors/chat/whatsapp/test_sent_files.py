"""Files that agents send on WhatsApp: whole, once, as WhatsApp shows them."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import trio
from trio.testing import MockClock

from actors.errors import DeliveryBusyError, DeliveryRefusedError, DeliveryUnknownError
from actors.messages.inbound import Address
from tests.fakes.media import OGG, PNG
from tests.fakes.whatsapp.graph import refusal
from tests.support.chat.whatsapp_bed import ANNA, BEN, ZOE, WhatsAppBed, delivery

MP3, MP4 = b"ID3" + bytes(9), b"\0\0\0\x18ftypisom"
JPEG, WEBP = b"\xff\xd8\xff\xe0\r\n--\r\n", b"RIFF\0\0\0\0WEBPVP8 "
LARGE_PNG, LARGE_MP4 = PNG + bytes(5_000_000), MP4 + bytes(16_000_000)
DAY = 86_400.0


@pytest.mark.parametrize(
    ("content", "kind", "shown"),
    [
        (PNG, "image", "image"),
        (JPEG, "image", "image"),
        (PNG, "document", "document"),
        (WEBP, "image", "document"),
        (LARGE_PNG, "image", "document"),
        (b"%PDF-1.4", "document", "document"),
        (b"a,b\n1,2\n", "document", "document"),
        (MP4, "video", "video"),
        (LARGE_MP4, "video", "document"),
        (MP3, "audio", "document"),
    ],
)
async def test_each_kind_is_shown_with_its_words(
    content: bytes, kind: str, shown: str
) -> None:
    bed = WhatsAppBed()
    file = bed.blobs.sent(content, "größe 1.bin", kind=kind)
    async with bed.listening() as server:
        receipt = await bed.transport.deliver(delivery("a **b**", file=file))
    ((way, name, got),) = server.shown(ZOE)
    assert (way, got) == (shown, content)
    assert name == ("größe 1.bin" if shown == "document" else "")
    (sent,) = server.said
    assert sent["id"] == receipt
    assert sent[shown]["caption"] == "a *b*"
    assert sent["biz_opaque_callback_data"] == "anna/a **b**"


@pytest.mark.parametrize(("content", "kind"), [(MP3, "audio"), (OGG, "voice")])
async def test_sound_is_played_and_who_brings_anothers_says_whose(
    content: bytes, kind: str
) -> None:
    bed = WhatsAppBed()
    file = bed.blobs.sent(content, "a.bin", kind=kind)
    async with bed.listening() as server:
        await bed.transport.deliver(delivery("", file=file))
        await bed.transport.deliver(delivery("", "ben", file=file))
    assert server.shown() == [("audio", "", content), ("document", "a.bin", content)]
    assert server.texts() == ["", "ben:"]
    assert len(server.uploads) == 1


async def test_tables_of_office_programs_come_under_their_own_type() -> None:
    bed = WhatsAppBed()
    file = bed.blobs.sent(b"PK\x03\x04" + bytes(30), "Sales.XLSX")
    async with bed.listening() as server:
        await bed.transport.deliver(delivery("", file=file))
    (brought,) = server.uploads.values()
    assert brought.kind.endswith("officedocument.spreadsheetml.sheet")
    assert server.shown() == [("document", "Sales.XLSX", file_content(bed, file))]


def file_content(bed: WhatsAppBed, file: Any) -> bytes:
    return bed.blobs.find(file).read_bytes()


async def test_each_number_brings_its_own() -> None:
    bed = WhatsAppBed("anna", "ben")
    to_ben = Address("whatsapp", f"{BEN}:{ZOE}")
    file = bed.blobs.sent(PNG)
    async with bed.listening() as server:
        for where in (delivery("1").address, to_ben, to_ben):
            said = delivery("", file=file, id=f"{len(server.said)}", address=where)
            await bed.transport.deliver(said)
    assert [each.number for each in server.uploads.values()] == [ANNA, BEN]
    assert len(server.shown()) == 3


async def test_what_it_stands_below_may_be_gone() -> None:
    bed = WhatsAppBed()
    async with bed.listening() as server:
        await bed.write("one")
        await bed.write("two")
        server.gone.add("wamid.in1")
        file = bed.blobs.sent(PNG)
        said = delivery("look", file=file, reply_to="wamid.in1")
        await bed.transport.deliver(said)
    assert [each.get("context") for each in server.said] == [None]
    assert (server.shown(), len(server.uploads)) == ([("image", "", PNG)], 1)


@pytest.mark.parametrize("content", [b"GIF89a" + bytes(9), b"fLaC" + bytes(9)])
async def test_a_type_that_is_not_taken_is_named(content: bytes) -> None:
    bed = WhatsAppBed()
    file = bed.blobs.sent(content)
    async with bed.listening() as server:
        with pytest.raises(DeliveryRefusedError, match=f"type {file.media_type}$"):
            await bed.transport.deliver(delivery("", file=file))
    assert server.said == []


@pytest.mark.parametrize(
    ("fault", "error", "wait"),
    [
        (refusal(401, 190, "expired", 463), DeliveryBusyError, 60),
        (refusal(429, 130429), DeliveryBusyError, 1),
        (refusal(400, 100, "odd"), DeliveryRefusedError, None),
        (httpx.Response(413, text="<html>"), DeliveryRefusedError, None),
        (httpx.Response(502), DeliveryBusyError, None),
        (httpx.Response(200), DeliveryBusyError, None),
        (httpx.Response(200, json={}), DeliveryBusyError, None),
        (httpx.ReadError("reset"), DeliveryBusyError, None),
        (httpx.ConnectError("refused"), DeliveryBusyError, None),
        (100.0, DeliveryBusyError, None),
    ],
)
async def test_a_file_that_did_not_arrive_is_brought_again(
    fault: Any, error: type[Exception], wait: float | None, autojump_clock: MockClock
) -> None:
    del autojump_clock
    bed = WhatsAppBed()
    said = delivery("look", file=bed.blobs.sent(PNG))
    async with bed.listening() as server:
        server.faults.append(("/media", fault))
        with pytest.raises(error) as caught:
            await bed.transport.deliver(said)
        assert "EAA-token" not in str(caught.value)
        assert "takes no files" not in str(caught.value)
        assert getattr(caught.value, "retry_after", None) == wait
        assert server.said == []
        await bed.transport.deliver(said)
        assert server.shown() == [("image", "", PNG)]


@pytest.mark.parametrize(
    ("fault", "wait"), [(refusal(400, 131056), 6), (refusal(429, 131056), 6)]
)
async def test_who_writes_too_often_says_it_later_and_brings_it_once(
    fault: httpx.Response, wait: float
) -> None:
    bed = WhatsAppBed()
    said = delivery("look", file=bed.blobs.sent(PNG))
    async with bed.listening() as server:
        server.faults.append(("/messages", fault))
        with pytest.raises(DeliveryBusyError) as caught:
            await bed.transport.deliver(said)
        assert caught.value.retry_after == wait
        first = await bed.transport.deliver(said)
        assert await bed.transport.deliver(said) == first
    assert (len(server.uploads), len(server.said)) == (1, 1)


@pytest.mark.parametrize("fault", [httpx.ReadError("reset"), httpx.Response(502)])
async def test_a_message_whose_answer_got_lost_is_found_or_in_doubt(
    fault: Any, autojump_clock: MockClock
) -> None:
    del autojump_clock
    bed = WhatsAppBed()
    said = delivery("look", file=bed.blobs.sent(PNG))
    async with bed.listening() as server, trio.open_nursery() as nursery:
        server.faults.append(("/messages", fault))
        with pytest.raises(DeliveryUnknownError):
            await bed.transport.deliver(said)
        server.faults.append(("/messages", fault))

        async def tell() -> None:
            await trio.sleep(3)
            sent = {"id": "wamid.x", "biz_opaque_callback_data": "anna/look"}
            told = server.status(sent, "delivered")
            await bed.call(server.webhook(ANNA, statuses=(told,)))

        nursery.start_soon(tell)
        assert await bed.transport.deliver(said) == "wamid.x"
        assert await bed.transport.deliver(said) == "wamid.x"
        assert len(server.uploads) == 1


async def test_after_24_hours_a_file_is_kept_until_the_person_writes() -> None:
    bed = WhatsAppBed()
    said = delivery("look", file=bed.blobs.sent(PNG))
    bed.server.closed.add(ZOE)
    async with bed.listening() as server:
        for _ in range(2):
            with pytest.raises(DeliveryBusyError, match="131047"):
                await bed.transport.deliver(said)
        asked = [each for each in server.asked if each.startswith("POST")]
        assert len(asked) == 2, "what is refused once is not brought again"
        server.closed.clear()
        await bed.write("hi")
        assert await bed.transport.deliver(said)
        assert server.shown() == [("image", "", PNG)]


async def test_what_meta_has_long_had_is_brought_again(
    autojump_clock: MockClock,
) -> None:
    bed = WhatsAppBed()
    file = bed.blobs.sent(PNG)
    async with bed.listening() as server:
        await bed.transport.deliver(delivery("one", file=file))
        autojump_clock.jump(DAY)
        await bed.transport.deliver(delivery("two", file=file))
    assert (len(server.uploads), len(server.shown())) == (2, 2)


async def test_bytes_that_are_gone_are_refused() -> None:
    bed = WhatsAppBed()
    file = bed.blobs.sent(PNG)
    bed.blobs.find(file).unlink()
    async with bed.listening() as server:
        with pytest.raises(DeliveryRefusedError, match="not kept"):
            await bed.transport.deliver(delivery("", file=file))
    assert server.said == []
