"""Proves what `callboard queue` lists and shows, and that it changes what it says."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from connectors.cli import run
from runtime.sqlite.database import SqliteDatabase
from runtime.store.rows import Commit, Receipt, Settle
from tests.processes.running import write_settings
from tests.support.desk import (
    FAILED,
    HELLO,
    HELP,
    SUM,
    UNHEARD,
    WAITING,
    commit_to,
    write_database,
)
from tests.support.store.rows import NOW, accepting, enqueueing

ROOT = Path(__file__).parents[4]

Output = pytest.CaptureFixture[str]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_database(tmp_path / "callboard.db")


def queue(path: Path, *arguments: str) -> int:
    return run(["queue", arguments[0], "--db", str(path), *arguments[1:]])


def states(path: Path) -> dict[str, str]:
    with SqliteDatabase(path).inspect() as rows:
        return {row.id: row.state for row in rows.messages()}


def deliveries(path: Path) -> dict[str, str]:
    with SqliteDatabase(path).inspect() as rows:
        return {row.id: row.state for row in rows.deliveries()}


def test_what_is_not_completed_is_listed_newest_first(
    path: Path, capsys: Output
) -> None:
    assert queue(path, "list") == 0
    header, *lines, _ = capsys.readouterr().out.splitlines()
    assert header.split() == [
        "ID", "STATUS", "PRIO", "TRIES", "CHAT", "AGENT", "AGE", "DUE", "IN",
        "REASON", "TEXT",
    ]  # fmt: skip
    rows = [line.split(maxsplit=9) for line in lines]
    assert [row[:2] for row in rows] == [
        [UNHEARD, "pending"],
        [WAITING, "pending"],
        [FAILED, "failed"],
    ]
    waiting = rows[1]
    assert waiting[2:6] == ["5", "1", "cli/kitchen", "anna"]
    assert waiting[7:] == ["1h", "model", "be patient"]
    assert rows[0][5] == "-", "nobody has taken it up yet"


def test_columns_stand_below_each_other(path: Path, capsys: Output) -> None:
    assert queue(path, "list") == 0
    *lines, _ = capsys.readouterr().out.splitlines()
    place = lines[0].index("TEXT")
    assert all(line[place - 2 : place] == "  " for line in lines)
    assert all(line[place] != " " for line in lines)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (["completed"], {HELLO, SUM, HELP}),
        (["failed"], {FAILED}),
        (["failed", "pending"], {FAILED, WAITING, UNHEARD}),
        (["running"], set[str]()),
        (["cancelled"], set[str]()),
    ],
)
def test_a_state_may_be_asked_for(
    path: Path, asked: list[str], expected: set[str], capsys: Output
) -> None:
    options = [each for state in asked for each in ("--state", state)]
    assert queue(path, "list", "--json", *options) == 0
    jobs = json.loads(capsys.readouterr().out)
    assert {job["id"] for job in jobs} == expected
    assert {job["status"] for job in jobs} <= set(asked)


def test_an_empty_list_says_so(path: Path, capsys: Output) -> None:
    assert queue(path, "list", "--state", "running") == 0
    assert capsys.readouterr().out == "No message is running.\n"


def test_a_list_that_is_cut_says_so(path: Path, capsys: Output) -> None:
    assert queue(path, "list", "--limit", "2") == 0
    *lines, _ = capsys.readouterr().out.splitlines()
    assert (len(lines), lines[-1]) == (4, "There are more than these 2; see --limit.")


def test_a_list_for_programs_has_whole_ids_and_times(
    path: Path, capsys: Output
) -> None:
    assert queue(path, "list", "--json", "--state", "failed") == 0
    (job,) = json.loads(capsys.readouterr().out)
    assert (job["id"], job["state"], job["attempts"]) == (FAILED, "dead", 3)
    assert (job["sender_name"], job["text"]) == ("Sam", "break\x1b[31m it")
    assert job["due_at"] is None
    assert job["settled_at"][10] == "T"
    assert job["settled_at"][-6] in "+-"


def test_one_message_is_shown_with_all_that_belongs_to_it(
    path: Path, capsys: Output
) -> None:
    assert queue(path, "show", "01S") == 0
    out = capsys.readouterr().out
    assert f"id            {SUM}\n" in out
    assert "status        completed\n" in out
    assert "conversation  anna/cli/kitchen//sam\n" in out
    assert f"{SUM}:0   unknown  1 " in out
    assert "nobody knows" in out
    assert 'calls calculate {"expression":"12*7"}' in out
    assert "tool       calculate: 84" in out


def test_one_message_for_programs(path: Path, capsys: Output) -> None:
    assert queue(path, "show", f"{FAILED}:0", "--json") == 0
    whole = json.loads(capsys.readouterr().out)
    assert whole["message"]["id"] == FAILED
    assert [each["state"] for each in whole["deliveries"]] == ["pending"]
    assert whole["steps"] == []


def test_what_people_wrote_cannot_change_the_terminal(
    path: Path, capsys: Output
) -> None:
    assert queue(path, "show", FAILED) == 0
    assert queue(path, "list") == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "break␛[31m it" in out


def test_a_failed_message_and_a_waiting_one_are_tried_again(
    path: Path, capsys: Output
) -> None:
    assert queue(path, "retry", FAILED, "01W", f"{SUM}:0") == 0
    assert capsys.readouterr().out.splitlines() == [
        f"message {FAILED} is tried again",
        f"message {WAITING} no longer waits for its time",
        f"delivery {SUM}:0 is sent again",
    ]
    assert states(path)[FAILED] == "accepted"


def test_messages_and_deliveries_are_dropped(path: Path, capsys: Output) -> None:
    assert queue(path, "drop", WAITING, f"{SUM}:0") == 0
    assert capsys.readouterr().out.splitlines() == [
        f"message {WAITING} is dropped",
        f"delivery {SUM}:0 is dropped; it is not sent again",
    ]
    assert states(path)[WAITING] == "dropped"


def test_the_audit_of_a_dropped_message_has_no_words(path: Path) -> None:
    assert queue(path, "drop", WAITING) == 0
    with SqliteDatabase(path).inspect() as rows:
        told = [row.body for row in rows.records("audit") if WAITING in row.id]
    (read,) = (json.loads(body) for body in told)
    assert (read["sender_id"], read["reason"]) == ("sam", "by hand")
    assert not read.get("input")
    assert not read.get("output")


def test_what_cannot_be_changed_is_told_and_the_others_are_changed(
    path: Path, capsys: Output
) -> None:
    assert queue(path, "retry", "nobody", HELLO, FAILED) == 1
    out, err = capsys.readouterr()
    assert out == f"message {FAILED} is tried again\n"
    assert err.splitlines() == [
        "callboard: no message has an id that is or begins with 'nobody'",
        f"callboard: message {HELLO} is replied: it has reached its end and stays so",
    ]


@pytest.mark.parametrize(
    ("typed", "code", "state"),
    [("y\n", 0, "accepted"), ("no\n", 1, "dead"), ("", 2, "dead")],
)
def test_all_failed_ones_are_asked_about_first(
    path: Path, typed: str, code: int, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    assert queue(path, "retry", "--all-failed") == code
    assert states(path)[FAILED] == state


@pytest.mark.parametrize(
    ("verb", "changed", "end"),
    [
        ("retry", f"delivery {SUM}:0 is sent again", "pending"),
        ("drop", f"delivery {SUM}:0 is dropped; it is not sent again", "dead"),
    ],
)
def test_what_is_not_sent_is_among_all_that_failed(
    path: Path, verb: str, changed: str, end: str, capsys: Output
) -> None:
    assert deliveries(path)[f"{SUM}:0"] == "unknown"
    assert queue(path, verb, "--all-failed", "--yes") == 0
    assert changed in capsys.readouterr().out.splitlines()
    assert deliveries(path)[f"{SUM}:0"] == end


def test_a_dead_delivery_is_sent_again_unless_it_was_dropped_by_hand(
    path: Path, capsys: Output
) -> None:
    commit_to(path, Commit(at=1.0, receipts=(Receipt(f"{HELP}:0", "dead", "gone"),)))
    assert queue(path, "drop", f"{FAILED}:0") == 0
    assert deliveries(path)[f"{FAILED}:0"] == "dead"
    assert queue(path, "retry", "--all-failed", "--yes") == 0
    assert deliveries(path)[f"{HELP}:0"] == "pending"
    assert deliveries(path)[f"{FAILED}:0"] == "dead"
    assert f"delivery {FAILED}:0 is sent again" not in capsys.readouterr().out


def test_what_is_to_be_changed_is_named_in_the_question(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert queue(path, "drop", "--all-failed") == 1
    out, err = capsys.readouterr()
    assert "Drop 1 failed message and 1 unsent delivery?" in out + err


def test_all_failed_ones_are_dropped_without_asking(path: Path, capsys: Output) -> None:
    assert queue(path, "drop", "--all-failed", "--yes") == 0
    assert states(path)[FAILED] == "dropped"
    assert queue(path, "drop", "--all-failed") == 0
    assert capsys.readouterr().out.splitlines()[-1] == "Nothing has failed."


@pytest.mark.parametrize("more", [[], [FAILED, "--all-failed"]])
def test_either_ids_or_all(path: Path, more: list[str], capsys: Output) -> None:
    assert queue(path, "retry", *more) == 2
    assert "give IDs, or --all-failed" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["list"], ["show", "x"], ["retry", "x"], ["drop", "x"]]
)
def test_no_database_is_ever_made(
    tmp_path: Path, arguments: list[str], capsys: Output
) -> None:
    missing = tmp_path / "nowhere.db"
    assert queue(missing, *arguments) == 1
    assert capsys.readouterr().err == (
        f"callboard: there is no database {missing}: it does not exist;"
        " give the path of one\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_the_database_is_found_by_the_settings(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    write_settings(path.parent)
    monkeypatch.chdir(path.parent)
    assert run(["queue", "list", "--config", "callboard.toml"]) == 0
    assert FAILED in capsys.readouterr().out


def test_without_settings_the_way_out_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CALLBOARD_CONFIG", raising=False)
    assert run(["queue", "list"]) == 2
    assert "Or name the database: --db PATH" in capsys.readouterr().err


def shell(command: str, encoding: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["/bin/sh", "-c", f"{sys.executable} -m connectors {command}"],
        cwd=ROOT,
        env={"PYTHONIOENCODING": encoding, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_any_terminal_will_do(path: Path, encoding: str) -> None:
    done = shell(f"queue show --db {path} {FAILED}", encoding)
    sign = b"?" if encoding == "ascii" else "␛".encode()
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"break" + sign + b"[31m it" in done.stdout


@pytest.mark.parametrize("more", ["", "--json"])
def test_a_reader_that_goes_away_is_no_drama(path: Path, more: str) -> None:
    done = shell(f"queue list --db {path} {more} | true", "utf-8")
    assert (done.returncode, done.stderr) == (0, b"")


def test_all_that_failed_are_meant_however_many_there_are(
    path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"m{number}" for number in range(120)]
    dead = tuple(Settle(each, "dead", "model") for each in names)
    given_up = tuple(Receipt(each, "dead", "gone") for each in names)
    for commit in (accepting(*names), enqueueing(*names)):
        commit_to(path, commit)
    commit_to(path, Commit(at=NOW, settles=dead, receipts=given_up))
    # What is given up already can only be sent again.
    for verb, unsent in (("retry", "121 unsent deliveries"), ("drop", "1 unsent")):
        monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
        assert queue(path, verb, "--all-failed") == 1
        assert f" 121 failed messages and {unsent}" in capsys.readouterr().err
