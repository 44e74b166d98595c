"""What the runtime says, in the language of whom it says it to; pure (F100).

English is the source: a text is looked up by its English words, which are said
themselves where there is no translation. Rules make English sentences and know of no
language; where a sentence leaves for people it is told anew, found by its pattern: the
catalogue's `I will try again in {span}` fits `I will try again in 2 minutes`.

What was filled in is somebody's: it is neither translated nor taken apart. Only the
placeholders in `OWN` hold further sentences of the runtime. A sentence that could have
been made in two ways, because of the words that stand in it, is left in English.
Whoever fills something in makes one line of it: lines are of sentences of ours.
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

OWN = frozenset({"why", "what", "span"})
"""Placeholders that hold sentences of the runtime, which are told anew, too."""

COUNTED = frozenset({"count", "hops", "most", "number", "rounds", "seconds"})
"""Placeholders that hold a number, and nothing else."""

LONGEST = 4_000
"""Characters of a sentence that is told anew; the runtime's own are shorter."""

_FIELD = re.compile(r"\{(\w+)\}")


class Translated(str):
    """A text that is in its reader's language already."""

    __slots__ = ()


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
        # What is around another sentence of ours first: nobody's words are in between.
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

        self.is_frame = set(self._names) <= OWN | COUNTED
        """Whether it holds nothing but sentences of ours, and numbers."""

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
            part = sentence[at:to] if to > at else ""
            if not part or found.setdefault(name, part) != part:
                return None
            if name in COUNTED and not part.replace(",", "").isdigit():
                return None
            at = to + len(literal or "")
        return found

    def is_clear(self, sentence: str) -> bool:
        """Whether a sentence that fits could have been filled in one way only."""
        *between, last = self._literals
        inside = sentence[len(self._before) : len(sentence) - len(last)]
        return all(
            literal and inside.find(literal) == inside.rfind(literal)
            for literal in between
        )


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


def by_line(text: str, retell: Translate) -> list[str]:
    """Tell a text anew of which each line is a sentence; nothing if there is none."""
    told = "\n".join(map(retell, text.splitlines()))
    return [Translated(told)] if told else []
