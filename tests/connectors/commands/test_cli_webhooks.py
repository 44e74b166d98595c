"""Proves what `callboard webhooks` shows and changes, and that its line is believed."""

from __future__ import annotations

import io
import json
import shlex
import sys
from pathlib import Path

import pytest

from actors.journal.notices import DEAD, DUE, Notice, as_entry
from actors.webhooks.signature import Signed, key_of, verify
from connectors.admin.display import moment, when
from connectors.cli import run
from connectors.commands.webhooks import all_rows
from runtime.clock import SystemClock
from runtime.sqlite.database import SqliteDatabase
from runtime.store.rows import Commit
from tests.fakes.web.webhooks import SECRET
from tests.support.desk import commit_to, write_database

Output = pytest.CaptureFixture[str]

WAITS, FAILED = "01WAITS", "01FAILED"

SETTINGS = """
[models.scripted]
kind = "scripted"
script = "script.toml"
[agents.anna]
prompt = "You are Anna."
[connectors.http]
kind = "http"
port = 8099
[webhooks.in.deploys]
secret = { env = "DEPLOYS_SECRET" }
agents = ["anna"]
chat = "http/deploys"
task = "Tell what was deployed."
[webhooks.in.repo]
scheme = "github"
secret = { env = "REPO_SECRET" }
agents = ["anna"]
chat = "http/repo"
task = "Tell what was pushed."
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = write_database(tmp_path / "callboard.db")
    now = SystemClock().wall()
    later = Notice(
        event="turn.finished",
        made_at=now - 120,
        body="{}",
        attempts=2,
        due_at=now + 60,
        why="HTTP 503",
    )
    dead = Notice(
        event="turn.failed", made_at=now - 9000, body='{"a":1}', attempts=10, why="gone"
    )
    rows = (
        as_entry(DUE, WAITS, "ops", later, 0),
        as_entry(DEAD, FAILED, "pager", dead, 0),
    )
    commit_to(path, Commit(at=now, entries=rows))
    return path


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DEPLOYS_SECRET", SECRET)
    monkeypatch.setenv("REPO_SECRET", "a secret of sixteen bytes")
    (tmp_path / "script.toml").write_text('[[rules]]\nsay = "hello"\n')
    file = tmp_path / "callboard.toml"
    file.write_text(SETTINGS)
    return file


def webhooks(path: Path, *arguments: str) -> int:
    return run(["webhooks", arguments[0], "--db", str(path), *arguments[1:]])


def kinds(path: Path) -> dict[str, tuple[str, int, float]]:
    return {
        row.id: (row.kind, row.notice.attempts, row.notice.due_at)
        for row in all_rows(SqliteDatabase(path))
    }


def test_the_oldest_is_listed_first_with_the_reason(path: Path, capsys: Output) -> None:
    assert webhooks(path, "list") == 0
    header, first, last = capsys.readouterr().out.splitlines()
    assert header.split()[:5] == ["ID", "WEBHOOK", "EVENT", "AGE", "STATE"]
    assert first.split()[:4] == [FAILED, "pager", "turn.failed", "2h"]
    assert first.endswith("gone")
    assert "HTTP 503" in last
    assert webhooks(path, "list", "--failed", "--json") == 0
    (shown,) = json.loads(capsys.readouterr().out)
    assert (shown["id"], shown["state"], shown["tries"]) == (FAILED, "given up", 10)
    assert webhooks(path, "list", "--webhook", "nobody") == 0
    assert capsys.readouterr().out == "No event waits to be sent.\n"


def test_an_event_is_listed_with_when_it_is_tried_next(
    path: Path, capsys: Output
) -> None:
    due = {row.id: row.notice for row in all_rows(SqliteDatabase(path))}
    assert webhooks(path, "list") == 0
    failed, waits = capsys.readouterr().out.splitlines()[1:]
    at = when(due[WAITS].due_at)
    dash = f"{'-':{len(at)}}"
    assert (
        failed
        == f"01FAILED  pager    turn.failed    2h   given up  10     {dash}  gone"
    )
    assert (
        waits
        == f"01WAITS   ops      turn.finished  2m   waits     2      {at}  HTTP 503"
    )


def test_an_event_is_listed_for_programs(path: Path, capsys: Output) -> None:
    due = {row.id: row.notice for row in all_rows(SqliteDatabase(path))}
    assert webhooks(path, "list", "--webhook", "ops", "--json") == 0
    assert json.loads(capsys.readouterr().out) == [
        {
            "id": WAITS,
            "webhook": "ops",
            "event": "turn.finished",
            "state": "waits",
            "made_at": moment(due[WAITS].made_at),
            "tries": 2,
            "next_at": moment(due[WAITS].due_at),
            "why": "HTTP 503",
            "body": "{}",
        }
    ]
    assert webhooks(path, "list", "--failed", "--webhook", "ops") == 0
    assert capsys.readouterr().out == "No event waits to be sent.\n"


def test_each_change_of_an_event_is_told_of(
    path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert webhooks(path, "retry", "01W", "01FAIL") == 0
    assert capsys.readouterr().out.splitlines() == [
        "01WAITS (ops: turn.finished) is sent at once",
        "01FAILED (pager: turn.failed) is sent at once",
    ]
    assert webhooks(path, "drop", "01F") == 0
    assert capsys.readouterr().out == "01FAILED (pager: turn.failed) is dropped\n"
    assert webhooks(path, "drop", "01F") == 1
    none = "there is no event '01F' that is not sent; see: callboard webhooks list"
    assert none in capsys.readouterr().err
    now = Notice(event="b", made_at=1.0, body="{}")
    rows = tuple(as_entry(DEAD, f"02{x}", "ops", now, 0) for x in "AB")
    commit_to(path, Commit(at=1.0, entries=rows))
    assert webhooks(path, "retry", "02") == 1
    assert "2 events begin with '02'; write more" in capsys.readouterr().err
    for answer, code, left in (("no\n", 1, 2), ("y\n", 0, 0)):
        monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
        assert webhooks(path, "drop", "--all-failed") == code
        assert "Drop 2 events? [y/N] " in capsys.readouterr().err
        assert len(kinds(path)) == 1 + left
    assert webhooks(path, "drop", "01W", "--all-failed") == 2


def test_retry_has_it_sent_at_once_with_all_its_tries(path: Path) -> None:
    before = SystemClock().wall()
    assert webhooks(path, "retry", "01f", "01w") == 0
    assert kinds(path) == {FAILED: (DUE, 0, 0.0), WAITS: (DUE, 0, 0.0)}
    assert all(
        row.notice.made_at >= before - 1 for row in all_rows(SqliteDatabase(path))
    )
    assert {row.notice.body for row in all_rows(SqliteDatabase(path))} == {
        "{}",
        '{"a":1}',
    }


def test_all_that_failed_are_sent_or_dropped_after_a_yes(
    path: Path, capsys: Output
) -> None:
    assert webhooks(path, "drop", "--all-failed", "--yes") == 0
    assert list(kinds(path)) == [WAITS]
    assert "(pager: turn.failed) is dropped" in capsys.readouterr().out
    assert webhooks(path, "retry", "--all-failed") == 0
    assert "There is none." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(("retry", "02"), 1), (("drop", "01"), 1), (("retry",), 2), (("drop",), 2)],
)
def test_what_is_not_clear_changes_nothing(
    path: Path, arguments: tuple[str, ...], code: int
) -> None:
    before = kinds(path)
    assert webhooks(path, *arguments) == code
    assert kinds(path) == before


def parsed(line: str) -> tuple[str, dict[str, str], str]:
    """Give address, headers and body of a line for curl."""
    words = shlex.split(line)
    headers = dict(
        words[at + 1].split(": ", 1) for at, word in enumerate(words) if word == "-H"
    )
    return words[2], headers, words[-1]


def test_the_line_for_curl_is_believed_and_holds_no_secret(
    settings: Path, capsys: Output
) -> None:
    assert run(["webhooks", "sign", "-c", str(settings), "deploys"]) == 0
    line = capsys.readouterr().out
    address, headers, body = parsed(line)
    assert address == "http://127.0.0.1:8099/webhooks/deploys"
    assert SECRET.removeprefix("whsec_") not in line
    key = key_of(SECRET)
    now = SystemClock().wall()
    found = verify("standard", (key, key), headers, body.encode(), now=now, window=300)
    assert isinstance(found, Signed)


def test_a_file_is_signed_as_github_does(
    settings: Path, tmp_path: Path, capsys: Output
) -> None:
    file = tmp_path / "it's a body.json"
    file.write_bytes(b'{"action": "opened"}\n')
    arguments = ["--body", str(file), "--event", "issues", "--url", "https://x/w/repo"]
    assert run(["webhooks", "sign", "-c", str(settings), "repo", *arguments]) == 0
    address, headers, body = parsed(capsys.readouterr().out)
    assert (address, body) == ("https://x/w/repo", f"@{file}")
    key = key_of("a secret of sixteen bytes")
    found = verify("github", (key, key), headers, file.read_bytes(), now=0, window=0)
    assert isinstance(found, Signed)
    assert found.event == "issues"


def test_a_webhook_that_is_not_there_cannot_be_signed_for(
    settings: Path, capsys: Output
) -> None:
    assert run(["webhooks", "sign", "-c", str(settings), "nobody"]) == 1
    assert "known: deploys, repo" in capsys.readouterr().err
