"""Files that agents send on the page: who gets them, and what browsers make of them."""

from __future__ import annotations

import re
import threading
from functools import partial
from pathlib import Path

import httpx
import msgspec
import pytest
import trio
from msgspec import structs

from actors.errors import DeliveryRefusedError
from actors.messages.inbound import SentFile
from connectors.web.page.chat.files import PageUpload, UploadShelf
from connectors.web.page.chat.messages import PageMessage
from connectors.web.server import ApiError
from tests.connectors.web.page.test_chat import SAM
from tests.fakes.media import PNG
from tests.fakes.store.in_memory import MemoryStore
from tests.fakes.tools.sent_files import SentFiles
from tests.fakes.web.page import (
    ANNA,
    JSON,
    LOBBY,
    PageBed,
    form_of,
    open_page,
    reading,
    reply,
)

SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
SAVED_AS = re.compile(r"""attachment; filename(\*=utf-8''[\w.%-]+|="[\w.-]+")""")
HTML = b"<!doctype html><script>alert(1)</script>"


def blobs_of(bed: PageBed) -> SentFiles:
    blobs = bed.transport._parts.blobs
    assert isinstance(blobs, SentFiles)
    return blobs


async def send(bed: PageBed, file: SentFile, path: str = ANNA, text: str = "") -> str:
    """Have an agent send a file; gives its address."""
    await bed.say("please", path)
    said = structs.replace(reply(await bed.ingress.next(), text), file=file)
    return f"/files/{await bed.transport.deliver(said)}"


async def sweep(bed: PageBed) -> None:
    assert await blobs_of(bed).sweep((), bed.clock.wall() + 1) > 0


async def test_a_picture_stands_in_the_chat_and_comes_whole() -> None:
    async with open_page() as bed, reading(bed.client) as stream:
        path = await send(bed, blobs_of(bed).sent(PNG, "große Kurve.png"), text="look")
        shown = f'<img src="{path}" alt="große Kurve.png"'
        assert shown in (await bed.client.get(ANNA)).text
        await stream.next()
        assert shown in (await stream.next()).data
        response = await bed.client.get(path)
        assert (response.status_code, response.content) == (200, PNG)
        headers = response.headers
        assert headers["content-type"] == "image/png"
        assert headers["content-security-policy"] == "default-src 'none'; sandbox"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert headers["content-disposition"].startswith("inline; filename*=utf-8''gro")


@pytest.mark.parametrize(
    ("content", "name", "size"),
    [
        (HTML, "page.html", "40 bytes"),
        (SVG, "drawing.svg", "71 bytes"),
        (SVG, "drawing.png", "71 bytes"),
        (b"%PDF-1.4" + b"." * 1_992, "report.pdf", "2.0 kB"),
    ],
)
async def test_what_is_no_picture_is_a_download(
    content: bytes, name: str, size: str
) -> None:
    async with open_page() as bed:
        path = await send(bed, blobs_of(bed).sent(content, name))
        html = (await bed.client.get(ANNA)).text
        assert f'<a href="{path}">{name}</a> <span class="soft">{size}</span>' in html
        assert "<img" not in html
        response = await bed.client.get(path)
        assert response.content == content
        headers = response.headers
        assert headers["content-disposition"] == f'attachment; filename="{name}"'
        assert headers["content-type"] == "application/octet-stream"
        assert headers["content-security-policy"] == "default-src 'none'; sandbox"


async def test_a_picture_that_the_agent_wants_as_a_document_is_a_download() -> None:
    async with open_page() as bed:
        file = blobs_of(bed).sent(PNG, "a.png", kind="document")
        response = await bed.client.get(await send(bed, file))
        assert response.headers["content-disposition"].startswith("attachment")
        assert "<img" not in (await bed.client.get(ANNA)).text


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ('"><script>alert(1)</script>.pdf', "&#34;&gt;&lt;script&gt;"),
        ('a"; filename="b.html', "a&#34;; filename=&#34;b.html"),
        ("../../etc/passwd", "../../etc/passwd"),
        ("a\r\nSet-Cookie: x=1.pdf", "Set-Cookie"),
        ("\u202efdp.exe", "\u202efdp.exe"),
    ],
)
async def test_a_files_name_is_a_name_and_nothing_else(name: str, told: str) -> None:
    async with open_page() as bed:
        path = await send(bed, blobs_of(bed).sent(b"%PDF-1.4", name))
        html = (await bed.client.get(ANNA)).text
        assert told in html
        assert "<script>alert" not in html
        response = await bed.client.get(path)
        assert response.content == b"%PDF-1.4"
        assert "set-cookie" not in response.headers
        assert SAVED_AS.fullmatch(response.headers["content-disposition"])


