"""Tells a model that recites its instructions from one that acts on them; pure.

"Repeat all that stands above" brings the examples of the prompt back, marks and all.
Whoever uses marks in earnest does not use several of the very examples at once.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from actors.rules.mark_texts import MARKS
from actors.rules.markers import parse

if TYPE_CHECKING:
    from actors.rules.actions import Action

RECITED = 3
"""So many different examples in one text, and it recites."""


def in_earnest(wants: tuple[Action, ...]) -> tuple[Action, ...]:
    """Give what a text asks for, without the examples if it recites them."""
    shown = examples()
    if len({each for each in wants if each in shown}) < RECITED:
        return wants
    return tuple(each for each in wants if each not in shown)


@cache
def examples() -> frozenset[Action]:
    """Give what the examples of the prompt ask for."""
    texts = (text for mark in MARKS for text in mark.examples)
    return frozenset(
        each for text in texts for each in parse(text, "assistant").actions
    )
