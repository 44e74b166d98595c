"""Busy policies: what a conversation does with a message that arrives during a turn.

Pure. `serial` answers one message after the other. `followup` answers the messages that
arrived meanwhile together. `interrupt` cancels the running turn and starts one with the
new message. `steer` injects the new message into the running tool loop.
`actors/session/queue.py` reads this table; the texts of messages that are answered
together are merged here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

BusyPolicy = Literal["serial", "followup", "interrupt", "steer"]
Chosen = Literal["", "default", "serial", "followup", "interrupt", "steer"]
"""The policy that people chose for one conversation. `default` returns to the settings;
empty means that nobody chose.
"""

Overflow = Literal["new", "oldest", "summarise"]
"""Overflow policy when too many messages wait: `new` refuses the new message, `oldest`
drops the sender's oldest, `summarise` cuts the sender's oldest to one line and drops it
only if that is not enough.
"""

Style = Literal["alone", "lines", "numbered", "paragraphs"]
"""How several messages are joined into one question: one per line, numbered, or as
paragraphs.
"""


class PolicyRules(msgspec.Struct, frozen=True):
    """One row of the table."""

    gathers: bool = False
    """Whether a turn waits (debounces) for further quick messages before it begins."""

    joins: bool = False
    """Whether one turn answers all waiting messages of one sender."""

    interrupts: bool = False
    """Whether a new message ends the running turn of its sender."""

    injects: bool = False
    """Whether a new message is injected into the running turn's tool loop."""

    notes: bool = False
    """Whether the sender is notified that the message is queued."""

    style: Style = "alone"
    """How waiting messages are joined."""


POLICY_RULES: dict[BusyPolicy, PolicyRules] = {
    "serial": PolicyRules(notes=True),
    "followup": PolicyRules(gathers=True, joins=True, style="numbered"),
    "interrupt": PolicyRules(
        gathers=True, joins=True, interrupts=True, style="paragraphs"
    ),
    "steer": PolicyRules(gathers=True, joins=True, injects=True, style="numbered"),
}


class BusySettings(msgspec.Struct, frozen=True):
    """The busy settings of one conversation."""

    policy: BusyPolicy = "serial"
    note: bool = False
    """Whether the notification of `PolicyRules.notes` is enabled."""

    debounce: float = 0.0
    """Seconds of silence before a turn answers the gathered messages; 0 disables
    waiting.
    """

    longest_debounce: float = 10.0
    """Longest time, in seconds, that the first gathered message waits."""

    overflow: Overflow = "new"
    injections: int = 5
    """Most messages injected into one turn."""

    most_chars: int = 100_000
    """Most characters of messages that one turn answers together. A single message may
    be longer.
    """

    @property
    def manner(self) -> PolicyRules:
        """Give the policy's row of the table."""
        return POLICY_RULES[self.policy]


SERIAL = BusySettings()


HEADER = "Several messages came in while you were busy. Answer all of them:"

MEANWHILE = "(This came in while you were working on it:)\n{text}"
"""Text around a message that is injected into a tool loop."""

# Chosen: enough to tell what it was about.
SHORT = 80
"""Longest message, in characters, after shortening to one line."""


def merge(texts: Sequence[str], style: Style) -> str:
    """Join several texts into one.

    Args:
        texts: at least one, in the order of writing.
        style: how to join them; a single text is returned unchanged.
    """
    if len(texts) == 1 or style == "alone":
        return texts[0]
    if style == "lines":
        return "\n".join(texts)
    if style == "paragraphs":
        return "\n\n".join(texts)
    parts = (f"---\n#{number}: {text}" for number, text in enumerate(texts, 1))
    return "\n".join((HEADER, *parts))


def shortened(text: str) -> str:
    """Shorten a message to its beginning, in one line."""
    line = " ".join(text.split())
    return line if len(line) <= SHORT else f"{line[: SHORT - 1]}…"


def meanwhile(name: str, text: str) -> str:
    """Wrap a message that arrived while the answer was being made.

    Args:
        name: of the writer; empty if the text names the writer.
    """
    return MEANWHILE.format(text=f"{name}: {text}" if name else text)
