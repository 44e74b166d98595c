"""Proves that tables stand straight, and what unreadable rows look like in them."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.admin.display import lasting, moment, when
from connectors.cli import run
from connectors.commands.common.output import first_words, table, width
from runtime.store.rows import Commit
from tests.support.desk import commit_to, write_database
from tests.support.store.rows import NOW, accepting, enqueueing, events, heard, noting

if TYPE_CHECKING:
    from pathlib import Path

Output = pytest.CaptureFixture[str]

cells = st.text(max_size=12)


@given(rows=st.lists(st.tuples(cells, cells, st.just("end")), max_size=5))
def test_the_last_column_begins_at_one_place(rows: list[tuple[str, ...]]) -> None:
    lines = list(table(("ONE", "TWO", "THREE"), rows))
    ends = [line[: -len("end")] for line in lines[1:]]
    assert len({width(each) for each in [*ends, lines[0][: -len("THREE")]]}) == 1


def test_nothing_is_a_dash_and_zero_is_zero() -> None:
    assert list(table(("A", "B", "C", "D"), [(None, "", 0, " \n ")])) == [
        "A  B  C  D",
        "-  -  0  -",
    ]


def test_wide_and_combining_characters_take_their_columns() -> None:
    assert (width("abc"), width("日本"), width("e\u0301")) == (3, 4, 1)


@given(text=st.text(), most=st.integers(2, 60))
def test_first_words_are_one_short_safe_line(text: str, most: int) -> None:
    line = first_words(text, most)
    assert len(line) <= most
    assert all(character >= " " for character in line)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-5.0, "0s"),
        (0.4, "0s"),
        (59.0, "59s"),
        (150.0, "2m"),
        (7300.0, "2h"),
        (200_000.0, "2d"),
    ],
)
def test_how_long_something_lasts(seconds: float, expected: str) -> None:
    assert lasting(seconds) == expected


def test_times_are_local_and_say_their_offset() -> None:
    assert datetime.fromisoformat(when(NOW)).timestamp() == NOW
    assert datetime.fromisoformat(when(NOW)).tzinfo is not None
    assert (when(0), moment(0)) == ("-", None)
    assert moment(NOW + 0.25) == when(NOW + 0.25, "milliseconds")


@pytest.fixture
def strange(tmp_path: Path) -> Path:
    """Give a database with rows that this release cannot read."""
    path = write_database(tmp_path / "callboard.db")
    rows = [noting("odd", kind=kind) for kind in ("audit", "usage", "conversation")]
    body = msgspec.structs.replace(heard("02ODD"), body=b"?")
    commit_to(path, Commit(at=NOW, accepts=(body,), records=tuple(rows)))
    commit_to(path, enqueueing("02ODD:0", correlation_id="02ODD"))
    return path


@pytest.mark.parametrize("command", ["audit", "usage", "replay"])
def test_a_record_that_cannot_be_read_is_left_out_and_told(
    strange: Path, command: str, capsys: Output
) -> None:
    assert run([command, "--db", str(strange)]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) > 1
    assert err.count("\n") == 1
    assert "record 'odd' cannot be read and is left out" in err


def test_a_message_that_cannot_be_read_is_still_listed_and_shown(
    strange: Path, capsys: Output
) -> None:
    assert run(["queue", "list", "--db", str(strange)]) == 0
    assert "(cannot be read by this release)" in capsys.readouterr().out
    assert run(["queue", "show", "--db", str(strange), "--json", "02ODD"]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert (whole["message"]["state"], whole["conversation"]) == ("accepted", "")
    assert whole["deliveries"][0]["text"] == "(cannot be read by this release)"


def test_ids_are_shortened_only_where_that_means_one(
    tmp_path: Path, capsys: Output
) -> None:
    path = tmp_path / "callboard.db"
    one, other, third = "01ABCDEFGHJKLMNP", "01ABCDEFGHJKLMNQ", "02ABCDEFGHJKLMNP"
    commit_to(path, accepting(one, other, third))
    assert run(["queue", "list", "--db", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == [third[:13], other, one]
    assert run(["queue", "show", "--db", str(path), third[:13]]) == 0
    assert run(["queue", "show", "--db", str(path), one[:13]]) == 1
    assert f"{one}, {other}; give more of it" in capsys.readouterr().err


def test_a_long_conversation_is_told_to_its_end(tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "callboard.db"
    commit_to(path, Commit(at=NOW, appends=(events("x", 0, 2500),)))
    assert run(["replay", "--db", str(path), "x"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert (len(lines), lines[-1].split()[-1]) == (2500, "kind2499")


@given(at=st.floats() | st.integers(-(10**30), 10**30))
def test_whatever_time_is_stored_something_is_written(at: float) -> None:
    assert when(at)
    assert lasting(at)
    assert (moment(at) is None) == (not at)
