"""Times as clients write them: milliseconds since 1970, or ISO 8601; pure."""

from __future__ import annotations

from datetime import UTC, datetime

from connectors.web.eliza.errors import wrong

LATEST = 10**15 - 1
"""Milliseconds; later is taken for this."""


def milliseconds(text: str, field: str) -> int:
    """Read a time; nothing at all is 0.

    Raises:
        ApiError: 400: it is neither.
    """
    if not text:
        return 0
    if text.isascii() and text.isdigit() and len(text) <= 16:
        return min(int(text), LATEST)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise wrong(
            f"{text!r} is no time; write ms since 1970, or ISO", field
        ) from None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return max(0, int(at.timestamp() * 1000))
