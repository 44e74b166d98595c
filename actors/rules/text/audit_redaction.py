"""What the audit log keeps of messages and names. Pure."""

from __future__ import annotations

from collections.abc import Callable

import msgspec


class AuditRedaction(msgspec.Struct, frozen=True):
    """Redacts secrets from everything that the audit log keeps."""

    redact: Callable[[str], str] = str
    """Removes the values of secrets from a text."""

    has_texts: bool = True
    """Whether message texts are kept; sender, chat and time always are."""

    def words(self, text: str) -> str:
        """Return what is kept of a message's text."""
        return self.redact(text) if self.has_texts else ""

    def name(self, name: str) -> str:
        """Return what is kept of the name of a person, an account or a chat."""
        return self.redact(name)
