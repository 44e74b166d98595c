"""What the runtime says, in the language of whom it says it to; pure (F100).

English is the source: a text is looked up by its English words, which are said
themselves where there is no translation. Rules make English sentences and know of no
language; where a sentence leaves for people it is told anew, found by its pattern: the
catalogue's `I will try again in {span}` fits `I will try again in 2 minutes`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property

Translate = Callable[[str], str]
"""Gives a text in one language, by its English words."""

SOURCE = "en"

# Chosen: a sentence in a sentence in a sentence; deeper there is only people's text.
DEPTH = 4

LONGEST = 4_000
"""Characters of a sentence that is told anew; the runtime's own are shorter."""

_FIELD = re.compile(r"\{(\w+)\}")


class Catalogue:
    """The translations of one language.

    Args:
        texts: by the English words, with placeholders as `{count}`.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    @cached_property
    def _patterns(self) -> list[tuple[str, Pattern, str]]:
        """By what stands in a sentence: its pattern, and how it is told."""
        patterned = [text for text in self._texts if _FIELD.search(text)]
        # What says more by itself is looked for first.
        patterned.sort(key=lambda text: -len(_FIELD.sub("", text)))
        return [
            (longest_literal(text), Pattern(text), self._texts[text])
            for text in patterned
        ]

    def say(self, text: str) -> str:
        """Give a text by its English words; those themselves if there is none."""
        return self._texts.get(text) or text

    def retell(self, sentence: str, depth: int = DEPTH) -> str:
        """Tell a whole English sentence anew, whatever stands in its placeholders."""
        if sentence in self._texts or not depth or len(sentence) > LONGEST:
            return self.say(sentence)
        for literal, pattern, told in self._patterns:
            if literal in sentence and (found := pattern.fit(sentence)) is not None:
                parts = {
                    name: self.retell(part, depth - 1) for name, part in found.items()
                }
                return told.format_map(parts)
        return sentence


def longest_literal(text: str) -> str:
    """Give the most of a text that stands in it as it is."""
    return max(re.split(r"\{\w+\}", text), key=len)


class Pattern:
    """A text with placeholders, each of which stands for one or more characters.

    Not done: a regular expression. What people write stands in these sentences, and
    some words of theirs keep one searching for a second, and everybody else waiting.

    Args:
        text: with its placeholders, at least one.
    """

    def __init__(self, text: str) -> None:
        self._before, *pieces = _FIELD.split(text)
        self._names, self._literals = pieces[::2], pieces[1::2]
        """Each placeholder, and what stands between it and the next."""

    def fit(self, sentence: str) -> dict[str, str] | None:
        """Give what the placeholders stand for; None: this is another sentence.

        Each stands for as little as it can; the time grows with the sentence alone.
        """
        *between, last = self._literals
        if not (sentence.startswith(self._before) and sentence.endswith(last)):
            return None
        at, end = len(self._before), len(sentence) - len(last)
        found: dict[str, str] = {}
        for name, literal in zip(self._names, [*between, None], strict=True):
            to = end if literal is None else sentence.find(literal, at + 1, end)
            if to <= at or found.setdefault(name, sentence[at:to]) != sentence[at:to]:
                return None
            at = to + len(literal or "")
        return found


class Voices:
    """All translations there are.

    Args:
        catalogues: by language (ISO 639-1), then by the English words.
        default: what is spoken where nothing better is known.
    """

    def __init__(
        self,
        catalogues: Mapping[str, Mapping[str, str]] | None = None,
        default: str = SOURCE,
    ) -> None:
        self._catalogues = {
            language: Catalogue(texts) for language, texts in (catalogues or {}).items()
        }
        self._default = default

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages that are spoken."""
        return tuple(sorted({SOURCE, *self._catalogues}))

    def speak(self, language: str = "") -> Translate:
        """Choose how texts are said to somebody.

        Args:
            language: theirs; empty if it is not known.
        """
        catalogue = self._of(language)
        return english if catalogue is None else catalogue.say

    def retell(self, language: str = "") -> Translate:
        """Choose how whole English sentences are told to somebody anew.

        Args:
            language: theirs; empty if it is not known.
        """
        catalogue = self._of(language)
        return english if catalogue is None else catalogue.retell

    def _of(self, language: str) -> Catalogue | None:
        spoken = language if language in self.languages else self._default
        return self._catalogues.get(spoken)


def english(text: str) -> str:
    """Say a text as it is."""
    return text
