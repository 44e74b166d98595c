"""What people are told of what was really done (F259); pure.

A model says "I will remind you at nine" whether or not anything was stored. So what is
confirmed comes from what the store holds after the commit, never from its text. Whoever
carries an action out makes an `Outcome` of the result.
"""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec

from actors.rules import foreign
from actors.rules.sanitizer import clean

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
"""Told only on request: whoever chats does not want a receipt for each fact."""

MAX_TOLD = 12
"""Lines of one confirmation; of the others only the number is told."""

MOST = 160
"""Characters of each thing that is named."""

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
"""Every key that is translated, with the words that go without a translation."""


class Similar(msgspec.Struct, frozen=True):
    """A task that is much like the one just set."""

    what: str
    when: str


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one action, as the store has it."""

    kind: OutcomeKind
    what: str = ""
    """What was stored, changed or asked for."""

    when: str = ""
    """Due when, in words for people."""

    repeat: str = ""
    """How often again; empty or `once`: never."""

    why: str = ""
    """Why it was refused."""

    count: int = 0
    """How many were forgotten, or minutes."""

    similar: tuple[Similar, ...] = ()
    """Tasks that were there before; people may want only one. The first is told."""


class Translate(Protocol):
    """Gives the words for a key of `ENGLISH` in somebody's language."""

    def __call__(self, key: str, /, **values: str | int) -> str:
        """Fill the words for `key` with these values."""
        ...


def english(key: str, /, **values: str | int) -> str:
    """Fill the words that go without a translation."""
    return ENGLISH[key].format(**values)


def confirm(
    outcomes: tuple[Outcome, ...],
    translate: Translate = english,
    *,
    tells_all: bool = False,
) -> str:
    """Tell what was done, a line for each thing.

    Args:
        outcomes: in the order in which they were carried out.
        translate: words in the language of whoever reads it.
        tells_all: also what is `QUIET`.

    Returns:
        Empty if there is nothing to tell.
    """
    told = [each for each in outcomes if tells_all or each.kind not in QUIET]
    lines: list[str] = []
    warned: set[Similar] = set()
    for each in told[:MAX_TOLD]:
        lines.append(_line(each, translate))
        # One is enough to make somebody look, and of each it is said once.
        if new := [x for x in each.similar if x not in warned]:
            what, when = _short(new[0].what), _short(new[0].when)
            lines.append("  " + translate("similar", what=what, when=when))
            warned.update(each.similar)
    if len(told) > MAX_TOLD:
        lines.append(translate("more", count=len(told) - MAX_TOLD))
    return "\n".join(lines)


def _line(outcome: Outcome, translate: Translate) -> str:
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
