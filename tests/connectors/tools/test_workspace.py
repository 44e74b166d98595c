"""Proves that agents' files stay in their folder, whole and within their limits."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import threading
from functools import partial
from pathlib import Path

import pytest
import trio

from connectors.tools.workspace.workspace import WorkspaceError, read_path
from tests.fakes.tools.file_bench import Bench, refuses


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "not" / "there")


async def test_what_is_written_is_read(bench: Bench) -> None:
    written = await bench.write("notes/a/b.md", "one\ntwo\n")
    assert written.text == "written: notes/a/b.md, which has 8 bytes now"
    read = await bench.read("./notes//a/b.md")
    assert read.text == "notes/a/b.md, lines 1 to 2 of 2:\n\none\ntwo"
    assert (bench.home / "notes" / "a" / "b.md").read_bytes() == b"one\ntwo\n"
    await bench.write("notes/a/b.md", "three", append=True)
    assert (await bench.read("notes/a/b.md")).text.endswith("one\ntwo\nthree")
    await bench.write("notes/a/b.md", "new")
    assert (await bench.read("notes/a/b.md")).text.endswith(":\n\nnew")


async def test_only_their_owner_reads_the_files(bench: Bench) -> None:
    await bench.write("a/b", "x")
    for path in (bench.home, bench.home / "a", bench.home / "a" / "b"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


async def test_each_agent_has_a_folder_of_its_own(bench: Bench) -> None:
    await bench.write("a.txt", "ben's")
    await trio.to_thread.run_sync(
        partial(bench.desks.of("anna").write, ["a.txt"], b"anna's", append=False)
    )
    assert (await bench.read("a.txt")).text.endswith("ben's")
    assert {each.name for each in bench.root.iterdir()} == {"anna", "ben"}


ESCAPES = [
    *("..", "../x", "a/../../x", "a/..", "../ben/x", "../anna/a.txt", "./../x"),
    *("/etc/passwd", "//etc/passwd", "/", "~", "~/x", "~root/x", "a\\..\\x", "C:\\x"),
    *("a\0b", "a/\0", "a\nb", "a\x1bb", "a\u202eb", "\ud800x", ".callboard-half"),
    *("a/.callboard-x", "x" * 256, "a/" * 17 + "x", "x/" * 600, "\u20ac" * 100),
]


@pytest.mark.parametrize("path", ESCAPES, ids=ascii)
async def test_no_path_leads_out(bench: Bench, path: str) -> None:
    await bench.write("a/b", "x")
    (bench.root / "anna").mkdir()
    with pytest.raises(WorkspaceError) as caught:
        read_path(path)
    assert str(caught.value).isprintable()
    before = sorted(bench.root.rglob("*"))
    if "\ud800" not in path:  # no JSON can carry it
        for result in (await bench.read(path), await bench.write(path, "x")):
            assert result.is_error
            assert "root:" not in result.text
        assert (await bench.list(path)).is_error
    assert sorted(bench.root.rglob("*")) == before


@pytest.mark.parametrize("path", ["", ".", "./", "a/", "/"])
async def test_what_names_no_file_is_no_file(bench: Bench, path: str) -> None:
    for result in (await bench.read(path), await bench.write(path, "x")):
        assert result.is_error


@pytest.mark.parametrize("is_inside", [True, False])
async def test_no_link_is_followed(
    bench: Bench, tmp_path: Path, *, is_inside: bool
) -> None:
    await bench.write("in/secret", "words")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("words")
    target = bench.home / "in" if is_inside else outside
    (bench.home / "file").symlink_to(target / "secret")
    (bench.home / "folder").symlink_to(target)
    refuses(await bench.read("file"), "a link, which is not followed")
    refuses(await bench.write("file", "x"), "a link, which is not followed")
    refuses(await bench.write("file", "x", append=True), "a link")
    for result in (
        await bench.read("folder/secret"),
        await bench.write("folder/secret", "x"),
        await bench.write("folder/new/x", "x"),
        await bench.list("folder"),
    ):
        refuses(result, "a file or a link, no folder")
    assert (target / "secret").read_text() == "words"
    assert [each.name for each in target.iterdir()] == ["secret"]
    listed = (await bench.list(recursive=True)).text
    assert "folder (link, cannot be read)" in listed
    assert "folder/secret" not in listed


async def test_an_agents_folder_that_is_a_link_is_not_followed(
    bench: Bench, tmp_path: Path
) -> None:
    bench.root.mkdir(parents=True)
    bench.home.symlink_to(tmp_path)
    refuses(await bench.write("x", "x"), "no folder")
    assert not (tmp_path / "x").exists()


async def test_a_second_name_of_a_file_outside_is_not_read(
    bench: Bench, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("words")
    await bench.write("x", "x")
    os.link(secret, bench.home / "hard")
    refuses(await bench.read("hard"), "a second name")
    refuses(await bench.write("hard", "x", append=True), "a second name")
    assert not (await bench.write("hard", "mine")).is_error
    assert secret.read_text() == "words"


async def test_a_link_that_is_put_in_the_way_meanwhile_is_not_followed(
    bench: Bench, tmp_path: Path
) -> None:
    await bench.write("d/x", "inside")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x").write_text("secret")
    folder, link = bench.home / "d", bench.home / "link"
    link.symlink_to(outside)
    is_over = threading.Event()

    def swap() -> None:
        for number in range(500):
            # The writer makes the folder anew whenever it is gone.
            with contextlib.suppress(OSError):
                folder.rename(bench.home / f"aside{number}")
                link.rename(folder)
            if folder.is_symlink():
                folder.rename(link)
            if is_over.is_set():
                break

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.to_thread.run_sync, swap)
        for number in range(50):
            await bench.write("d/x", f"inside {number}")
            assert "secret" not in (await bench.read("d/x")).text
        is_over.set()
    assert [each.name for each in outside.iterdir()] == ["x"]
    assert (outside / "x").read_text() == "secret"


async def test_special_files_are_neither_read_nor_written(bench: Bench) -> None:
    await bench.write("x", "x")
    os.mkfifo(bench.home / "pipe")
    with socket.socket(socket.AF_UNIX) as door, trio.fail_after(5):
        here = Path.cwd()
        os.chdir(bench.home)  # such a name must be short
        try:
            door.bind("door")
        finally:
            os.chdir(here)
        for name in ("pipe", "door"):
            refuses(await bench.read(name), "a special file")
            refuses(await bench.write(name, "x"), "a special file")
            refuses(await bench.write(name, "x", append=True), "a special file")
    assert "pipe (special, cannot be read)" in (await bench.list()).text


async def test_a_folder_is_no_file_and_a_file_no_folder(bench: Bench) -> None:
    await bench.write("a/b", "x")
    refuses(await bench.read("a"), "it is a folder")
    refuses(await bench.write("a", "x"), "it is a folder")
    refuses(await bench.write("a/b/c", "x"), "no folder")
    refuses(await bench.read("a/b/c"), "no folder")
    refuses(await bench.list("a/b"), "no folder")
    refuses(await bench.read("a/c"), "there is no file a/c")
    refuses(await bench.read("c/d"), "there is no folder")
    refuses(await bench.list("c"), "there is no folder")
