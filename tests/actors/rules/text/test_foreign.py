"""Proves that text from strangers is bounded, and keeps nothing that cannot be seen."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, strategies as st

from actors.rules.text.cleaning import clean, one_line

odd = st.text(
    st.sampled_from("a \n\r\t\x00\x1b\x85\u202e\u200b\u2028\U000e0041\ud800é")
)
texts = st.text() | odd


@given(text=texts, most=st.integers(1, 50))
def test_what_is_left_is_bounded_and_seen(text: str, most: int) -> None:
    left = clean(text, most)
    assert len(left) <= most
    assert all(c in "\t\n" or unicodedata.category(c) not in {"Cc", "Cs"} for c in left)
    assert not set(left) & set("\u202a\u202e\u2066\u200b\ufeff\U000e0041")
    assert clean(left, most) == left


@given(text=texts, most=st.integers(1, 50))
def test_one_line_is_one_line(text: str, most: int) -> None:
    assert len(one_line(text, most).splitlines()) <= 1


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Grüße, 世界! 👩‍👩‍👧 ×2", "Grüße, 世界! 👩‍👩‍👧 ×2"),
        ("  a\r\nb\rc ", "a\nb\nc"),
        ("a\n\n\n\n\nb", "a\n\nb"),
        ("read\x1b[31m me", "read[31m me"),
        ("safe\u202etxt.exe", "safetxt.exe"),
        ("hello\U000e0049\U000e0067", "hello"),
        ("abcdefgh", "abcd…"),
    ],
)
def test_letters_stay_and_tricks_go(text: str, left: str) -> None:
    assert clean(text, 5 if text == "abcdefgh" else 100) == left
