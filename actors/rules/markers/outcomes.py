"""Confirmations: what people are told about the actions that were really done. Pure.

A model may claim "I will remind you at nine" although nothing was stored. So
confirmations describe what the store holds after the commit, never the model's text.
The part that carries out an action returns an `ActionOutcome`.
"""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec

from actors.rules.markers.sanitizer import clean
from actors.rules.text import cleaning as foreign

OutcomeKind = Literal[
    "saved",
    "known",
    "state_set",
    "rewarded",
    "lesson_kept",
    "personality_set",
    "forgotten",
    "scheduled",
    "action_scheduled",
    "updated",
    "cancelled",
    "not_found",
    "language_set",
    "conversation_closed",
    "heartbeat_added",
    "heartbeat_removed",
    "heartbeat_set",
    "skill_improved",
    "bug_reported",
    "project_on",
    "project_off",
    "agent_created",
    "agent_updated",
    "cron_created",
    "heartbeat_created",
    "client_created",
    "refused",
]

QUIET: frozenset[OutcomeKind] = frozenset(
    {"saved", "known", "state_set", "rewarded", "lesson_kept", "personality_set"}
)
"""Outcomes that are confirmed only on request: people do not want a receipt for each
fact.
"""

MAX_TOLD = 12
"""Most lines of one confirmation; of further ones it states the number."""

MOST = 160
"""Longest quoted text in characters."""

ENGLISH: dict[str, str] = {
    "saved": "Remembered: {what}",
    "known": "I knew that already: {what}",
    "state_set": "Noted: {what}",
    "rewarded": "Noted how it went: {what}",
    "lesson_kept": "Learned: {what}",
    "personality_set": "I will be like this: {what}",
    "forgotten": "Forgotten: {count} things I knew.",
    "scheduled": "Reminder set: {what}, {when}",
    "action_scheduled": "Task set: {what}, {when}",
    "updated": "Task changed: {what}, {when}",
    "cancelled": "Task cancelled: {what}",
    "not_found": "Not found, so nothing was changed: {what}",
    "language_set": "Language: {what}",
    "conversation_closed": "This conversation is closed; the next words begin anew.",
    "heartbeat_added": "Will be checked: {what}",
    "heartbeat_removed": "Will no longer be checked: {what}",
    "heartbeat_set": "Checked every {count} minutes.",
    "skill_improved": "Added to the skill {what}.",
    "bug_reported": "Reported: {what}",
    "project_on": "Project: {what}",
    "project_off": "No project is active.",
    "agent_created": "Agent created: {what}",
    "agent_updated": "Agent changed: {what}",
    "cron_created": "Appointment set: {what}, {when}",
    "heartbeat_created": "Heartbeat set: {what}, every {count} minutes",
    "client_created": "Client added: {what}",
    "refused": "Not done: {what} ({why})",
    "repeats": "{text}, repeated: {repeat}",
    "similar": "There is a similar one already: {what}, {when}",
    "more": "… and {count} more.",
}
"""English text by key; the keys of the translations."""


class SimilarTask(msgspec.Struct, frozen=True):
    """An existing task that is similar to a new one."""

    what: str
    when: str


class ActionOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one action, as stored."""

    kind: OutcomeKind
    what: str = ""
    """The stored, changed or requested text."""

    when: str = ""
    """Due time, formatted for people."""

    repeat: str = ""
    """Repetition; empty or `once` for none."""

    why: str = ""
    """Reason of a refusal."""

    count: int = 0
    """Number of forgotten facts, or minutes."""

    similar: tuple[SimilarTask, ...] = ()
    """Similar existing tasks; people may want only one. The first one is shown."""


class Translate(Protocol):
    """Translates a key of `ENGLISH` into a person's language."""

    def __call__(self, key: str, /, **values: str | int) -> str:
        """Return the text for `key` with these values."""
        ...


def english(key: str, /, **values: str | int) -> str:
    """Return the English text."""
    return ENGLISH[key].format(**values)


def confirm(
    outcomes: tuple[ActionOutcome, ...],
    translate: Translate = english,
    *,
    tells_all: bool = False,
) -> str:
    """Return a confirmation with one line per action.

    Args:
        outcomes: in the order of execution.
        tells_all: whether to include `QUIET` outcomes.

    Returns:
        Empty if there is nothing to confirm.
    """
    told = [each for each in outcomes if tells_all or each.kind not in QUIET]
    lines: list[str] = []
    warned: set[SimilarTask] = set()
    for each in told[:MAX_TOLD]:
        lines.append(_line(each, translate))
        # One similar task is enough, and each is named once.
        if new := [x for x in each.similar if x not in warned]:
            what, when = _short(new[0].what), _short(new[0].when)
            lines.append("  " + translate("similar", what=what, when=when))
            warned.update(each.similar)
    if len(told) > MAX_TOLD:
        lines.append(translate("more", count=len(told) - MAX_TOLD))
    return "\n".join(lines)


def _line(outcome: ActionOutcome, translate: Translate) -> str:
    line = translate(
        outcome.kind,
        what=_short(outcome.what),
        when=_short(outcome.when),
        why=_short(outcome.why),
        count=outcome.count,
    )
    repeat = _short(outcome.repeat)
    if repeat and repeat != "once":
        line = translate("repeats", text=line, repeat=repeat)
    mark = "\N{WARNING SIGN}" if outcome.kind in _BAD else "\N{CHECK MARK}"
    return f"{mark} {line}"


_BAD: frozenset[OutcomeKind] = frozenset({"refused", "not_found"})


def _short(text: str) -> str:
    return foreign.one_line(clean(text), MOST)
