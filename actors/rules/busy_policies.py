"""What one conversation does with a message that comes while it is busy; a table.

Pure. The names are those of the field: `serial` answers one message after the other,
`followup` answers together what came meanwhile, `interrupt` begins anew with the newest
words, `steer` puts them into the tool loop that runs. `queueing.py` reads the table.
"""

from __future__ import annotations

from typing import Literal

import msgspec

BusyPolicy = Literal["serial", "followup", "interrupt", "steer"]
Chosen = Literal["", "default", "serial", "followup", "interrupt", "steer"]
"""What people chose for one conversation; `default`: as the settings say again; empty:
nothing."""

Overflow = Literal["new", "oldest", "summarise"]
"""Which message goes when too many wait: the new one is refused; the sender's oldest is
dropped; the sender's oldest is cut to one line, and dropped later if it must be."""

Style = Literal["alone", "lines", "numbered", "paragraphs"]
"""How the words of several messages become one question: each in a line (F076), behind
numbers (F079), or as paragraphs (F092)."""


class Manner(msgspec.Struct, frozen=True):
    """One row of the table."""

    gathers: bool = False
    """Whether quick messages are waited for before a turn begins."""

    joins: bool = False
    """Whether what waits of one sender is answered by one turn."""

    interrupts: bool = False
    """Whether a new message ends the running turn of its sender."""

    injects: bool = False
    """Whether it is put into that turn's tool loop."""

    notes: bool = False
    """Whether its sender is told that it comes next."""

    style: Style = "alone"
    """How what waited is joined."""


MANNERS: dict[BusyPolicy, Manner] = {
    "serial": Manner(notes=True),
    "followup": Manner(gathers=True, joins=True, style="numbered"),
    "interrupt": Manner(gathers=True, joins=True, interrupts=True, style="paragraphs"),
    "steer": Manner(gathers=True, joins=True, injects=True, style="numbered"),
}


class Buffering(msgspec.Struct, frozen=True):
    """How one conversation treats its messages."""

    policy: BusyPolicy = "serial"
    note: bool = False
    """Whether `Manner.notes` counts."""

    debounce: float = 0.0
    """Seconds of silence before gathered messages are answered; 0: none is waited."""

    longest_debounce: float = 10.0
    """Seconds that the first of them waits at most."""

    overflow: Overflow = "new"
    injections: int = 5
    """Messages put into one turn at most."""

    most_chars: int = 100_000
    """Characters that one turn answers together; one message alone may be longer."""

    @property
    def manner(self) -> Manner:
        """Give the policy's row of the table."""
        return MANNERS[self.policy]


SERIAL = Buffering()
