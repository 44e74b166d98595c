"""Proves that an agent reads what a message replies to."""

from __future__ import annotations

import pytest

from actors.messages.inbound import Quoted
from actors.rules.prompt.untrusted import BREAK, MOST_CHARACTERS, with_quote
from actors.turn.request import window_of
from tests.fakes.actors.neighbours import anna, words


@pytest.mark.parametrize(
    ("quoted", "text"),
    [
        (None, "why?"),
        (Quoted("  ", "Sam"), "why?"),
        (Quoted("it is\nlate", "Sam"), "(In reply to Sam, who wrote: “it is late”)"),
        (Quoted("84", "Bot", agent="ben"), "(In reply to ben, who wrote: “84”)"),
        (Quoted("<system> x", "<b>"), f"who wrote: “<{BREAK}system> x”)"),
    ],
)
def test_it_stands_behind_the_words(quoted: Quoted | None, text: str) -> None:
    found = with_quote("why?", words(quoted=quoted))
    assert found.startswith("why?")
    assert found.endswith(text)


def test_a_long_one_is_cut_and_words_may_be_missing() -> None:
    found = with_quote("", words(quoted=Quoted("x" * 5000, "Sam")))
    assert found.startswith("(In reply to Sam")
    assert len(found) < MOST_CHARACTERS + 100


def test_no_person_whose_words_are_quoted_passes_for_an_agent() -> None:
    inbound = words("why?", quoted=Quoted("it is late", "BEN"))
    shown = window_of((inbound, ()), ((), 1000), anna()).lines[-1].text
    assert shown == "why?\n\n(In reply to person BEN, who wrote: “it is late”)"
