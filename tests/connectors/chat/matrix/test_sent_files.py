"""Files that agents send on Matrix: brought to the homeserver, shown by one event."""

from __future__ import annotations

import httpx
import pytest

from actors.errors import DeliveryBusyError, DeliveryRefusedError, DeliveryUnknownError
from tests.fakes.matrix.homeserver import refusal
from tests.fakes.media import OGG, PNG
from tests.support.chat.matrix_bed import ANNA, BEN, ROOM, ZOE, MatrixBed, delivery


def bed_with(*users: str) -> MatrixBed:
    bed = MatrixBed()
    bed.server.room(ROOM, ZOE, *(users or (ANNA,)))
    return bed


async def test_a_picture_arrives_whole_with_its_caption() -> None:
    bed = bed_with()
    file = bed.blobs.sent(PNG, "chart ü.png")
    async with bed.listening() as server:
        await bed.transport.deliver(delivery("the **sales**", file=file))
    assert server.uploads == [("chart ü.png", PNG)]
    (event,) = server.said(ROOM, ANNA)
    content = event["content"]
    assert content["msgtype"] == "m.image"
    assert (content["body"], content["filename"]) == ("the **sales**", "chart ü.png")
    assert "<strong>sales</strong>" in content["formatted_body"]
    assert server.media[content["url"].removeprefix("mxc://")] == PNG
    assert content["info"] == {"mimetype": "image/png", "size": len(PNG)}


@pytest.mark.parametrize(
    ("content", "more", "kind"),
    [
        (b"%PDF-1.4 x", {}, "m.file"),
        (OGG, {"kind": "voice"}, "m.audio"),
        (PNG, {"kind": "document"}, "m.file"),
        (b"\0\0\0\x18ftypisom", {}, "m.video"),
    ],
)
async def test_each_kind_has_its_event(
    content: bytes, more: dict[str, str], kind: str
) -> None:
    bed = bed_with()
    file = bed.blobs.sent(content, "a", **more)
    async with bed.listening() as server:
        await bed.transport.deliver(delivery("", file=file))
    (event,) = server.said(ROOM, ANNA)
    assert (event["content"]["msgtype"], event["content"]["body"]) == (kind, "a")
    assert ("org.matrix.msc3245.voice" in event["content"]) == (
        "kind" in more and kind == "m.audio"
    )


async def test_a_file_said_again_is_one_event_and_one_upload() -> None:
    bed = bed_with()
    said = delivery("", file=bed.blobs.sent(PNG))
    async with bed.listening() as server:
        server.faults.append(("/send/", httpx.ReadError("reset")))
        with pytest.raises(DeliveryUnknownError):
            await bed.transport.deliver(said)
        first = await bed.transport.deliver(said)
        assert await bed.transport.deliver(said) == first
    assert len(server.uploads) == len(server.said(ROOM, ANNA)) == 1


async def test_after_a_crash_it_is_brought_again_and_seen_once() -> None:
    bed = bed_with()
    said = delivery("", file=bed.blobs.sent(PNG))
    async with bed.listening():
        first = await bed.transport.deliver(said)
    bed.transport = bed.make()
    bed.bookmarks.tokens.clear()
    async with bed.listening() as server:
        assert await bed.transport.deliver(said) == first
    assert len(server.said(ROOM, ANNA)) == 1


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (refusal(413, "M_TOO_LARGE"), DeliveryRefusedError),
        (refusal(429, "M_LIMIT_EXCEEDED", retry_after_ms=2000), DeliveryBusyError),
        (refusal(502, "M_UNKNOWN"), DeliveryBusyError),
        (httpx.Response(200, json={}), DeliveryUnknownError),
        (httpx.Response(200, text="<html>"), DeliveryUnknownError),
        (httpx.ConnectError("refused"), DeliveryBusyError),
        (httpx.WriteError("reset"), DeliveryUnknownError),
    ],
)
async def test_an_upload_that_fails_says_nothing(
    fault: httpx.Response | Exception, error: type[Exception]
) -> None:
    bed = bed_with()
    said = delivery("", file=bed.blobs.sent(PNG))
    async with bed.listening() as server:
        server.faults.append(("/upload", fault))
        with pytest.raises(error):
            await bed.transport.deliver(said)
        assert not server.said(ROOM, ANNA)
        await bed.transport.deliver(said)
        assert len(server.said(ROOM, ANNA)) == 1


async def test_bytes_that_cannot_be_read_now_are_tried_again() -> None:
    bed = bed_with()
    said = delivery("", file=bed.blobs.sent(PNG))
    async with bed.listening() as server:
        bed.blobs.is_ill = True
        with pytest.raises(DeliveryBusyError, match="cannot be read"):
            await bed.transport.deliver(said)
        bed.blobs.is_ill = False
        await bed.transport.deliver(said)
    assert len(server.said(ROOM, ANNA)) == 1


async def test_who_has_no_account_is_named_and_lost_bytes_are_refused() -> None:
    bed = bed_with(ANNA, BEN)
    file = bed.blobs.sent(PNG, "a.png")
    async with bed.listening() as server:
        await bed.transport.deliver(delivery("", "cleo", file=file))
        (event,) = server.said(ROOM, ANNA)
        assert event["content"]["body"] == "cleo:"
        bed.blobs.find(file).unlink()
        with pytest.raises(DeliveryRefusedError, match="not kept any more"):
            await bed.transport.deliver(delivery("", "ben", file=file))
