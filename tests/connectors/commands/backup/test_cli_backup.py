"""Proves that a database is copied whole, and put back only when that is wanted."""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import io
import json
import os
import tarfile
from pathlib import Path

import apsw
import pytest

from connectors.cli import run
from connectors.commands.backup import settings_parts
from runtime.sqlite.database import SqliteDatabase
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.migrations import MIGRATIONS
from runtime.store.rows import Commit, Settle
from tests.support.desk import FAILED, WAITING, commit_to, write_database
from tests.support.hangs import computed_within
from tests.support.store.rows import NOW

Output = pytest.CaptureFixture[str]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_database(tmp_path / "callboard.db")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return tmp_path / "copy.db"


def backup(path: Path, copy: Path, *more: str) -> int:
    return run(["backup", "--db", str(path), str(copy), *more])


def restore(path: Path, copy: Path, *more: str) -> int:
    return run(["restore", "--db", str(path), str(copy), *more])


def state(path: Path, name: str) -> str:
    with SqliteDatabase(path).inspect() as rows:
        return rows.message(name).state


def test_a_copy_is_made_and_its_rows_are_counted(
    path: Path, copy: Path, capsys: Output
) -> None:
    assert backup(path, copy) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first == f"{copy}: {copy.stat().st_size:,} bytes, found whole"
    assert second == "6 messages, 5 deliveries, 7 events, 10 records"
    assert state(copy, FAILED) == "dead"


def test_a_database_is_not_put_in_its_own_place_nor_is_that_asked(
    path: Path, capsys: Output
) -> None:
    assert restore(path, path) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"{path} is the database itself; give a copy of it" in shown.err


