"""What a hook's two actors say to each other, and what is shown of one.

What may go wrong with a hook.

ChatError
└── HookError        it gave no verdict
"""

from __future__ import annotations

from typing import Literal

import msgspec

from actors.errors import ChatError
from actors.hooks.chain import Action, Trouble
from actors.hooks.health import HookCounts


class HookError(ChatError):
    """A hook gave no verdict."""

    def __init__(self, text: str, trouble: Trouble) -> None:
        super().__init__(text)
        self.trouble: Trouble = trouble


State = Literal["starting", "up", "down", "paused"]


class HookStarted(msgspec.Struct, frozen=True):
    """To the hook: its code runs."""


class HookEnded(msgspec.Struct, frozen=True):
    """To the hook: its code does not run any more; it is started again."""

    reason: str


class Answered(msgspec.Struct, frozen=True):
    """To the hook: it gave a verdict."""

    action: Action


class Unanswered(msgspec.Struct, frozen=True):
    """To the hook: it gave none."""

    trouble: Trouble
    why: str


class LeftBehind(msgspec.Struct, frozen=True):
    """To the hook: its code ended with work in hand."""

    why: str
    questions: int
    notices: int


class Told(msgspec.Struct, frozen=True):
    """To the hook: it was told that a turn is finished, or failed over it."""

    problem: str = ""


class HookRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What people see of a hook: a row of kind `hook`, and its state."""

    name: str
    state: State
    reason: str
    """Why it is not up; empty if it is."""

    counts: HookCounts
    """Since its process began."""

    last_error: str
    last_error_at: float
    """Unix seconds; 0: there was none."""

    started_at: float
    """Unix seconds at which its process began."""

    at: float
    """Unix seconds at which this was written."""


HOOK = "hook"
"""The kind of those rows."""
