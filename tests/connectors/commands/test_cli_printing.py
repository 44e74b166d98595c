"""Proves that tables stand straight, and what unreadable rows look like in them."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import click
import msgspec
import pytest
from hypothesis import given, strategies as st

from connectors.admin.display import lasting, moment, when
from connectors.cli import callboard, run
from connectors.commands.common.output import (
    ANSWER_OTHERWISE,
    NARROWEST,
    broken,
    cut,
    first_words,
    narrowed,
    table,
    width,
)
from runtime.store.rows import Commit
from tests.support.desk import commit_to, write_database
from tests.support.store.rows import NOW, accepting, enqueueing, events, heard, noting

Output = pytest.CaptureFixture[str]

cells = st.text(max_size=12)


@given(rows=st.lists(st.tuples(cells, cells, st.just("end")), max_size=5))
def test_the_last_column_begins_at_one_place(rows: list[tuple[str, ...]]) -> None:
    lines = list(table(("ONE", "TWO", "THREE"), rows))
    ends = [line[: -len("end")] for line in lines[1:]]
    assert len({width(each) for each in [*ends, lines[0][: -len("THREE")]]}) == 1


@given(rows=st.lists(st.tuples(cells, cells, cells)), room=st.integers(30, 60))
def test_a_table_fits_the_terminal(rows: list[tuple[str, ...]], room: int) -> None:
    lines = table(("ONE", "TWO", "THREE"), rows, room)
    assert all(width(line) <= room for line in lines)


@given(
    widths=st.lists(st.integers(0, 60), min_size=1, max_size=6),
    room=st.integers(1, 200),
    data=st.data(),
)
def test_columns_give_way_widest_first_and_no_more_than_needed(
    widths: list[int], room: int, data: st.DataObject
) -> None:
    kept = data.draw(st.sets(st.integers(0, len(widths) - 1)))
    made = narrowed(widths, room, kept)
    taken = sum(made) + 2 * (len(made) - 1)
    cut_ones = [number for number in range(len(made)) if made[number] < widths[number]]
    assert not kept & set(cut_ones)
    assert all(made[number] >= NARROWEST for number in cut_ones)
    assert taken == room or not cut_ones or taken > room
    free = [made[number] for number in range(len(made)) if number not in kept]
    assert taken <= room or all(each <= NARROWEST for each in free)
    assert all(made[number] >= max(free) - 1 for number in cut_ones)


@given(text=st.text(max_size=20), most=st.integers(1, 20))
def test_what_is_cut_says_so_and_fits(text: str, most: int) -> None:
    shown = cut(text, most)
    assert width(shown) <= most
    assert shown == text if width(text) <= most else shown.endswith("…")


@given(
    st.text("ab  \u754ce\u0301", max_size=60), st.integers(1, 40), st.integers(0, 12)
)
def test_a_line_is_broken_between_words_and_nothing_is_lost(
    line: str, room: int, indent: int
) -> None:
    first, *others = broken(line, room, indent)
    blanks = " " * (indent if 2 * indent < room else 0)
    assert all(each.startswith(blanks) for each in others)
    rest = [each.removeprefix(blanks) for each in others]
    assert " ".join([first, *rest]) == line
    for each in others:
        assert width(each) <= room or " " not in each.strip()
    for before, after in zip([first, *others], rest, strict=False):
        assert width(f"{before} {after.partition(' ')[0]}") > room  # it had to be


def test_only_a_terminal_cuts_what_is_in_a_table() -> None:
    text = "\x1b" + "a long text " * 40 + "!"
    _, whole = table(("ID", "TEXT"), [("1", text)])
    assert whole.endswith("a long text !")
    _, shown = table(("ID", "TEXT"), [("1", text)], 40)
    assert (len(shown), shown[-1]) == (40, "…")
    _, shown = table(("ID", "TEXT"), [("1", text)], 1_000)
    assert (len(shown), shown[-1]) == (204, "…")


def test_a_time_loses_its_year_before_a_narrow_terminal_cuts_it() -> None:
    headers, row = ("TIME", "TEXT"), ("2026-11-28T19:17:57+00:00", "x" * 60)
    _, whole = table(headers, [row], 90)
    assert whole.startswith(row[0])
    head, shown = table(headers, [row], 40)
    assert shown == f"11-28 19:17  {'x' * 26}…"
    assert head == "TIME         TEXT"


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


class Terminal(io.StringIO):
    """Standard output, as a terminal is."""

    def isatty(self) -> bool:
        """Say that people read it."""
        return True


def shown(monkeypatch: pytest.MonkeyPatch, output: io.StringIO, *more: str) -> str:
    """Give the list of agents as it is written to an output."""
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", output)
        patch.setenv("COLUMNS", "60")
        run(["agents", "list", "--config", "config/offline.toml", *more])
    return output.getvalue()


def test_a_terminal_has_tables_that_fit_and_a_pipe_whole_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = ("--db", str(write_database(tmp_path / "callboard.db")))
    narrow = shown(monkeypatch, Terminal(), *there)
    whole = shown(monkeypatch, io.StringIO(), *there)
    assert max(map(len, narrow.splitlines())) <= 60 < len(whole.splitlines()[0])
    assert shown(monkeypatch, Terminal(), *there, "--wide") == whole
    headless = shown(monkeypatch, io.StringIO(), *there, "--no-header")
    assert headless.splitlines()[0].split()[:2] == ["anna", "active"]
    assert len(headless.splitlines()) + 1 == len(whole.splitlines())


def each_command(group: click.Group, name: str = "") -> Iterator[tuple[str, set[str]]]:
    """Give each command with its options."""
    context = click.Context(group)
    for below in group.list_commands(context):
        command = group.get_command(context, below)
        path = f"{name} {below}".strip()
        if isinstance(command, click.Group):
            yield from each_command(command, path)
            if not command.invoke_without_command:
                continue
        if command is not None:
            yield path, {text for each in command.params for text in each.opts}


def test_every_command_answers_programs() -> None:
    options = dict(each_command(callboard))
    assert {name for name in options if "--json" not in options[name]} == set(
        ANSWER_OTHERWISE
    )


def test_what_a_command_did_is_one_object(tmp_path: Path, capsys: Output) -> None:
    database = write_database(tmp_path / "callboard.db")
    there = ["--config", "config/offline.toml", "--db", str(database), "--json"]
    assert run(["agents", "disable", "ben", *there]) == 0
    told = json.loads(capsys.readouterr().out)
    said = {"text": "ben is disabled", "facts": {"id": "ben", "state": "disabled"}}
    assert told == {"ok": True, "said": [said]}
    assert run(["pairing", "deny", "ABCD", *there]) == 1
    written = capsys.readouterr()
    told = json.loads(written.out)
    assert (told["ok"], told["said"][0]["is_trouble"]) == (False, True)
    assert written.err == ""


@pytest.mark.parametrize(
    ("word", "meant"),
    [("chta", " Did you mean 'chat'?"), ("xyzzy", ""), ("--hlep", None)],
)
def test_a_mistyped_command_is_told_what_is_near_it(
    word: str, meant: str | None, capsys: Output
) -> None:
    assert run([word]) == 2
    told = capsys.readouterr().err.splitlines()[-1]
    if meant is None:
        assert told.startswith(f"Error: No such option '{word}'")
    else:
        assert told == f"Error: No such command '{word}'.{meant}"


@pytest.mark.parametrize(
    ("arguments", "exit_code"),
    [
        (["agents", "list", "--config", "none.toml", "--json"], 1),
        (["queue", "show", "--db", "none.db", "--json", "x"], 1),
        (["agents", "remove", "--json"], 2),
        (["no-such-command", "--json"], 2),
    ],
)
def test_what_went_wrong_is_one_object(
    arguments: list[str],
    exit_code: int,
    capsys: Output,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["callboard", *arguments])
    assert run() == exit_code
    written = capsys.readouterr()
    told = json.loads(written.err)
    assert (written.out, told["exit_code"]) == ("", exit_code)
    assert told["error"]
