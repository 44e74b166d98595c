"""Proves what `callboard route explain` tells, by settings and database as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.rules.groups.reply_windows import KIND
from connectors.cli import run
from runtime.clock import SystemClock
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.store import SqliteStore
from runtime.store.rows import Commit, Entry

Output = pytest.CaptureFixture[str]

SETTINGS = """
default_agent = "anna"
store.path = '{db}'
[connectors.terminal]
kind = "terminal"
[models.scripted]
kind = "scripted"
script = "script.toml"
[agents.anna]
prompt = "I am Anna."
groups.reply_window = 5.0
[agents.ben]
prompt = "I am Ben."
groups.mention_patterns = ["benny"]
[[routes]]
agent = "ben"
chat = "ops"
kind = "group"
activation = "always"
"""


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    (tmp_path / "script.toml").write_text('[default]\nreply = "so"\n')
    path = tmp_path / "callboard.toml"
    path.write_text(SETTINGS.format(db=tmp_path / "callboard.db"))
    return path


def told(settings: Path, capsys: Output, *options: str) -> dict[str, Any]:
    line = ["route", "explain", "--config", str(settings), "--json", *options]
    assert run(line) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def answered(db: Path, *names: str) -> None:
    """Write down that agents have just answered somebody."""

    async def fill() -> None:
        store = await SqliteStore.open(SqliteFile(db))
        entries = tuple(
            Entry(kind=KIND, id=name, owner="anna", part=0, body=b"{}")
            for name in names
        )
        await store.commit(Commit(at=SystemClock().wall() - 60, entries=entries))
        await store.aclose()

    trio.run(fill)


def test_in_a_direct_chat_the_routes_decide(settings: Path, capsys: Output) -> None:
    found = told(settings, capsys, "@ben hi", "--chat", "terminal/ops")
    assert found["outcome"] == ["ben answers: mention"]
    found = told(settings, capsys, "hi", "--chat", "terminal/ops")
    assert found["outcome"] == ["anna answers: default"]
    rules = [step["rule"] for step in found["steps"]]
    assert rules == ["addressed", "delegated", "mention", "binding", "default"]


@pytest.mark.parametrize(
    ("text", "options", "outcome"),
    [
        ("hi", "--chat terminal/ops", ["silent", "answers: always"]),
        ("hi", "--chat terminal/hall", ["silent", "silent"]),
        ("hi, Benny", "--chat terminal/hall", ["silent", "answers: one"]),
        ("hi", "--chat terminal/ops --present anna", ["silent", "silent: it is not"]),
        ("hi", "--chat terminal/ops --present ANNA", ["silent", "silent: it is not"]),
        ("hi", "--chat terminal/ops --reply-to anna", ["answers: it is", "silent"]),
        ("hi", "--chat terminal/hall --mention ben", ["answers: it is", "silent"]),
        ("@ben", "--chat terminal/hall --bot", ["silent: another", "silent: another"]),
    ],
)
def test_in_a_group_each_agent_decides(
    settings: Path, capsys: Output, text: str, options: str, outcome: list[str]
) -> None:
    found = told(settings, capsys, text, "--group", *options.split())
    for line, part in zip(found["outcome"], outcome, strict=True):
        assert part in line


def test_reply_windows_are_those_of_the_database(
    settings: Path, capsys: Output
) -> None:
    db = settings.with_name("callboard.db")
    answered(db, "anna/terminal/hall//zoe", "ben/terminal/hall//zoe", "odd")
    before = db.read_bytes()
    where = ("hi", "--group", "--chat", "terminal/hall", "--sender")
    found = told(settings, capsys, *where, "zoe")
    assert found["outcome"][0] == "anna answers: its reply window is open"
    (window,) = [
        step["why"]
        for step in found["steps"]
        if (step["agent"], step["rule"]) == ("anna", "window")
    ]
    assert window.startswith("it answered this person 1.0 minutes ago")
    assert "silent" in told(settings, capsys, *where, "max")["outcome"][0]
    assert db.read_bytes() == before


def test_who_may_not_write_is_heard_by_nobody(settings: Path, capsys: Output) -> None:
    door = """
[connectors.http]
kind = "http"
access = { people = "listed", allowed = ["zoe"] }
"""
    settings.write_text(settings.read_text() + door)
    where = ("hi", "--chat", "http/ops", "--sender")
    found = told(settings, capsys, *where, "zoe")
    assert found["steps"][0]["why"] == "admitted (listed)"
    assert found["outcome"] == ["anna answers: default"]
    (outcome,) = told(settings, capsys, *where, "max")["outcome"]
    assert outcome.startswith("nobody hears it: http/max is refused (unknown_sender)")
    assert told(settings, capsys, *where[:-1])["outcome"] == found["outcome"]
    assert told(settings, capsys, *where, "http/zoe") == found


def test_it_is_told_to_people_as_a_table(settings: Path, capsys: Output) -> None:
    line = ["route", "explain", "hi", "--config", str(settings), "--group"]
    assert run([*line, "--chat", "terminal/ops"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].split() == ["AGENT", "RULE", "VERDICT", "WHY"]
    assert shown[-1] == "ben answers: always"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ("--chat nope/x", "there is no connector 'nope'; known: terminal, http"),
        ("--chat terminal", "name the chat, too, as terminal/CHAT"),
        ("--chat terminal/x --present ana", "there is no agent 'ana'; known: anna"),
        ("--chat terminal/x --sender http/zoe", "'http/zoe' is no account on 'term"),
        ("--chat terminal/x --reply-to ana", "there is no agent 'ana'"),
        ("", "Missing option '--chat'"),
    ],
)
def test_a_mistake_is_told(
    settings: Path, capsys: Output, options: str, error: str
) -> None:
    settings.write_text(f'{settings.read_text()}[connectors.http]\nkind = "http"\n')
    line = ["route", "explain", "hi", "--config", str(settings), *options.split()]
    assert run(line) == 2
    assert error in capsys.readouterr().err
