"""Proves that a company is put together from settings, and taken apart again whole."""

from __future__ import annotations

import socket
from pathlib import Path

import httpx
import msgspec
import pytest

from connectors.app.app import open_app
from connectors.app.inspection import SHARE, Gauges
from connectors.chat.platforms import serving
from connectors.chat.server_transport import ListenError
from connectors.chat.terminal.platform import with_terminal
from connectors.config.app import AppConfig
from connectors.config.tools import WorkspaceConfig
from connectors.sandbox.plan import SandboxError
from connectors.settings.load import load_app
from connectors.web.openai.transport import HttpTransport
from runtime.errors import CorruptError
from runtime.sqlite.database import SqliteDatabase
from runtime.sqlite.store import SqliteStore
from runtime.telemetry.metrics import Metrics
from tests.fakes.company.company import counted
from tests.processes.running import write_settings
from tests.support.desk import write_database

SECOND = '[connectors.second]\nkind = "http"\nport = {port}'


def load(folder: Path, *, more: str = "") -> AppConfig:
    path = write_settings(folder, more=more)
    database = folder / "callboard.db"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("callboard.db", str(database)), encoding="utf-8")
    return load_app(path, {}).value


async def test_a_company_is_ready_when_its_connectors_run(tmp_path: Path) -> None:
    config = load(tmp_path)
    async with open_app(config, serving(config)) as app:
        assert await app.readiness() == ()
        assert [*app.transports] == ["http"]
        assert not app.ended["http"].is_set()
    assert await app.readiness() == ("connector http is not running",)


async def test_damage_of_the_database_is_told_and_nobody_waits_any_longer(
    tmp_path: Path,
) -> None:
    config = load(tmp_path)
    async with open_app(config, serving(config)) as app:
        assert counted(app.metrics, "store_damaged") == []
        assert isinstance(app.store, SqliteStore)
        tell = app.store._on_damage
        assert tell is not None
        tell("page 7 is damaged")
        assert await app.readiness() == ("the database is damaged: see the log",)
        assert counted(app.metrics, "store_damaged") == ["store_damaged 1.0"]


class SlowReads:
    """A clock by which each reading of the database takes a second."""

    now = 0.0
    reads = 0

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:  # asked once in each reading
        self.reads += 1
        self.now += 1.0
        return 1e9


@pytest.fixture
def database(tmp_path: Path) -> SqliteDatabase:
    return SqliteDatabase(write_database(tmp_path / "callboard.db"))


async def test_metrics_tell_of_now_and_read_the_database_seldom(
    database: SqliteDatabase,
) -> None:
    clock = SlowReads()
    gauges = Gauges(Metrics(), database, clock)

    async def shown(*reasons: str, is_fresh: bool = True) -> list[str]:
        await gauges.refresh(reasons, {"http": not reasons}, ())
        return gauges.render("", is_fresh)[0].decode().splitlines()

    first = await shown()
    assert "callboard_ready 1.0" in first
    assert 'callboard_messages_pending{state="dead"} 1.0' in first
    ill = await shown("the disk is full")
    assert "callboard_ready 0.0" in ill
    assert 'callboard_connector_up{connector="http"} 0.0' in ill
    assert "callboard_ready 1.0" in await shown()
    assert "callboard_ready 0.0" in await shown(is_fresh=False)
    assert clock.reads == 1
    for seconds, reads in ((1 / SHARE - 1.5, 1), (1.0, 2), (1 / SHARE - 1.5, 2)):
        clock.now += seconds
        await shown()
        assert clock.reads == reads


async def test_a_start_that_fails_gives_back_what_it_took(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        config = load(tmp_path, more=SECOND.format(port=port))
        with pytest.raises(ListenError, match=r"connectors\.second: cannot listen"):
            async with open_app(config, serving(config)):
                pytest.fail("it started")
    async with open_app(config, serving(config)) as app:
        assert await app.readiness() == ()


async def test_a_terminal_is_served_whatever_it_is_called(tmp_path: Path) -> None:
    config = load(tmp_path, more='[connectors.tty]\nkind = "terminal"')
    assert [*serving(config)] == ["http", "tty"]
    assert with_terminal(config) == config
    taken = load(tmp_path, more='[connectors.terminal]\nkind = "http"\nport = 1')
    assert [*with_terminal(taken).connectors] == ["http", "terminal", "terminal-2"]


LISTED = SECOND + '\n[connectors.second.access]\nallowed = ["sam"]'


async def test_only_users_that_are_listed_are_answered(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = load(tmp_path, more=LISTED.format(port=port))
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    answers: list[httpx.Response] = []
    async with open_app(config, serving(config)) as app, httpx.AsyncClient() as client:
        for user in ("sam", "eve", ""):
            messages = [{"role": "user", "content": "hello"}]
            body = {"model": "anna", "messages": messages, "user": user}
            answers.append(await client.post(url, json=body))
        text = app.metrics.render().decode()
    assert [each.status_code for each in answers] == [200, 403, 403]
    assert answers[1].json()["error"]["code"] == "not_admitted"
    assert 'connector="second",reason="unknown_sender"} 2.0' in text


async def test_damage_ends_the_answering_until_a_restart(tmp_path: Path) -> None:
    config = load(tmp_path)
    body = {"model": "anna", "messages": [{"role": "user", "content": "hello"}]}
    way = "/v1/chat/completions"
    async with open_app(config, serving(config)) as app, httpx.AsyncClient() as client:
        server = app.transports["http"]
        assert isinstance(server, HttpTransport)
        host, port = await server.wait_listening()
        client.base_url = httpx.URL(f"http://{host}:{port}")
        assert (await client.post(way, json=body)).status_code == 200
        assert "callboard_store_damaged 0.0" in app.metrics.render().decode()
        spoil(tmp_path / "callboard.db")
        with pytest.raises(CorruptError):
            await app.store.read("conversation nobody has read before")
        before = app.metrics.render().decode()
        refused = await client.post(way, json=body)
        ready = await client.get("/readyz")
        with pytest.raises(CorruptError, match="until the damage is mended"):
            await app.store.probe()
    assert "callboard_store_damaged 1.0" in before
    assert refused.status_code == 503
    assert ready.status_code == 503
    assert "the database is damaged: see the log" in ready.json()["reasons"]


def spoil(database: Path) -> None:
    """Write nonsense over each page of a database and of its WAL."""
    for path in (database, database.with_name(f"{database.name}-wal")):
        with path.open("r+b") as file:
            for place in range(0, path.stat().st_size, 1000):
                file.seek(place)
                file.write(b"\xa5" * 900)


SHELL = '[agents.kit]\nprompt = "You are Kit."\ntools = ["run_shell"]'


async def test_who_runs_programs_has_a_sandbox_and_its_figures(tmp_path: Path) -> None:
    config = load(tmp_path, more=SHELL)
    async with open_app(config, serving(config)) as app:
        text = app.metrics.render().decode()
    assert 'callboard_sandbox_in_force{feature="files",kind="' in text


async def test_a_workspace_that_holds_the_database_is_refused(tmp_path: Path) -> None:
    config = msgspec.structs.replace(
        load(tmp_path, more=SHELL), workspace=WorkspaceConfig(path=str(tmp_path))
    )
    with pytest.raises(SandboxError, match="put one of the two elsewhere"):
        async with open_app(config, serving(config)):
            pytest.fail("it started")
