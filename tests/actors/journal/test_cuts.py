"""Proves that a text is cut where it hurts least."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from actors.journal.splitting import boundary, split

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
LETTERS = [
    *("a", "é", "e\u0301", "\U0001f98a", FAMILY, "\U0001f44d\U0001f3fd", "\r\n"),
    *("\U0001f1e9\U0001f1ea", "1\ufe0f\u20e3", "한", "\u1112\u1161\u11ab", "क्षि"),
]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("One two. Three four", ["One two.", "Three four"]),
        ("一二三四五六。七八九十一二三", ["一二三四五六。", "七八九十一二三"]),
        ("sevennn [a b c](x) end", ["sevennn", "[a b c](x)", "end"]),
        ("sevennn `a b c d` e", ["sevennn", "`a b c d` e"]),
        ("sevennn **a b c** e", ["sevennn", "**a b c** e"]),
        ("sevennn *a b c d* e", ["sevennn", "*a b c d* e"]),
        ("> one two three four", ["> one two", "> three four"]),
        ("seven\n  - a\n- bcd", ["seven\n  - a", "- bcd"]),
        ("- a b c d\n  - e\n    - f\n  - g", ["- a b c d", "- e\n  - f", "- g"]),
    ],
)
def test_cuts_spare_what_belongs_together(text: str, parts: list[str]) -> None:
    assert split(text, 12) == parts


def test_what_is_marked_from_end_to_end_is_cut_all_the_same() -> None:
    assert split("**aaa bbb ccc ddd**", 12) == ["**aaa bbb", "ccc ddd**"]


@given(st.lists(st.sampled_from(LETTERS), min_size=1, max_size=30), st.data())
def test_no_letter_is_cut(letters: list[str], data: st.DataObject) -> None:
    text = "".join(letters)
    ends = {sum(map(len, letters[:count])) for count in range(len(letters) + 1)}
    at = data.draw(st.integers(1, len(text)))
    found = boundary(text, at)
    whole = {end for end in ends if 0 < end <= at}
    assert found == (max(whole) if whole else at)


def test_a_tower_of_accents_is_cut() -> None:
    assert boundary("a" + "\u0301" * 100, 50) == 50
    assert all(split("a" + "\u0301" * 100, 40))


@given(st.text(max_size=80), st.integers(1, 20))
def test_parts_of_any_text_lose_nothing(text: str, most: int) -> None:
    again = str.maketrans("", "", "`~>")  # what is begun again in a further part
    told = "".join("".join(split(text, most)).split())
    assert told.translate(again) == "".join(text.split()).translate(again)
