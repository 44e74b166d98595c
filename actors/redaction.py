"""What is kept on record of what people write, and of who they are; pure."""

from __future__ import annotations

from collections.abc import Callable

import msgspec


class Keep(msgspec.Struct, frozen=True):
    """What the audit keeps: no secret, whoever wrote or is called one."""

    redact: Callable[[str], str] = str
    """Takes the values of secrets out of a text."""

    has_texts: bool = True
    """Whether words are kept at all; who, where and when always are."""

    def words(self, text: str) -> str:
        """Give what is kept of what somebody said."""
        return self.redact(text) if self.has_texts else ""

    def name(self, name: str) -> str:
        """Give what is kept of a name: of a person, an account or a chat."""
        return self.redact(name)
