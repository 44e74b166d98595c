"""Proves what may be uploaded, by whom it is seen, and what is never taken."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from connectors.web.eliza.platform import WebConfig
from connectors.web.eliza.services.uploads import COARSE, FullError, UploadFolder
from tests.fakes.web.eliza import ANNA, API, SAM, ZOE, open_web

PICTURE = ("a cat.png", b"\x89PNG and so on", "image/png")


def config(folder: Path, **rest: Any) -> WebConfig:
    return WebConfig(port=0, uploads=str(folder), **rest)


async def test_a_file_is_kept_given_back_and_shown_to_the_agent(tmp_path: Path) -> None:
    async with open_web(config(tmp_path)) as bed:
        channel = await bed.channel(ZOE, ANNA)
        path = f"{API}/channels/{channel}/upload-media"
        made = await bed.ask("POST", path, files={"file": PICTURE})
        assert (made["originalName"], made["type"]) == ("a cat.png", "image/png")
        assert made["size"] == len(PICTURE[1])
        response = await bed.client.get(made["url"])
        assert response.content == PICTURE[1]
        assert response.headers["content-type"] == "image/png"
        assert "sandbox" in response.headers["content-security-policy"]
        attachments = [{"url": made["url"], "title": "cat"}]
        await bed.say(channel, "look", attachments=attachments)
        (shown,) = (await bed.ingress.next()).attachments
        assert (shown.kind, shown.name, shown.content) == ("image", "cat", PICTURE[1])
        bed.transport.services.uploads.tidy(frozenset(), math.inf, 0)
        assert (await bed.client.get(made["url"])).status_code == 404


FOREIGN = "https://example.org/cat.png"
INLINE = "data:image/png;base64,iVBORw0KGgo="


@pytest.mark.parametrize("place", ["attachments", "metadata", "raw_message"])
async def test_files_from_elsewhere_reach_the_agent(tmp_path: Path, place: str) -> None:
    async with open_web(config(tmp_path)) as bed:
        channel = await bed.channel(ZOE, ANNA)
        path = f"{API}/channels/{channel}/upload-media"
        made = await bed.ask("POST", path, files={"file": PICTURE})
        links = [
            {"url": f"{bed.url}{made['url']}", "title": "own"},
            {"url": FOREIGN, "contentType": "image", "title": "foreign"},
            {"url": INLINE, "mediaType": "image/png"},
            {"url": "ftp://example.org/x", "title": "odd"},
            {"title": "nowhere"},
        ]
        rest: dict[str, Any] = {
            place: links if place == "attachments" else {"attachments": links}
        }
        await bed.say(channel, "look", **rest)
        own, foreign, inline, odd, nowhere = (await bed.ingress.next()).attachments
        assert (own.kind, own.content) == ("image", PICTURE[1])
        assert (foreign.kind, foreign.url, foreign.name) == (
            "image",
            FOREIGN,
            "foreign",
        )
        assert (inline.kind, inline.content) == ("image", b"\x89PNG\r\n\x1a\n")
        # The reader of media tells the agent that these are empty.
        assert (odd.name, odd.url, odd.content) == ("odd", "", b"")
        assert (nowhere.name, nowhere.url, nowhere.content) == ("nowhere", "", b"")


async def test_a_channel_is_no_way_into_the_files_of_another(tmp_path: Path) -> None:
    async with open_web(config(tmp_path)) as bed:
        other, channel = await bed.channel(SAM, ANNA), await bed.channel(ZOE, ANNA)
        path = f"{API}/channels/{other}/upload-media"
        made = await bed.ask("POST", path, files={"file": PICTURE})
        await bed.say(channel, "look", attachments=[{"url": made["url"]}])
        (shown,) = (await bed.ingress.next()).attachments
        assert (shown.content, shown.url) == (b"", "")


def test_a_channel_that_was_made_meanwhile_keeps_its_files(tmp_path: Path) -> None:
    uploads = UploadFolder(tmp_path, 1_000)
    name = uploads.save("channels", ZOE, "image/png", b"x", 1_800_000_000_000)
    path = uploads.find("channels", ZOE, name)
    assert path is not None
    saved_at = path.stat().st_mtime
    uploads.tidy(frozenset(), saved_at, 0)  # those were listed when it was made
    assert uploads.find("channels", ZOE, name) == path
    uploads.tidy(frozenset(), saved_at + 2 * COARSE, 0)
    assert uploads.find("channels", ZOE, name) is None


def test_no_channel_has_all_the_room(tmp_path: Path) -> None:
    uploads = UploadFolder(tmp_path / "kept", 40)
    file = tmp_path / "bytes"
    file.write_bytes(b"sent" * 2)
    for _ in range(3):
        uploads.save("channels", ZOE, "image/png", b"x" * 10, 1_800_000_000_000)
    with pytest.raises(FullError, match="one channel 30"):
        uploads.save("channels", ZOE, "image/png", b"x", 1_800_000_000_000)
    with pytest.raises(FullError, match="one channel 30"):
        uploads.keep("channels", ZOE, "0-0123456789abcdef.png", file)
    uploads.keep("channels", SAM, "0-0123456789abcdef.png", file)
    uploads.save("channels", SAM, "image/png", b"xx", 1_800_000_000_000)
    with pytest.raises(FullError, match="40 bytes in all"):
        uploads.save("channels", ANNA, "image/png", b"x", 1_800_000_000_000)


def disk_calls(work: Callable[[], object]) -> list[str]:
    calls: list[str] = []

    def listen(_frame: FrameType, event: str, callee: Any) -> None:
        if event == "c_call" and callee in {os.fsync, os.replace}:
            calls.append(callee.__name__)

    sys.setprofile(listen)
    work()
    sys.setprofile(None)
    return calls


def test_a_file_and_its_folders_are_on_the_disk_when_it_is_kept(
    tmp_path: Path,
) -> None:
    uploads = UploadFolder(tmp_path / "kept", 1_000)
    content = tmp_path / "bytes"
    content.write_bytes(b"sent")

    def save() -> None:
        uploads.save("channels", ZOE, "image/png", b"x", 1_800_000_000_000)

    def keep() -> None:
        uploads.keep("channels", ANNA, "0-0123456789abcdef.png", content)

    whole = ["fsync", "replace", "fsync", "fsync", "fsync"]
    assert disk_calls(save) == whole
    assert disk_calls(keep) == whole
    assert disk_calls(keep) == whole[2:]  # a crash may have cut that off
    assert uploads._count() == 5


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (("../a.png", b"x", "image/png"), (400, "VALIDATION_ERROR")),
        (("a.html", b"<script>", "text/html"), (400, "VALIDATION_ERROR")),
        (("a.svg", b"<svg>", "image/svg+xml"), (400, "VALIDATION_ERROR")),
        (("a.png", b"x" * 1_001, "image/png"), (413, "FILE_TOO_LARGE")),
        (("a.png", b"x" * 200_000, "image/png"), (413, "FILE_TOO_LARGE")),
    ],
)
async def test_what_is_not_taken_is_told_why(
    file: tuple[str, bytes, str], expected: tuple[int, str], tmp_path: Path
) -> None:
    async with open_web(config(tmp_path, max_upload_bytes=1_000)) as bed:
        channel = await bed.channel(ZOE)
        path = f"{API}/channels/{channel}/upload-media"
        assert await bed.refused("POST", path, files={"file": file}) == expected
    assert bed.transport.services.uploads._count() == 0


async def test_uploads_end_where_their_folder_is_full(tmp_path: Path) -> None:
    settings = config(tmp_path, max_uploads_bytes=20, upload_limit=3)
    async with open_web(settings) as bed:
        channel = await bed.channel(ZOE)
        path = f"{API}/channels/{channel}/upload-media"
        await bed.ask("POST", path, files={"file": PICTURE})
        refused = await bed.refused("POST", path, files={"file": PICTURE})
        assert refused == (429, "LIMIT_REACHED")
        await bed.refused("POST", path, files={"file": PICTURE})
        refused = await bed.refused("POST", path, files={"file": PICTURE})
        assert refused == (429, "UPLOAD_RATE_LIMIT_EXCEEDED")