async def test_nobody_gets_a_file_who_is_not_logged_in() -> None:
    async with open_page() as bed, bed.browser() as browser:
        path = await send(bed, blobs_of(bed).sent(PNG, "a.png"))
        looked = await browser.get(path)
        assert (looked.status_code, looked.headers["location"]) == (303, "/login")
        assert (await browser.get(path, headers=JSON)).status_code == 401
        assert (await bed.client.get(path)).status_code == 200


async def test_files_of_another_persons_chat_are_not_there() -> None:
    async with open_page(SAM) as bed, bed.browser() as zoe:
        await bed.log_in(zoe, "zoe")
        file = blobs_of(bed).sent(PNG, "a.png")
        private, public = await send(bed, file), await send(bed, file, LOBBY)
        assert (await zoe.get(private)).status_code == 404
        assert (await bed.client.get(private)).content == PNG
        assert (await zoe.get(public)).content == PNG


async def test_there_is_no_file_where_none_was_sent() -> None:
    async with open_page() as bed:
        said = (await bed.say("hello")).json()["id"]
        answered = await bed.answer(await bed.ingress.next(), "hi")
        digest = blobs_of(bed).sent(PNG, "a.png").digest
        for name in (said, answered, "a" * 25, digest, "..%2f..%2fetc%2fpasswd", "%00"):
            assert (await bed.client.get(f"/files/{name}")).status_code == 404


async def test_a_file_that_was_swept_is_said_to_be_gone() -> None:
    store = MemoryStore()
    async with open_page(store=store) as bed:
        paths = [
            await send(bed, blobs_of(bed).sent(PNG, "a.png"), text="look"),
            await send(bed, blobs_of(bed).sent(HTML, "<b>.html")),
        ]
        await sweep(bed)
        html = (await bed.client.get(ANNA)).text
        assert "The file a.png (32 bytes) is not kept any more." in html
        assert "The file &lt;b&gt;.html (40 bytes) is not kept any more." in html
        for path in paths:
            assert path not in html
            response = await bed.client.get(path)
            assert response.status_code == 410
            assert "not kept any more" in response.text


async def test_what_is_kept_of_a_file_is_its_description_after_a_restart() -> None:
    store = MemoryStore()
    async with open_page(store=store) as bed:
        file = blobs_of(bed).sent(PNG, "a.png", caption="sales")
        await send(bed, file, text="look")
        rows = await store.entries("page_message")
        kept = [msgspec.json.decode(each.body, type=PageMessage).file for each in rows]
        assert kept == [file, None]
    async with open_page(store=store) as bed:
        assert "The file a.png" in (await bed.client.get(ANNA)).text


async def test_a_file_whose_bytes_are_gone_before_it_went_out_is_refused() -> None:
    async with open_page() as bed:
        file = blobs_of(bed).sent(PNG, "a.png")
        await sweep(bed)
        with pytest.raises(DeliveryRefusedError, match="not kept"):
            await send(bed, file)
        assert "a.png" not in (await bed.client.get(ANNA)).text


def test_rows_of_before_there_were_files_are_read() -> None:
    row = b'{"id":"a1","chat":"#x","at":1,"changed":1,"author":"anna","text":"hi"}'
    assert msgspec.json.decode(row, type=PageMessage).file is None


