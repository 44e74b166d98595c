"""Settings that change while a server runs are taken over, or said why not."""

from __future__ import annotations

import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import trio

from tests.fakes.models.key_server import open_key_server
from tests.processes.running import (
    PATIENCE,
    Finished,
    Server,
    run,
    served,
    write_settings,
)

BETWEEN = 0.05
"""Seconds between two questions while something is waited for, so that the server has
the processor for what it is to do."""

FIRST_KEY, SECOND_KEY = "key-of-one", "key-of-two"

MORE = """
[models.far]
kind = "openai"
model = "any"
base_url = "{url}"
api_key = {{ file = "secrets/key" }}

[agents.clara]
model = "far"
prompt = "You are {who}."
"""


@dataclass(frozen=True)
class Bench:
    """A server, and two providers that its model may be had from."""

    server: Server
    client: httpx.AsyncClient
    here: str
    there: str

    def write(self, url: str, *, who: str = "Clara", more: str = "") -> None:
        """Change the settings file."""
        text = MORE.format(url=url, who=who) + more
        write_settings(self.server.folder, more=text)

    async def ask(self) -> str:
        """Ask Clara something; gives what she said."""
        asked = {"model": "clara", "messages": [{"role": "user", "content": "who?"}]}
        url = f"{self.server.url}/v1/chat/completions"
        answer = await self.client.post(url, json=asked)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["choices"][0]["message"]["content"])

    async def ask_until(self, answer: str) -> None:
        """Ask again and again; every answer must be one."""
        with trio.fail_after(PATIENCE):
            while answer not in await self.ask():  # noqa: ASYNC110  another process
                await trio.sleep(BETWEEN)

    async def wait_logged(self, words: str) -> str:
        """Wait until the log says something, asking meanwhile; gives that line."""
        with trio.fail_after(PATIENCE):
            while True:
                for line in self.server.log.splitlines():
                    if words in line:
                        return line
                await self.ask()
                await trio.sleep(BETWEEN)

    async def reloads(self, outcome: str) -> bool:
        """Tell whether the metrics know one reload of this outcome."""
        text = (await self.client.get(f"{self.server.url}/metrics")).text
        return f'callboard_settings_reloads_total{{outcome="{outcome}"}} 1' in text


@asynccontextmanager
async def open_bench(folder: Path) -> AsyncGenerator[Bench]:
    secret_file(folder).parent.mkdir()
    secret_file(folder).write_text(FIRST_KEY, encoding="utf-8")
    async with (
        open_key_server("here") as here,
        open_key_server("there") as there,
        httpx.AsyncClient(timeout=PATIENCE) as client,
    ):
        with served(folder, more=MORE.format(url=here, who="Clara")) as server:
            bench = Bench(server, client, here, there)
            assert await bench.ask() == f"here {FIRST_KEY}"
            yield bench
            assert await server.end() == 0
            assert FIRST_KEY not in server.log
            assert SECOND_KEY not in server.log


def secret_file(folder: Path) -> Path:
    return folder / "secrets" / "key"


async def test_the_next_message_goes_to_the_server_that_is_set_now(
    tmp_path: Path,
) -> None:
    async with open_bench(tmp_path) as bench:
        bench.write(bench.there)
        await bench.ask_until(f"there {FIRST_KEY}")
        line = await bench.wait_logged("settings read again")
        assert '"applied":"models,script.toml"' in line.replace(" ", "")
        assert await bench.reloads("applied")


