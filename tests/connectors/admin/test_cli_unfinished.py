"""Proves that whoever copies or restores is told what will be done a second time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from actors.messages.inbound import Address
from actors.schedule.appointments import Appointment
from actors.schedule.rows import as_entry
from connectors.cli import run
from connectors.commands.backup import Unfinished, told, unfinished_in
from runtime.sqlite.database import SqliteDatabase
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.migrations import MIGRATIONS
from runtime.store.rows import Commit
from tests.support.desk import commit_to, write_database
from tests.support.store.rows import NOW

ROOT = Path(__file__).parents[3]
Output = pytest.CaptureFixture[str]

LATER = NOW + 3600.0
UNDONE = (
    "Not done in it: 2 messages not answered, 3 deliveries not sent, 1 appointment due."
)


def appointment(due: float) -> Appointment:
    return Appointment(
        kind="reminder",
        agent="anna",
        address=Address("cli", "kitchen"),
        sender_id="sam",
        text="the oven",
        anchor=due,
        next_due=due,
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database with two messages under way, a delivery, and two appointments."""
    path = write_database(tmp_path / "callboard.db")
    due = {"01DUE": NOW, "01LATER": NOW * 10}
    entries = [as_entry(k, "sam", appointment(at), 0, None) for k, at in due.items()]
    commit_to(path, Commit(at=NOW, entries=tuple(entries)))
    return path


@pytest.fixture
def copy(path: Path, capsys: Output) -> Path:
    copy = path.with_name("copy.db")
    assert run(["backup", "--db", str(path), str(copy)]) == 0
    said = capsys.readouterr().out
    assert UNDONE in said
    assert "callboard queue list" in said
    return copy


def test_restore_says_it_before_it_asks(path: Path, copy: Path) -> None:
    command = (sys.executable, "-m", "connectors", "restore", "--db", path, copy)
    done = subprocess.run(
        command, cwd=ROOT, input="n\n", capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "Nothing was changed" in done.stderr
    assert done.stdout.startswith(UNDONE)
    assert "for a second time if it was done after the copy was made" in done.stdout
    assert "queue drop ID" in done.stdout


def test_restore_says_it_when_it_does_not_ask(
    path: Path, copy: Path, capsys: Output
) -> None:
    assert run(["restore", "--yes", "--db", str(path), str(copy)]) == 0
    assert capsys.readouterr().out.startswith(UNDONE)


def test_a_copy_in_which_all_is_done_says_nothing(
    tmp_path: Path, capsys: Output
) -> None:
    path, copy = tmp_path / "callboard.db", tmp_path / "copy.db"
    SqliteFile(path).open_writer().close()
    assert run(["backup", "--db", str(path), str(copy)]) == 0
    assert "Not done" not in capsys.readouterr().out
    assert unfinished_in(SqliteDatabase(copy), LATER) == Unfinished(0, 0, 0)


def test_of_an_older_copy_nothing_is_counted(tmp_path: Path) -> None:
    copy = tmp_path / "old.db"
    SqliteFile(copy, migrations=MIGRATIONS[:1]).open_writer().close()
    assert unfinished_in(SqliteDatabase(copy), LATER) is None
    assert not list(told(None))
