"""Proves that a store whose file is damaged under it stops acknowledging."""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import apsw
import httpx
import pytest

from connectors.app.app import App, open_app
from connectors.chat.platforms import serving
from connectors.settings.load import load_app
from runtime.errors import StoreError
from runtime.sqlite.file import SqliteFile, SqliteOptions
from runtime.sqlite.store import SqliteStore
from runtime.store.rows import Commit
from tests.support.store.rows import NOW, accepting, events

PAGE = 4096
FRAME = PAGE + 24
WAL_HEADER = 32


SETTINGS = """
store = { path = "callboard.db" }
models.scripted = { kind = "scripted", script = "script.toml" }
connectors.http = { kind = "http", port = 0 }
agents.anna.prompt = "You are Anna."
"""


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    return tmp_path / "callboard.db"


@pytest.fixture
async def store(path: Path) -> AsyncGenerator[SqliteStore]:
    """Open a store with forty pages in its database and forty in its WAL."""
    options = SqliteOptions(idle_after=3600.0)
    before = await SqliteStore.open(SqliteFile(path, options))
    await fill(before, "old")
    await before.aclose()
    store = await SqliteStore.open(SqliteFile(path, options))
    await fill(store, "new")
    yield store
    await store.aclose()


async def fill(store: SqliteStore, stream: str) -> None:
    """Write forty events of about a page."""
    for number in range(40):
        append = events(stream, number, body=bytes(range(256)) * 16)
        await store.commit(Commit(at=NOW, appends=(append,)))


def spoil_pages(path: Path) -> None:
    """Write nonsense over each page of the database."""
    with path.open("r+b") as file:
        for number in range(path.stat().st_size // PAGE):
            file.seek(number * PAGE)
            file.write(b"\xff" * 100)


def spoil_wal(path: Path) -> None:
    """Write nonsense over each page in the WAL."""
    wal = path.with_name(f"{path.name}-wal")
    with wal.open("r+b") as file:
        for number in range(wal.stat().st_size // FRAME):
            file.seek(WAL_HEADER + number * FRAME + 24)
            file.write(b"\xff" * 100)


def cut_wal(path: Path) -> None:
    """Take most of the WAL away."""
    os.truncate(path.with_name(f"{path.name}-wal"), WAL_HEADER + 3 * FRAME)


def cut_database(path: Path) -> None:
    """Take most of the database away."""
    os.truncate(path, 2 * PAGE)


damages = [spoil_pages, spoil_wal, cut_wal, cut_database]


@pytest.mark.parametrize("damage", damages)
async def test_a_reader_that_finds_damage_says_so_and_the_store_is_not_healthy(
    store: SqliteStore, path: Path, damage: Callable[[Path], None]
) -> None:
    damage(path)
    with pytest.raises(StoreError):
        await store.read("old")
    assert not store.healthy


@pytest.mark.parametrize("damage", damages)
async def test_nothing_is_acknowledged_once_a_reader_has_found_damage(
    store: SqliteStore, path: Path, damage: Callable[[Path], None]
) -> None:
    damage(path)
    with pytest.raises(StoreError):
        await store.read("old")
    with pytest.raises(StoreError):
        await store.commit(accepting("m1"))
    assert not store.healthy


@asynccontextmanager
async def company(folder: Path) -> AsyncGenerator[App]:
    """Run a company that people reach over HTTP."""
    (folder / "script.toml").write_text('[default]\nreply = "hi"\n')
    (folder / "callboard.toml").write_text(SETTINGS)
    config = load_app(folder / "callboard.toml", {}).value
    async with open_app(config, serving(config)) as app:
        yield app


async def ask(app: App) -> int:
    """Ask anna something; gives the status of the answer."""
    host, port = await cast("Any", app.transports["http"]).wait_listening()
    said = {"role": "user", "content": "hello"}
    async with httpx.AsyncClient(base_url=f"http://{host}:{port}", timeout=20) as http:
        body = {"model": "anna", "user": "zoe", "messages": [said]}
        return (await http.post("/v1/chat/completions", json=body)).status_code


def model_calls(app: App) -> list[str]:
    lines = app.metrics.render().decode().splitlines()
    return [x for x in lines if x.startswith("callboard_model_call_seconds_count{")]


@pytest.mark.parametrize("place", ["entry", "sqlite_autoindex_fact_scope_1"])
async def test_no_model_is_asked_once_something_else_has_found_damage(
    place: str, tmp_path: Path
) -> None:
    async with company(tmp_path) as app:
        assert await ask(app) == 200
        assert model_calls(app)
    path = tmp_path / "callboard.db"
    db = apsw.Connection(str(path))
    find = "SELECT pageno FROM dbstat WHERE name = ?"
    pages: list[tuple[int]] = list(db.execute(find, (place,)))
    db.close()
    async with company(tmp_path) as app:
        with path.open("r+b") as file:
            for (number,) in pages:
                file.seek((number - 1) * PAGE)
                file.write(b"\xa5" * PAGE)
        assert await ask(app) == 503
    assert pages
    assert not model_calls(app)
