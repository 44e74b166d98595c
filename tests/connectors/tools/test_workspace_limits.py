"""Proves that agents' files are bounded, whole, and read piece by piece."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from hypothesis import given, strategies as st

from connectors.config.tools import WorkspaceConfig
from connectors.tools.workspace.files import MAX_ENTRIES, ReadFileArguments, excerpt
from connectors.tools.workspace.workspace import (
    HALF,
    Workspace,
    WorkspaceError,
    read_path,
)
from tests.fakes.tools.file_bench import Bench, refuses


async def test_a_full_folder_takes_no_more(tmp_path: Path) -> None:
    bench = Bench(tmp_path, max_file_bytes=60)
    refuses(await bench.write("a", "x" * 61), "files may have 60 bytes")
    assert not (await bench.write("a", "x" * 60)).is_error
    refuses(await bench.write("a", "x", append=True), "files may have 60 bytes")
    for name in "bcdefgh":
        await bench.write(name, "x" * 60)
    full = Bench(tmp_path, max_bytes=500)
    refuses(await full.write("z", "x" * 60), "480 of 500 bytes are used")
    assert not (await full.write("a", "y" * 60)).is_error
    assert not (await full.write("z", "x" * 20)).is_error


async def test_there_are_only_so_many_files_and_folders(tmp_path: Path) -> None:
    bench = Bench(tmp_path, max_files=4)
    for path in ("a", "b", "f/c"):
        assert not (await bench.write(path, "x")).is_error
    refuses(await bench.write("d", "x"), "4 files")
    assert (await bench.write("g/h", "x")).is_error
    assert not (await bench.write("a", "y")).is_error
    assert sorted(each.name for each in bench.home.iterdir()) == ["a", "b", "f"]


async def test_a_longer_file_than_may_be_read_is_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path, max_file_bytes=100)
    await bench.write("a", "x")
    (bench.home / "a").write_bytes(b"x" * 101)
    refuses(await bench.read("a"), "it is above 100 bytes")


async def test_what_is_no_text_is_told_by_its_kind(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.write("a", "x")
    (bench.home / "a").write_bytes(b"\x89PNG\r\n\x1a\n")
    refuses(await bench.read("a"), "no UTF-8 text but image/png, 8 bytes")


async def test_a_write_that_was_cut_off_leaves_the_old_file(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.write("a", "old")
    (bench.home / HALF).write_text("half of the new one")
    assert (await bench.list()).text == "your folder:\na (3 bytes)"
    assert (await bench.read("a")).text.endswith("old")
    await bench.write("a", "new")
    assert [each.name for each in bench.home.iterdir()] == ["a"]


async def test_a_link_in_the_place_of_the_half_file_is_not_followed(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path / "root")
    await bench.write("a", "old")
    (tmp_path / "secret").write_text("words")
    (bench.home / HALF).symlink_to(tmp_path / "secret")
    assert not (await bench.write("a", "new")).is_error
    assert (tmp_path / "secret").read_text() == "words"


async def test_a_script_stays_one(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.write("run.sh", "echo 1")
    (bench.home / "run.sh").chmod(0o4755)
    await bench.write("run.sh", "echo 2")
    assert (bench.home / "run.sh").stat().st_mode & 0o7777 == 0o755


async def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.write("a", "x" * 5_000)

    async def write(letter: str) -> None:
        for _ in range(10):
            await bench.write("a", letter * 5_000)

    async def read() -> None:
        for _ in range(20):
            letters = set((await bench.read("a")).text.partition("\n\n")[2])
            assert len(letters) == 1

    async with trio.open_nursery() as nursery:
        for letter in "xyz":
            nursery.start_soon(write, letter)
        nursery.start_soon(read)


async def test_additions_at_once_are_all_kept(tmp_path: Path) -> None:
    bench = Bench(tmp_path)

    async def add(number: int) -> None:
        await bench.write("a", f"{number}\n", append=True)

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(add, number)
    assert sorted(map(int, (bench.home / "a").read_text().split())) == [*range(20)]


async def test_a_disk_that_fails_is_told_in_words(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "file")
    (tmp_path / "file").write_text("in the way")
    for result in (await bench.write("a", "x"), await bench.read("a")):
        assert result.is_error
        assert str(tmp_path) not in result.text


async def test_a_folder_is_listed(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    assert (await bench.list()).text == "your folder is empty"
    for path in ("b/c/d.txt", "b/a", "z"):
        await bench.write(path, "four")
    (bench.home / "odd\nname").write_text("")
    (bench.home / "b" / "\udcff").write_text("")
    text = "your folder:\nb/\nodd?name (0 bytes)\nz (4 bytes)"
    assert (await bench.list()).text == text
    deep = (await bench.list("b", recursive=True)).text
    assert deep == "b:\na (4 bytes)\nc/\nc/d.txt (4 bytes)\n? (0 bytes)"


async def test_a_long_listing_is_cut_and_says_so(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.write("x", "x")
    for number in range(MAX_ENTRIES + 5):
        (bench.home / f"{number:04}").write_text("")
    lines = (await bench.list()).text.splitlines()
    assert len(lines) == MAX_ENTRIES + 2
    assert "only the first 200" in lines[-1]


async def test_folders_deeper_than_any_path_are_listed_and_counted(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path)
    await bench.write("x", "x")
    deepest = bench.home
    for _ in range(100):
        deepest = deepest / "d"
        deepest.mkdir()
    assert len((await bench.list(recursive=True)).text.splitlines()) == 34
    assert not (await bench.write("y", "y")).is_error


@given(
    text=st.text(st.sampled_from("ab\n"), max_size=80),
    max_chars=st.integers(3, 30),
    limit=st.integers(1, 10),
)
def test_a_text_is_read_on_line_by_line(text: str, max_chars: int, limit: int) -> None:
    lines = text.removesuffix("\n").split("\n") if text else []
    read: list[str] = []
    while len(read) < len(lines):
        wanted = ReadFileArguments("f", len(read) + 1, limit)
        head, _, piece = excerpt("f", text, wanted, max_chars).partition("\n\n")
        got = piece.split("\n")
        assert len(piece) <= max_chars
        assert len(got) <= limit
        read += got
        goes_on = f"go on with offset {len(read) + 1}" in head
        assert goes_on == (len(read) < len(lines))
    assert read == [line[:max_chars] for line in lines]


def test_a_cut_line_and_an_end_are_told() -> None:
    text = excerpt("f", "x" * 50, ReadFileArguments("f"), 10)
    assert text == "f, lines 1 to 1 of 1; line 1 is cut, it has 50 characters:\n\n" + (
        "x" * 10
    )
    said = excerpt("f", "a\nb", ReadFileArguments("f", 3), 10)
    assert said == "f has 2 lines; there is nothing at line 3"


@given(path=st.text(st.sampled_from("./\\~ab\0\n\u00fc-"), max_size=20))
def test_any_path_is_refused_or_stays_inside(path: str) -> None:
    try:
        names = read_path(path)
    except WorkspaceError:
        return
    assert not path.startswith(("/", "~"))
    assert all(name not in {"", ".", ".."} and "/" not in name for name in names)


def test_reading_and_writing_need_a_name(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, "ben", WorkspaceConfig())
    with pytest.raises(WorkspaceError):
        workspace.read(["nothing"])
    assert workspace.write(["a"], b"x", append=True) == 1
