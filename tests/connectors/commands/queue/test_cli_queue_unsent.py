"""Proves that all look alike at which deliveries have failed, and which are over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from actors.messages.deliveries import GONE
from connectors.admin.queue import count_unsent, read_unsent, read_waiting
from connectors.cli import run
from runtime.sqlite.database import SqliteDatabase
from runtime.store.rows import Commit, Receipt
from tests.support.desk import FAILED, HELP, SUM, commit_to, write_database

Output = pytest.CaptureFixture[str]

ENDS = [GONE, f"{GONE}, and said no id by which it could come back"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give a database in which one delivery may have been sent, and no other failed."""
    return write_database(tmp_path / "callboard.db")


def queue(path: Path, *arguments: str) -> int:
    return run(["queue", arguments[0], "--db", str(path), *arguments[1:]])


def end(path: Path, delivery: str, receipt: str) -> None:
    commit_to(path, Commit(at=1.0, receipts=(Receipt(delivery, "dead", receipt),)))


def settle_the_rest(path: Path) -> None:
    """Leave nothing that has failed."""
    assert queue(path, "drop", "--all-failed", "--yes") == 0


@pytest.mark.parametrize("receipt", ENDS)
def test_what_nobody_is_there_to_take_has_not_failed(
    path: Path, receipt: str, capsys: Output
) -> None:
    settle_the_rest(path)
    end(path, f"{HELP}:0", receipt)
    capsys.readouterr()
    assert queue(path, "list", "--state", "failed") == 0
    assert queue(path, "list", "--unsent") == 0
    assert queue(path, "retry", "--all-failed", "--yes") == 0
    assert capsys.readouterr().out.splitlines() == [
        "No message is failed.",
        "Every delivery was sent, is still to be sent, or is wanted by nobody.",
        "Nothing has failed.",
    ]


def test_what_nobody_is_there_to_take_is_not_sent_again_by_its_id(
    path: Path, capsys: Output
) -> None:
    end(path, f"{HELP}:0", GONE)
    assert queue(path, "retry", f"{HELP}:0") == 1
    assert capsys.readouterr().err == (
        f"callboard: delivery {HELP}:0 is dead: the client has gone; nobody is there to"
        " take it any more. Over HTTP, who asks again with the same Idempotency-Key"
        " gets it\n"
    )
    with SqliteDatabase(path).inspect() as rows:
        assert rows.delivery(f"{HELP}:0").state == "dead"


def test_the_list_says_that_deliveries_were_not_sent_and_how_to_see_them(
    path: Path, capsys: Output
) -> None:
    assert queue(path, "list") == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "1 delivery was not sent: callboard queue list --unsent"
    end(path, f"{HELP}:0", "kicked out")
    assert queue(path, "list", "--state", "failed") == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "2 deliveries were not sent: callboard queue list --unsent"
    assert queue(path, "list", "--state", "pending") == 0
    assert "--unsent" not in capsys.readouterr().out


def test_unsent_deliveries_are_listed_the_newest_first(
    path: Path, capsys: Output
) -> None:
    end(path, f"{HELP}:0", "kicked out")
    end(path, f"{FAILED}:0", GONE)
    assert queue(path, "list", "--unsent") == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split()[:3] == ["DELIVERY", "STATE", "TRIES"]
    assert [row.split()[:2] for row in rows] == [
        [f"{HELP}:0", "dead"],
        [f"{SUM}:0", "unknown"],
    ]
    assert "kicked out" in rows[0]
    assert queue(path, "list", "--unsent", "--limit", "1") == 0
    assert "more than these 1; see --limit" in capsys.readouterr().out
    for limit, wanted in ((2, [f"{HELP}:0", f"{SUM}:0"]), (1, [f"{HELP}:0"])):
        given = ("--unsent", "--json", "--limit", str(limit))
        assert queue(path, "list", *given) == 0
        found = json.loads(capsys.readouterr().out)
        assert [each["id"] for each in found] == wanted


def test_states_are_for_messages(path: Path, capsys: Output) -> None:
    assert queue(path, "list", "--unsent", "--state", "failed") == 2
    assert "give --state for messages, or --unsent" in capsys.readouterr().err


def test_what_is_over_hides_nothing_that_failed(path: Path) -> None:
    end(path, f"{HELP}:0", GONE)
    end(path, f"{FAILED}:0", GONE)
    with SqliteDatabase(path).inspect() as rows:
        assert [each.id for each in read_unsent(rows, 1)] == [f"{SUM}:0"]
        assert count_unsent(rows) == 1


def test_what_is_over_is_not_counted_as_given_up(path: Path) -> None:
    with SqliteDatabase(path).inspect(live=True) as rows:
        dead = read_waiting(rows).dead
        end(path, f"{HELP}:0", GONE)
        waiting = read_waiting(rows)
        assert waiting.dead == dead
        assert (waiting.outbox["dead"], waiting.outbox["over"]) == (0, 1)
        end(path, f"{FAILED}:0", "kicked out")
        assert read_waiting(rows).dead == dead + 1
