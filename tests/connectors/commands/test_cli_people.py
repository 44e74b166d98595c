"""Proves that owners see who is known, and link accounts beside a running server."""

from __future__ import annotations

import contextlib
import io
import sys
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import click
import msgspec
import pytest
import trio

from actors.people import rows as people_rows
from actors.people.identity import Person
from connectors.admin.display import when
from connectors.cli import run
from connectors.commands import forget_person
from connectors.commands.common.database import DatabaseChoice
from connectors.commands.forget_person import (
    ORDER,
    UNREACHED,
    ErasedRows,
    carry_out_orders,
    erase_now,
    erase_ordered,
    order,
    put_off,
    wait_done,
)
from connectors.config.app import StoreConfig
from runtime.errors import StoreUnavailableError
from runtime.sql.database import SqlInspection
from runtime.sqlite.database import SqliteDatabase
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.store import SqliteStore
from runtime.store.database import Decide
from runtime.store.rows import Commit
from tests.support.desk import write_database

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


def told(capsys: Shown) -> list[str]:
    """Give what was written since this was asked last."""
    return capsys.readouterr().out.splitlines()


def test_the_list_shows_accounts_under_whom_they_belong_to(
    db: Path, capsys: Shown
) -> None:
    at = when(NOW)
    header = "PERSON     NAME        LANGUAGE  MODEL  ALSO  MAYBE      CHANGED"
    assert people(db, "list") == 0
    assert told(capsys) == [
        header,
        f"discord/1  Anna Lopez  es        -      -     -          {at}",
        f"slack/2    Ana López   -         -      -     discord/1  {at}",
    ]
    assert people(db, "list", "--proposed") == 0
    assert [each.split()[0] for each in told(capsys)] == ["PERSON", "slack/2"]
    assert people(db, "link", "slack/2", "discord/1") == 0
    assert told(capsys) == ["slack/2: discord/1"]
    assert people(db, "list", "--json") == 0
    [row] = msgspec.json.decode(capsys.readouterr().out)
    changed = row.pop("changed_at")
    assert changed > NOW
    assert row == {
        "id": "slack/2",
        "name": "Ana López",
        "language": "es",
        "model": "",
        "aliases": ["discord/1"],
        "proposals": [],
    }
    assert people(db, "list", "--proposed") == 0
    assert told(capsys) == ["Nobody is known yet."]


def test_who_is_unlinked_is_shown_with_who_stays(db: Path, capsys: Shown) -> None:
    for other in ("slack/2", "irc/3"):
        assert people(db, "link", "discord/1", other) == 0
    assert told(capsys)[-1] == "discord/1: slack/2, irc/3"
    assert people(db, "link", "irc/3", "slack/2") == 1
    same = "nothing changed: irc/3 and slack/2 are one person already"
    assert f"callboard: {same}" in capsys.readouterr().err
    assert people(db, "unlink", "irc/3") == 0
    assert told(capsys) == ["discord/1: slack/2"]
    assert people(db, "unlink", "irc/3") == 1
    assert capsys.readouterr().err == (
        "callboard: nothing changed: irc/3 is linked with nobody\n"
    )
    assert people(db, "unlink", "discord/1") == 0
    assert told(capsys) == ["discord/1: no other account", "slack/2: no other account"]
    with SqliteDatabase(db).inspect() as rows:
        deeds = [msgspec.json.decode(row.body) for row in rows.records("audit")]
    by = "discord/1, by the command line"
    assert [(each["status"], each["reason"]) for each in deeds] == [
        *[("unlinked", f"from {by}")] * 2,
        *[("linked", f"with {by}")] * 2,
    ]


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
    trio.run(make, path)
    assert people(path, "list") == 0
    assert "Nobody is known yet." in capsys.readouterr().out


SAM, ALSO = "cli/sam", "http/samuel"

ERASED_ROWS = {
    "alias entry": 1,
    "audit record": 5,
    "conversation record": 1,
    "delivery": 5,
    "event": 7,
    "message": 6,
    "person entry": 2,
    "usage record": 4,
}
"""All of Sam's in the database of `tests/support/desk.py`, once linked to `ALSO`."""

