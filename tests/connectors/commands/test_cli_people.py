"""Proves that owners see who is known, and link accounts beside a running server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
import trio

from actors.people import rows as people_rows
from actors.people.identity import Person
from connectors.cli import run
from runtime.sqlite.database import SqliteDatabase
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.store import SqliteStore
from runtime.store.rows import Commit

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1_700_000_000.0
PEOPLE = (
    Person("discord/1", name="Anna Lopez", language="es"),
    Person("slack/2", name="Ana López", proposals=("discord/1",)),
)


@pytest.fixture
def db(tmp_path: Path) -> Path:
    path = tmp_path / "callboard.db"

    async def fill() -> None:
        store = await SqliteStore.open(SqliteFile(path))
        entries = tuple(people_rows.as_entry(each, 0) for each in PEOPLE)
        await store.commit(Commit(at=NOW, entries=entries))
        await store.aclose()

    trio.run(fill)
    return path


def people(db: Path, *arguments: str) -> int:
    name, *rest = arguments
    return run(["people", name, "--db", str(db), *rest])


Shown = pytest.CaptureFixture[str]


def test_people_are_listed_with_who_they_may_be(db: Path, capsys: Shown) -> None:
    assert people(db, "list", "--proposed", "--json") == 0
    [row] = msgspec.json.decode(capsys.readouterr().out)
    assert (row["id"], row["proposals"]) == ("slack/2", ["discord/1"])
    assert people(db, "list") == 0
    shown = capsys.readouterr().out
    assert "Anna Lopez" in shown
    assert "MAYBE" in shown


def test_accounts_are_linked_and_unlinked(db: Path, capsys: Shown) -> None:
    assert people(db, "link", "discord/1", "slack/2") == 0
    assert capsys.readouterr().out == "discord/1: slack/2\n"
    assert people(db, "list", "--json") == 0
    [row] = msgspec.json.decode(capsys.readouterr().out)
    assert row["aliases"] == ["slack/2"]
    assert people(db, "link", "slack/2", "discord/1") == 1
    assert people(db, "unlink", "slack/2") == 0
    assert people(db, "unlink", "slack/2") == 1
    with SqliteDatabase(db).inspect() as rows:
        told = [row.body for row in rows.records("audit")]
    assert [b'"linked"' in each or b'"unlinked"' in each for each in told] == [True] * 2


def test_what_is_no_account_is_refused(db: Path, capsys: Shown) -> None:
    assert people(db, "link", "anna", "slack/2") == 2
    assert "CONNECTOR/SENDER" in capsys.readouterr().err


def test_a_connector_written_wrongly_is_told_to_whoever_forgets_somebody(
    db: Path, capsys: Shown
) -> None:
    settings = db.with_name("callboard.toml")
    settings.write_text(f"""
store.path = '{db}'
models.main = {{ kind = "scripted", script = "script.toml" }}
agents.anna = {{ prompt = "I am Anna.", model = "main" }}
connectors.terminal.kind = "terminal"
""")
    (db.parent / "script.toml").write_text('[default]\nreply = "so"\n')
    line = ["forget-person", "--yes", "--config", str(settings)]
    assert run([*line, "terminal/nobody"]) == 0
    assert "no connector" not in capsys.readouterr().err
    assert run([*line, "terminall/nobody"]) == 0
    shown = capsys.readouterr()
    assert "Nothing is kept of terminall/nobody." in shown.out
    assert "no connector 'terminall'; known: terminal" in shown.err


def test_nobody_is_known_in_a_new_database(tmp_path: Path, capsys: Shown) -> None:
    path = tmp_path / "new.db"

    async def make() -> None:
        await (await SqliteStore.open(SqliteFile(path))).aclose()

    trio.run(make)
    assert people(path, "list") == 0
    assert "Nobody is known yet." in capsys.readouterr().out
