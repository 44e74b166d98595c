"""Translations of the runtime's own texts. Pure.

English is the source language and the fallback. Rules produce English sentences. A
sentence is translated when it leaves for a person, found by its pattern: `I will try
again in {span}` of the catalogue matches `I will try again in 2 minutes`.

Values of placeholders may be people's text and are not translated, except those of the
placeholders in `OWN`, which hold further sentences of the runtime. A sentence with an
ambiguous match stays in English. Values must be one line, because each line is a
sentence of the runtime.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property

Translate = Callable[[str], str]
"""Translates an English text into one language."""

SOURCE = "en"

# Chosen: three nested sentences; anything deeper is people's text.
DEPTH = 4

OWN = frozenset({"why", "what", "span"})
"""Placeholders that hold sentences of the runtime, which are translated as well."""

COUNTED = frozenset({"count", "hops", "most", "number", "rounds", "seconds"})
"""Placeholders that hold only a number."""

LONGEST = 4_000
"""Longest sentence to translate, in characters; the runtime's own are shorter."""

_FIELD = re.compile(r"\{(\w+)\}")


class Translated(str):
    """A text that is already translated."""

    __slots__ = ()


class TextCatalogue:
    """The translations of one language.

    Args:
        texts: by the English text, with placeholders such as `{count}`.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    @cached_property
    def _patterns(self) -> list[tuple[str, TextPattern, str]]:
        """Patterns and their translations, the most specific first."""
        patterned = [text for text in self._texts if _FIELD.search(text)]
        # Patterns with more literal text are tried first.
        patterned.sort(key=lambda text: -len(_FIELD.sub("", text)))
        return [
            (longest_literal(text), TextPattern(text), self._texts[text])
            for text in patterned
        ]

    def say(self, text: str) -> str:
        """Return the translation of a text; the text itself if there is none."""
        return self._texts.get(text) or text

    def retell(self, sentence: str, depth: int = DEPTH) -> str:
        """Translate an English sentence with filled placeholders."""
        if isinstance(sentence, Translated) or not depth or len(sentence) > LONGEST:
            return sentence
        if sentence in self._texts:
            return self.say(sentence)
        fits = [
            (pattern, told, found)
            for literal, pattern, told in self._patterns
            if literal in sentence and (found := pattern.fit(sentence)) is not None
        ]
        if not fits:
            return sentence
        # Sentences around other sentences of ours come first, as they hold no people's
        # text.
        best, told, found = min(fits, key=lambda fit: not fit[0].is_frame)
        is_only = best.is_frame or len(fits) == 1
        if not (is_only and best.is_clear(sentence)):
            return sentence
        parts = {
            name: self.retell(part, depth - 1) if name in OWN else part
            for name, part in found.items()
        }
        return _FIELD.sub(lambda field: parts[field[1]], told)


def longest_literal(text: str) -> str:
    """Return the longest literal part of a text."""
    return max(re.split(r"\{\w+\}", text), key=len)


class TextPattern:
    """A text with placeholders, each of which matches one or more characters.

    Not done: a regular expression. These sentences hold people's text, which could make
    it backtrack for a second and block everybody else.

    Args:
        text: with at least one placeholder.
    """

    def __init__(self, text: str) -> None:
        self._before, *pieces = _FIELD.split(text)
        self._names, self._literals = pieces[::2], pieces[1::2]
        """Each placeholder, and what stands between it and the next."""

        self.is_frame = set(self._names) <= OWN | COUNTED
        """Whether it holds nothing but sentences of ours, and numbers."""

    def fit(self, sentence: str) -> dict[str, str] | None:
        """Return the values of the placeholders; None if the sentence does not match.

        Matches are as short as possible; the time is linear in the sentence.
        """
        *between, last = self._literals
        if not (sentence.startswith(self._before) and sentence.endswith(last)):
            return None
        at, end = len(self._before), len(sentence) - len(last)
        found: dict[str, str] = {}
        for name, literal in zip(self._names, [*between, None], strict=True):
            to = end if literal is None else sentence.find(literal, at + 1, end)
            part = sentence[at:to] if to > at else ""
            if not part or found.setdefault(name, part) != part:
                return None
            if name in COUNTED and not part.replace(",", "").isdigit():
                return None
            at = to + len(literal or "")
        return found

    def is_clear(self, sentence: str) -> bool:
        """Return whether the sentence can be matched in only one way."""
        *between, last = self._literals
        inside = sentence[len(self._before) : len(sentence) - len(last)]
        return all(
            literal and inside.find(literal) == inside.rfind(literal)
            for literal in between
        )


class Voices:
    """All translations.

    Args:
        catalogues: translations by language (ISO 639-1).
        default: language used when a person's language is unknown.
    """

    def __init__(
        self,
        catalogues: Mapping[str, Mapping[str, str]] | None = None,
        default: str = SOURCE,
    ) -> None:
        self._catalogues = {
            language: TextCatalogue(texts)
            for language, texts in (catalogues or {}).items()
        }
        self._known = frozenset({SOURCE, *self._catalogues})
        self._default = default

    @property
    def languages(self) -> tuple[str, ...]:
        """The available languages."""
        return tuple(sorted(self._known))

    def has(self, language: str) -> bool:
        """Tell whether the runtime speaks a language."""
        return language in self._known

    def speak(self, *languages: str) -> Translate:
        """Return the translator for a person's language.

        Args:
            languages: those the person may speak, the likeliest first; empty ones are
                unknown. The first that is available counts.
        """
        catalogue = self._of(languages)
        return english if catalogue is None else catalogue.say

    def retell(self, *languages: str) -> Translate:
        """Return the translator of whole sentences for a person's language.

        Args:
            languages: as of `speak`.
        """
        catalogue = self._of(languages)
        return english if catalogue is None else catalogue.retell

    def _of(self, languages: Iterable[str]) -> TextCatalogue | None:
        return self._catalogues.get(
            next(filter(self._known.__contains__, languages), self._default)
        )


def english(text: str) -> str:
    """Return a text unchanged."""
    return text


def by_line(text: str, retell: Translate) -> list[str]:
    """Translate a text line by line; an empty text stays empty."""
    told = "\n".join(map(retell, text.splitlines()))
    return [Translated(told)] if told else []
