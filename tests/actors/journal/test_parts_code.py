"""Proves that code is cut into blocks of code, and that a text keeps its cuts."""

from __future__ import annotations

import re

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
