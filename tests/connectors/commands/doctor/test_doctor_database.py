"""Proves that `callboard doctor` says what stands at the database's path, and cures."""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import cast

import apsw
import pytest

from connectors.admin.probes import Finding
from connectors.commands.doctor.main import (
    check_appointments,
    check_database,
    check_folder,
)
from connectors.config.app import StoreConfig
from connectors.files import receipt_key
from runtime.sqlite.database import SqliteDatabase
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.migrations import MIGRATIONS
from tests.connectors.commands.doctor.test_cli_doctor import doctor, settings


def database(path: Path) -> Finding:
    """Give the one finding that is about the file itself."""
    found = [
        each
        for each in check_database(StoreConfig(path=str(path)))
        if each.about == "database"
    ]
    assert len(found) == 2
    return found[0]


def made(path: Path, sql: str) -> Path:
    """Make one of ours, and do something to it."""
    SqliteFile(path).open_writer().close()
    db = apsw.Connection(str(path))
    db.execute(sql)
    db.close()
    return path


def test_another_programs_database_wants_another_path(tmp_path: Path) -> None:
    path = tmp_path / "callboard.db"
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE theirs(x)")
    db.close()
    found = database(path)
    assert found.state == "wrong"
    assert "another program" in found.text
    assert found.cure == "give another database under [store] in the settings"
    assert not list(check_appointments(SqliteDatabase(path)))


def test_a_newer_releases_database_wants_that_release(tmp_path: Path) -> None:
    path = made(tmp_path / "callboard.db", "PRAGMA user_version = 99")
    found = database(path)
    assert found.state == "wrong"
    assert "newer release" in found.text
    assert found.cure.startswith("install the release that wrote it")
    assert not list(check_appointments(SqliteDatabase(path)))


def test_an_earlier_releases_database_is_well(tmp_path: Path) -> None:
    path = tmp_path / "callboard.db"
    SqliteFile(path, migrations=MIGRATIONS[:1]).open_writer().close()
    found = database(path)
    assert found.state == "ok"
    assert "the next start brings it up to date" in found.text
    assert not list(check_appointments(SqliteDatabase(path)))


def test_a_damaged_database_wants_a_copy(tmp_path: Path) -> None:
    path = tmp_path / "callboard.db"
    path.write_bytes(b"Dear diary, " * 1000)
    found = database(path)
    assert found.state == "wrong"
    assert found.cure == "stop Callboard, then callboard restore COPY"
    assert not list(check_appointments(SqliteDatabase(path)))


def test_one_damaged_page_of_an_index_is_found(tmp_path: Path) -> None:
    path = tmp_path / "callboard.db"
    with closing(SqliteFile(path).open_writer()) as db:
        find = "SELECT pageno FROM dbstat WHERE name LIKE 'sqlite_autoindex_record%'"
        page = cast("int", db.execute(find).get)
    assert database(path).state == "ok"
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xa5" * 4096)
    found = database(path)
    assert found.state == "wrong"
    assert found.cure == "stop Callboard, then callboard restore COPY"


def test_an_empty_file_is_called_empty(tmp_path: Path) -> None:
    path = tmp_path / "callboard.db"
    path.touch()
    found = database(path)
    assert found.state == "warning"
    assert "is an empty file: the next start makes a new database" in found.text
    assert "callboard restore COPY" in found.cure


def test_an_emptied_database_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "callboard.db"
    path.touch()
    receipt_key.load_or_make(path)
    found = database(path)
    assert found.state == "wrong"
    assert "callboard.db.receipts.key beside it" in found.text


def test_a_whole_database_is_well(tmp_path: Path) -> None:
    path = made(tmp_path / "callboard.db", "SELECT 1")
    assert database(path).text == str(path)


def test_a_link_to_a_database_is_called_one(tmp_path: Path) -> None:
    target = made(tmp_path / "elsewhere.db", "SELECT 1")
    path = tmp_path / "callboard.db"
    path.symlink_to(target)
    found = database(path)
    assert (found.state, found.text) == ("ok", f"{path}, a link to {target}")


@pytest.mark.parametrize("longest", [300])
def test_a_folder_that_nobody_may_look_into_is_told_and_the_rest_is_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], longest: int
) -> None:
    path = f"{'x' * longest}/callboard.db"  # as with a folder of somebody else's
    code, lines = doctor(capsys, "--offline", "--config", settings(tmp_path, path=path))
    assert code == 1
    wrong = [line for line in lines if line.startswith("wrong")]
    assert "callboard.db cannot be used" in wrong[0]
    assert "cannot be looked at by the user" in wrong[1]
    assert any(line.startswith("ok       extra") for line in lines)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look everywhere")
def test_a_folder_of_somebody_elses_is_named_with_the_user(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir(mode=0o000)
    found = database(folder / "callboard.db")
    (told,) = check_folder("database", folder / "below")
    folder.chmod(0o700)
    assert f"may not enter, or write to, the folder {folder}" in found.text
    assert str(folder) in told.cure