async def test_a_secret_file_that_changes_is_read_again(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as bench:
        secret_file(tmp_path).write_text(SECOND_KEY, encoding="utf-8")
        await bench.ask_until(f"here {SECOND_KEY}")


async def test_settings_with_a_mistake_change_nothing_and_say_where_it_is(
    tmp_path: Path,
) -> None:
    async with open_bench(tmp_path) as bench:
        bench.write(bench.there, more='[models.third]\nkind = "opnai"\n')
        line = await bench.wait_logged("settings not taken over")
        assert "callboard.toml:" in line
        assert "opnai" in line
        assert await bench.ask() == f"here {FIRST_KEY}"
        assert await bench.reloads("refused")
        bench.write(bench.there)
        await bench.ask_until(f"there {FIRST_KEY}")


async def test_a_secret_that_is_missing_for_a_while_is_found_again(
    tmp_path: Path,
) -> None:
    async with open_bench(tmp_path) as bench:
        secret_file(tmp_path).unlink()
        await bench.wait_logged("settings not taken over")
        assert await bench.ask() == f"here {FIRST_KEY}"
        secret_file(tmp_path).write_text(SECOND_KEY, encoding="utf-8")
        await bench.ask_until(f"here {SECOND_KEY}")


async def test_what_waits_for_a_restart_is_named(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as bench:
        path = bench.server.folder / "callboard.toml"
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("callboard.db", "other.db"), encoding="utf-8")
        line = await bench.wait_logged("settings read again")
        assert '"waiting_for_a_restart":"store"' in line.replace(" ", "")


async def test_an_agent_may_change_its_model_while_it_runs(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as bench:
        text = MORE.format(url=bench.there, who="Clara")
        renamed = text.replace("models.far", "models.near").replace('"far"', '"near"')
        write_settings(bench.server.folder, more=renamed)
        await bench.ask_until(f"there {FIRST_KEY}")
        line = await bench.wait_logged("settings read again")
        assert '"applied":"models,agents,script.toml"' in line.replace(" ", "")


async def test_sighup_has_settings_read_at_once(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as bench:
        bench.write(bench.there)
        bench.server.process.send_signal(signal.SIGHUP)
        await bench.ask_until(f"there {FIRST_KEY}")
        assert bench.server.process.poll() is None


async def test_config_diff_tells_what_is_saved_and_not_in_use(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as bench:
        folder = bench.server.folder
        same = await trio.to_thread.run_sync(diff, folder)
        assert (same.code, same.out.splitlines()[-1]) == (0, "what is saved is in use")
        path = folder / "callboard.toml"
        text = path.read_text(encoding="utf-8")
        more = '[store]\nsynchronous = "normal"'
        path.write_text(text.replace("[store]", more), encoding="utf-8")
        await bench.wait_logged("settings read again")
        other = await trio.to_thread.run_sync(diff, folder)
        assert other.code == 1
        assert '- store.synchronous = "full"\n' in other.out
        assert '+ store.synchronous = "normal"\n' in other.out
        assert "store waits for a restart: " in other.out
        assert FIRST_KEY not in same.said + other.said
    nobody = diff(tmp_path)
    assert nobody.code == 2
    assert "nobody runs with the database" in nobody.err
    assert "perhaps the settings changed since" in nobody.err


def test_who_runs_with_another_database_than_is_saved_by_now_is_told_of(
    tmp_path: Path,
) -> None:
    with served(tmp_path) as server:
        path = tmp_path / "callboard.toml"
        text = path.read_text(encoding="utf-8")
        moved = text.replace('path = "callboard.db"', 'path = "off/other.db"')
        path.write_text(moved, encoding="utf-8")
        hint = f"process {server.process.pid}, which these settings started, runs with"
        old, new = str(tmp_path / "callboard.db"), str(tmp_path / "off/other.db")
        differs = diff(tmp_path)
        assert differs.code == 2
        assert f"nobody runs with the database {new}, but " in differs.err
        assert f"{hint} the database {old}: perhaps" in differs.err
        queue = run("queue", "list", "--config", "callboard.toml", folder=tmp_path)
        assert queue.code == 1
        assert hint in queue.err
        assert f"name its database: --db {old}" in queue.err
        assert f"there is no database {new}" in queue.err


def diff(folder: Path) -> Finished:
    return run("config", "diff", "--config", "callboard.toml", folder=folder)
