"""A prompt that is recited carries out nothing; marks in earnest all do."""

from __future__ import annotations

from actors.rules.markers.actions import SaveFact
from actors.rules.markers.descriptions import MARKS
from actors.rules.markers.parser import examples, in_earnest, parse


def test_a_recited_prompt_asks_for_nothing() -> None:
    recital = "\n".join(mark.text for mark in MARKS)
    wants = parse(recital, "assistant").actions
    assert len(wants) > len(MARKS) // 2
    assert in_earnest(wants) == ()
    own = SaveFact("sticky", "is allergic to nuts")
    assert in_earnest((*wants, own)) == (own,)


def test_two_marks_like_the_examples_are_meant() -> None:
    two = tuple(sorted(examples(), key=repr))[:2]
    assert in_earnest(two) == two
