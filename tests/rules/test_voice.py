"""Proves that sentences are told in another language, whatever stands in them."""

from __future__ import annotations

import re
from time import perf_counter

from hypothesis import given
from hypothesis import strategies as st

from actors.rules.voice import LONGEST, Catalogue, Pattern, Voices, english

TEXTS = {
    "Stopped.": "Angehalten.",
    "{what}\n\nAgain in {span}.": "{what}\n\nNochmals in {span}.",
    "{count} minutes": "{count} Minuten",
    "{a} may run {b}": "{b} darf {a}",
    "{a} may run {b}, for long": "{b} darf {a}, lange",
    "{id} or {id}": "{id} oder {id}",
    "Yes": "",
}
GERMAN = Catalogue(TEXTS)


def test_a_text_is_looked_up_by_its_words() -> None:
    assert GERMAN.say("Stopped.") == "Angehalten."
    assert GERMAN.say("{count} minutes").format(count=3) == "3 Minuten"


def test_what_is_not_translated_is_said_in_english() -> None:
    assert GERMAN.say("Yes") == "Yes"
    assert GERMAN.say("No") == GERMAN.retell("No") == "No"


def test_a_sentence_is_told_anew_with_the_sentences_in_it() -> None:
    told = GERMAN.retell("Stopped.\n\nAgain in 2 minutes.")
    assert told == "Angehalten.\n\nNochmals in 2 Minuten."


def test_the_pattern_that_says_most_comes_first() -> None:
    assert GERMAN.retell("anna may run it, for long") == "it darf anna, lange"
    assert GERMAN.retell("anna may run it") == "it darf anna"


def test_one_placeholder_stands_for_one_thing() -> None:
    assert GERMAN.retell("3F or 3F") == "3F oder 3F"
    assert GERMAN.retell("3F or 4G") == "3F or 4G"


@given(st.text(alphabet="ab{} .\n,orcinutes3", max_size=200))
def test_any_text_is_told_somehow(text: str) -> None:
    assert isinstance(GERMAN.retell(text), str)


@given(st.text(min_size=1))
def test_what_stands_in_a_sentence_stays(name: str) -> None:
    inner = GERMAN.retell(name, 3)
    assert GERMAN.retell(f"{name} may run {name}") in (
        f"{inner} darf {inner}",
        GERMAN.retell(f"{name} may run {name}"),
    )


def test_a_long_text_is_left_as_it_is() -> None:
    long = "a " * 3000 + "may run b"
    assert GERMAN.retell(long) == long


def test_each_is_spoken_to_in_their_language_or_the_settings_one() -> None:
    voices = Voices({"de": TEXTS, "es": {"Stopped.": "Detenido."}}, "es")
    assert voices.languages == ("de", "en", "es")
    assert voices.speak("de")("Stopped.") == "Angehalten."
    assert voices.speak("en") is english
    assert voices.speak("fr")("Stopped.") == voices.speak()("Stopped.") == "Detenido."
    assert voices.retell("de")("2 minutes") == "2 Minuten"
    assert Voices().retell("de") is english


@given(
    text=st.text(alphabet="ab ", max_size=6),
    pieces=st.lists(st.text(alphabet="ab ", max_size=2), max_size=3),
    sentence=st.text(alphabet="ab ", max_size=30),
)
def test_a_pattern_fits_what_its_expression_does(
    text: str, pieces: list[str], sentence: str
) -> None:
    """Compared with the expression that says the same, and takes its time."""
    names = [f"n{number}" for number in range(len(pieces) + 1)]
    ends = [*pieces, ""]
    made = "".join(f"{{{x}}}{end}" for x, end in zip(names, ends, strict=True))
    lazy = "".join(
        f"(?P<{x}>.+?){re.escape(end)}" for x, end in zip(names, ends, strict=True)
    )
    found = re.fullmatch(re.escape(text) + lazy, sentence, re.DOTALL)
    expected = found.groupdict() if found else None
    assert Pattern(text + made).fit(sentence) == expected


def test_words_that_repeat_what_it_looks_for_keep_nobody_waiting() -> None:
    template = "{agent} wants to run `{tool}`: {what} - {id} or {id}"
    catalogue = Catalogue({template: template})
    sentence = f"{'a wants to run `b`: c - d or e' * 120}!"[:LONGEST]
    began = perf_counter()
    assert catalogue.retell(sentence) == sentence
    assert perf_counter() - began < 0.1
