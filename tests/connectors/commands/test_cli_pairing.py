"""Proves that owners let strangers in, and out again, beside a running server."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import trio

from actors.messages.inbound import Address
from actors.people import pairing_rows
from actors.people.pairing_rows import PairingRows
from actors.people.pairing_rules import PairingRequest
from connectors.cli import run
from runtime.clock import SystemClock
from runtime.sqlite.database import SqliteDatabase
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.store import SqliteStore
from runtime.store.rows import Commit

Shown = pytest.CaptureFixture[str]

SETTINGS = """\
default_agent = "anna"
owners = ["http/boss"]
[models.scripted]
kind = "scripted"
script = "rules.toml"
[connectors.http]
kind = "http"
[connectors.http.access]
allowed = ["s*"]
denied = ["spam"]
[agents.anna]
prompt = "You are Anna."
[[access]]
sender = "sam"
may_use = false
"""


def request(sender: str, code: str, left: float = 600.0) -> PairingRequest:
    now = SystemClock().wall()
    return PairingRequest(
        account=f"chat/{sender}",
        name=sender.title(),
        address=Address("chat", sender),
        code=code,
        asked_at=now - 5,
        told_at=now - 5,
        until=now + left,
    )


@pytest.fixture
def db(tmp_path: Path) -> Path:
    path = tmp_path / "callboard.db"
    rows = (request("eve", "AAAABBBB"), request("old", "CCCCDDDD", -1.0))

    async def fill() -> None:
        store = await SqliteStore.open(SqliteFile(path))
        entries = tuple(map(pairing_rows.as_request, rows))
        await store.commit(Commit(at=1.0, entries=entries))
        await store.aclose()

    trio.run(fill)
    return path


def pairing(db: Path, *arguments: str) -> int:
    name, *rest = arguments
    return run(["pairing", name, "--db", str(db), *rest])


def stored(db: Path) -> PairingRows:
    with SqliteDatabase(db).inspect() as rows:
        asking = list(rows.entries(pairing_rows.PAIRING))
        return pairing_rows.rows_of(asking, list(rows.entries(pairing_rows.GUEST)))


def test_the_status_says_how_many_ask_and_has_nothing_to_do_for_it(
    db: Path, capsys: Shown
) -> None:
    assert run(["status", "--db", str(db)]) == 0
    line = "pairing    1 stranger asking to be let in: callboard pairing list\n"
    assert line in capsys.readouterr().out


def test_who_asks_is_listed_while_the_code_holds(db: Path, capsys: Shown) -> None:
    assert pairing(db, "list", "--json") == 0
    [row] = msgspec.json.decode(capsys.readouterr().out)
    assert (row["account"], row["state"], row["code"]) == (
        "chat/eve",
        "asks",
        "AAAA-BBBB",
    )
    assert pairing(db, "list") == 0
    assert "Eve" in capsys.readouterr().out


def test_who_is_let_in_is_known_and_may_be_put_out_again(
    db: Path, capsys: Shown
) -> None:
    assert pairing(db, "approve", "aaaa bbbb") == 0
    assert "chat/eve may write" in capsys.readouterr().out
    [guest] = stored(db).guests
    assert (guest.account, guest.by, guest.is_told) == (
        "chat/eve",
        "the command line",
        False,
    )
    assert pairing(db, "approve", "AAAA-BBBB") == 1
    assert pairing(db, "revoke", "chat/eve") == 0
    assert pairing(db, "revoke", "chat/eve") == 1
    assert stored(db).guests == ()
    with SqliteDatabase(db).inspect() as rows:
        told = [row.body for row in rows.records("audit")]
    assert [b'"revoked"' in each or b'"let_in"' in each for each in told] == [True] * 2


def test_who_is_denied_asks_no_more(db: Path, capsys: Shown) -> None:
    assert pairing(db, "deny", "AAAABBBB") == 0
    assert "is not let in" in capsys.readouterr().out
    assert any(each.is_denied for each in stored(db).requests)
    assert pairing(db, "list") == 0
    assert "Nobody asks" in capsys.readouterr().out
    assert pairing(db, "approve", "AAAABBBB") == 1


def test_a_code_that_holds_no_longer_lets_nobody_in(db: Path, capsys: Shown) -> None:
    assert pairing(db, "approve", "CCCC-DDDD") == 1
    assert "too long ago" in capsys.readouterr().err
    assert stored(db).guests == ()


CASES = [
    (["http/boss"], "admitted (owner)", "an owner"),
    (["http/sue"], "admitted (listed)", "none of 1 access rules fits"),
    (["http/sam"], "admitted (listed)", "not: access rule 1 fits"),
    (["http/eve"], "refused (unknown_sender)", "none of 1"),
    (["http/spam"], "refused (denied_sender)", "fits 'spam' of denied"),
    (["http/eve", "--group", "den"], "refused (unknown_sender)", "fits '*'"),
]


@pytest.mark.parametrize(("arguments", "outcome", "why"), CASES)
def test_the_settings_explain_who_may_write(
    tmp_path: Path, capsys: Shown, arguments: list[str], outcome: str, why: str
) -> None:
    (tmp_path / "rules.toml").write_text("", encoding="utf-8")
    path = tmp_path / "callboard.toml"
    path.write_text(SETTINGS, encoding="utf-8")
    db = ["-c", str(path), "--db", str(tmp_path / "none.db")]
    assert run(["pairing", "explain", *db, *arguments]) == 0
    shown = capsys.readouterr().out
    assert outcome in shown
    assert why in shown


def test_whom_an_owner_let_in_is_explained_too(db: Path, capsys: Shown) -> None:
    folder = db.parent
    (folder / "rules.toml").write_text("", encoding="utf-8")
    path = folder / "callboard.toml"
    path.write_text(SETTINGS.replace("http", "chat").replace('"chat"\n[', '"http"\n['))
    assert pairing(db, "approve", "AAAABBBB") == 0
    assert pairing(db, "list") == 0
    assert "the command line" in capsys.readouterr().out
    where = ["-c", str(path), "--db", str(db), "--json"]
    assert run(["pairing", "explain", *where, "chat/eve", "--role", "admin"]) == 0
    told = msgspec.json.decode(capsys.readouterr().out)
    assert (told["outcome"], told["reason"]) == ("admitted", "paired")
    assert told["verdicts"][-1]["outcome"] == "admit"


def test_what_cannot_be_explained_is_refused(tmp_path: Path, capsys: Shown) -> None:
    (tmp_path / "rules.toml").write_text("", encoding="utf-8")
    path = tmp_path / "callboard.toml"
    path.write_text(SETTINGS, encoding="utf-8")
    assert run(["pairing", "explain", "-c", str(path), "htp/sam"]) == 1
    assert "did you mean 'http'" in capsys.readouterr().err
    assert run(["pairing", "explain", "-c", str(path), "sam"]) == 2
