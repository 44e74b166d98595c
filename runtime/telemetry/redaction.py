"""Redacts secrets, by value, from logs and from whatever is shown or stored.

`actors/rules/text/secrets.py` recognises secrets by their shape, for memory;
`actors/rules/text/audit_redaction.py` says what the audit log keeps.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runtime.telemetry.logs import Value

LONGEST_VALUE = 300
"""Characters of one field; a longer one, such as a message's text, is cut."""


class Redactor:
    """Replaces secrets in texts by `***`, by their exact values.

    Args:
        secrets: the values; empty ones are ignored.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Add secrets; known ones are never forgotten."""
        self._secrets.update(each for each in secrets if each)
        # Why the longest first: one secret may begin with another.
        values = sorted(self._secrets, key=len, reverse=True)
        found = "|".join(re.escape(value) for value in values)
        self._pattern = re.compile(found) if values else None

    def clean(self, text: str) -> str:
        """Replace every secret by `***`."""
        return text if self._pattern is None else self._pattern.sub("***", text)

    def clean_value(self, value: Value, longest: int = LONGEST_VALUE) -> Value:
        """Redact and shorten a log field; a number with a secret becomes a text."""
        text = str(value)
        if self._pattern is None and len(text) <= longest:
            return value
        # Invariant: cut after cleaning; half a secret would not be recognised.
        cleaned = shorten(self.clean(text), longest)
        return value if cleaned == text else cleaned


def shorten(text: str, longest: int) -> str:
    """Cut a text to what a log line should show of it, and say that it was cut."""
    if len(text) <= longest:
        return text
    return f"{text[:longest]}… (+{len(text) - longest} characters)"
