"""Proves that a running company shows its actors to who has the key of its server."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import httpx
import pytest

from tests.processes.running import PATIENCE, Finished, run, run_here, served

SECRET = "key-8c1d"  # noqa: S105  of this test alone
SECOND = """
[connectors.second]
kind = "http"
port = {port}
api_key = {{ env = "TREE_KEY" }}
"""


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        number: int = free.getsockname()[1]
        return number


def tree(folder: Path, *arguments: str) -> Finished:
    given = ("tree", "--config", "callboard.toml", *arguments)
    return run_here(*given, folder=folder, TREE_KEY=SECRET)


def test_the_actors_of_a_running_company_are_shown(tmp_path: Path, port: int) -> None:
    second = ("--connector", "second")
    with served(tmp_path, more=SECOND.format(port=port), TREE_KEY=SECRET):
        given = ("tree", "--config", "callboard.toml", *second)
        shown = run(*given, folder=tmp_path, TREE_KEY=SECRET)
        assert shown.code == 0, shown.err
        first, *below = shown.out.splitlines()
        assert first == "callboard  Supervisor  0/10000"
        assert "  store  Keeper  0/256" in below
        assert "      agent  Agent  0/10000" in below
        branch = tree(tmp_path, *second, "callboard/agents/ben", "--json")
        (root,) = json.loads(branch.out)["roots"]
        assert (root["name"], root["refusal"]) == ("callboard/agents/ben", "")
        url = f"http://127.0.0.1:{port}/actors"
        assert httpx.get(url, timeout=PATIENCE).status_code == 401
        assert SECRET not in shown.said + branch.said
    gone = tree(tmp_path, *second)
    assert gone.code == 1
    assert "is `callboard serve` running?" in gone.err


def test_an_actor_is_asked_for_by_its_name_or_the_end_of_it(
    tmp_path: Path, port: int
) -> None:
    second = ("--connector", "second")
    with served(tmp_path, more=SECOND.format(port=port), TREE_KEY=SECRET):
        by_end = tree(tmp_path, *second, "anna")
        assert by_end.code == 0, by_end.err
        assert "  agent  Agent  0/10000" in by_end.out.splitlines()
        wrong = tree(tmp_path, *second, "ana")
        assert (wrong.code, wrong.out) == (1, "")
        assert "no actor has the name 'ana'" in wrong.err
        assert "Did you mean callboard/agents/anna?" in wrong.err
        several = tree(tmp_path, *second, "agent", "--json")
        assert (several.code, several.out) == (1, "")
        assert "callboard/agents/anna/agent, callboard/agents/ben/agent" in several.err
        url = f"http://127.0.0.1:{port}/actors?top=ana"
        key = {"authorization": f"Bearer {SECRET}"}
        refused = httpx.get(url, headers=key, timeout=PATIENCE)
        assert refused.status_code == 404
        assert refused.json()["error"]["code"] == "actor_not_found"


def test_it_is_said_what_is_missing(tmp_path: Path, port: int) -> None:
    with served(tmp_path, more=SECOND.format(port=port), TREE_KEY=SECRET):
        for arguments, said in (
            ((), "there are several; give --connector: http, second"),
            (("--connector", "http"), "connectors.http: give it a port"),
            (("--connector", "none"), "no such HTTP server"),
        ):
            told = tree(tmp_path, *arguments)
            assert told.code == 2
            assert said in told.err
