"""Proves that a WAL that went missing after a kill is told, and nothing else."""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import shutil
from pathlib import Path

import apsw
import pytest
import trio

from runtime.errors import StoreRefusedError
from runtime.sqlite.database import SqliteDatabase
from runtime.sqlite.file import SqliteFile, SqliteOptions
from runtime.sqlite.store import SqliteStore
from tests.support.store.engines import names_unsettled
from tests.support.store.rows import accepting

Lines = pytest.LogCaptureFixture

NEVER = SqliteOptions(idle_after=3600.0)
SOON = SqliteOptions(idle_after=0.001, idle_pages=1)


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    path = tmp_path / "first" / "callboard.db"
    await (await SqliteStore.open(SqliteFile(path))).aclose()
    return path


# Files are so small here that a test may wait for them.
def as_after_a_kill(path: Path, name: str = "killed") -> Path:
    """Copy what a process that is killed now leaves behind, with its times."""
    folder = shutil.copytree(path.parent, path.parent.with_name(name))
    return folder / path.name


def lose(path: Path) -> None:
    for end in ("-wal", "-shm"):
        path.with_name(f"{path.name}{end}").unlink()


def is_noted(path: Path) -> bool:
    return len(path.with_name(f"{path.name}.lock").read_text().split()) == 2


async def kill(path: Path, *names: str, options: SqliteOptions = NEVER) -> Path:
    """Run a store that commits, and give what is left when it is killed."""
    store = await SqliteStore.open(SqliteFile(path, options))
    for name in names:
        await store.commit(accepting(name))
    with trio.fail_after(30):
        while options is SOON and is_noted(path):  # noqa: ASYNC110  a file tells nobody
            # Asking the store would keep it from being idle.
            await trio.sleep(0.02)
    killed = as_after_a_kill(path, f"killed-{path.parent.name}")
    await store.aclose()
    return killed


async def start(path: Path, lines: Lines) -> tuple[list[str], list[str]]:
    """Open it as a server does; give what is told, and the names of its messages."""
    lines.clear()
    store = await SqliteStore.open(SqliteFile(path))
    names = await names_unsettled(store)
    await store.aclose()
    return [each.getMessage() for each in lines.records], names


def look_into(path: Path) -> None:
    """Do as a `sqlite3` shell does: whoever closes last copies and removes the WAL."""
    db = apsw.Connection(str(path))
    db.execute("SELECT count(*) FROM inbox").fetchall()
    db.close()
    assert not path.with_name(f"{path.name}-wal").exists()


async def test_a_wal_that_went_missing_after_a_kill_is_told(
    path: Path, caplog: Lines
) -> None:
    killed = await kill(path, "m1")
    lose(killed)
    told, names = await start(killed, caplog)
    assert told == ["what was stored last may be missing"]
    assert names == []
    assert await start(killed, caplog) == ([], [])


async def test_a_change_by_hand_is_refused_and_does_not_hide_the_loss(
    path: Path, caplog: Lines
) -> None:
    killed = await kill(path, "m1")
    lose(killed)
    with (
        pytest.raises(StoreRefusedError, match="start the server once"),
        SqliteDatabase(killed).claim(),
    ):
        pytest.fail("a loss that nobody was told of was passed over")
    told, _ = await start(killed, caplog)
    assert told == ["what was stored last may be missing"]
    with SqliteDatabase(killed).claim():
        pass


async def test_a_wal_of_an_earlier_process_is_told_too(
    path: Path, caplog: Lines
) -> None:
    second = await kill(await kill(path, "m1"))
    lose(second)
    told, _ = await start(second, caplog)
    assert told == ["what was stored last may be missing"]


async def test_a_kill_alone_is_not_told(path: Path, caplog: Lines) -> None:
    assert await start(await kill(path, "m1"), caplog) == ([], ["m1"])


async def test_nothing_is_told_if_nothing_was_in_the_wal_alone(
    path: Path, caplog: Lines
) -> None:
    killed = await kill(path, "m1", options=SOON)
    lose(killed)
    assert await start(killed, caplog) == ([], ["m1"])


async def test_nothing_is_told_if_nothing_had_been_stored(
    path: Path, caplog: Lines
) -> None:
    killed = await kill(path)
    lose(killed)
    assert await start(killed, caplog) == ([], [])


@pytest.mark.parametrize("options", [NEVER, SOON])
async def test_nothing_is_told_if_another_program_put_the_wal_into_its_place(
    path: Path, caplog: Lines, options: SqliteOptions
) -> None:
    killed = await kill(path, "m1", options=options)
    look_into(killed)
    assert await start(killed, caplog) == ([], ["m1"])


async def test_nothing_is_told_after_an_orderly_end(path: Path, caplog: Lines) -> None:
    await kill(path, "m1")  # that was a copy; here it ended in order
    assert await start(path, caplog) == ([], ["m1"])
