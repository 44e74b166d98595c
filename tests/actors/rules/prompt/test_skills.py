"""Proves which skills a message calls for: by whole words, in any script and case."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from actors.rules.prompt.skills import (
    Skill,
    catalogue,
    plain,
    says,
    triggered,
    unfolded,
)


def skill(name: str, *triggers: str) -> Skill:
    return Skill(name, f"about {name}", triggers, f"do {name}")


@pytest.mark.parametrize(
    ("words", "trigger", "calls"),
    [
        ("send the invoice now", "invoice", True),
        ("Send the INVOICE!", "invoice", True),
        ("(invoice)", "Invoice", True),
        ("invoices are due", "invoice", False),
        ("reinvoice", "invoice", False),
        ("we are overdue", "due", False),
        ("tax_return", "tax", False),
        ("my tax  return\nplease", "tax return", True),
        ("Steuererklärung machen", "steuererklärung", True),
        ("Steuererkl\u0061\u0308rung", "Steuererklärung", True),
        ("GROSSE STRASSE", "straße", True),
        ("мой счёт готов", "счёт", True),
        ("счёта", "счёт", False),
        ("今天天气好", "天气", True),
        ("ดูอากาศวันนี้", "อากาศ", True),
        ("use c++ here", "c++", True),
        ("what about .net?", ".net", True),
        ("ｐｄｆ please", "pdf", True),
        ("pdf", "pdf", True),
        ("cafe\u0301s", "café", False),
        ("", "pdf", False),
        ("anything", "", False),
    ],
)
def test_a_trigger_is_a_word_of_its_own(
    words: str, trigger: str, *, calls: bool
) -> None:
    assert says(plain(words), plain(trigger)) is calls


letters = st.text("abä 天\u0301_.", max_size=30)


@given(words=letters, trigger=st.text("abä", min_size=1, max_size=4))
def test_it_is_found_as_splitting_finds_it(words: str, trigger: str) -> None:
    text = plain(words)
    parts = [""]
    for character in text:
        if character.isalnum() and character != "天":
            parts[-1] += character
        elif character in "\u0301_":
            parts[-1] += "#"  # part of a word, and of no trigger
        else:
            parts.append("")
    assert says(text, plain(trigger)) == (plain(trigger) in parts)


@given(st.text(max_size=200), st.text(max_size=20))
def test_any_text_is_looked_through(words: str, trigger: str) -> None:
    text, wanted = plain(words), plain(trigger)
    if says(text, wanted):
        assert wanted in text
    assert says(f"- {wanted} -", wanted) is bool(wanted)


@given(
    words=st.lists(st.sampled_from(["pdf", "tax", "cat", "dog"]), max_size=6),
    most=st.integers(0, 4),
)
def test_those_called_for_most_come_first(words: list[str], most: int) -> None:
    skills = [
        skill("a", "pdf"),
        skill("b", "pdf", "tax"),
        skill("c"),
        skill("d", "cat"),
    ]
    chosen = triggered(" ".join(words), skills, most)
    scores = [len(set(each.triggers) & set(words)) for each in chosen]
    assert scores == sorted(scores, reverse=True)
    assert all(scores)
    calling = [each for each in skills if set(each.triggers) & set(words)]
    assert len(chosen) == min(most, len(calling))


def test_a_model_is_told_names_first_and_texts_when_needed() -> None:
    one = Skill("pdf", "Fills in forms.", ("pdf",), "Step 1.", ("forms.md",))
    assert "- pdf: Fills in forms." in catalogue([one], {})
    assert "Step 1." not in catalogue([one], {})
    assert unfolded(one).startswith("Instructions of the skill pdf:\n\nStep 1.")
    assert "- forms.md" in unfolded(one)