class SlowDisk(SentFiles):
    """Finds nothing while it is held."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.free = threading.Event(), threading.Event()
        self.free.set()

    def find(self, file: SentFile) -> Path:
        self.asked.set()
        assert self.free.wait(10)
        return super().find(file)


async def test_while_a_message_is_drawn_others_are_answered() -> None:
    disk = SlowDisk()
    async with open_page(blobs=disk) as bed:
        await send(bed, disk.sent(PNG, "a.png"))
        for draw in (partial(bed.client.get, ANNA), partial(next_of, bed)):
            disk.free.clear()
            disk.asked.clear()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(draw)
                assert await trio.to_thread.run_sync(disk.asked.wait, 10)
                with trio.fail_after(5):
                    assert (await bed.client.get("/healthz")).status_code == 200
                disk.free.set()


async def next_of(bed: PageBed) -> None:
    """Open a tab, and wait for the message with a file."""
    async with reading(bed.client) as stream:
        while "a.png" not in (await stream.next()).data:
            pass


async def upload(bed: PageBed, content: bytes, name: str = "a.png") -> httpx.Response:
    """Send a file as the script does, before its message."""
    csrf = form_of((await bed.client.get(ANNA)).text)["csrf"]
    headers = {**JSON, "x-csrf": csrf, "content-type": "application/x-whatever"}
    where = f"/uploads?name={name}"
    return await bed.client.post(where, content=content, headers=headers)


async def test_a_persons_files_reach_the_agent_and_stand_in_the_chat() -> None:
    async with open_page() as bed:
        wave = b"RIFF\x00\x00\x00\x00WAVEfmt " + bytes(64)
        sent = [await upload(bed, PNG), await upload(bed, wave, "said.wav")]
        tokens = " ".join(each.json()["token"] for each in sent)
        form = form_of((await bed.client.get(ANNA)).text) | {"files": tokens}
        done = await bed.client.post(ANNA, data=form | {"text": ""}, headers=JSON)
        assert done.status_code == 202
        inbound = await bed.ingress.next()
        assert [(x.kind, x.name, x.content) for x in inbound.attachments] == [
            ("image", "a.png", PNG),
            ("audio", "said.wav", wave),
        ]
        html = (await bed.client.get(ANNA)).text
        path = f"/files/{done.json()['id']}"
        assert f'<img src="{path}" alt="a.png"' in html
        assert f'src="{path}/1" aria-label="said.wav"' in html
        played = await bed.client.get(f"{path}/1")
        assert (played.content, played.headers["content-type"]) == (wave, "audio/wav")
        assert (await bed.client.get(f"{path}/2")).status_code == 404


async def test_a_film_is_played_also_if_platforms_take_it_as_a_document() -> None:
    async with open_page() as bed:
        film = b"\x1a\x45\xdf\xa3\x9fB\x86\x81\x01B\x82\x84webm" + bytes(64)
        token = (await upload(bed, film, "film.webm")).json()["token"]
        form = form_of((await bed.client.get(ANNA)).text) | {"files": token}
        done = await bed.client.post(ANNA, data=form | {"text": ""}, headers=JSON)
        await bed.ingress.next()
        html = (await bed.client.get(ANNA)).text
        assert (
            f'<video controls preload="metadata" src="/files/{done.json()["id"]}"'
            in html
        )


async def test_what_is_no_file_of_ones_own_is_not_sent() -> None:
    config = structs.replace(SAM, max_file_bytes=100)
    async with open_page(config) as bed, bed.browser() as zoe:
        assert (await upload(bed, b"")).status_code == 400
        assert (await upload(bed, b"x" * 101)).status_code == 413
        unsigned = await bed.client.post("/uploads", content=b"x", headers=JSON)
        assert unsigned.status_code == 403
        token = (await upload(bed, PNG[:90])).json()["token"]
        await bed.log_in(zoe, "zoe")
        form = form_of((await zoe.get(ANNA)).text) | {"text": "mine", "files": token}
        assert (await zoe.post(ANNA, data=form, headers=JSON)).status_code == 410
        form = form_of((await bed.client.get(ANNA)).text) | {"text": "hi"}
        many = form | {"files": " ".join([token] * 11)}
        assert (await bed.client.post(ANNA, data=many, headers=JSON)).status_code == 400
        assert bed.ingress.accepted == []


async def test_uploads_that_nobody_sends_make_room() -> None:
    shelf = UploadShelf()
    for number in range(20):
        shelf.put(str(number), PageUpload("sam", "a", "", bytes(8 * 1_048_576)))
    assert len(shelf.find("sam", ["19", "12"])) == 2
    with pytest.raises(ApiError):
        shelf.find("sam", ["3"])
