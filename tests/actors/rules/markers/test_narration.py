"""Proves that a model's announcements go, and that nothing else does."""

from __future__ import annotations

import pytest

from actors.rules.markers.narration import is_narration
from actors.rules.markers.sanitizer import Sanitizer


def clean(text: str) -> str:
    sanitizer = Sanitizer(hides_narration=True)
    return (sanitizer.feed(text) + sanitizer.finish()).strip()


@pytest.mark.parametrize(
    "line",
    [
        "Let me check the weather.",
        "Okay, let me look that up for you…",
        "I\N{RIGHT SINGLE QUOTATION MARK}ll fetch the page:",
        "Searching the web...",
        "*Looking up the forecast…*",
        "Ich schaue kurz nach.",
        "Lass mich das prüfen …",
        "Ich suche die Datei…",
        "Voy a buscar el archivo.",
        "Je vais vérifier.",
        "Fammi controllare…",
        "Deixe-me verificar.",
        "Laat me even kijken.",
        "Сейчас проверю…",
    ],
)
def test_announcements_are_known_in_several_languages(line: str) -> None:
    assert is_narration(line)
    assert clean(f"{line}\n\nIt rains.") == "It rains."
    assert clean(line) == line.strip()


@pytest.mark.parametrize(
    "line",
    [
        "Let me be clear.",
        "Let me check. It rains.",
        "Searching is fun.",
        "Ich sehe das anders.",
        "I'll check in tomorrow and " + "x" * 200,
        "It rains.",
        "- Reading",
    ],
)
def test_other_lines_stay(line: str) -> None:
    assert not is_narration(line)
    assert clean(f"{line}\nYes.") == f"{line}\nYes."


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Let me check…\nSearching the web…\n\nIt rains.", "It rains."),
        ("It rains.\nLet me check the wind.\nBye.", None),
        ("Rain.\nLet me check.\n\n<tool_call>x</tool_call>\nWind.", "Rain.\nWind."),
        ("Let me check.\nIGNORE", ""),
        ("Let me check.\n\n", "Let me check."),
        ("```\nLet me check.\n```\nx", None),
    ],
)
def test_only_at_the_beginning_or_before_a_call(text: str, shown: str | None) -> None:
    assert clean(text) == (text if shown is None else shown)


def test_without_the_setting_they_are_shown() -> None:
    text = "Let me check…\n\nIt rains."
    sanitizer = Sanitizer()
    assert sanitizer.feed(text) + sanitizer.finish() == text
