"""Proves that only answers in an envelope are taken out of it, at once or streamed."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, strategies as st

from actors.rules.markers.json_answers import MOST, EnvelopeSanitizer
from actors.rules.markers.parser import ParsedAnswer, ParserRules, cleaner, parse
from tests.actors.rules.markers.test_sanitizer import texts

OPENS = ParserRules(opens_envelopes=True)


def written(**fields: object) -> str:
    return msgspec.json.encode(fields).decode()


envelopes = st.builds(
    written,
    text=texts,
    thought=st.text(max_size=5),
    actions=st.lists(st.sampled_from(["REPLY", "IGNORE", "x"]), max_size=2),
)


def streamed(text: str) -> str:
    sanitizer = EnvelopeSanitizer()
    return "".join(map(sanitizer.feed, text)) + sanitizer.finish()


@given(envelopes | envelopes.map(lambda text: f"```json\n{text}\n```") | texts)
def test_a_stream_shows_what_parsing_shows(text: str) -> None:
    assert streamed(text).strip() == parse(text, "assistant", OPENS).visible.strip()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (written(text="Hi.", thought="hm", actions=["REPLY"]), "Hi."),
        (written(thought="hm", message="Hi.", action="REPLY"), "Hi."),
        ("```json\n" + written(text="Hi.", simple=True) + "\n```", "Hi."),
        (written(text="a [MEMORY:x] b [/MEMORY]", thought=""), "a"),
    ],
)
def test_only_the_text_is_shown(text: str, shown: str) -> None:
    assert parse(text, "assistant", OPENS).visible == shown


def test_marks_in_an_envelope_count() -> None:
    text = written(text="[MEMORY:x] b [/MEMORY] ok", thought="[MEMORY:y] c [/MEMORY]")
    assert len(parse(text, "assistant", OPENS).actions) == 1


@pytest.mark.parametrize(
    "text",
    [
        written(text="Hi.", actions=["IGNORE"]),
        written(text="", actions=["NONE"]),
        written(text="Hi.", action="ignore", thought="x"),
    ],
)
def test_an_envelope_that_asks_for_silence_is_withheld(text: str) -> None:
    assert parse(text, "assistant", OPENS).is_withheld


@pytest.mark.parametrize(
    "text",
    [
        written(text="Hi.", price=3),
        written(text="Hi."),
        written(thought="hm", name="x"),
        "So: " + written(text="Hi.", thought="x"),
        '{"text": "Hi.", "thought": ',
        '{"text": 3, "thought": "x"}',
        written(text="x" * MOST, thought="x"),
    ],
)
def test_any_other_object_is_an_answer(text: str) -> None:
    assert parse(text, "assistant", OPENS) == ParsedAnswer(text)
    assert streamed(text) == text


def test_without_the_setting_an_object_is_an_object() -> None:
    text = written(text="Hi.", thought="hm")
    assert parse(text, "assistant") == ParsedAnswer(text)
    plain = cleaner(ParserRules())
    assert plain.feed(text) + plain.finish() == text
    assert isinstance(cleaner(OPENS), EnvelopeSanitizer)
