"""Writes times and texts for people and programs, and reads the bodies of records.

Texts of people and agents are made safe for a terminal or a page first: control
characters could move the cursor, change colours or type into a shell, and marks that
reorder text could make a name look like another one. Pure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, TypeVar

import msgspec

if TYPE_CHECKING:
    from runtime.store.rows import StoredRecord


Precision = Literal["seconds", "milliseconds"]

NONE = "-"
"""Stands for an empty value."""

UNITS = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))


def when(at: float, precision: Precision = "seconds") -> str:
    """Write Unix seconds in ISO 8601, local with offset; 0 is `-`.

    What has no date, as a time in a damaged row may be, is written as the number it is.
    """
    if not at:
        return NONE
    try:
        there = datetime.fromtimestamp(at, UTC).astimezone()
    except (ValueError, OverflowError, OSError):
        return f"{at:g} s"
    return there.isoformat(timespec=precision)


def moment(at: float) -> str | None:
    """Write Unix seconds for programs; 0 is null."""
    return when(at, "milliseconds") if at else None


def lasting(seconds: float) -> str:
    """Write roughly how long: `3d`, `2h`, `45s`."""
    for unit, length in UNITS:
        if length <= seconds < math.inf:
            return f"{int(seconds // length)}{unit}"
    return "0s"


Body = TypeVar("Body", bound=msgspec.Struct)

Complain = Callable[[str], None]
"""Told of each row that is left out; one sentence for people."""


def read_record(
    row: StoredRecord, shape: type[Body], complain: Complain
) -> Body | None:
    """Read a record's body; None if it cannot be read, which is reported."""
    try:
        return msgspec.json.decode(row.body, type=shape)
    except ValueError as error:
        complain(
            f"the {row.kind} record {row.id!r} cannot be read and is left out: {error};"
            " see `callboard records check`"
        )
        return None


# Control characters but tab and line feed; then the marks that reorder text
# (bidirectional overrides and isolates), line and paragraph separators, and half
# surrogates, which no terminal can show.
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def make_safe(text: str) -> str:
    """Make control characters visible; carriage returns before line feeds vanish."""
    return UNSAFE.sub(visible, text.replace("\r\n", "\n"))


def visible(found: re.Match[str]) -> str:
    """Give the sign for one control character: Unicode's picture of it, or U+FFFD."""
    code = ord(found.group())
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else "\ufffd"
