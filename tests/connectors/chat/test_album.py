"""Proves that no more comes in than can be stored, and each chat by itself."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from actors.journal.commits import as_accept
from actors.messages.inbound import Address, Attachment, Inbound
from connectors.chat.inbound import (
    MOST_IN_ALL,
    NO_ROOM,
    Album,
    Found,
    Lanes,
    PlatformFile,
    fetch_files,
    left_out,
)
from connectors.web.eliza.services.uploads import LARGEST_SHOWN, MOST_SHOWN
from runtime.errors import StoreUnavailableError
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.store import SqliteStore
from runtime.store.rows import Commit, Committed


def file_of(size: int) -> Attachment:
    return Attachment("image", "cat.jpg", "image/jpeg", content=b"x" * size)


def found(size: int) -> Found:
    return file_of(size), ""


def commit_of(number: int, *files: Attachment) -> Commit:
    inbound = Inbound(
        id=f"m{number}",
        platform="discord",
        platform_id=f"p{number}",
        address=Address("discord", "1"),
        sender_id="z",
        sender_name="Zoe",
        text="look",
        received_at=1.0,
        attachments=files,
    )
    return Commit(at=1.0, accepts=(as_accept(inbound, 1.0),))


class SizedFile(PlatformFile, frozen=True, kw_only=True):
    """A file that is as large as its platform says."""

    size: int


async def test_the_first_files_come_along_and_a_small_one_behind_a_large_one() -> None:
    half, noted, asked = MOST_IN_ALL // 2, list[str](), list[int]()
    sizes = (half, half + 1, half, 1)

    async def fetch(file: SizedFile) -> Found:
        await trio.lowlevel.checkpoint()
        asked.append(file.size)
        return found(file.size)

    files = [
        SizedFile(kind="document", name=f"{x}.txt", media_type="", size=x)
        for x in sizes
    ]
    got, lines = await fetch_files(files, fetch, noted.append)
    assert asked == [half, half], "what has no room is not fetched"
    assert len(got) == 2
    assert noted == [NO_ROOM, NO_ROOM]
    assert lines == [left_out("document", f"{x}.txt", NO_ROOM) for x in (half + 1, 1)]


@pytest.mark.parametrize("told", [0, 10])
def test_a_file_that_is_larger_than_its_platform_said_has_no_more_room(
    told: int,
) -> None:
    album = Album()
    assert album.claim(MOST_IN_ALL - 10)
    assert album.claim(told)
    assert album.settle(told, found(11)) == (None, NO_ROOM)
    assert album.settle(0, found(10)) == found(10)


def test_what_could_not_be_had_takes_no_room() -> None:
    album = Album()
    assert album.claim(MOST_IN_ALL)
    assert album.settle(MOST_IN_ALL, (None, "HTTP 404")) == (None, "HTTP 404")
    assert album.claim(MOST_IN_ALL)


async def test_a_message_with_all_files_that_it_may_have_is_stored(
    tmp_path: Path,
) -> None:
    store = await SqliteStore.open(SqliteFile(tmp_path / "a.db"))
    outcomes: list[Committed | Exception] = []
    for number in range(3):
        store.submit(commit_of(number, file_of(MOST_IN_ALL)), outcomes.append)
    await store.aclose()
    # Too many at once are to be handed in again; one alone never is too large.
    assert isinstance(outcomes[-1], Committed)
    later = [each for each in outcomes if not isinstance(each, Committed)]
    assert all(isinstance(each, StoreUnavailableError) for each in later)


def test_a_web_channel_shows_agents_no_more_files_than_fit() -> None:
    assert MOST_SHOWN * LARGEST_SHOWN <= MOST_IN_ALL


async def test_lanes_that_wait_keep_no_other_lane_waiting(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    done: list[str] = []

    async def note(what: str) -> None:
        done.append(what)
        await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        lanes = Lanes(nursery, most=40, at_once=2)
        for lane in ("a", "b", "c"):
            await lanes.put(lane, trio.sleep_forever)
            await lanes.put(lane, partial(note, lane))
        await lanes.put("d", partial(note, "d"))
        await trio.sleep(10)
        assert done == ["d"]
        nursery.cancel_scope.cancel()


async def test_no_lane_takes_the_room_of_all_others() -> None:
    async with trio.open_nursery() as nursery:
        lanes = Lanes(nursery, most=8)
        taken = [lanes.put_nowait("a", trio.sleep_forever) for _ in range(8)]
        assert taken == [True] * 6 + [False] * 2
        assert lanes.put_nowait("b", trio.sleep_forever)
        nursery.cancel_scope.cancel()
