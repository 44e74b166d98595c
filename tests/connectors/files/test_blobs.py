"""Proves that copies of sent files are whole, bounded, and swept when unneeded."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable
from functools import partial

import pytest
import trio
from hypothesis import given, strategies as st

from actors.errors import DeliveryRefusedError
from connectors.config.tools import FilesConfig
from connectors.files.blobs import HALF, BlobError, Sink, bytes_of, seconds_for
from tests.fakes.tools.sent_files import SentFiles, described


class HandClock:
    """Tells what it was set to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def wall(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


def hand_out(pieces: list[bytes], take: Callable[[bytes], object]) -> None:
    for piece in pieces:
        take(piece)


@given(pieces=st.lists(st.binary(max_size=2_000), max_size=6))
async def test_what_is_kept_is_found_as_it_was(pieces: list[bytes]) -> None:
    blobs, whole = SentFiles(), b"".join(pieces)
    kept = await blobs.keep(partial(hand_out, pieces))
    assert kept.digest == hashlib.sha256(whole).hexdigest()
    assert (kept.size, kept.head) == (len(whole), whole[:1024])
    assert blobs.find(described(whole, "a")).read_bytes() == whole


async def test_the_same_bytes_lie_there_once_for_their_owner_alone() -> None:
    blobs = SentFiles()
    for _ in range(3):
        await blobs.keep(lambda take: take(b"same"))
    (path,) = blobs.files()
    for each in (path, path.parent, path.parent.parent):
        assert stat.S_IMODE(each.stat().st_mode) & 0o077 == 0


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (FilesConfig(max_file_bytes=10), "above 10 bytes"),
        (FilesConfig(max_bytes=10), "no room"),
    ],
)
async def test_what_is_too_much_leaves_nothing(limits: FilesConfig, why: str) -> None:
    blobs = SentFiles(limits=limits)
    await blobs.keep(lambda take: take(b"0123456789"))
    with pytest.raises(BlobError, match=why):
        await blobs.keep(partial(hand_out, [b"x" * 5, b"y" * 5, b"z"]))
    assert len(blobs.files()) == 1


async def test_no_agent_has_all_the_room() -> None:
    blobs = SentFiles(limits=FilesConfig(max_bytes=40))
    for content in (b"0123456789", b"1234567890", b"2345678901"):
        kept = await blobs.keep(partial(hand_out, [content]), "anna")
        assert blobs.find(described(content, "a")).stat().st_size == kept.size
    with pytest.raises(BlobError, match="no room"):
        await blobs.keep(lambda take: take(b"a"), "anna")
    for _ in range(2):  # the same bytes are still there once, whoever sends them
        await blobs.keep(lambda take: take(b"0123456789"), "ben")
    await blobs.keep(lambda take: take(b"abcdefghij"), "ben")
    assert len(blobs.files()) == 4
    with pytest.raises(BlobError, match="no room"):
        await blobs.keep(lambda take: take(b"a"), "ben")
    assert await blobs.sweep({described(b"0123456789", "a").digest}, 1e12) == 3
    assert len(blobs.files()) == 1


async def test_a_copy_that_breaks_off_leaves_nothing() -> None:
    blobs = SentFiles()

    def breaks(take: Callable[[bytes], object]) -> None:
        take(b"half")
        raise OSError(5, "Input/output error")

    with pytest.raises(BlobError, match="Input/output error"):
        await blobs.keep(breaks)
    assert blobs.files() == []


def test_a_full_disk_is_no_fault_of_the_file_that_is_copied() -> None:
    def write(_piece: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(BlobError, match="the copy failed: No space left"):
        Sink(write, 100, 100).take(b"piece")


async def test_only_what_is_old_and_not_needed_is_swept() -> None:
    clock = HandClock()
    blobs = SentFiles(clock)
    old, needed = blobs.sent(b"old"), blobs.sent(b"needed")
    clock.now = 2_000.0
    new, again = blobs.sent(b"new"), blobs.sent(b"old again")
    (blobs._folder / f"{HALF}left").write_bytes(b"by a crash")
    assert await blobs.sweep({needed.digest}, 1_500.0) == 2
    for file in (needed, new, again):
        assert blobs.find(file).exists()
    with pytest.raises(DeliveryRefusedError, match="not kept any more"):
        blobs.find(old)


async def test_kept_again_a_file_is_young_again() -> None:
    clock = HandClock()
    blobs = SentFiles(clock)
    file = blobs.sent(b"same")
    clock.now = 2_000.0
    await blobs.keep(lambda take: take(b"same"))
    assert await blobs.sweep((), 1_500.0) == 0
    assert blobs.find(file).exists()


async def test_nothing_is_swept_where_nothing_was_kept() -> None:
    assert await SentFiles().sweep((), 1e12) == 0


@pytest.mark.parametrize("digest", ["", "../../etc/passwd", "a" * 63, "/" * 64])
async def test_no_digest_leads_out_of_the_folder(digest: str) -> None:
    blobs = SentFiles()
    file = described(b"", "a")
    with pytest.raises(DeliveryRefusedError):
        blobs.find(type(file)(digest, "a", "text/plain", 0))
    with pytest.raises(DeliveryRefusedError):
        bytes_of(None, file)
    await trio.lowlevel.checkpoint()


def test_a_damaged_copy_is_not_sent() -> None:
    blobs = SentFiles()
    file = blobs.sent(b"whole")
    blobs.find(file).write_bytes(b"who")
    with pytest.raises(DeliveryRefusedError):
        blobs.find(file)
    blobs.sent(b"whole")
    assert blobs.find(file).read_bytes() == b"whole"


def test_large_files_have_more_time_and_none_for_ever() -> None:
    assert seconds_for(0, 30) == 30
    assert seconds_for(50_000_000, 30) == 230
    assert seconds_for(10**12, 30) == 1_200
