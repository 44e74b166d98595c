"""How long a provider asks us to wait.

Pure. Several ways are in use: a header with seconds or a date, one with
milliseconds, and a duration in the body.
"""

from __future__ import annotations

import datetime as dt
import email.utils
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_RETRY_AFTER: Final = 86_400.0
"""Seconds; a provider that asks for more is asked again tomorrow."""

NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{0,9})?")


def read_headers(headers: Mapping[str, str], now: float) -> float | None:
    """Find the wait in a response's headers.

    Args:
        headers: by name, which is found in any case.
        now: Unix seconds, for a header that names a date.

    Returns:
        Seconds from now, between 0 and a day; None for garbage or nothing.
    """
    # OpenAI's and Azure's own, finer than the standard's.
    exact = headers.get("retry-after-ms", "").strip()
    if NUMBER.fullmatch(exact):
        return min(float(exact) / 1000, MAX_RETRY_AFTER)
    return read_retry_after(headers.get("retry-after"), now)


def read_retry_after(value: str | None, now: float) -> float | None:
    """Read a `Retry-After` header.

    Args:
        value: the header; None if there is none.
        now: Unix seconds, for a header that names a date.

    Returns:
        Seconds from now, between 0 and a day; None for garbage.
    """
    # Source: RFC 9110 10.2.3 allows both a date and a number of seconds.
    text = (value or "").strip()
    if NUMBER.fullmatch(text):
        return min(float(text), MAX_RETRY_AFTER)
    try:
        date = email.utils.parsedate_to_datetime(text)
        if date.tzinfo is None:
            date = date.replace(tzinfo=dt.UTC)
        return min(max(date.timestamp() - now, 0.0), MAX_RETRY_AFTER)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def read_duration(value: str) -> float | None:
    """Read a duration as protobuf writes it in JSON: `12s`, `0.5s`.

    Returns:
        Seconds between 0 and a day; None for garbage.
    """
    number, unit, rest = value.strip().partition("s")
    if unit and not rest and NUMBER.fullmatch(number):
        return min(float(number), MAX_RETRY_AFTER)
    return None