def test_a_copy_is_counted_for_programs(path: Path, copy: Path, capsys: Output) -> None:
    assert backup(path, copy, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["rows"]["records"] == {"audit": 5, "conversation": 1, "usage": 4}
    assert told["unfinished"] == {"messages": 2, "deliveries": 3, "appointments": 0}


def test_a_file_that_is_there_is_replaced_only_by_force(
    path: Path, copy: Path, capsys: Output
) -> None:
    copy.write_text("mine", encoding="utf-8")
    assert backup(path, copy) == 1
    said = f"{copy} exists and is not overwritten; give another name, or replace it"
    assert f"{said} with --force\n" in capsys.readouterr().err
    assert copy.read_text(encoding="utf-8") == "mine"
    assert backup(path, copy, "--force") == 0
    assert state(copy, FAILED) == "dead"


def test_an_older_database_is_copied_as_it_is(
    tmp_path: Path, copy: Path, capsys: Output
) -> None:
    old = tmp_path / "old.db"
    SqliteFile(old, migrations=MIGRATIONS[:1]).open_writer().close()
    assert backup(old, copy) == 0
    assert "its rows are not counted" in capsys.readouterr().out


def test_a_copy_is_put_back_and_what_was_there_is_kept(
    path: Path, copy: Path, capsys: Output
) -> None:
    assert backup(path, copy) == 0
    commit_to(path, Commit(at=NOW, settles=(Settle(WAITING, "cancelled"),)))
    assert restore(path, copy, "--yes") == 0
    kept = path.with_name("callboard.db.before-restore")
    assert f"What was there before is {kept}" in capsys.readouterr().out
    assert (state(path, WAITING), state(kept, WAITING)) == ("accepted", "cancelled")


@pytest.mark.parametrize(("typed", "code"), [("y\n", 0), ("\n", 1), ("", 2)])
def test_it_is_asked_for_before_a_database_is_replaced(
    path: Path, copy: Path, typed: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert backup(path, copy) == 0
    commit_to(path, Commit(at=NOW, settles=(Settle(WAITING, "cancelled"),)))
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    assert restore(path, copy) == code
    assert state(path, WAITING) == ("cancelled" if code else "accepted")


def test_where_nothing_was_nothing_is_asked(
    path: Path, copy: Path, tmp_path: Path, capsys: Output
) -> None:
    assert backup(path, copy) == 0
    assert restore(tmp_path / "new" / "callboard.db", copy) == 0
    assert "before" not in capsys.readouterr().out


def test_a_copy_that_is_not_there_changes_nothing(
    path: Path, copy: Path, capsys: Output
) -> None:
    assert restore(path, copy, "--yes") == 1
    assert capsys.readouterr().err == (
        f"callboard: {copy} does not exist; give the path of a copy\n"
    )
    assert state(path, FAILED) == "dead"


def test_what_is_no_copy_changes_nothing(
    path: Path, copy: Path, capsys: Output
) -> None:
    copy.write_text("default_agent = 'anna'\n" * 99, encoding="utf-8")
    assert restore(path, copy, "--yes") == 1
    said = capsys.readouterr().err
    assert f"{copy} is damaged, or no database at all" in said
    assert said.endswith("; give the path of another copy\n")
    assert state(path, FAILED) == "dead"


def test_a_database_in_use_is_not_replaced(
    path: Path, copy: Path, capsys: Output
) -> None:
    assert backup(path, copy) == 0
    lock = SqliteFile(path).lock()
    try:
        assert restore(path, copy, "--yes") == 1
    finally:
        lock.release()
    assert "is in use by another callboard" in capsys.readouterr().err


def test_another_programs_database_is_refused_before_anything_is_asked(
    path: Path, copy: Path, tmp_path: Path, capsys: Output
) -> None:
    assert backup(path, copy) == 0
    theirs = tmp_path / "theirs.db"
    db = apsw.Connection(str(theirs))
    db.execute("CREATE TABLE theirs(x)")
    db.close()
    assert restore(theirs, copy) == 1
    told = capsys.readouterr().err
    assert "is a database of another program; nothing in it was touched" in told
    assert "Replace" not in told


COMPANY = """
[store]
path = "{folder}/callboard.db"
[workspace]
path = "{folder}/work"
[agents.anna]
model = "m"
persona = "{folder}/anna"
[models.m]
kind = "scripted"
script = "{folder}/script.toml"
[connectors.http]
kind = "http"
"""


@pytest.fixture
def company(path: Path) -> Path:
    folder = path.parent
    for place in ("work/anna", "anna", "callboard.files", "var/memory/anna"):
        (folder / place).mkdir(parents=True)
    (folder / "work" / "anna" / "plan.md").write_text("the plan")
    (folder / "anna" / "AGENTS.md").write_text("You are Anna.")
    (folder / "var" / "memory" / "anna" / "day.md").write_text("a good day")
    (folder / "callboard.db.receipts.key").write_bytes(b"k" * 32)
    config = folder / "callboard.toml"
    (folder / "script.toml").write_text('[[rule]]\npattern = "x"\nreply = "y"\n')
    config.write_text(COMPANY.format(folder=folder), encoding="utf-8")
    return config


def test_all_of_a_company_is_one_archive_and_is_put_back(
    company: Path, path: Path, capsys: Output
) -> None:
    here, config = company.parent, ("--config", str(company))
    archive = here / "all.tar.gz"
    assert run(["backup", "--all", str(archive), *config]) == 0
    said = capsys.readouterr().out
    assert "read again and found whole" in said
    assert "receipts.key" in said
    plan = here / "work" / "anna" / "plan.md"
    plan.write_text("spoilt")
    day = here / "var" / "memory" / "anna" / "day.md"
    day.unlink()
    (here / "callboard.db.receipts.key").unlink()
    commit_to(path, Commit(at=NOW, settles=(Settle(WAITING, "dropped"),)))
    assert run(["restore", str(archive), "--yes", *config]) == 0
    assert (plan.read_text(), day.read_text()) == ("the plan", "a good day")
    assert (here / "callboard.db.receipts.key").read_bytes() == b"k" * 32
    assert state(path, WAITING) == "accepted"
    (kept,) = here.glob("work.before-*")
    assert (kept / "anna" / "plan.md").read_text() == "spoilt"
    assert not [*here.glob(".*")]
    archive.write_bytes(archive.read_bytes()[:-100])
    assert run(["restore", str(archive), "--yes", *config]) == 1
    assert plan.read_text() == "the plan"


def test_settings_of_one_name_in_two_folders_are_both_kept(
    company: Path, path: Path, capsys: Output
) -> None:
    here = company.parent
    for place in ("a", "b"):
        (here / place).mkdir()
        (here / place / "more.toml").write_text(f'[agents.{place}]\nmodel = "m"\n')
    names = 'include = ["a/more.toml", "a/../b/more.toml"]\n'
    company.write_text(names + company.read_text())
    archive, config = here / "all.tar.gz", ("--config", str(company))
    assert run(["backup", "--all", str(archive), *config]) == 0
    with tarfile.open(archive) as tar:
        found = {each for each in tar.getnames() if each.startswith("settings/")}
    assert found >= {"settings/a/more.toml", "settings/b/more.toml"}
    assert run(["restore", str(archive), "--yes", *config]) == 0
    assert "is put back" in capsys.readouterr().out
    assert path.exists()


def test_settings_of_one_name_are_numbered_in_their_order(tmp_path: Path) -> None:
    top = tmp_path / "a" / "top.toml"
    beside = [top.parent / "in" / "x.toml", *(tmp_path / x / "x.toml" for x in "bcd")]
    with computed_within(2.0):
        parts = [*settings_parts([top, *beside])]
    assert [each.name for each in parts] == [
        "settings/top.toml",
        "settings/in/x.toml",
        "settings/x.toml",
        "settings/2/x.toml",
        "settings/3/x.toml",
    ]
    assert [each.path for each in parts] == [top, *beside]


def test_on_a_new_machine_nothing_need_be_there(
    company: Path, path: Path, tmp_path: Path
) -> None:
    archive, config = tmp_path / "all.tar.gz", ("--config", str(company))
    assert run(["backup", "--all", str(archive), *config]) == 0
    for each in path.parent.glob("callboard.db*"):
        each.unlink()
    assert run(["restore", str(archive), "--yes", *config]) == 0
    assert state(path, FAILED) == "dead"


def test_only_the_newest_copies_are_kept(company: Path, capsys: Output) -> None:
    folder = company.parent / "backups"
    folder.mkdir()
    for day in range(1, 5):
        (folder / f"callboard-2026010{day}T030000Z.tar.gz").touch()
    (folder / "callboard-mine.tar.gz").touch()
    given = ("--all", "--keep", "2", str(folder), "--config", str(company))
    assert run(["backup", *given]) == 0
    left = sorted(each.name for each in folder.iterdir())
    assert left[0] == "callboard-20260104T030000Z.tar.gz"
    assert left[-1] == "callboard-mine.tar.gz"
    assert len(left) == 3
    assert capsys.readouterr().err.count(": removed\n") == 3


def test_a_slash_at_the_end_names_a_folder_which_is_made(company: Path) -> None:
    folder = company.parent / "new" / "backups"
    assert run(["backup", f"{folder}/", "--config", str(company)]) == 0
    (copy,) = folder.iterdir()
    assert copy.name.startswith("callboard-")
    assert folder.stat().st_mode & 0o777 == 0o700


def test_the_copy_just_made_is_kept_whatever_the_clock_said_before(
    company: Path,
) -> None:
    folder = company.parent / "backups"
    folder.mkdir()
    for name in ("callboard-29990101T000000Z.db", "callboard-1 Times Zebra 2Z.db"):
        (folder / name).touch()
    (folder / "callboard-20200101T000000Z.db").mkdir()
    given = ("--keep", "1", str(folder), "--config", str(company))
    assert run(["backup", *given]) == 0
    left = [each for each in folder.glob("callboard-2*.db") if each.stat().st_size]
    assert len([each for each in left if each.is_file()]) == 1
    assert (folder / "callboard-1 Times Zebra 2Z.db").exists()
    assert (folder / "callboard-20200101T000000Z.db").is_dir()


def test_agents_may_share_a_persona_and_be_put_back_twice(
    company: Path, capsys: Output
) -> None:
    here, config = company.parent, ("--config", str(company))
    more = f'[agents.ben]\nmodel = "m"\npersona = "{here}/anna"\n'
    company.write_text(company.read_text() + more)
    archive, persona = here / "all.tar.gz", here / "anna" / "AGENTS.md"
    assert run(["backup", "--all", str(archive), *config]) == 0
    persona.write_text("1")
    assert run(["restore", str(archive), "--yes", *config]) == 0
    persona.write_text("2")
    assert run(["restore", str(archive), "--yes", *config]) == 0, capsys.readouterr()
    assert persona.read_text() == "You are Anna."
    kept = [each / "AGENTS.md" for each in here.glob("anna.before-*")]
    assert {each.read_text() for each in kept} == {"1", "2"}


def test_no_archive_is_written_into_what_it_holds(
    company: Path, capsys: Output
) -> None:
    archive, config = company.parent / "work" / "a.tar.gz", ("--config", str(company))
    assert run(["backup", "--all", str(archive), *config]) == 1
    assert "each copy would hold all earlier ones" in capsys.readouterr().err
    assert not archive.exists()


def test_a_folder_that_cannot_be_renamed_is_seen_before_anything_is_changed(
    company: Path, path: Path, capsys: Output
) -> None:
    archive, config = company.parent / "all.tar.gz", ("--config", str(company))
    assert run(["backup", "--all", str(archive), *config]) == 0
    commit_to(path, Commit(at=NOW, settles=(Settle(WAITING, "dropped"),)))
    text = company.read_text().replace(f"{company.parent}/work", "/proc")
    company.write_text(text)
    assert run(["restore", str(archive), "--yes", *config]) == 1
    assert "/proc is a mount point" in capsys.readouterr().err
    assert state(path, WAITING) == "dropped"


def test_all_settings_are_in_the_archive_whatever_they_are_called(
    company: Path, capsys: Output
) -> None:
    here = company.parent
    head, agents, rest = company.read_text().partition("[agents.anna]")
    for name, text in (("a", agents + rest), ("b", "[limits]\n")):
        (here / name).mkdir()
        (here / name / "more.toml").write_text(text)
    (here / "real.toml").write_text("[audit]\n")
    (here / "link.toml").symlink_to("real.toml")
    include = '["a/more.toml", "b/more.toml", "link.toml", "../out.toml"]'
    (here.parent / "out.toml").write_text("[scheduler]\n")
    company.write_text(f"include = {include}\n{head}")
    archive, config = here / "all.tar.gz", ("--config", str(company))
    assert run(["backup", "--all", str(archive), *config]) == 0, capsys.readouterr()
    with tarfile.open(archive) as tar:
        names = [x for x in tar.getnames() if x.startswith("settings/")]
    assert sorted(names) == [
        "settings/a/more.toml",
        "settings/b/more.toml",
        "settings/callboard.toml",
        "settings/link.toml",
        "settings/out.toml",
    ]
    assert run(["restore", str(archive), "--yes", *config]) == 0, capsys.readouterr()


def test_a_restore_that_ends_half_way_says_what_it_did(
    company: Path, path: Path, capsys: Output
) -> None:
    here, config = company.parent, ("--config", str(company))
    (here / "bugs.md").write_text("a bug")
    with company.open("a") as file:
        file.write(f'[notebook]\nbug_file = "{here}/bugs.md"\n')
    archive = here / "all.tar.gz"
    assert run(["backup", "--all", str(archive), *config]) == 0
    text = company.read_text().replace("/bugs.md", "/script.toml/bugs.md")
    company.write_text(text)
    commit_to(path, Commit(at=NOW, settles=(Settle(WAITING, "dropped"),)))
    assert run(["restore", str(archive), "--yes", *config]) == 1
    said = capsys.readouterr().err
    assert f"{here}/script.toml/bugs.md could not be put back" in said
    assert f"Put back before: {path}, " in said
    assert "Traceback" not in said
    assert state(path, WAITING) == "accepted"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
def test_what_root_puts_back_is_the_companys(company: Path, path: Path) -> None:
    here, config = company.parent, ("--config", str(company))
    archive = here / "all.tar.gz"
    assert run(["backup", "--all", str(archive), *config]) == 0
    os.chown(path, 4711, 4712)
    os.chown(here / "work", 4711, 4712)
    assert run(["restore", str(archive), "--yes", *config]) == 0
    lock = path.with_name(f"{path.name}.lock")
    for each in (path, lock, here / "work", here / "work" / "anna" / "plan.md"):
        assert (each.stat().st_uid, each.stat().st_gid) == (4711, 4712)


def test_who_could_read_what_was_there_reads_what_is_put_back(company: Path) -> None:
    here, config = company.parent, ("--config", str(company))
    archive, work = here / "all.tar.gz", here / "work"
    assert run(["backup", "--all", str(archive), *config]) == 0
    plan = work / "anna" / "plan.md"
    for path, mode in ((work, 0o755), (work / "anna", 0o750), (plan, 0o604)):
        path.chmod(mode)
    assert run(["restore", str(archive), "--yes", *config]) == 0
    modes = [path.stat().st_mode & 0o777 for path in (work, work / "anna", plan)]
    assert modes == [0o755, 0o750, 0o604]
    plan.unlink()
    assert run(["restore", str(archive), "--yes", *config]) == 0
    assert plan.stat().st_mode & 0o777 == 0o644, "as its folder's, but no program"


def test_a_persona_inside_the_workspace_is_put_back_with_it(company: Path) -> None:
    here, config = company.parent, ("--config", str(company))
    text = company.read_text().replace(f'"{here}/anna"', f'"{here / "work" / "anna"}"')
    company.write_text(text)
    (here / "work" / "anna" / "AGENTS.md").write_text("You are Anna.")
    archive = here / "all.tar.gz"
    assert run(["backup", "--all", str(archive), *config]) == 0
    assert run(["restore", str(archive), "--yes", *config]) == 0
    assert [each.name for each in (here / "work").iterdir()] == ["anna"]
