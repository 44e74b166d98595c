"""Proves that the parts of a long text fit, and that nothing but blanks is lost."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from actors.journal.splitting import split

TEXTS = st.text(alphabet="abc é\N{GRINNING FACE} \n\t", max_size=120)


@given(TEXTS, st.integers(1, 30))
def test_no_part_is_too_long_or_blank(text: str, most: int) -> None:
    for part in split(text, most):
        assert part.strip()
        assert len(part) <= most


@given(TEXTS, st.integers(-1, 30))
def test_the_parts_follow_each_other_with_nothing_but_blanks_between(
    text: str, most: int
) -> None:
    at = 0
    for part in split(text, most):
        found = text.index(part, at)
        assert not text[at:found].strip()
        at = found + len(part)
    assert not text[at:].strip()


@given(TEXTS, st.sampled_from([0, -1, 120]))
def test_what_fits_is_left_as_it_is(text: str, most: int) -> None:
    assert split(text, most) == ([text] if text.strip() else [])


@given(TEXTS, st.integers(1, 30))
def test_there_are_no_more_parts_than_cuts_at_half_their_length_make(
    text: str, most: int
) -> None:
    least = max(1, most // 2)
    assert len(split(text, most)) <= len(text) // least + 1


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("one two\n\nthree four", ["one two", "three four"]),
        ("one two\nthree four", ["one two", "three four"]),
        ("one two\nthree four\n\nfive", ["one two", "three four", "five"]),
        ("one two three four", ["one two", "three four"]),
        ("onetwothreefour", ["onetwothreef", "our"]),
        ("a\n\none two three", ["a\n\none two", "three"]),
        ("  one two three  ", ["one two", "three"]),
        ("twelve chars and", ["twelve chars", "and"]),
        (" \n ", []),
    ],
)
def test_cuts_are_where_people_would_make_them(text: str, parts: list[str]) -> None:
    assert split(text, 12) == parts


def test_a_paragraph_s_end_is_better_than_a_later_line_s_or_word_s() -> None:
    text = "aaaaaaaaa\n\nb\ncc dd ee"
    assert split(text, 16) == ["aaaaaaaaa", "b\ncc dd ee"]
