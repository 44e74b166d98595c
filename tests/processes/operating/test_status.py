"""Proves that one screen says how a company is doing, with no secrets but the key."""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path

import httpx
import pytest

from runtime import __version__
from runtime.sqlite.database import SqliteDatabase
from runtime.store.rows import Commit, Settle
from tests.fakes.sites.threaded_site import open_little_site
from tests.processes.running import (
    PATIENCE,
    Finished,
    run,
    run_here,
    served,
    write_settings,
)
from tests.support.store.rows import NOW, accepting

BUDGET = """
[[budgets]]
scope = "all"
hard_usd = 5.0
"""


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        number: int = free.getsockname()[1]
        return number


def status(folder: Path, *arguments: str, port: int = 0) -> Finished:
    return run_here("status", *arguments, folder=folder, admin_port=port)


def ask(url: str, text: str, agent: str = "anna") -> int:
    body = {"model": agent, "messages": [{"role": "user", "content": text}]}
    answer = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=PATIENCE)
    return answer.status_code


def test_a_company_that_runs_well_says_so(tmp_path: Path, port: int) -> None:
    with served(tmp_path, more=BUDGET, admin_port=port) as server:
        assert ask(server.url, "hello") == 200
        shown = run("status", folder=tmp_path, admin_port=port)
        found = json.loads(status(tmp_path, "--json", port=port).out)
    assert shown.code == 0, shown.said
    lines = shown.out.splitlines()
    assert lines[0].startswith(f"callboard {__version__}: process {server.process.pid}")
    assert "ready      yes" in lines
    assert "waiting    0 messages, 0 deliveries" in lines
    assert "failed     0 messages, 0 deliveries" in lines
    assert any(line.startswith("today      1 turn, ") for line in lines)
    assert "budgets    1; the least: 5.00 $ left for all" in lines
    assert lines[-1] == "all is well"
    assert max(map(len, lines)) < 100
    assert (found["ready"], found["process"]) == (True, server.process.pid)
    assert (found["turns_today"], found["to_do"]) == (1, [])


def test_what_failed_and_who_does_not_serve_is_to_be_done(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        assert ask(server.url, "hello") == 200
        failed = (Settle("m1", "dead", "why"),)
        database = SqliteDatabase(tmp_path / "callboard.db")
        database.write((accepting("m1"), Commit(at=NOW, settles=failed)))
        unknown = status(tmp_path)
    assert unknown.code == 1
    assert "to do      nobody knows whether it is ready: " in unknown.out
    stopped = status(tmp_path)
    assert stopped.code == 1
    assert stopped.out.startswith(f"callboard {__version__}: nobody serves\n")
    assert "to do      nobody serves: callboard serve\n" in stopped.out
    assert "failed     1 message, 0 deliveries\n" in stopped.out
    assert "to do      1 message failed: callboard queue list\n" in stopped.out


def test_tokens_that_are_nearly_used_up_are_to_be_done(tmp_path: Path) -> None:
    budget = '[[budgets]]\nscope = "all"\nhard_tokens = 10\n'
    with served(tmp_path, more=budget) as server:
        ask(server.url, "hello")
    shown = status(tmp_path).out
    assert "budgets    1; the least: " in shown
    assert " tokens left for all\n" in shown
    assert "tokens left in the budget of all for a day: callboard usage" in shown


FAR = """
[models.far]
kind = "openai"
model = "any"
base_url = "{url}/v1"
api_key = {{ env = "FAR_KEY" }}

[agents.clara]
model = "far"
prompt = "You are Clara."
"""


def test_an_account_that_is_refused_is_to_be_done_though_others_answer(
    tmp_path: Path, port: int
) -> None:
    refusal = {"POST /v1/chat/completions": (401, b"{}")}
    with (
        open_little_site(refusal) as far,
        served(
            tmp_path,
            more=FAR.format(url=far.url),
            admin_port=port,
            FAR_KEY="refused-for-this-test",
        ) as server,
    ):
        assert ask(server.url, "hello") == 200
        assert status(tmp_path, port=port).out.endswith("all is well\n")
        assert ask(server.url, "hello", "clara") != 200
        shown = status(tmp_path, port=port)
    assert shown.code == 1
    assert "ready      yes\n" in shown.out
    assert "to do      account far is not let in: check its key\n" in shown.out


def test_a_copy_is_looked_at_without_settings(tmp_path: Path) -> None:
    with served(tmp_path / "company") as server:
        assert ask(server.url, "hello") == 200
        run_here("backup", "copy.db", folder=tmp_path / "company")
    (tmp_path / "elsewhere").mkdir()
    shutil.copy(tmp_path / "company" / "copy.db", tmp_path / "elsewhere")
    shown = status(tmp_path / "elsewhere", "--db", "copy.db")
    assert shown.code == 0, shown.said
    assert "database   copy.db" in shown.out
    assert "all is well" in shown.out


def test_a_company_that_never_ran_is_told_what_to_do(tmp_path: Path) -> None:
    write_settings(tmp_path)
    shown = status(tmp_path)
    assert shown.code == 1
    assert "there is no database" in shown.err
