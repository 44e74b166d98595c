"""What text must be to be stored."""

from __future__ import annotations

from runtime.errors import MisuseError


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
