"""How alike two directions are. Pure arithmetic.

A vector is one signed byte for each dimension: only its direction counts, so each is
scaled by its own largest number, and a byte is precise enough (a quarter of the disk
and of the time that 32-bit numbers take).
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from operator import mul

LARGEST = 127


def pack(vector: Sequence[float]) -> bytes:
    """Write a direction down; nothing but zeros has none and stays so.

    Raises:
        ValueError: a number of it is not finite.
    """
    largest = max((abs(number) for number in vector), default=0.0)
    if not math.isfinite(largest) or any(math.isnan(number) for number in vector):
        raise ValueError("a vector's numbers must be finite")
    scale = LARGEST / largest if largest else 0.0
    return array("b", (round(number * scale) for number in vector)).tobytes()


def cosine(first: bytes, second: bytes) -> float:
    """Say how alike two directions are: 1 the same, 0 nothing in common, -1 opposite.

    Those of different length, or without a direction, have nothing in common.
    """
    if len(first) != len(second):
        return 0.0
    left, right = array("b", first), array("b", second)
    lengths = math.hypot(*left) * math.hypot(*right)
    return sum(map(mul, left, right)) / lengths if lengths else 0.0
