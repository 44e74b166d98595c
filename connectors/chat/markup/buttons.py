"""Buttons that stand for commands, as those that answer an approval question; pure.

A button says `approve:3F` when it is pressed, and whoever presses it has written
`/approve 3F`: what stands before the colon says whose button it is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from actors.messages.deliveries import Delivery

# The last of a question: what a model wrote of its call stands before.
LEAVE = re.compile(r"/approve (\w{1,32}) or /deny \1\b(?!.*/approve )", re.DOTALL)

PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")

LONGEST = 64
"""Bytes of what a button says; Telegram takes no more."""

UNKNOWN = "This button is no longer known."
"""What somebody is told who pressed one that stands for nothing."""


class Button(msgspec.Struct, frozen=True):
    """One button under a message."""

    word: str
    """The command without its slash."""

    value: str

    @property
    def label(self) -> str:
        """What stands on it: the command, which may be written instead."""
        return f"/{self.word} {self.value}"

    @property
    def says(self) -> str:
        """What the platform tells when it is pressed."""
        return f"{self.word}:{self.value}"


def buttons_of(delivery: Delivery) -> tuple[Button, ...]:
    """Give the buttons under a message: only the runtime's own words have some."""
    asked = LEAVE.search(delivery.text) if delivery.kind == "notice" else None
    if asked is None:
        return ()
    return tuple(Button(word, asked[1]) for word in ("approve", "deny"))


def command_of(said: str) -> str:
    """Give the command that a pressed button stands for; empty: for none."""
    prefix, _, rest = said.partition(":")
    value = " ".join(rest.split())
    return f"/{prefix} {value}" if PREFIX.fullmatch(prefix) and value else ""
