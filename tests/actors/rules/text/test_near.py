"""Proves that mistyped names are recognised, whatever comes in."""

from __future__ import annotations

from hypothesis import given, strategies as st

from actors.rules.text.similarity import did_you_mean, near_misses

NAMES = ("anna", "ben", "Benno")


def test_the_closest_name_comes_first_in_the_spelling_of_the_settings() -> None:
    assert near_misses("BENN", NAMES) == ("Benno", "ben")


def test_nothing_close_says_nothing() -> None:
    assert did_you_mean(near_misses("zzz", NAMES)) == ""


def test_near_misses_make_a_sentence() -> None:
    assert did_you_mean(("stop", "step"), "/") == " Did you mean /stop or /step?"


@given(st.text())
def test_only_known_names_are_suggested(word: str) -> None:
    assert set(near_misses(word * 100, NAMES)) <= set(NAMES)
