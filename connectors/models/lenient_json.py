r"""Decodes JSON from providers that cut texts in the middle of a character.

Pure. A server written in JavaScript counts in halves of what is above the basic plane,
and so an emoji may come as `\ud83d` in one event and `\udc08` in the next. Neither is a
character, and a strict decoder takes neither; here each becomes U+FFFD, because one
spoilt sign is better than no answer.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import msgspec

Decoded = TypeVar("Decoded")

HALF = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)


def decode(decoder: msgspec.json.Decoder[Decoded], text: bytes) -> Decoded:
    """Decode, and mend what is only half a character.

    Raises:
        ValueError: it is no JSON of that shape.
        RecursionError: it is nested too deeply.
    """
    try:
        return decoder.decode(text)
    except ValueError:
        mended = HALF.sub(rb"\\ufffd", text)
        if mended == text:
            raise
        return decoder.decode(mended)
