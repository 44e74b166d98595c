"""Proves that a conversation can be told again from its journal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from connectors.cli import run
from runtime.sqlite.database import SqliteDatabase
from runtime.store.rows import Append, Commit, NewEvent
from tests.support.desk import (
    FAILED,
    HELLO,
    HELP,
    STREAM,
    SUM,
    commit_to,
    write_database,
)
from tests.support.store.rows import NOW, noting

Output = pytest.CaptureFixture[str]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_database(tmp_path / "callboard.db")


def replay(path: Path, *arguments: str) -> int:
    return run(["replay", "--db", str(path), *arguments])


def scenes(path: Path, capsys: Output, name: str = "kitchen") -> list[dict[str, Any]]:
    assert replay(path, name, "--json") == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_every_event_is_told_in_its_order(path: Path, capsys: Output) -> None:
    told = [(each["message"], each["what"]) for each in scenes(path, capsys)]
    answered = ["heard", "answered", "delivery"]
    assert told[:3] == [(HELLO, what) for what in answered]
    assert [what for name, what in told if name == SUM] == [
        "heard", "round", "tool", "answered", "delivery"
    ]  # fmt: skip
    assert [what for name, what in told if name == HELP] == answered
    assert [what for name, what in told if name == FAILED] == [
        "heard", "failed", "delivery"
    ]  # fmt: skip
    assert [what for _, what in told[-3:]] == ["heard", "deferred", "delivery"]


def test_a_scene_says_all_that_is_known(path: Path, capsys: Output) -> None:
    found = {(each["message"], each["what"]): each for each in scenes(path, capsys)}
    assert found[HELLO, "delivery"]["receipt"] == "receipt-1"
    assert found[HELLO, "answered"]["run"]["usage"]["input_tokens"] == 10
    assert found[SUM, "round"]["calls"] == [
        {"name": "calculate", "arguments": '{"expression":"12*7"}'}
    ]
    assert (found[SUM, "tool"]["who"], found[SUM, "tool"]["text"]) == (
        "calculate",
        "84",
    )
    assert found[HELP, "answered"]["text"] == "the commands"
    assert found[FAILED, "delivery"]["text"] == "I could not"
    assert found[FAILED, "failed"]["reason"] == "model"


def test_people_read_it_as_lines(path: Path, capsys: Output) -> None:
    assert replay(path, "kitchen") == 0
    out = capsys.readouterr().out
    assert "  heard      Sam: hello, the key is" in out
    assert "  answered   anna: Hello Sam.\n" + " " * 42 + "What can I do?" in out
    assert "  tool       calculate: 84\n" in out
    assert f"{HELLO}:0 sent, 1 attempt, receipt receipt-1" in out
    assert "reason model, attempt 3 with big, 0.50 s, 10 + 2 tokens" in out
    assert "again at 2" in out
    assert "\x1b" not in out


def test_what_was_settled_long_ago_is_told_from_the_journal_alone(
    path: Path, capsys: Output
) -> None:
    with SqliteDatabase(path).inspect() as rows:
        body = rows.events(STREAM, limit=1)[0].event.body
    append = Append(
        stream="anna/cli/attic//sam",
        expected=0,
        part=7,
        events=(NewEvent("exchanged", body.replace(b"01HELLO", b"00OLD")),),
    )
    commit_to(path, Commit(at=NOW, appends=(append,)))
    heard, answered = scenes(path, capsys, "anna/cli/attic//sam")
    assert (heard["what"], heard["who"]) == ("heard", "Sam")
    assert heard["text"].startswith("hello")
    assert answered["text"].startswith("Hello Sam.")


def test_what_cannot_be_read_is_told_as_that(path: Path, capsys: Output) -> None:
    strange = (NewEvent("exchanged", b"\xff"), NewEvent("danced", b"{}"))
    append = Append(stream="x", expected=0, part=7, events=strange)
    commit_to(path, Commit(at=NOW, appends=(append,)))
    unreadable, unknown = scenes(path, capsys, "x")
    assert unreadable["what"] == "exchanged"
    assert unreadable["text"].startswith("(")
    assert unknown["what"] == "danced"


def test_without_a_name_conversations_are_listed(path: Path, capsys: Output) -> None:
    assert replay(path) == 0
    header, line = capsys.readouterr().out.splitlines()
    assert header.split() == ["CONVERSATION", "MESSAGES", "TOKENS", "LAST"]
    assert line.split()[:2] == [STREAM, "6"]
    assert replay(path, "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["conversation"], found["message_count"]) == (STREAM, 6)


def test_a_database_without_conversations_says_so(
    tmp_path: Path, capsys: Output
) -> None:
    path = tmp_path / "new.db"
    commit_to(path, Commit(at=NOW))
    assert replay(path) == 0
    assert capsys.readouterr().out == "There is no conversation yet.\n"


def test_a_name_must_mean_one_conversation(path: Path, capsys: Output) -> None:
    assert replay(path, "cellar") == 1
    assert "no conversation has 'cellar' in its name" in capsys.readouterr().err
    names = [f"anna/cli/kitchen{number}//sam" for number in range(7)]
    rows = tuple(noting(name, kind="conversation") for name in names)
    commit_to(path, Commit(at=NOW, records=rows))
    assert replay(path, "kitchen") == 1
    err = capsys.readouterr().err
    assert "more than one conversation has 'kitchen' in its name: " in err
    assert err.endswith(", …; give more of it\n")
