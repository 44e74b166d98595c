"""Proves that a conversation in a file is the conversation, there and back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
import trio

from actors.rules.text.secrets import AuditRedaction
from connectors.cli import run
from connectors.commands.conversations import commits_of, read_file, written
from runtime.sqlite.database import SqliteDatabase
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.store import SqliteStore
from runtime.store.rows import Commit
from tests.support.desk import STREAM, write_database

Output = pytest.CaptureFixture[str]

ELSEWHERE = "anna/terminal/attic//zoe"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_database(tmp_path / "callboard.db")


def call(path: Path, *arguments: str) -> int:
    return run(["conversations", arguments[0], "--db", str(path), *arguments[1:]])


def test_there_and_back_it_is_the_same(
    path: Path, tmp_path: Path, capsys: Output
) -> None:
    file, again = tmp_path / "out.jsonl", tmp_path / "again.jsonl"
    assert call(path, "export", STREAM, "--out", str(file)) == 0
    capsys.readouterr()
    assert call(path, "import", str(file), "--as", ELSEWHERE) == 0
    with SqliteDatabase(path).inspect() as rows:
        count = len(rows.events(ELSEWHERE))
    assert f"{ELSEWHERE}: {count} events read" in capsys.readouterr().out
    assert call(path, "export", ELSEWHERE, "--out", str(again)) == 0
    told, retold = (
        [json.loads(line) | {"message": ""} for line in each.read_text().splitlines()]
        for each in (file, again)
    )
    assert told == retold
    assert run(["records", "check", "--db", str(path)]) == 0


def test_an_import_that_is_cut_off_leaves_nothing_and_may_be_done_again(
    path: Path, tmp_path: Path
) -> None:
    file = tmp_path / "out.jsonl"
    assert call(path, "export", STREAM, "--out", str(file)) == 0
    with file.open("rb") as lines:
        dated = read_file(lines, "out.jsonl")

    def cut_off() -> Iterator[Commit]:
        yield from islice(
            commits_of(ELSEWHERE, dated, AuditRedaction()), len(dated) - 1
        )
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        SqliteDatabase(path).write(cut_off())
    with SqliteDatabase(path).inspect() as rows:
        assert rows.events(ELSEWHERE) == ()
    assert call(path, "import", str(file), "--as", ELSEWHERE) == 0
    assert run(["records", "check", "--db", str(path)]) == 0


async def test_while_a_server_runs_nothing_is_imported(
    path: Path, tmp_path: Path, capsys: Output
) -> None:
    file = tmp_path / "out.jsonl"
    assert (
        await trio.to_thread.run_sync(call, path, "export", STREAM, "--out", str(file))
        == 0
    )
    store = await SqliteStore.open(SqliteFile(path))
    try:
        given = (path, "import", str(file), "--as", ELSEWHERE)
        assert await trio.to_thread.run_sync(call, *given) == 1
    finally:
        await store.aclose()
    assert "is in use by another callboard" in capsys.readouterr().err


def test_each_line_is_a_message(path: Path, capsys: Output) -> None:
    assert call(path, "export", "kitchen") == 0
    lines = [json.loads(each) for each in capsys.readouterr().out.splitlines()]
    assert [each["line"]["role"] for each in lines][:2] == ["user", "assistant"]
    assert all(each["at"] > 0 and each["message"] for each in lines)


def test_what_is_there_already_is_not_written_over(
    path: Path, tmp_path: Path, capsys: Output
) -> None:
    file = tmp_path / "out.jsonl"
    assert call(path, "export", STREAM, "--out", str(file)) == 0
    assert call(path, "export", STREAM, "--out", str(file)) == 1
    assert call(path, "import", str(file), "--as", STREAM) == 1
    assert "already" in capsys.readouterr().err
    assert call(path, "import", str(file), "--as", "nobody") == 2


@pytest.mark.parametrize(
    "line",
    [
        "{}",
        '{"at": 1',
        '{"at": 1}',
        '{"at": 1, "line": 3}',
        '{"at": 1e300, "line": {"role": "user", "text": "no such day"}}',
        '{"at": -1, "line": {"role": "user", "text": "no such day"}}',
        '{"at": 1, "x": ' + '{"a": ' * 100_000,
    ],
    ids=range(7),
)
def test_a_line_that_makes_no_sense_is_named(
    line: str, path: Path, tmp_path: Path, capsys: Output
) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text(f"\n{line}\n")
    assert call(path, "import", str(file), "--as", ELSEWHERE) == 1
    assert "bad.jsonl:2:" in capsys.readouterr().err


def test_what_is_read_is_what_was_written(path: Path) -> None:
    with SqliteDatabase(path).inspect() as rows:
        own = [each.event for each in rows.events(STREAM)]
    own = [each for each in own if each.stream == STREAM]
    lines = list(written(own))
    assert lines
    read = read_file(lines, "file")
    assert sum(len(getattr(each.event, "lines", ())) for each in read) == len(lines)
