"""Proves that code and tables go on as such, and that a text keeps its cuts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from actors.journal.splitting import closed, opened, split

LINES = st.sampled_from(
    [
        "```python",
        "```",
        "~~~",
        "````",
        "  ```js",
        "    deep = 1",
        "x = [1, 2]",
        "some words of prose that go on for a while",
        "",
        "`` ` ``",
        "-" * 50,
        "```" + "y" * 40,
    ]
)
ROWS = st.sampled_from(
    [
        "| a | b |",
        "|---|--:|",
        "| tea | 3.50 |",
        "1 | 2",
        "--|--",
        "",
        "some words",
        "```",
    ]
)
ROWED = st.lists(ROWS, max_size=40).map("\n".join)
TEXTS = st.lists(LINES, max_size=25).map("\n".join)
FENCE = re.compile(r" {0,3}(`{3,}[^`]*|~{3,}.*)")


def words(text: str) -> str:
    """Give the text without fences and blanks."""
    lines = [line for line in text.split("\n") if not FENCE.fullmatch(line)]
    return "".join("".join(lines).split())


@given(TEXTS, st.integers(64, 200))
def test_every_part_but_the_last_ends_its_code(text: str, most: int) -> None:
    parts = split(text, most)
    for part in parts:
        assert part.strip()
        assert len(part) <= most
    for part in parts[:-1]:
        assert opened(part) is None, part


@given(TEXTS, st.integers(128, 200))
def test_no_words_are_lost_or_repeated(text: str, most: int) -> None:
    assert words("\n".join(split(text, most))) == words(text)


@given(TEXTS, st.integers(1, 200), st.integers(0, 1000))
def test_a_growing_text_keeps_its_cuts(text: str, most: int, length: int) -> None:
    before, after = split(text[:length], most), split(text, most)
    if len(text[:length].strip()) > most:
        assert after[: len(before) - 1] == before[:-1]


@given(TEXTS)
def test_closed_ends_what_is_open(text: str) -> None:
    assert opened(closed(text)) is None
    assert closed(text).startswith(text)
    assert closed(closed(text)) == closed(text)


def test_code_goes_on_in_the_same_language() -> None:
    code = "\n".join(f"line {number:02}" for number in range(12))
    parts = split(f"See:\n```python\n{code}\n```\nThat is all, really.", 64)
    assert parts[0].startswith("See:\n```python\nline 00\n")
    assert parts[0].endswith("\n```")
    assert parts[1].startswith("```python\nline 0")
    assert parts[-1].endswith("That is all, really.")
    assert "".join(re.findall(r"line \d\d", "".join(parts))) == code.replace("\n", "")


def test_code_that_begins_late_begins_in_the_next_part() -> None:
    text = f"{'word ' * 10}\n```\na\nb\nc\nd\ne\nf\ng\n```"
    assert split(text, 64) == ["word " * 9 + "word", "```\na\nb\nc\nd\ne\nf\ng\n```"]


def test_code_that_ends_at_the_cut_is_not_begun_again() -> None:
    code = "x" * 56
    assert split(f"```\n{code}\n```\nmore", 64) == [f"```\n{code}\n```", "more"]


def test_the_indentation_of_code_stays() -> None:
    code = "\n".join(["def f():", *["    return 1234567890"] * 5])
    parts = split(f"```py\n{code}\n```", 70)
    assert len(parts) > 1
    for part in parts[1:]:
        assert part.split("\n")[1].startswith("    return")


HEAD = "| n | what |\n|---|---:|"


def table(rows: int) -> str:
    """Make a table with so many rows of 14 characters."""
    return "\n".join([HEAD, *(f"| {number:02} | thing |" for number in range(rows))])


def test_a_table_goes_on_under_its_head() -> None:
    parts = split(f"See:\n\n{table(12)}\n\nThat is all, really.", 110)
    assert parts[0].startswith(f"See:\n\n{HEAD}\n| 00 |")
    assert [part.startswith(f"{HEAD}\n| ") for part in parts[1:]] == [True, True]
    assert parts[-1].endswith("That is all, really.")
    assert re.findall(r"\d\d", "".join(parts)) == re.findall(r"\d\d", table(12))


WORDS = " ".join(["word"] * 14)


@pytest.mark.parametrize(
    ("first", "between", "second"),
    [
        (table(3), "\n\n", WORDS),
        (WORDS, "\n", table(3)),
        ("\n".join(["a | b", *["1 | 2"] * 15]), "\n", "\n".join(["1 | 2"] * 5)),
        (f"{HEAD}\n{WORDS}", " ", "word |\n| 01 | thing |"),
    ],
    ids=["the table is over", "only its head fits", "no table", "inside a row"],
)
def test_only_rows_under_a_head_get_it_again(
    first: str, between: str, second: str
) -> None:
    assert split(f"{first}{between}{second}", 96) == [first, second]


@given(ROWED, st.integers(8, 120), st.integers(0, 400))
def test_a_growing_table_keeps_its_cuts(text: str, most: int, length: int) -> None:
    before, after = split(text[:length], most), split(text, most)
    assert all(len(part) <= most and part.strip() for part in after)
    if len(text[:length].strip()) > most:
        assert after[: len(before) - 1] == before[:-1]
