"""Proves that sentences are told in another language, whatever stands in them."""

from __future__ import annotations

import re
from time import perf_counter

from hypothesis import given, strategies as st

from actors.rules.text.translations import (
    LONGEST,
    TextCatalogue,
    TextPattern,
    Translated,
    Voices,
    english,
)
from connectors.app.assembly import load_voices

TEXTS = {
    "Stopped.": "Angehalten.",
    "{what}\n\nAgain in {span}.": "{what}\n\nNochmals in {span}.",
    "{count} minutes": "{count} Minuten",
    "{a} may run {b}.": "{b} darf {a}.",
    "{a} may run {b}, for long": "{b} darf {a}, lange",
    "{id} or {id}": "{id} oder {id}",
    "Yes": "",
}
GERMAN = TextCatalogue(TEXTS)
SHIPPED = load_voices()


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
    assert GERMAN.retell("anna may run it.") == "it darf anna."


def test_one_placeholder_stands_for_one_thing() -> None:
    assert GERMAN.retell("3F or 3F") == "3F oder 3F"
    assert GERMAN.retell("3F or 4G") == "3F or 4G"


@given(st.text(alphabet="ab{} .\n,orcinutes3", max_size=200))
def test_any_text_is_told_somehow(text: str) -> None:
    assert isinstance(GERMAN.retell(text), str)


WORDS = st.text(alphabet="ab{}. ,`", min_size=1, max_size=6)
FOREIGN = ("There is no agent {name}.", "{source} may not ask {name}, only {known}.")
FILLED = st.one_of(
    WORDS,
    st.sampled_from(sorted(TEXTS)),
    st.lists(st.sampled_from(["may run", ", for long", "Stopped.", "or", "x"])).map(
        " ".join
    ),
).filter(lambda words: words and "\n" not in words)


@given(a=FILLED, b=FILLED)
def test_what_was_filled_in_comes_out_unchanged(a: str, b: str) -> None:
    sentence = f"{a} may run {b}."
    assert GERMAN.retell(sentence) in (sentence, f"{b} darf {a}.")


@given(name=FILLED)
def test_what_was_filled_in_comes_out_of_every_language(name: str) -> None:
    for language in ("de", "es", "fr", "ko", "pt"):
        retell = SHIPPED.retell(language)
        for template in (
            "There is no agent {name}.",
            "{source} may not ask {name}, only {known}.",
        ):
            given_: dict[str, str] = dict.fromkeys(["name", "source", "known"], name)
            sentence = template.format_map(given_)
            right = SHIPPED.speak(language)(template).format_map(given_)
            assert retell(sentence) in (sentence, right)


def test_what_could_have_been_said_in_two_ways_is_left_as_it_is() -> None:
    sentence = "x may run y may run z."
    assert GERMAN.retell(sentence) == sentence


def test_a_persons_words_are_not_translated() -> None:
    assert GERMAN.retell("Stopped. may run Yes.") == "Yes darf Stopped.."
    assert GERMAN.retell(Translated("2 minutes")) == "2 minutes"


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
    assert TextPattern(text + made).fit(sentence) == expected


def test_words_that_repeat_what_it_looks_for_keep_nobody_waiting() -> None:
    template = "{agent} wants to run `{tool}`: {what} - {id} or {id}"
    catalogue = TextCatalogue({template: template})
    sentence = f"{'a wants to run `b`: c - d or e' * 120}!"[:LONGEST]
    began = perf_counter()
    assert catalogue.retell(sentence) == sentence
    assert perf_counter() - began < 0.1
