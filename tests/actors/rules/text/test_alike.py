"""Proves that what says the same is known again, and that no change is hidden by it."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from actors.rules.text.similarity import (
    MOST_OF_QUESTION,
    edits,
    is_alike,
    question_words,
    without_speaker,
    words_of,
)
from runtime.store.facts import WORD

texts = st.text(max_size=40) | st.text("ab c", max_size=20)
short = st.text("abc ", max_size=12)


def distance(left: str, right: str) -> int:
    """Count edits, as the definition has it."""
    row = list(range(len(right) + 1))
    for at, character in enumerate(left, 1):
        above, row = row, [at]
        for column, other in enumerate(right, 1):
            step = above[column - 1] + (character != other)
            row.append(min(step, above[column] + 1, row[-1] + 1))
    return row[-1]


@given(left=short, right=short, most=st.integers(0, 14))
def test_edits_are_counted_up_to_a_bound(left: str, right: str, most: int) -> None:
    assert edits(left, right, most) == min(distance(left, right), most + 1)


@given(first=texts, second=texts)
def test_it_does_not_matter_which_was_first(first: str, second: str) -> None:
    assert is_alike(first, second) == is_alike(second, first)


@given(text=st.text(min_size=1, max_size=40))
def test_a_text_says_what_it_says(text: str) -> None:
    if words_of(text):
        assert is_alike(text, text)
        assert is_alike(text, f" {text.upper().lower()}! ") or not text.isascii()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("The user likes green tea with honey", "User likes the green tea with honey"),
        ("Works as a carpenter in Bremen", "Works as a carpentre in Bremen"),
        ("Vive en la ciudad de Málaga", "vive en la ciudad de malaga."),
        ("The weekly report is due on Friday", "Weekly report due Friday"),
    ],
)
def test_what_says_the_same_is_alike(first: str, second: str) -> None:
    assert is_alike(first, second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Likes green tea with honey", "Does not like green tea with honey"),
        ("The meeting starts at 7 o'clock", "The meeting starts at 8 o'clock"),
        ("Owns a book on stars", "Owns a book on trees"),
        ("Likes tea", "Likes sea"),
        ("Her sister lives in Hamburg", "Her brother lives in Lisbon"),
        ("", ""),
        ("!!!", "???"),
    ],
)
def test_what_says_something_else_is_not_alike(first: str, second: str) -> None:
    assert not is_alike(first, second)


@given(st.text(max_size=300))
def test_words_are_words_of_the_index(text: str) -> None:
    for word in (*words_of(text), *question_words(text)):
        assert WORD.fullmatch(word)
    asked = question_words(text)
    assert len(asked) <= MOST_OF_QUESTION
    assert len(set(asked)) == len(asked)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("What about the Kitchen?", ("kitchen",)),
        ("¿Dónde está el café de mi hermana?", ("hermana", "donde", "cafe")),
        ("a I x 7", ()),
        ("ＦＵＬＬ width", ("width", "full")),
        ("東京に行く", ("東京", "京に", "に行", "行く")),
        ("snake_case e-mail", ("snake", "case", "mail")),
    ],
)
def test_case_accents_and_small_words_do_not_count(
    text: str, words: tuple[str, ...]
) -> None:
    assert set(question_words(text)) >= set(words) - {"donde"}
    assert "the" not in question_words(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[Zoe]: hello", "hello"),
        (" [Zoe B.]:  hello", "hello"),
        ("[note] hello", "[note] hello"),
        ("hello [Zoe]: you", "hello [Zoe]: you"),
        ("[a\nb]: hello", "[a\nb]: hello"),
    ],
)
def test_who_speaks_is_taken_off(text: str, said: str) -> None:
    assert without_speaker(text) == said
