"""What a session's queue hears, and what it wants done; `queueing.py` decides. Pure."""

from __future__ import annotations

from typing import Literal

import msgspec

from actors.rules.busy_policies import Style


class Heard(msgspec.Struct, frozen=True):
    """A message for the session came in."""

    id: str
    """The message's own id, unique in the session."""

    is_owed: bool = False
    """Whether it was taken in before: then it waits however many wait already."""

    whose: tuple[str, ...] = ()
    """Its sender, chat and interruption scope (F090)."""

    may_join: bool = False
    """Whether it may share a turn with others of its sender: a person's plain words."""

    is_media: bool = False
    """Whether a file came with it; then no more words are waited for (F077)."""

    is_begun: bool = False
    """Whether a turn for it was begun before; nothing joins it then that had not."""

    is_late: bool = False
    """Whether the running turn has its answer already, and cannot be interrupted."""

    is_short: bool = False
    """Whether only one line of it will be told, because too many wait."""

    size: int = 0
    """Characters."""

    also: tuple[str, ...] = ()
    """What its turn answered with it before; it keeps them."""

    short: tuple[str, ...] = ()
    style: Style = "alone"
    """As it was told then; see `Start`."""

    now: float = 0.0
    """Seconds on the caller's clock."""


class TurnEnded(msgspec.Struct, frozen=True):
    """A turn is over, well or badly; sent for cancelled ones too."""

    id: str
    generation: int
    """As in the `Start` of this turn."""

    again: tuple[Heard, ...] = ()
    """What the turn was to answer, too, and did not: it waits again, before all."""


class StopAsked(msgspec.Struct, frozen=True):
    """Somebody said `/stop`."""

    ids: frozenset[str]
    """What may be stopped: one person's messages. All others go on, and keep their
    order."""


class RoundBegins(msgspec.Struct, frozen=True):
    """The running turn asks its model once more: what is to be put in before?"""

    generation: int


class GatherOver(msgspec.Struct, frozen=True):
    """The time of a `Gather` is up."""

    number: int


class Gone(msgspec.Struct, frozen=True):
    """Members of the running turn, not its first, were settled by somebody else."""

    ids: frozenset[str]


Event = Heard | TurnEnded | StopAsked | RoundBegins | GatherOver | Gone


class Start(msgspec.Struct, frozen=True):
    """Begin the turn for this message."""

    id: str
    generation: int
    """Grows with every turn; tells a late result from one that is waited for."""

    also: tuple[str, ...] = ()
    """Further messages that it answers, in order."""

    style: Style = "alone"
    """How their words become one question."""

    short: tuple[str, ...] = ()
    """Those of which only one line is told."""


class Wait(msgspec.Struct, frozen=True):
    """Keep this message until its turn."""

    id: str
    ahead: int
    """How many turns come before it, the running one included."""

    is_noted: bool = False
    """Whether its sender is told that it comes next."""


class Gather(msgspec.Struct, frozen=True):
    """Keep what waits, and tell when this time is up; an earlier number is void."""

    number: int
    seconds: float


class Inject(msgspec.Struct, frozen=True):
    """Put these messages into the running turn."""

    ids: tuple[str, ...]


class Refuse(msgspec.Struct, frozen=True):
    """Do not take this message; say so to its sender."""

    id: str
    reason: Literal["busy"] = "busy"


class CancelCurrent(msgspec.Struct, frozen=True):
    """Cancel the running turn. Whatever it still reports is ignored."""

    id: str
    generation: int
    reason: Literal["stopped", "interrupted"] = "stopped"
    """`interrupted`: its end is to be reported; the next turn begins after that."""


class DropWaiting(msgspec.Struct, frozen=True):
    """Let these messages go, oldest first; their turns will not begin."""

    ids: tuple[str, ...]
    reason: Literal["stopped", "overflow"] = "stopped"


Effect = Start | Wait | Gather | Inject | Refuse | CancelCurrent | DropWaiting
