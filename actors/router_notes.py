"""What the router tells itself."""

from __future__ import annotations

import msgspec

from actors.answers import Answer
from actors.messages import Inbound
from actors.rules.message_state import Past
from actors.unheard import Unheard
from runtime.entries import Entry
from runtime.rows import Committed


class Settling(msgspec.Struct, frozen=True):
    """What became of a commit that settled a message."""

    answer: Answer
    outcome: Committed | Exception
    told: tuple[Entry, ...]
    """Rows that other programs are told by."""


class Splitting(msgspec.Struct, frozen=True):
    """What became of the copies for further agents."""

    copies: tuple[Inbound, ...]
    past: Past
    """Of the first of them."""

    outcome: Committed | Exception


class LookBack(msgspec.Struct, frozen=True):
    """Find out who has a copy of this, since an earlier process."""

    unheard: Unheard


class HandOn(msgspec.Struct, frozen=True):
    """Hand out more of what was taken up."""


class TakeUpDue(msgspec.Struct, frozen=True):
    """Whoever asked for it is up by now."""


class SweepDue(msgspec.Struct, frozen=True):
    """It is time to look for what nobody told of."""


class ReplaceDue(msgspec.Struct, frozen=True):
    """Open messages can be read by now, and the table replaced."""


class TryAgain(msgspec.Struct, frozen=True):
    """The disk may take it now."""

    message: Settling | Splitting
