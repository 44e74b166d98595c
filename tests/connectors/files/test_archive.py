"""Proves that an archive gives back what it was given, and that damage is found."""

from __future__ import annotations

import io
import os
import resource
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, strategies as st

from connectors.files.archive import (
    MANIFEST,
    ArchiveError,
    ArchivePart,
    Manifest,
    read_archive,
    write_archive,
)

ABOUT = Manifest(release="1", made_at=1.0, parts={}, files={})
names = st.text("abc-_ ü", min_size=1, max_size=5).filter(lambda x: x.strip() == x)
trees = st.dictionaries(
    st.tuples(names, names), st.binary(max_size=200), min_size=1, max_size=5
)


def nothing(_count: int) -> None:
    """Tell nobody."""


def files(folder: Path) -> list[Path]:
    return [each for each in folder.rglob("*") if each.is_file()]


def made(folder: Path, tree: dict[tuple[str, str], bytes]) -> Path:
    home = folder / "home"
    for (above, name), body in tree.items():
        (home / above).mkdir(parents=True, exist_ok=True)
        (home / above / name).write_bytes(body)
    target = folder / "all.tar.gz"
    write_archive(target, [ArchivePart("home", home)], ABOUT, nothing)
    return target


@given(trees)
def test_what_was_put_in_comes_out(tree: dict[tuple[str, str], bytes]) -> None:
    with TemporaryDirectory() as at:
        archive, into = made(Path(at), tree), Path(at) / "into"
        manifest = read_archive(archive, nothing, into)
        assert len(manifest.files) == len(tree)
        assert archive.stat().st_mode & 0o077 == 0
        for (above, name), body in tree.items():
            assert (into / "home" / above / name).read_bytes() == body


@given(trees, st.integers(0, 10_000), st.integers(0, 255))
def test_no_damage_goes_unnoticed(
    tree: dict[tuple[str, str], bytes], where: int, change: int
) -> None:
    with TemporaryDirectory() as at:
        archive = made(Path(at), tree)
        body = bytearray(archive.read_bytes())
        # The first ten bytes are gzip's head, whose time and system say nothing.
        place = 10 + where % (len(body) - 10)
        body[place] ^= change
        archive.write_bytes(bytes(body if change else body[:place]))
        before = {each.name: each.read_bytes() for each in files(Path(at) / "home")}
        try:
            read_archive(archive, nothing, Path(at) / "into")
        except ArchiveError:
            return
        # Of a long run of equal bytes several descriptions say the same.
        assert change
        home = Path(at) / "into" / "home"
        assert before == {each.name: each.read_bytes() for each in files(home)}


def test_a_name_that_is_none_is_damage(tmp_path: Path) -> None:
    archive = tmp_path / "evil.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        info = tarfile.TarInfo("x")
        info.pax_headers = {"path": "home/a\0b"}
        tar.addfile(info)
    with pytest.raises(ArchiveError, match="is damaged"):
        read_archive(archive, nothing, tmp_path / "into")


@pytest.mark.parametrize("name", ["../out", "/out", "a/../../out"])
def test_nothing_is_written_elsewhere(name: str, tmp_path: Path) -> None:
    archive = tmp_path / "evil.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        info = tarfile.TarInfo(name)
        info.size = 3
        tar.addfile(info, io.BytesIO(b"out"))
    with pytest.raises(ArchiveError, match="does not belong in it"):
        read_archive(archive, nothing, tmp_path / "deep" / "into")
    assert [each.name for each in tmp_path.iterdir()] == ["evil.tar.gz"]


def test_a_manifest_that_is_no_text_is_damage(tmp_path: Path) -> None:
    archive = tmp_path / "torn.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        info = tarfile.TarInfo(MANIFEST)
        body = b'{"release": "\xff"}'
        info.size = len(body)
        tar.addfile(info, io.BytesIO(body))
    with pytest.raises(ArchiveError, match="is damaged"):
        read_archive(archive, nothing)


def test_links_are_left_out_and_told(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "link").symlink_to("/etc/passwd")
    parts = [ArchivePart("home", tmp_path / "home"), ArchivePart("no", tmp_path / "no")]
    found = write_archive(tmp_path / "a", parts, ABOUT, nothing)
    assert (found.left_out, found.files) == (("home/link",), {})


def test_linked_and_closed_folders_are_told_too(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "inside").mkdir(parents=True)
    (home / "linked").symlink_to(tmp_path)
    (home / "inside" / "loop").symlink_to("loop")
    found = write_archive(tmp_path / "a", [ArchivePart("home", home)], ABOUT, nothing)
    assert found.left_out == ("home/inside/loop", "home/linked")


def test_a_full_disk_leaves_nothing_out_but_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home").write_bytes(b"0" * 1_000_000)
    monkeypatch.setattr("connectors.files.archive.IN_MEMORY", 10)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            write_archive(
                tmp_path / "a",
                [ArchivePart("home", tmp_path / "home")],
                ABOUT,
                nothing,
            )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [each.name for each in tmp_path.iterdir()] == ["home"]


def test_what_is_put_back_is_its_owners_alone(tmp_path: Path) -> None:
    archive, into = made(tmp_path, {("a", "b"): b"x"}), tmp_path / "into"
    into.mkdir(mode=0o700)
    before = os.umask(0o022)
    try:
        read_archive(archive, nothing, into)
    finally:
        os.umask(before)
    assert (into / "home").stat().st_mode & 0o077 == 0


def test_two_files_of_one_name_are_no_archive(tmp_path: Path) -> None:
    (tmp_path / "home").write_bytes(b"x")
    parts = [ArchivePart("home", tmp_path / "home")] * 2
    with pytest.raises(ArchiveError, match="home is in it twice"):
        write_archive(tmp_path / "a", parts, ABOUT, nothing)
    assert not (tmp_path / "a").exists()
