"""What the domain lets people set about conversations: how long, and how much of them.

Beside `config.py`, which has the rest.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from actors.config import Count, Seconds
from actors.rules.expiry import Expiry, ExpiryRule

MINUTE = 60.0


class SessionConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """How a conversation behaves."""

    idle_after: Seconds = 900.0
    """Seconds without a message before a conversation is put to sleep."""

    session_scope: Literal["chat", "sender"] = "chat"
    """In a group: one conversation for the chat, or one for each person in it; so is
    what is remembered of it, see `rules/scopes.py`."""

    resume_within: Annotated[float, Meta(ge=0, le=31_536_000)] = 86_400.0
    """Seconds after its last answer in which a model that keeps the conversation itself
    goes on with it; later it is told all of it anew."""

    expiry: Expiry = "none"
    """When a conversation ends by itself: never; at an hour of the day; when nobody
    wrote for long; whichever of both comes first."""

    reset_hour: Annotated[int, Meta(ge=0, le=23)] = 4
    """The hour of the day, on the wall, for `daily`."""

    time_zone: str = "UTC"
    """Whose hours count: `UTC`, `Europe/Berlin`, …"""

    idle_minutes: Annotated[float, Meta(gt=0, le=525_600)] = 120.0
    """Minutes without a message, for `idle`."""

    close_sleeping: bool = False
    """Whether a conversation whose time is over is ended soon after, though nobody
    writes in it; else with its next message."""

    tell_reset: bool = True
    """Whether people are told with their next message that a conversation has ended by
    itself."""

    flush_before_reset: bool = True
    """Whether a model goes through a conversation before it ends, for facts and a
    summary; only where there is a memory to keep them."""

    flush_timeout: Seconds = 45.0
    """Seconds that may take; the conversation ends then all the same."""

    @property
    def rule(self) -> ExpiryRule:
        """Say when conversations end by themselves."""
        return ExpiryRule(self.expiry, self.reset_hour, self.idle_minutes * MINUTE)


class CompactionConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What is done when a conversation is too long for its model."""

    share: Annotated[float, Meta(gt=0, le=1)] = 0.75
    """Share of what the model reads at most that a question may take before earlier
    lines are summed up."""

    max_chars: Annotated[int, Meta(ge=1_000)] = 400_000
    """Characters of earlier lines that are sent along with a question."""

    keep_lines: Annotated[int, Meta(ge=0, le=1_000)] = 6
    """Newest lines that stay word for word."""

    cut_lines: Annotated[int, Meta(ge=1, le=1_000)] = 12
    """Newest lines that stay if there is no summary to be had."""

    cut_chars: Annotated[int, Meta(ge=20, le=100_000)] = 600
    """Characters that each of these is cut to."""

    model: str = ""
    """Which of `[models.<name>]` sums up; empty: the agent's `cheap` one or its own."""

    max_tokens: Count = 1_500
    """Most tokens of its answer."""

    timeout: Seconds = 90.0
    """Seconds that it may take, facts and summary together."""

    retry_after: Seconds = 300.0
    """Seconds after a failure until it is tried again where it can wait."""

    flush_after: Annotated[int, Meta(ge=0, le=100_000)] = 30
    """Lines after which a conversation is gone through for facts, beside the answer;
    0: never. Only where there is a memory to keep them."""
