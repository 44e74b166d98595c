"""What becomes of a conversation's words when they are not kept: a journal's events.

Beside its exchanges a session's journal tells when earlier lines were summed up
(`compacted`), when what was said was gone through for facts (`flushed`), and when the
conversation began anew (`reset`). Terms: a *compaction* makes room and the
conversation goes on; a *reset* ends it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from actors.ledger import Run
from actors.rules.compaction import Trigger, shortened

if TYPE_CHECKING:
    from actors.messages import Line

ResetReason = Literal["command", "model", "daily", "idle"]
"""Who, or what, ended a conversation: a person's command; the agent, by its marker;
the hour of the day; that nobody wrote for long."""

EXPIRED: frozenset[ResetReason] = frozenset({"daily", "idle"})
"""What nobody asked for, so that people are told."""


class Compacted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Event `compacted`: earlier lines gave place to a summary (F131)."""

    id: str
    trigger: Trigger
    outcome: Literal["summarised", "truncated", "kept"]
    """`truncated`: no summary could be had, so lines were cut; `kept`: nothing was
    changed, and only what the try has cost is told."""

    summary: str = ""
    messages_before: int = 0
    """Lines held before it."""

    messages_after: int = 0
    tokens_before: int = 0
    """Estimated, of these lines."""

    tokens_after: int = 0
    """Of the summary, and the lines that stayed."""

    cut_to: int = 0
    """Characters that each line was cut to; 0: none was."""

    sender_id: str = ""
    """On whose account it stands."""

    run: Run | None = None

    def left_of(self, lines: tuple[Line, ...]) -> tuple[Line, ...]:
        """Give what stays of the lines before it."""
        if self.outcome == "kept":
            return lines
        left = lines[max(0, len(lines) - self.messages_after) :]
        return shortened(left, self.cut_to) if self.cut_to else left


class Flushed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Event `flushed`: what was said was gone through for facts (F161)."""

    id: str
    messages: int
    """Lines of the conversation so far that were gone through."""

    sender_id: str = ""
    run: Run | None = None


class Reset(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Event `reset`: the conversation has ended; the next words begin another one."""

    id: str
    reason: ResetReason
    summary: str = ""
    """What it was about, if somebody could be asked."""

    messages: int = 0
    """Lines it had, since the one before."""

    sender_id: str = ""
    """Who asked for it, or on whose account it stands."""

    run: Run | None = None


Chapter = Compacted | Flushed | Reset

KINDS: dict[str, type[Compacted | Flushed | Reset]] = {
    "compacted": Compacted,
    "flushed": Flushed,
    "reset": Reset,
}
"""By the name of the event."""


class Summary(msgspec.Struct, frozen=True):
    """What an earlier part of this conversation was about."""

    text: str
    at: float
    """Unix seconds at which it was written."""


def kind_of(chapter: Chapter) -> str:
    """Name the event."""
    return next(kind for kind, shape in KINDS.items() if isinstance(chapter, shape))


def read_chapter(kind: str, body: bytes) -> Chapter | None:
    """Read an event; None: it is of another kind.

    Raises:
        msgspec.DecodeError: it cannot be read.
    """
    shape = KINDS.get(kind)
    return None if shape is None else msgspec.json.decode(body, type=shape)
