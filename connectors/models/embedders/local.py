"""The embedded embedder: places by words and their parts, without a key or a network.

Deterministic, and the same on every machine. Each word and each run of three letters
of a word adds to one dimension, chosen by a checksum ("the hashing trick", Weinberger
and others 2009). So *kitchens* lies near *kitchen*, and misspelt words near the right
ones; what only means the same lies nowhere near: for that, ask a model.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Sequence

import trio

from actors.rules.text.similarity import words_of
from runtime.store.vectors import pack

PART = 3
"""Letters of the parts of a word."""

OF_PARTS = 0.4
"""What one part counts; a whole word counts 1."""

AT_ONCE = 8
"""Texts after which others get their turn: one takes up to a millisecond."""


class HashingEmbedder:
    """Embeds by words.

    Args:
        dimensions: of its vectors; more keep more words apart.
    """

    def __init__(self, dimensions: int = 256) -> None:
        self._dimensions = dimensions
        self._space = f"hashing-1/{dimensions}"

    @property
    def space(self) -> str:
        """Name what its vectors can be compared with."""
        return self._space

    async def embed(self, texts: Sequence[str]) -> tuple[bytes, ...]:
        """Give one vector for each text; one without words has no direction."""
        vectors: list[bytes] = []
        for number, text in enumerate(texts):
            if number % AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
            vectors.append(self._place(text))
        return tuple(vectors)

    async def aclose(self) -> None:
        """Do nothing: there is nothing to close."""

    def _place(self, text: str) -> bytes:
        place = [0.0] * self._dimensions
        for feature, often in features(text).items():
            # Source: the checksum's lowest bit is the sign, so that words which share
            # a dimension by chance rather cancel out than add up.
            number = zlib.crc32(feature.encode())
            weight = 1.0 if feature.startswith(" ") else OF_PARTS
            sign = 1.0 if number & 1 else -1.0
            place[(number >> 1) % self._dimensions] += sign * weight * math.log1p(often)
        return pack(place)


def features(text: str) -> Counter[str]:
    """Count the words of a text, a blank before each, and the parts of its words."""
    found: Counter[str] = Counter()
    for word in words_of(text):
        found[f" {word}"] += 1
        whole = f"^{word}$"
        found.update(whole[at : at + PART] for at in range(len(whole) - PART + 1))
    return found
