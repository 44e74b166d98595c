"""What a hook may answer, the result of asking several, and when one is skipped; pure.

A hook is the operator's own code. It may let a text pass, replace it, or hold it back
with a reason; it never learns where the text goes. Hooks are asked in order, each reads
the text that the one before left, and the first that holds it back is the last asked.

Each message waits for a hanging hook until its time is over, and the next one of the
chat waits behind it. So after three failures in a row the hook is skipped for a while,
twice as long after each further failure; then one question tries it again.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from actors.rules.text.cleaning import one_line

Event = Literal["message_received", "message_heard", "message_sending", "turn_finished"]

Action = Literal["continue", "change", "cancel", "consume"]

Trouble = Literal["timeout", "busy", "down", "paused", "wrong", "failed", "lost"]
"""Why a hook gave no verdict: timeout; too many questions waiting; its program does not
run; it is skipped because it failed too often; its answer is no verdict; it raised
or reported an error; unknown."""

MOST_SENT = 20_000
"""Most characters of an answer that a hook made; the rest is cut."""

LONGEST_REASON = 300
CUT = "…"

BROKEN = "something that checks messages first does not work; please try again later"
"""The reason that people read where a failing hook holds a text back."""


class Verdict(msgspec.Struct, frozen=True):
    """What one hook answers about a text."""

    action: Action = "continue"
    text: str = ""
    """With `change`: the new text. With `consume`: the answer; may be empty."""

    reason: str = ""
    """With `cancel`: the reason, for the person who waits for an answer."""


class HookSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One hook, as the settings describe it."""

    name: str
    events: tuple[Event, ...]
    connectors: tuple[str, ...] = ()
    """Only texts from and to these; empty: all."""

    agents: tuple[str, ...] = ()
    """Only texts of these agents; empty: all."""

    timeout: float = 5.0
    """Most seconds it may take."""

    is_closed: bool = False
    """Whether a text is held back if the hook fails; else it passes unchanged."""

    def concerns(self, event: Event, connector: str, agent: str = "") -> bool:
        """Whether the hook is asked.

        Args:
            connector: where the text comes from, or goes to.
            agent: whose text it is; empty: no agent's yet.
        """
        is_there = not self.connectors or connector in self.connectors
        is_theirs = not (agent and self.agents) or agent in self.agents
        return event in self.events and is_there and is_theirs


PartKind = Literal["", "task", "question", "directive", "file", "quote", "history"]
"""Empty: the message, or the answer, itself. Of an answer: a task or a question for
another agent (a task also for the agent itself), the text of an inline directive, the
name or caption of a file. Of a message: what was read in a file, the quoted message, an
earlier line that a client sent along.
"""


class HookPart(msgspec.Struct, frozen=True):
    """A text that goes with a message or answer, and is asked about, too."""

    kind: PartKind
    text: str


class HooksOutcome(msgspec.Struct, frozen=True):
    """The result of asking all hooks."""

    text: str
    changed_by: tuple[str, ...] = ()
    """Names of hooks that changed the text or one of its parts, in order."""

    consumed_by: str = ""
    """The hook that answers the message itself, with `text`; empty: none."""

    cancelled_by: str = ""
    """The hook that holds the text back; empty: none."""

    reason: str = ""
    """The reason, for the person who waits for an answer; may be empty."""

    parts: dict[HookPart, str] = {}
    """The texts of the parts that were changed."""

    @property
    def is_over(self) -> bool:
        """Whether no further hook is to be asked."""
        return bool(self.cancelled_by or self.consumed_by)

    def with_part(self, part: HookPart, passed: HooksOutcome) -> HooksOutcome:
        """Add what hooks made of a part; one that is held back holds back the whole."""
        return msgspec.structs.replace(
            self,
            changed_by=tuple(dict.fromkeys((*self.changed_by, *passed.changed_by))),
            cancelled_by=passed.cancelled_by,
            reason=passed.reason,
            parts={**self.parts, part: passed.text}
            if passed.changed_by
            else self.parts,
        )

    def worded(self, kind: PartKind, text: str) -> str:
        """Give the text of a part as hooks left it."""
        return self.parts.get(HookPart(kind, text), text)


