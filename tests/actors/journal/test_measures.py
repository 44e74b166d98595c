"""Proves that what is counted adds up, and says where a text must be cut."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from actors.journal.splitting import split
from actors.rules.text.measure import CHARACTERS
from connectors.chat.platforms import platforms

TEXTS = st.lists(
    st.sampled_from(["a", "*", "&", "<", "|", "@", "\U0001f98a", "\n", "\n```\n", " "]),
    max_size=60,
).map("".join)
MEASURES = {"": CHARACTERS} | {
    each.kind: each.limits.measure
    for each in platforms()
    if not each.limits.measure.is_plain
}
NAMES = pytest.mark.parametrize("name", MEASURES)


@NAMES
@given(text=TEXTS, most=st.integers(0, 150))
def test_as_many_letters_fit_as_are_counted(name: str, text: str, most: int) -> None:
    measure = MEASURES[name]
    sizes = [measure.size(text[:end]) for end in range(len(text) + 1)]
    assert sizes == sorted(sizes)
    fitting = [end for end, size in enumerate(sizes) if size <= most]
    assert measure.reach(text, most) == (fitting[-1] if fitting else 0)


@NAMES
@given(text=TEXTS, most=st.integers(30, 100))
def test_parts_fit_however_letters_are_counted(name: str, text: str, most: int) -> None:
    measure = MEASURES[name]
    for part in split(text, most, measure):
        assert measure.size(part) <= most
        assert part.strip()


def test_a_letter_counts_what_it_may_become() -> None:
    text = "a & <b> \U0001f98a *"
    sizes = {name: measure.size(text) for name, measure in MEASURES.items()}
    assert sizes == {
        "": 11,
        "discord": 15,
        "qq": 13,
        "slack": 22,
        "telegram": 12,
        "whatsapp": 12,
    }


def test_in_code_no_sign_gets_a_backslash() -> None:
    discord = MEASURES["discord"]
    assert discord.size("```\n*_[]|\n```\n*") - discord.size("```\n\n```\n") == 5 + 2
