"""Proves that `callboard prompt` reads memory as a turn would, beside a server."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from httpx import URL, AsyncClient

from actors.people.identity import Person, link
from actors.people.rows import as_commit
from connectors.app.app import open_app
from connectors.chat.platforms import serving
from connectors.cli import run
from connectors.config.app import AppConfig
from connectors.settings.load import load_app
from connectors.web.openai.transport import HttpTransport
from runtime.clock import SystemClock
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.store import SqliteStore
from runtime.store.facts import SaveFact
from runtime.store.rows import Commit, Record
from tests.fakes.models.openai_server import spoken
from tests.fakes.models.server import RawServer, chunked, open_raw_server
from tests.support.desk import commit_to, write_database
from tests.support.store.rows import remembering

Output = pytest.CaptureFixture[str]

SETTINGS = """
default_agent = "anna"
store.path = "callboard.db"
projects.folder = "projects"
[connectors.cli]
kind = "terminal"
[connectors.web]
kind = "http"
[models.scripted]
kind = "scripted"
script = "script.toml"
[agents.anna]
prompt = "Be brief."
"""
SAM, WEB = "person:cli/sam", "person:web/sam7"


def fact(name: str, text: str, scope: str = SAM, **fields: Any) -> SaveFact:
    words = tuple(text.lower().split())
    given: dict[str, Any] = {"agent": "anna", "words": words, **fields}
    return remembering(name, text=text, scope=scope, **given)


FACTS = (
    fact("1", "is allergic to nuts", category="sticky"),
    fact("2", "likes green tea", category="user_preference"),
    fact("3", "fair", kind="state", key="project"),
    fact("4", "they spoke of boats", WEB, kind="summary"),
    fact("5", "is called Sam", WEB, category="profile"),
    fact("6", "a secret of Zoe about tea", "person:cli/zoe", category="sticky"),
    fact("7", "the group likes tea", "chat:cli/kitchen/", category="sticky"),
)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "projects").mkdir()
    (tmp_path / "projects" / "fair.md").write_text("The fair is in May.")
    (tmp_path / "script.toml").write_text('[default]\nreply = "so"\n')
    (tmp_path / "callboard.toml").write_text(SETTINGS)
    path = write_database(tmp_path / "callboard.db")
    now = SystemClock().wall()
    commit_to(path, Commit(at=now, facts=FACTS))
    linked = link(Person("cli/sam", name="Sam"), Person("web/sam7", name="Sam"))
    assert linked is not None
    told = Record(kind="audit", id="link", owner="", part=0, body=b"{}")
    commit_to(path, as_commit(linked, {}, now, (told,)))
    with contextlib.chdir(tmp_path):
        yield path


def shown(capsys: Output, *options: str) -> dict[str, Any]:
    assert run(["prompt", "anna", "--json", *options]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def texts(found: dict[str, Any]) -> dict[str, str]:
    return {layer["name"]: layer["text"] for layer in found["layers"]}


@pytest.mark.usefixtures("database")
def test_each_kind_of_memory_is_in_its_layer(capsys: Output) -> None:
    found = shown(capsys, "--sender", "cli/sam", "--for", "Shall we have green tea?")
    layers = texts(found)
    assert "- sticky: is allergic to nuts" in layers["sticky"]
    assert "likes green tea" in layers["relevant"]
    assert "- project: fair" in layers["states"]
    assert layers["project"].endswith("The fair is in May.")
    assert found["system"].endswith(layers["relevant"])
    assert "Zoe" not in json.dumps(found)


@pytest.mark.usefixtures("database")
def test_what_was_told_from_a_linked_account_is_known_too(capsys: Output) -> None:
    found = shown(capsys, "--sender", "web/sam7", "--for", "What about the boats?")
    layers, memory = texts(found), found["memory"]
    assert "boats" in layers["summaries"]
    assert "is called Sam" in layers["profile"]
    assert memory["person"] == "cli/sam"
    assert memory["accounts"] == ["cli/sam", "web/sam7"]
    assert memory["scopes"] == [SAM, WEB, "agent"]


@pytest.mark.usefixtures("database")
def test_in_a_group_only_the_groups_memory_is_read(capsys: Output) -> None:
    options = ("--sender", "sam", "--chat", "cli/kitchen", "--group", "--for", "Tea?")
    found = shown(capsys, *options)
    assert found["memory"]["scopes"] == ["chat:cli/kitchen/", "agent"]
    assert "the group likes tea" in texts(found)["sticky"]
    assert "nuts" not in found["system"]


@pytest.mark.usefixtures("database")
def test_the_newest_private_conversation_is_taken(capsys: Output) -> None:
    found = shown(capsys, "--sender", "cli/sam", "--for", "so?")
    said = [line["text"] for line in found["messages"]]
    assert said[0].startswith("hello, the key is")


@pytest.mark.usefixtures("database")
def test_people_are_told_what_was_read_and_why(capsys: Output) -> None:
    assert run(["prompt", "anna", "--sender", "cli/sam", "--for", "green tea?"]) == 0
    out = capsys.readouterr().out
    assert "memory of cli/sam, also web/sam7\nread: person:cli/sam" in out
    line = next(each for each in out.splitlines() if each.endswith("likes green tea"))
    assert line.startswith("relevant")


async def test_a_running_server_is_not_disturbed(
    database: Path, capsys: Output
) -> None:
    store = await SqliteStore.open(SqliteFile(database))
    before = {path.name for path in database.parent.iterdir()}
    options = ["prompt", "anna", "--json", "--sender", "cli/sam", "--for", "green tea"]
    assert await trio.to_thread.run_sync(run, options) == 0
    assert "likes green tea" in capsys.readouterr().out
    await store.commit(Commit(at=0.0, facts=FACTS))
    assert {path.name for path in database.parent.iterdir()} == before
    await store.aclose()


@pytest.mark.usefixtures("database")
def test_an_account_of_another_connector_is_refused(capsys: Output) -> None:
    assert run(["prompt", "anna", "--sender", "web/sam7", "--chat", "cli/x"]) == 2
    assert "is no account on 'cli'" in capsys.readouterr().err


SENT = """
default_agent = "anna"
store.path = "callboard.db"
[connectors.web]
kind = "http"
port = 0
[agent_defaults]
model = "asked"
[models.asked]
kind = "openai"
model = "any"
base_url = "{url}"
api_key = {{ env = "ANY" }}
[skills]
folders = ["skills"]
[agents.anna]
prompt = "Be brief."
tools = ["clock", "memory_search", "save_memory", "run_shell", "send_file"]
skills = ["*"]
delegates = ["ben"]
[agents.ben]
prompt = "I am Ben."
"""
KEY = "sk-31b7c0a4"
SKILL = "---\nname: pdf\ndescription: about pdf\ntriggers: [invoice]\n---\nRead it."


@asynccontextmanager
async def serving_anna(config: AppConfig) -> AsyncGenerator[AsyncClient]:
    """Run a company; give a client that talks with it."""
    facts = (
        fact("1", "likes green tea", WEB),
        fact("2", "no nuts", WEB, category="sticky"),
    )
    async with open_app(config, serving(config)) as app, AsyncClient() as client:
        await app.store.commit(Commit(at=SystemClock().wall(), facts=facts))
        server = app.transports["web"]
        assert isinstance(server, HttpTransport)
        host, port = await server.wait_listening()
        client.base_url = URL(f"http://{host}:{port}/v1")
        client.headers["X-Callboard-Conversation"] = "kitchen"
        yield client


async def printed(capsys: Output, *words: str) -> dict[str, Any]:
    assert await trio.to_thread.run_sync(run, [*words, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def settings_for(folder: Path, model: RawServer) -> AppConfig:
    path = folder / "callboard.toml"
    path.write_text(SENT.format(url=model.base_url))
    return load_app(path, {"ANY": KEY}).value


def undated(system: str) -> str:
    return re.sub(r"It is \w+, [0-9-]+ [0-9:]+", "", system)


async def test_what_is_shown_is_what_is_sent(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "skills" / "pdf").mkdir(parents=True)
    (tmp_path / "skills" / "pdf" / "SKILL.md").write_text(SKILL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANY", KEY)
    answer = b"".join(step for step in spoken("yes") if isinstance(step, bytes))
    where = ("--chat", "web/kitchen", "--sender", "sam7")
    tools: list[str] = []
    async with (
        open_raw_server(lambda: chunked(answer), keep_open=True) as model,
        serving_anna(settings_for(tmp_path, model)) as client,
    ):
        for number, text in enumerate(("Is green tea an invoice?", "What of tea?")):
            shown = await printed(capsys, "prompt", "anna", *where, "--for", text)
            said = {"role": "user", "content": text}
            body = {"model": "anna", "user": "sam7", "messages": [said]}
            answered = await client.post("/chat/completions", json=body)
            assert answered.status_code == 200, answered.text
            sent = json.loads(model.bodies[-1])
            system, *lines = [each["content"] for each in sent["messages"]]
            assert undated(shown["system"]) == undated(system)
            assert "likes green tea" in system
            assert [each["text"] for each in shown["messages"]] == lines
            assert len(lines) == 1 + 2 * number
            tools = [each["function"]["name"] for each in sent["tools"]]
            assert shown["tools"] == tools
    listed = await printed(capsys, "tools", "list", "--agent", "anna")
    assert [each["tool"] for each in listed["tools"]] == tools
