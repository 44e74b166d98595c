"""Reads JSON that nobody has checked: whatever is missing or odd is simply empty.

Strangers can send a platform messages of any shape, and platforms pass them on.
"""

from __future__ import annotations

import json
from typing import cast

import msgspec

Json = dict[str, object]


def decode(body: bytes) -> Json:
    """Read a JSON object; a list comes as its `chunk`, as answers in pages have it.

    Raises:
        ValueError: it is neither.
    """
    try:
        found: object = msgspec.json.decode(body)
    except msgspec.DecodeError:
        # Why: it refuses halves of characters, with which one event of one stranger
        # would stop a whole account. `text` makes them whole.
        found = json.loads(body)
    if isinstance(found, list):
        return {"chunk": cast("list[object]", found)}
    if isinstance(found, dict):
        return cast("Json", found)
    raise ValueError("it is no JSON object")


def table(value: object) -> Json:
    """Return an object; empty if it is none."""
    return cast("Json", value) if isinstance(value, dict) else {}


def tables(value: object) -> tuple[Json, ...]:
    """Return the objects of a list."""
    if not isinstance(value, list):
        return ()
    found = cast("list[object]", value)
    return tuple(cast("Json", each) for each in found if isinstance(each, dict))


def text(value: object) -> str:
    """Return a text that can be stored; empty if it is none."""
    if not isinstance(value, str):
        return ""
    return value if value.isascii() else value.encode(errors="replace").decode()


def texts(value: object) -> tuple[str, ...]:
    """Return the texts of a list."""
    if not isinstance(value, list):
        return ()
    found = cast("list[object]", value)
    return tuple(text(each) for each in found if isinstance(each, str))


def whole(value: object) -> int:
    """Return a whole number; 0 if it is none, or beyond what a counter holds."""
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return value if abs(value) < 1 << 53 else 0


LONGEST_ID = 512
"""Characters of an id that is stored."""


def is_id(value: str) -> bool:
    """Return whether this is an id that can be stored, and answered to."""
    return 0 < len(value) <= LONGEST_ID and value.isprintable() and " " not in value
