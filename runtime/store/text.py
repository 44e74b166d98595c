"""Checks that text can be stored, and says why JSON cannot be read."""

from __future__ import annotations

import re

from runtime.errors import MisuseError

HALF = "d[89ab][0-9a-f]{2}"
REST = "d[cdef][0-9a-f]{2}"
# Whole pairs and whatever else is escaped are passed over; what is found is alone.
ESCAPES = re.compile(
    rf"\\u{HALF}\\u{REST}|(\\u{HALF}|\\u{REST})|\\.".encode(),
    re.IGNORECASE | re.DOTALL,
)


def refuse_half_character(text: str) -> None:
    """Check that a text can be stored.

    Raises:
        MisuseError: it holds half a character (a lone surrogate).
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise MisuseError(
            f"{text!a} holds half a character and cannot be stored; the edge that"
            " made it must replace what it cannot decode"
        ) from error


def why_no_json(body: bytes | str, error: Exception) -> str:
    """Say why something is no JSON.

    Args:
        error: what the reader raised. Of half a character it says only that something
            ends too early.
    """
    whole = body if isinstance(body, bytes) else body.encode("utf-8", "replace")
    for escape in ESCAPES.finditer(whole):
        if escape.group(1):
            return (
                f"{escape.group(1).decode()} is half of a surrogate pair and stands"
                " alone, which is no valid Unicode text; send the whole character"
            )
    if isinstance(error, UnicodeDecodeError):
        # Why anew: the reader counts from the beginning of the text that holds it.
        try:
            whole.decode()
        except UnicodeDecodeError as found:
            return f"byte {found.start} is not UTF-8; write it as UTF-8"
    return str(error)
