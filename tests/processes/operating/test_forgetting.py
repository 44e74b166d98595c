"""Proves that nothing a forgotten person said is left in any file of a company."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import httpx
import pytest
import trio
import trio.testing

from connectors.app.reload.reload import SettingsSource
from connectors.commands.forget_person import (
    NOW,
    order,
)
from connectors.commands.serve import read_again
from connectors.settings.load import load_app
from runtime.postgresql.database import PostgresqlDatabase
from runtime.postgresql.server import PostgresqlServer
from runtime.sqlite.database import SqliteDatabase
from runtime.telemetry.logs import Redactor
from tests.processes.running import (
    OFFLINE,
    PATIENCE,
    Server,
    read_address,
    run,
    run_here,
    served,
    write_settings,
)
from tests.support.store.postgresql import emptied, shared_process

T = TypeVar("T")

SAM = "http/sam-the-customer"
CANARY, OTHER = "canary4711", "sparrow0815"


def say(url: str, user: str, word: str) -> None:
    messages = [{"role": "user", "content": f"hello {word}"}]
    body = {"model": "anna", "messages": messages, "user": user}
    answer = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=PATIENCE)
    assert answer.status_code == 200


def held(folder: Path, word: str) -> list[str]:
    found = [each for each in folder.iterdir() if each.is_file()]
    return [each.name for each in found if word.encode() in each.read_bytes()]


async def test_a_person_is_forgotten_and_nobody_else(tmp_path: Path) -> None:
    whom = ("forget-person", SAM, "--yes")
    with served(tmp_path) as server:
        for user, word in (("sam-the-customer", CANARY), ("eve", OTHER)):
            say(server.url, user, word)
        await server.end()
    assert held(tmp_path, CANARY)
    assert_erased(tmp_path, *whom)
    assert held(tmp_path, CANARY) == []
    assert held(tmp_path, OTHER)
    with served(tmp_path) as server:
        say(server.url, "sam-the-customer", CANARY)
        ordered = await beside(run_here, *whom, "--at-next-start", folder=tmp_path)
        assert ordered.code == 0, ordered.said
        await server.end()
    with served(tmp_path) as server:
        say(server.url, "eve", OTHER)
        assert "a person is forgotten, as ordered" in server.log
        await server.end()
    assert held(tmp_path, CANARY) == []
    again = await beside(run_here, *whom, folder=tmp_path)
    assert "Nothing is kept of http/sam-the-customer." in again.out
    checked = await beside(run_here, "records", "check", folder=tmp_path)
    assert checked.code == 0


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
async def test_a_company_that_runs_forgets_and_goes_on(
    tmp_path: Path, engine: str
) -> None:
    serve, call, call_here = served, run, run_here
    if is_on_server := engine == "postgresql":
        emptied()
        serve, call = on_server(served), on_server(run)
        call_here = on_server(run_here)
    whom = ("forget-person", SAM, "--yes", "--json")
    with serve(tmp_path) as server:
        for user, word in (("sam-the-customer", CANARY), ("eve", OTHER)):
            say(server.url, user, word)
        done = call(*whom, folder=tmp_path)
        assert done.code == 0, done.said
        assert json.loads(done.out)["erased"]
        say(read_address(server.process, tmp_path), "eve", OTHER)
        nobody = ("forget-person", "http/nobody", "--yes")
        unknown = await beside(call_here, *nobody, folder=tmp_path)
        assert "Nothing is kept of http/nobody." in unknown.out
        assert "The company runs" not in unknown.err
        assert CANARY not in server.log
        await server.end()
    assert kept(tmp_path, CANARY, is_on_server=is_on_server) == 0
    assert kept(tmp_path, OTHER, is_on_server=is_on_server)
    again_found = await beside(call_here, *whom, folder=tmp_path)
    assert json.loads(again_found.out)["erased"] == {}


async def beside(call: Callable[..., T], *words: str, folder: Path) -> T:
    """Run a command in a thread; it has a loop of its own."""
    return await trio.to_thread.run_sync(lambda: call(*words, folder=folder))


def on_server(call: Callable[..., T]) -> Callable[..., T]:
    """Have a process of ours work with a database on a server."""
    return partial(
        call,
        CALLBOARD_STORE__KIND="postgresql",
        CALLBOARD_STORE__DSN='{ env = "CB_DSN" }',
        CB_DSN=shared_process().dsn("callboard"),
    )


def kept(folder: Path, word: str, *, is_on_server: bool) -> int:
    """Count in how many places a word is: files, or rows on a server."""
    if not is_on_server:
        return len(held(folder, word))
    server = PostgresqlServer(shared_process().dsn("callboard"))
    rows = PostgresqlDatabase(server).every_row()
    return sum(word.encode() in each.body for each in rows)


def assert_erased(folder: Path, *whom: str) -> None:
    exported = folder / "export"
    shown = run(*whom, "--export", "export", "--json", folder=folder)
    assert shown.code == 0, shown.said
    kept = [json.loads(line) for line in exported.read_text().splitlines()]
    assert {"inbox", "journal", "record"} <= {each["table"] for each in kept}
    assert exported.stat().st_mode & 0o077 == 0
    exported.unlink()


def test_who_only_chats_has_orders_carried_out_too(tmp_path: Path) -> None:
    chat = ("chat", "--config", str(OFFLINE))
    whom = ("forget-person", "terminal/you", "--yes", "--config", str(OFFLINE))
    assert run(*chat, folder=tmp_path, typed=f"hello {CANARY}\n").code == 0
    ordered = run_here(*whom, "--at-next-start", folder=tmp_path)
    assert ordered.code == 0, ordered.said
    assert run(*chat, folder=tmp_path, typed="hello\n").code == 0
    found = [each for each in tmp_path.rglob("*") if each.is_file()]
    assert not [each for each in found if CANARY.encode() in each.read_bytes()]


def ordering(folder: Path) -> None:
    """Order somebody to be forgotten at once, as the command does."""
    commit = order(SAM, (SAM,), NOW)
    SqliteDatabase(folder / "callboard.db").write((commit,))


async def wait_logged(server: Server, words: str) -> None:
    with trio.fail_after(PATIENCE):
        while words not in server.log:
            await trio.testing.wait_all_tasks_blocked(0.01)


async def test_told_to_end_while_it_ends_to_forget_it_does_not_begin_anew(
    tmp_path: Path,
) -> None:
    patient = "[limits]\ndrain_timeout = 2.0"
    with served(tmp_path, more=patient) as server, trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask_in_vain, server)
            await wait_logged(server, "message received")
            ordering(tmp_path)
            await wait_logged(server, '"stopping"')
            assert await server.end() == 0
    assert server.log.count('"stopped"') == 1


async def ask_in_vain(server: Server) -> None:
    async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE) as client:
        body = {"model": "anna", "messages": [{"role": "user", "content": "never"}]}
        with contextlib.suppress(httpx.TransportError):
            await client.post("/v1/chat/completions", json=body)


def test_a_company_that_forgets_stays_with_its_database(tmp_path: Path) -> None:
    path = write_settings(tmp_path)
    settings = load_app(path, {})
    source = SettingsSource(settings, partial(load_app, path, {}), Redactor(()))
    text = path.read_text()
    path.write_text(text.replace("Anna.", "Zoe."))
    source = read_again(source)
    assert source.settings.value.agents["anna"].prompt == "You are Zoe."
    moved = text.replace("callboard.db", "another.db").replace("Anna.", "Eve.")
    path.write_text(moved + "[nodes]\nttl = 7.0\n")
    known, now = source.settings.value, read_again(source).settings.value
    assert (now.store, now.nodes) == (known.store, known.nodes)
    assert now.agents["anna"].prompt == "You are Eve."
    path.write_text("x")
    assert read_again(source) is source
