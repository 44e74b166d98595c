"""What a model says while it says it, and by which it may go on later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.rules.fitting import tokens_of

if TYPE_CHECKING:
    from actors.ports import Speak


class Said:
    """Counts what a model says before it has ended.

    Args:
        speak: who hears it.
    """

    __slots__ = ("_speak", "tokens")

    def __init__(self, speak: Speak) -> None:
        self._speak = speak
        self.tokens = 0
        """Reckoned: a model writes about one at a time."""

    def speak(self, text: str) -> None:
        """Hear some more."""
        self.tokens += tokens_of(text)
        self._speak(text)


def resumable(account: str, resume: str) -> str:
    """Write down by which an account may go on with a conversation."""
    return f"{account} {resume}" if resume else ""


def resume_of(account: str, resumable: str) -> str:
    """Give what an account itself gave to go on by; empty if another one did."""
    whose, _, resume = resumable.partition(" ")
    return resume if whose == account else ""


def joined(before: str, text: str) -> str:
    """Put the words of one step after those of the steps before it."""
    return "\n\n".join(each for each in (before, text) if each)
