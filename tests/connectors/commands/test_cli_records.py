"""Proves that records are held against the journal, and made anew from it."""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from connectors.cli import run
from runtime.clock import SystemClock
from runtime.sqlite.database import SqliteDatabase
from runtime.sqlite.file import SqliteFile
from runtime.store.rows import Append, Commit, NewEvent, Record, StoredRecord
from tests.processes.running import write_settings
from tests.support.desk import (
    FAILED,
    HELLO,
    SECRET,
    STREAM,
    SUM,
    commit_to,
    write_database,
)
from tests.support.store.rows import NOW, noting

Output = pytest.CaptureFixture[str]

SETTINGS = """
[models.other]
kind = "openai"
model = "big"
api_key = { env = "OTHER_KEY" }
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_database(tmp_path / "callboard.db")


def records(path: Path, *arguments: str) -> int:
    return run(["records", arguments[0], "--db", str(path), *arguments[1:]])


def record(path: Path, kind: str, name: str) -> StoredRecord:
    with SqliteDatabase(path).inspect() as rows:
        found = rows.record(kind, name)
    assert found is not None
    return found


def spoil(path: Path, kind: str, name: str, **fields: object) -> None:
    """Change some fields of a record, as a mistake would."""
    row = record(path, kind, name)
    body = msgspec.json.decode(row.body, type=dict[str, object]) | fields
    spoilt = Record(
        kind=kind,
        id=name,
        owner=row.owner,
        part=row.part,
        body=msgspec.json.encode(body),
    )
    commit_to(path, Commit(at=row.at, records=(spoilt,)))


def forget(path: Path, kind: str) -> None:
    """Have no record of a kind at all."""
    db = SqliteFile(path).open_writer()
    db.execute("DELETE FROM record WHERE kind = ?", (kind,))
    db.close()


def test_what_the_company_wrote_is_found_right(path: Path, capsys: Output) -> None:
    assert records(path, "check") == 0
    assert capsys.readouterr().out == "7 events, 10 records: 0 differences\n"


def test_each_difference_is_named(path: Path, capsys: Output) -> None:
    spoil(path, "usage", f"{HELLO}#1", cost=9.0, agent="ben")
    spoil(path, "conversation", STREAM, message_count=1)
    spoil(path, "audit", SUM, output="42")
    assert records(path, "check") == 1
    assert capsys.readouterr().out.splitlines() == [
        f"usage {HELLO}#1 differs in agent, cost",
        f"audit {SUM} differs in output",
        f"conversation {STREAM} differs in message_count",
        "7 events, 10 records: 3 differences",
        "To write these records anew, stop the server, then: callboard records rebuild",
    ]


def test_what_is_missing_or_too_much_is_named_for_programs(
    path: Path, capsys: Output
) -> None:
    forget(path, "conversation")
    extra = noting("nobody#1", kind="usage")
    commit_to(path, Commit(at=NOW, records=(extra,)))
    assert records(path, "check", "--json") == 1
    assert json.loads(capsys.readouterr().out) == {
        "records": {"audit": 5, "usage": 5},
        "differences": 2,
        "first": [
            {"kind": "conversation", "id": STREAM, "problem": "is missing"},
            {"kind": "usage", "id": "", "problem": "1 follow from no event"},
        ],
    }


def test_many_differences_are_counted(path: Path, capsys: Output) -> None:
    events = tuple(NewEvent("exchanged", b"?") for _ in range(30))
    append = Append(stream="x", expected=0, part=7, events=events)
    commit_to(path, Commit(at=NOW, appends=(append,)))
    assert records(path, "check") == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("journal x#1 cannot be read: ")
    assert lines[20:-1] == ["… and 10 more", "37 events, 10 records: 30 differences"]


def test_a_text_that_was_not_kept_is_no_difference(path: Path, capsys: Output) -> None:
    spoil(path, "audit", SUM, input="", output="")
    assert records(path, "check") == 0
    assert capsys.readouterr().out.endswith(" 0 differences\n")


def test_what_is_missing_or_different_is_written_anew(
    path: Path, capsys: Output
) -> None:
    kinds = ("usage", "conversation")
    before = [record(path, "usage", f"{HELLO}#1"), record(path, "conversation", STREAM)]
    for kind in kinds:
        forget(path, kind)
    spoil(path, "audit", f"{FAILED}#3", status="replied")
    assert records(path, "rebuild") == 0
    told = f"{path}: 6 records written, 0 differences left\n"
    assert capsys.readouterr().out == told
    after = [record(path, "usage", f"{HELLO}#1"), record(path, "conversation", STREAM)]
    assert [(row.body, row.at) for row in after] == [(r.body, r.at) for r in before]
    assert records(path, "check") == 0


def test_very_many_records_are_written_anew(path: Path, capsys: Output) -> None:
    bodies = [b'{"inbound_id":"%d"}' % number for number in range(600)]
    told = tuple(NewEvent("exchanged", body) for body in bodies)
    append = Append(stream="anna/cli/attic//sam", expected=0, part=7, events=told)
    commit_to(path, Commit(at=SystemClock().wall(), appends=(append,)))
    assert records(path, "rebuild") == 0
    assert "600 records written" in capsys.readouterr().out
    assert records(path, "check") == 0


def test_what_cannot_be_mended_is_told(path: Path, capsys: Output) -> None:
    commit_to(path, Commit(at=NOW, records=(noting("nobody#1", kind="usage"),)))
    assert records(path, "rebuild") == 1
    assert capsys.readouterr().out.splitlines() == [
        "usage  1 follow from no event",
        f"{path}: 0 records written, 1 differences left",
    ]


def test_without_settings_no_words_are_written(path: Path) -> None:
    forget(path, "audit")
    assert records(path, "rebuild") == 0
    body = json.loads(record(path, "audit", HELLO).body)
    assert (body["input"], body["output"], body["status"]) == ("", "", "replied")


def test_with_settings_words_are_written_without_secrets(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = write_settings(path.parent, more=SETTINGS)
    monkeypatch.setenv("OTHER_KEY", SECRET)
    forget(path, "audit")
    code = run(["records", "rebuild", "--config", str(settings), "--db", str(path)])
    body = json.loads(record(path, "audit", HELLO).body)
    assert (code, body["input"]) == (0, "hello, the key is ***")
    assert body["output"] == "Hello Sam.\nWhat can I do?"


def test_a_name_that_is_secret_is_taken_out_and_stays_out(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = write_settings(path.parent, more=SETTINGS)
    monkeypatch.setenv("OTHER_KEY", SECRET)
    body = {"inbound_id": "01OWN", "sender_id": SECRET, "sender_name": f"is {SECRET}"}
    told = NewEvent("exchanged", msgspec.json.encode(body))
    stream = f"anna/cli/{SECRET}//sam"
    append = Append(stream=stream, expected=0, part=7, events=(told,))
    commit_to(path, Commit(at=SystemClock().wall(), appends=(append,)))
    arguments = ["rebuild", "--config", str(settings), "--db", str(path)]
    assert run(["records", *arguments]) == 0
    kept = json.loads(record(path, "audit", "01OWN").body)
    names = (kept["chat"], kept["sender_id"], kept["sender_name"])
    assert names == ("***", "***", "is ***")
    assert records(path, "check") == 0
    spoil(path, "audit", "01OWN", status="dead")
    assert records(path, "rebuild") == 0  # which knows of no secret
    assert json.loads(record(path, "audit", "01OWN").body) == kept


def test_audit_records_that_are_too_old_are_not_missed(
    path: Path, capsys: Output
) -> None:
    with SqliteDatabase(path).inspect() as rows:
        first = next(event for event in rows.journal() if event.stream == STREAM)
    old = Append(
        stream="anna/cli/attic//sam",
        expected=0,
        part=7,
        events=(NewEvent("exchanged", first.body.replace(b"01HELLO", b"00OLD")),),
    )
    at = SystemClock().wall() - 91 * 86_400.0
    commit_to(path, Commit(at=at, appends=(old,)))
    assert records(path, "check") == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:-2]] == ["usage", "conversation"]


def test_a_database_in_use_is_only_checked(path: Path, capsys: Output) -> None:
    lock = SqliteFile(path).lock()
    try:
        assert records(path, "check") == 0
        assert records(path, "rebuild") == 1
    finally:
        lock.release()
    assert "is in use by another callboard" in capsys.readouterr().err


def test_no_database_is_ever_made(tmp_path: Path, capsys: Output) -> None:
    missing = tmp_path / "nowhere.db"
    for name in ("check", "rebuild"):
        assert records(missing, name) == 1
        assert "there is no database" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
