"""Discord's ids: they hold when they were made, so that they are places in time; pure.

Source: developers' reference, "Snowflakes": milliseconds since 2015 in the upper 42 of
64 bits. They come as text, since JavaScript cannot hold them.
"""

from __future__ import annotations

EPOCH_MS = 1_420_070_400_000
TIME_SHIFT = 22
LONGEST = 20
"""Digits of 64 bits."""


def at(seconds: float) -> int:
    """Give the first id of a moment (Unix seconds); 0 before there were any."""
    return max(0, int(seconds * 1000) - EPOCH_MS) << TIME_SHIFT


def seconds_of(snowflake: int) -> float:
    """Give when an id was made, in Unix seconds."""
    return ((snowflake >> TIME_SHIFT) + EPOCH_MS) / 1000


def span(seconds: float) -> int:
    """Give how far apart the ids of two moments are."""
    return int(seconds * 1000) << TIME_SHIFT


def number(text: str) -> int:
    """Read an id; 0 if it is none."""
    is_one = text.isascii() and text.isdigit() and len(text) <= LONGEST
    return int(text) if is_one else 0
