"""Proves what a model is told of itself and of its colleagues."""

from __future__ import annotations

from actors.rules.prompt import system_prompt


def test_the_files_come_before_the_prompt() -> None:
    assert system_prompt("anna", "I am Anna.\n", " Be brief. ", {}) == (
        "I am Anna.\n\nBe brief."
    )


def test_who_was_told_nothing_is_told_its_name() -> None:
    assert system_prompt("anna", " ", "", {}).startswith("You are anna,")


def test_colleagues_are_listed_with_what_they_are_for() -> None:
    text = system_prompt("anna", "I am Anna.", "", {"ben": "sums", "carl": ""})
    assert "\n- ben: sums\n- carl\n" in text
    assert "[DELEGATE:ben]" in text


def test_without_colleagues_delegation_is_not_mentioned() -> None:
    assert "DELEGATE" not in system_prompt("anna", "", "", {})
