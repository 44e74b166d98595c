"""Proves what may be uploaded, by whom it is seen, and what is never taken."""

from __future__ import annotations

import math
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from connectors.web.eliza.uploads import COARSE, Uploads
from connectors.web_config import WebConfig
from tests.fakes.eliza import ANNA, API, ZOE, open_web

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import FrameType

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
        bed.transport.uploads.tidy(frozenset(), math.inf, 0)
        assert (await bed.client.get(made["url"])).status_code == 404


def test_a_channel_that_was_made_meanwhile_keeps_its_files(tmp_path: Path) -> None:
    uploads = Uploads(tmp_path, 1_000)
    name = uploads.save("channels", ZOE, "image/png", b"x", 1_800_000_000_000)
    path = uploads.find("channels", ZOE, name)
    assert path is not None
    saved_at = path.stat().st_mtime
    uploads.tidy(frozenset(), saved_at, 0)  # those were listed when it was made
    assert uploads.find("channels", ZOE, name) == path
    uploads.tidy(frozenset(), saved_at + 2 * COARSE, 0)
    assert uploads.find("channels", ZOE, name) is None


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
    uploads = Uploads(tmp_path / "kept", 1_000)
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
    assert bed.transport.uploads._count() == 0


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