LINKED = {"audit record": 1}
"""It says who was linked with whom by an operator, whose deed it is."""


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a database in the current folder, with one who has two accounts."""
    monkeypatch.chdir(tmp_path)
    path = write_database(tmp_path / "desk.db")
    assert people(path, "link", SAM, ALSO) == 0
    return path


def forget(*arguments: str) -> int:
    return run(["forget-person", "--db", "desk.db", *arguments])


def test_a_person_is_erased_under_all_accounts_and_told_what_is_left(
    desk: Path, capsys: Shown
) -> None:
    capsys.readouterr()
    assert forget(ALSO, "--yes", "--json") == 0
    found = msgspec.json.decode(capsys.readouterr().out)
    assert found == {
        "accounts": [ALSO, SAM],
        "erased": ERASED_ROWS,
        "still_named_in": LINKED,
        "not_reached": list(UNREACHED),
        "exported": None,
        "at_next_start": False,
    }
    assert run(["records", "check", "--db", str(desk)]) == 0
    capsys.readouterr()
    assert forget(SAM, "--yes") == 0
    assert capsys.readouterr().out.splitlines() == [
        f"Nothing is kept of {SAM}.",
        "Still named in what others wrote: 1 audit record.",
        "Not reached; look there yourself (docs/operate/privacy.md):",
        *(f"  - {each}" for each in UNREACHED),
    ]


def test_what_is_erased_is_written_to_a_file_of_its_own_first(
    desk: Path, capsys: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    del desk
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    capsys.readouterr()
    given = (SAM, "--export", "sam.jsonl", "--at-next-start")
    assert forget(*given, "--yes") == 0
    assert capsys.readouterr().out.splitlines() == [
        "sam.jsonl: 31 rows, private to this user",
        f"{SAM}, {ALSO}: erased when the company starts again; restart it",
    ]
    file = Path("sam.jsonl")
    assert file.stat().st_mode & 0o777 == 0o600
    rows = [msgspec.json.decode(each) for each in file.read_bytes().splitlines()]
    assert [*rows[0]] == ["table", "kind", "id", "body"]
    assert Counter(each["table"] for each in rows) == {
        "inbox": 6, "journal": 7, "outbox": 5, "record": 10, "entry": 3,
    }  # fmt: skip
    assert forget(*given, "--yes") == 1
    assert "sam.jsonl: File exists" in capsys.readouterr().err
    assert forget(SAM) == 2
    assert "nobody is there to say yes; give --yes" in capsys.readouterr().err
    for wrong in ("sam", "/sam", "cli/", "http/\ud800"):
        assert forget(wrong, "--yes") == 2
        assert "is no account; write connector/id" in capsys.readouterr().err


def test_an_order_is_carried_out_by_the_next_start_alone(
    desk: Path, capsys: Shown
) -> None:
    assert forget(SAM, "--yes", "--at-next-start", "--json") == 0
    assert '"at_next_start": true' in capsys.readouterr().out
    assert carry_out_orders(SqliteDatabase(desk.with_name("none"))) == ([], True)
    database = SqliteDatabase(desk)
    [found], is_done = carry_out_orders(database)
    assert is_done
    assert found == ErasedRows((SAM, ALSO), ERASED_ROWS, LINKED)
    assert carry_out_orders(database) == ([], True)
    with database.inspect() as rows:
        assert not [*rows.entries(ORDER)]
    database.write((order("cli/eve", ("cli/eve",)),))
    assert erase_ordered(StoreConfig(path=str(desk)))
    with database.claim():
        assert erase_ordered(StoreConfig(path=str(desk)))
        database.write((order("cli/eve", ("cli/eve",)),))
        assert not erase_ordered(StoreConfig(path=str(desk)))


class CompanyDatabase(SqliteDatabase):
    """In use by a company, which erases at the second look whether it has."""

    looks = 0

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.company = contextlib.ExitStack()
        self.company.enter_context(self.claim())

    @contextlib.contextmanager
    def inspect(self, *, live: bool = False) -> Generator[SqlInspection]:
        with super().inspect(live=live) as rows:
            self.looks += bool([*rows.entries(ORDER)])
        if self.looks == 2:
            self.company.close()
            carry_out_orders(SqliteDatabase(self.path))
        with super().inspect(live=live) as rows:
            yield rows


def test_a_company_that_runs_erases_and_is_waited_for(
    desk: Path, capsys: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forget_person, "LOOK_EVERY", 0.0)
    choice = DatabaseChoice(None, desk)
    choice.database = database = CompanyDatabase(desk)
    capsys.readouterr()
    assert not erase_now(choice, "cli/eve", ("cli/eve",)).erased
    assert capsys.readouterr().err == ""
    found = erase_now(choice, SAM, (SAM, ALSO))
    assert found == ErasedRows((SAM, ALSO), ERASED_ROWS, LINKED)
    told = "The company runs: it ends its turns, erases, goes on.\n"
    assert capsys.readouterr().err == told
    with SqliteDatabase(desk).inspect() as rows:
        assert not [*rows.entries(ORDER)]
    assert database.looks == 2
    # Another command took the order away, and was told.
    refusal = StoreUnavailableError("it is in use")
    none = wait_done(SqliteDatabase(desk), SAM, (SAM,), refusal)
    assert none == ErasedRows((SAM,), {}, LINKED)


def ordering(path: Path) -> None:
    """Order somebody to be forgotten at once, as the command does."""
    SqliteDatabase(path).write((order(SAM, (SAM,), forget_person.NOW),))


class FailingDatabase(SqliteDatabase):
    """One whose disk fails while it erases."""

    def rewrite(self, decide: Decide) -> int:
        del decide
        raise StoreUnavailableError("the disk is full")


async def test_a_disk_that_fails_while_it_erases_is_no_company_that_runs(
    tmp_path: Path,
) -> None:
    path = tmp_path / "callboard.db"
    await make(path)
    choice = DatabaseChoice(None, path)
    choice.database = failing = FailingDatabase(path)
    whom = (SAM,)
    with pytest.raises(StoreUnavailableError, match="disk is full"):
        erase_now(choice, whom[0], whom)
    ordering(path)
    assert carry_out_orders(failing) == ([], False)
    found, is_done = carry_out_orders(SqliteDatabase(path))
    assert is_done
    assert [each.accounts for each in found] == [whom]


class NotingDatabase(SqliteDatabase):
    """Notes what is ordered when all is erased, and not yet said to be."""

    ordered: tuple[str, ...] = ()

    def rewrite(self, decide: Decide) -> int:
        count = super().rewrite(decide)
        with self.inspect() as rows:
            self.ordered = tuple(each.owner for each in rows.entries(ORDER))
        return count


def test_whoever_ordered_it_sees_the_order_until_it_is_done(tmp_path: Path) -> None:
    path = tmp_path / "callboard.db"
    trio.run(make, path)
    ordering(path)
    database = NotingDatabase(path)
    carry_out_orders(database)
    assert database.ordered == (forget_person.NOW,), (
        "gone, it looks as if another was told"
    )
    done = wait_done(database, SAM, (SAM,), StoreUnavailableError("it is in use"))
    assert done.accounts == (SAM,)
    with database.inspect() as rows:
        assert not [*rows.entries(ORDER)]


async def make(path: Path) -> None:
    await (await SqliteStore.open(SqliteFile(path))).aclose()


async def test_who_ordered_it_is_told_at_once_that_a_company_cannot_begin_anew(
    tmp_path: Path,
) -> None:
    path = tmp_path / "callboard.db"
    store = await SqliteStore.open(SqliteFile(path))
    ordering(path)
    await put_off(store)
    refusal = StoreUnavailableError("it is in use")
    with pytest.raises(click.ClickException, match="when the company starts again"):
        wait_done(SqliteDatabase(path), SAM, (SAM,), refusal)
    await store.aclose()
    found, _ = carry_out_orders(SqliteDatabase(path))
    assert [each.accounts for each in found] == [(SAM,)]