class HookChain:
    """The state while hooks are asked one after the other.

    Args:
        most: most characters of a text that a hook makes.
    """

    def __init__(self, text: str, most: int) -> None:
        self._most = most
        self.passed = HooksOutcome(text)
        """The result so far."""

    @property
    def is_over(self) -> bool:
        """Whether no further hook is to be asked."""
        return self.passed.is_over

    def take(self, hook: HookSpec, verdict: Verdict) -> None:
        """Apply a hook's verdict; see `checked`."""
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


def unasked(hooks: tuple[HookSpec, ...], text: str) -> HooksOutcome:
    """Give the result for a text if no hook can be asked."""
    chain = HookChain(text, len(text))
    for hook in hooks:
        if not chain.is_over:
            chain.fail(hook)
    return chain.passed


def checked(verdict: Verdict, event: Event) -> str:
    """Say what is wrong with a verdict; empty: nothing."""
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
    """Cut a text, and replace lone surrogates, which no store takes."""
    whole = text[: most + 1].encode(errors="replace").decode()
    return whole if len(whole) <= most else whole[: most - 1] + CUT


# Chosen: one failure may be chance; three in a row are not.
PATIENCE = 3
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0

HARMLESS = frozenset({"paused", "down", "busy"})
"""Troubles that are no further failure of the hook: it was not asked."""


class HookCounts(msgspec.Struct):
    """Outcomes of the questions to one hook since its process began."""

    asked: int = 0
    continued: int = 0
    changed: int = 0
    cancelled: int = 0
    failed: int = 0
    told: int = 0
    """Finished turns it was told of."""

    missed: int = 0
    """Finished turns it was not told of: too many waited, or it did not run."""


class HookHealth:
    """The failures and pauses of one hook."""

    def __init__(self) -> None:
        self.counts = HookCounts()
        self.last_error = ""
        self.failures = 0
        """In a row."""

        self._paused_until = 0.0
        self._is_trying = False

    @property
    def is_failing(self) -> bool:
        """Whether it is skipped, but for a question now and then."""
        return self.failures >= PATIENCE

    def may_ask(self, now: float) -> bool:
        """Whether to ask it now; while it is failing, only one question at a time.

        Args:
            now: seconds on a clock that does not go backwards.
        """
        if self.failures < PATIENCE:
            return True
        if now < self._paused_until or self._is_trying:
            return False
        self._is_trying = True
        return True

    def answered(self, action: Action) -> None:
        """Count a verdict."""
        self.failures, self._is_trying = 0, False
        counts = self.counts
        counts.asked += 1
        if action == "continue":
            counts.continued += 1
        elif action == "change":
            counts.changed += 1
        else:
            counts.cancelled += 1

    def started(self) -> None:
        """Ask it again at once: its program was restarted."""
        self.failures, self._is_trying = 0, False

    def failed(
        self, trouble: Trouble, why: str, now: float, *, is_waited_for: bool = False
    ) -> None:
        """Count a question without a verdict.

        Args:
            now: seconds on a clock that does not go backwards.
            is_waited_for: whether somebody waited in vain, so that it counts as a
                failure though the hook was not asked.
        """
        self.counts.asked += 1
        self.counts.failed += 1
        if trouble != "paused":
            self.last_error = why
        if trouble in HARMLESS and not is_waited_for:
            # The probe was not asked either, unless it still runs.
            self._is_trying = self._is_trying and trouble != "down"
            return
        self._is_trying = False
        self.failures += 1
        if self.failures >= PATIENCE:
            times = min(self.failures - PATIENCE, 10)
            pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0**times)
            self._paused_until = now + pause
