"""What hooks are asked, what they may say, and what comes of all of them; pure.

A hook is the operator's own code beside a message's way. It may let words pass, give
others instead, or hold them back with a reason; it never sees a way to say where they
go. One after the other is asked, each reads what the one before made of the words, and
the first that holds them back is the last.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from actors.rules.foreign import one_line

Event = Literal["message_received", "message_heard", "message_sending", "turn_finished"]

Action = Literal["continue", "change", "cancel", "consume"]

Trouble = Literal["timeout", "busy", "down", "paused", "wrong", "failed", "lost"]
"""Why a hook gave no verdict: it took too long; too many questions wait for it; its
program does not run; it failed so often that it is left alone for a while; what it
said is no verdict; it raised, or said that it failed; nobody knows."""

MOST_SENT = 20_000
"""Characters of an answer that a hook made; what is more is cut (F305)."""

LONGEST_REASON = 300
CUT = "…"

BROKEN = "something that checks messages first does not work; please try again later"
"""What is said where a hook that fails holds everything back."""


class Verdict(msgspec.Struct, frozen=True):
    """What one hook says of some words."""

    action: Action = "continue"
    text: str = ""
    """With `change`: what is said instead. With `consume`: what is answered; may be
    empty."""

    reason: str = ""
    """With `cancel`: why; whoever waits for an answer reads it."""


class HookSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One hook, as far as those must know it who ask."""

    name: str
    events: tuple[Event, ...]
    connectors: tuple[str, ...] = ()
    """Only words from and to these; empty: all."""

    agents: tuple[str, ...] = ()
    """Only words of these; empty: of all."""

    timeout: float = 5.0
    """Seconds it may take."""

    is_closed: bool = False
    """Whether words are held back if it fails; else they pass as they are."""

    def concerns(self, event: Event, connector: str, agent: str = "") -> bool:
        """Whether it is to be asked.

        Args:
            event: about what.
            connector: where the words come from, or go to.
            agent: whose words they are; empty: nobody's yet.
        """
        is_there = not self.connectors or connector in self.connectors
        is_theirs = not (agent and self.agents) or agent in self.agents
        return event in self.events and is_there and is_theirs


class Passed(msgspec.Struct, frozen=True):
    """What came of asking all hooks."""

    text: str
    changed_by: tuple[str, ...] = ()
    """Hooks that gave other words, in order."""

    consumed_by: str = ""
    """The hook that has dealt with the message itself; `text` is what it answers."""

    cancelled_by: str = ""
    """The hook that holds the words back; empty: none does."""

    reason: str = ""
    """Why, for whoever waits for an answer; may be empty."""


class Chain:
    """Asks hooks one after the other.

    Args:
        text: the words.
        most: characters of what a hook may make of them.
    """

    def __init__(self, text: str, most: int) -> None:
        self._most = most
        self.passed = Passed(text)
        """What came of it until now."""

    @property
    def is_over(self) -> bool:
        """Whether no further hook is to be asked."""
        return bool(self.passed.cancelled_by or self.passed.consumed_by)

    def take(self, hook: HookSpec, verdict: Verdict) -> None:
        """Go on by what a hook said; see `checked`."""
        passed = self.passed
        if verdict.action == "cancel":
            self._cancel(hook, verdict.reason)
        elif verdict.action == "consume":
            self.passed = msgspec.structs.replace(
                passed, text=bounded(verdict.text, self._most), consumed_by=hook.name
            )
        elif verdict.action == "change" and verdict.text != passed.text:
            self.passed = msgspec.structs.replace(
                passed,
                text=bounded(verdict.text, self._most),
                changed_by=(*passed.changed_by, hook.name),
            )

    def fail(self, hook: HookSpec) -> None:
        """Go on after a hook that gave no verdict."""
        if hook.is_closed:
            self._cancel(hook, BROKEN)

    def _cancel(self, hook: HookSpec, reason: str) -> None:
        self.passed = msgspec.structs.replace(
            self.passed,
            cancelled_by=hook.name,
            reason=one_line(reason, LONGEST_REASON) if reason.strip() else "",
        )


def unasked(hooks: tuple[HookSpec, ...], text: str) -> Passed:
    """Say what comes of words if no hook can be asked at all."""
    chain = Chain(text, len(text))
    for hook in hooks:
        if not chain.is_over:
            chain.fail(hook)
    return chain.passed


def checked(verdict: Verdict, event: Event) -> str:
    """Say what is wrong with a verdict; empty: nothing.

    Args:
        verdict: what a hook said.
        event: about what.
    """
    is_heard, action = event == "message_heard", verdict.action
    if action != "continue" and is_heard != (action == "consume"):
        may = "continue or consume" if is_heard else "continue, change or cancel"
        return f"it says {action}; about {event} it may say {may}"
    if verdict.action == "change" and not verdict.text.strip():
        return "it changes the words to none; say cancel instead"
    if verdict.action in {"continue", "cancel"} and verdict.text:
        return f"it says {verdict.action}, and other words at the same time"
    if verdict.action != "cancel" and verdict.reason:
        return f"it says {verdict.action}, and why it holds the words back"
    return ""


def bounded(text: str, most: int) -> str:
    """Cut a text; halves of characters, which no storage takes, are replaced."""
    whole = text[: most + 1].encode(errors="replace").decode()
    return whole if len(whole) <= most else whole[: most - 1] + CUT
