"""Proves what `send_file` takes: the agent's own plain files, as they are then."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
import trio
from hypothesis import given, strategies as st

from actors.errors import ToolError
from actors.messages.inbound import Image, ToolCall, ToolResult
from connectors.config.tools import FilesConfig
from connectors.tools.workspace.files import (
    SendFileTool,
    WorkspaceEnclosures,
    shown_name,
)
from tests.fakes.media import OGG, PNG
from tests.fakes.tools.file_bench import CONTEXT, Bench
from tests.fakes.tools.sent_files import DEFAULT, SentFiles


class Stand:
    """An agent's folder, and where copies go."""

    def __init__(self, root: Path, limits: FilesConfig = DEFAULT) -> None:
        self.bench = Bench(root)
        self.home = root / "ben"
        self.home.mkdir(parents=True)
        self.blobs = SentFiles(limits=limits)
        self.enclosures = WorkspaceEnclosures(self.bench.desks, self.blobs)

    async def send(self, path: str, **more: str) -> ToolResult:
        arguments = msgspec.json.encode({"path": path, **more})
        call = ToolCall("id1", "send_file", arguments)
        return await SendFileTool(self.enclosures).run(call, CONTEXT)


@pytest.fixture
def stand(tmp_path: Path) -> Stand:
    return Stand(tmp_path / "work")


async def test_what_is_sent_is_what_lay_there_then(stand: Stand) -> None:
    (stand.home / "a.png").write_bytes(PNG)
    result = await stand.send("a.png", caption=" look ")
    (file,) = result.files
    assert result.text == "a.png (image/png, 32 bytes) goes out with your answer."
    assert (file.name, file.kind, file.caption) == ("a.png", "image", "look")
    (stand.home / "a.png").write_bytes(b"changed")
    assert stand.blobs.find(file).read_bytes() == PNG


async def test_the_bytes_say_what_a_file_is(stand: Stand) -> None:
    (stand.home / "a.png").write_bytes(b"<script>alert(1)</script>")
    (stand.home / "b.txt").write_bytes(OGG)
    (file,) = (await stand.send("a.png")).files
    assert (file.media_type, file.kind) == ("text/html", "document")
    (voice,) = (await stand.send("b.txt", show_as="voice")).files
    assert (voice.media_type, voice.kind) == ("audio/ogg", "voice")


OUTSIDE = ["../anna/a.txt", "/etc/passwd", "~/x", "link", "links/a.txt", "hard", "pipe"]


@pytest.mark.parametrize("path", [*OUTSIDE, "folder", "missing", "", "a\0b", "empty"])
async def test_nothing_but_own_plain_files_is_sent(stand: Stand, path: str) -> None:
    other = stand.home.parent / "anna"
    other.mkdir()
    (other / "a.txt").write_text("anna's")
    (stand.home / "folder").mkdir()
    (stand.home / "empty").write_bytes(b"")
    (stand.home / "link").symlink_to(other / "a.txt")
    (stand.home / "links").symlink_to(other)
    (stand.home / "hard").hardlink_to(other / "a.txt")
    os.mkfifo(stand.home / "pipe")
    result = await stand.send(path)
    assert result.is_error
    assert not result.files
    assert str(stand.home.parent) not in result.text
    assert all(not each.stat().st_size for each in stand.blobs.files())


async def test_too_large_a_file_is_refused_in_words(tmp_path: Path) -> None:
    stand = Stand(tmp_path / "work", FilesConfig(max_file_bytes=5))
    (stand.home / "a").write_bytes(b"123456")
    result = await stand.send("a")
    assert result.is_error
    assert "above 5 bytes" in result.text


async def test_a_tools_picture_is_kept_too(stand: Stand) -> None:
    file = await stand.enclosures.enclose_image("anna", Image("image/png", PNG), "shot")
    assert (file.name, file.kind) == ("shot.png", "image")
    assert stand.blobs.find(file).read_bytes() == PNG
    with pytest.raises(ToolError, match="empty"):
        await stand.enclosures.enclose_image("anna", Image("image/png", b""), "shot")


@given(name=st.text(max_size=300))
def test_names_are_harmless_and_short(name: str) -> None:
    shown = shown_name(name, "image/png")
    assert 0 < len(shown) <= 120
    assert shown.isprintable()
    assert not set('/\\:*?"<>|') & set(shown)
    assert shown.strip(" .") == shown or len(shown) == 120


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("report.pdf", "report.pdf"),
        ("a\u202efdp.exe", "afdp.exe"),
        ("..", "file.png"),
        ("x" * 200 + ".png", "x" * 116 + ".png"),
        ("été.png", "été.png"),
        ('a"\r\nX: b', "a___X_ b"),
    ],
)
def test_names_people_see(name: str, shown: str) -> None:
    assert shown_name(name, "image/png") == shown


async def test_new_and_changed_pictures_are_taken_and_removed(stand: Stand) -> None:
    for name in ("old.png", "changed.png", "notes.txt"):
        (stand.home / name).write_bytes(PNG)
    watch = await stand.enclosures.watch("ben")
    (stand.home / "charts").mkdir()
    for name in ("charts/new.PNG", "changed.png", "new.txt", "odd.png"):
        content = b"no picture" if name == "odd.png" else PNG + b"2"
        (stand.home / name).write_bytes(content)
    files = await watch.take(10)
    assert [each.name for each in files] == ["changed.png", "new.PNG"]
    (stand.home / "changed.png").write_bytes(b"once more")
    await watch.clear()
    watch.end()
    left = {each.name for each in stand.home.rglob("*") if each.is_file()}
    assert left == {"old.png", "changed.png", "notes.txt", "new.txt", "odd.png"}


async def test_a_turn_that_is_cut_off_as_it_begins_watches_no_longer(
    stand: Stand,
) -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        await stand.enclosures.watch("ben")
    assert scope.cancelled_caught
    watch = await stand.enclosures.watch("ben")
    (stand.home / "a.png").write_bytes(PNG)
    assert [each.name for each in await watch.take(10)] == ["a.png"]
    watch.end()


async def test_pictures_of_turns_beside_each_other_stay_where_they_are(
    stand: Stand,
) -> None:
    one, two = [await stand.enclosures.watch("ben") for _ in range(2)]
    (stand.home / "a.png").write_bytes(PNG)
    two.end()
    assert await one.take(10) == ()
    one.end()
    three = await stand.enclosures.watch("ben")
    (stand.home / "b.png").write_bytes(PNG)
    assert [each.name for each in await three.take(10)] == ["b.png"]
    three.end()
    assert (stand.home / "a.png").exists()
