"""Stores what an answer says of skills, bugs and projects.

Files are no part of the answer's commit: they are written before it, and the same thing
twice stands there once. Which project somebody works on is a state in memory, which
comes with the commit; so it is only a note here, considered with the others.

Where a lesson stands in a skill's file: under one heading, once, up to a bound.

Pure. Everything else in the file stays as its author wrote it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, assert_never

import msgspec

from actors.memory.messages import Forget, Note, SetState
from actors.messages.keys import account_of
from actors.rules.markers import actions
from actors.rules.markers.outcomes import ActionOutcome, OutcomeKind
from actors.rules.text.cleaning import one_line
from actors.rules.text.secrets import redacted
from runtime.telemetry.logs import EventLog, Quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from actors.agents.persona import Persona
    from actors.messages.inbound import Inbound
    from actors.ports import Notebook
    from actors.rules.markers.actions import Action
    from actors.services import Services


LOG = EventLog("notebook")

PROJECT = "project"
"""The state that names the active project."""

# Chosen: more is a model that repeats itself, and each is work for the disk.
MOST_JOTS = 10
"""Things of one answer that are written down."""

NO_BOOK = "there is no notebook here"

Writing = actions.ImproveSkill | actions.ReportBug
Switching = actions.ActivateProject | actions.DeactivateProject
Jottable = Writing | Switching


class StateValue(Protocol):
    """A value that memory has."""

    @property
    def key(self) -> str:
        """What it is the value of."""
        ...

    @property
    def text(self) -> str:
        """The value."""
        ...


class Switch(msgspec.Struct, frozen=True):
    """A note, and what is true of it once memory has taken it."""

    note: Note
    outcome: ActionOutcome | None = None
    """None: it only goes with another, and nobody is told of it."""


class NotebookResult(msgspec.Struct, frozen=True):
    """The changes to skills, bugs and projects that one answer asks for."""

    outcomes: tuple[ActionOutcome, ...] = ()
    """Of what is done, or refused."""

    switches: tuple[Switch, ...] = ()

    @property
    def notes(self) -> tuple[Note, ...]:
        """Give what memory is still to consider, in order."""
        return tuple(each.note for each in self.switches)

    def told(self, note: Note, outcome: ActionOutcome) -> ActionOutcome | None:
        """Say what to tell people of a note that memory has considered.

        Returns:
            None if nobody is to be told.
        """
        switch = next((each for each in self.switches if each.note == note), None)
        if switch is None:
            return outcome
        if outcome.kind == "refused":
            return msgspec.structs.replace(outcome, what=PROJECT)
        return switch.outcome

    def retold(
        self, notes: Iterable[Note], outcomes: Iterable[ActionOutcome]
    ) -> tuple[ActionOutcome, ...]:
        """Say what to tell people of notes that memory has considered.

        Args:
            notes: all of an answer, these among them.
            outcomes: what is told of each otherwise, in the same order.
        """
        told = (self.told(*each) for each in zip(notes, outcomes, strict=True))
        return tuple(each for each in told if each is not None)


async def jot(
    wants: Iterable[Action], inbound: Inbound, persona: Persona, services: Services
) -> NotebookResult:
    """Write down what an answer has of these families; never fails.

    Args:
        wants: all that the answer asks for; others' families are passed over.
    """
    outcomes: list[ActionOutcome] = []
    switches: list[Switch] = []
    mine = [each for each in wants if isinstance(each, Jottable)]
    last = next((each for each in mine[::-1] if isinstance(each, Switching)), None)
    for number, each in enumerate(dict.fromkeys(mine)):
        if number >= MOST_JOTS:
            why = f"one answer may hold {MOST_JOTS} of these"
            outcomes.append(refused(each, why, services))
        elif not isinstance(each, Switching):
            outcomes.append(await _write(each, inbound, persona, services))
        elif each != last:
            why = "the last one of an answer counts"
            outcomes.append(refused(each, why, services))
        else:
            found = await _switch(each, services)
            if isinstance(found, Switch):
                switches += [*_elsewhere(inbound, services), found]
            else:
                outcomes.append(found)
    return NotebookResult(tuple(outcomes), tuple(switches))


def active_project(states: Iterable[StateValue]) -> str:
    """Name the project that somebody works on; empty: none."""
    for each in states:
        if each.key == PROJECT:
            return each.text
    return ""


async def project_text(states: Iterable[StateValue], notebook: Notebook | None) -> str:
    """Give what the operator wrote of the active project; empty: there is none.

    Args:
        states: what memory has for a message, the newest first.
        notebook: knows the projects; None: there are none.
    """
    name = active_project(states)
    if not name or notebook is None:
        return ""
    found = await notebook.read_project(name)
    if found.why:
        LOG.warning("project not read", project=Quoted(name), why=found.why)
    return found.text


async def _write(
    each: Writing, inbound: Inbound, persona: Persona, services: Services
) -> ActionOutcome:
    """Have something added to a file."""
    book = services.notebook
    if book is None:
        return refused(each, NO_BOOK, services)
    if isinstance(each, actions.ImproveSkill):
        kind: OutcomeKind = "skill_improved"
        clean = without_secrets(each.lesson, services)
        is_owner = is_owners_word(inbound, services)
        jot = await book.improve_skill(
            persona.name, each.skill, clean, is_owner=is_owner
        )
    else:
        kind, clean = "bug_reported", without_secrets(each.text, services)
        jot = await book.report_bug(persona.name, services.clock.wall(), clean)
    if jot.why:
        return refused(each, jot.why, services)
    return ActionOutcome(kind=kind, what=jot.text)


async def _switch(each: Switching, services: Services) -> ActionOutcome | Switch:
    """Find out what memory is to be told of the active project."""
    if isinstance(each, actions.DeactivateProject):
        note = Forget(kinds=("state",), keys=(PROJECT,))
        return Switch(note, ActionOutcome(kind="project_off"))
    why = forgetful(services)
    book = services.notebook
    if why or book is None:
        return refused(each, why or NO_BOOK, services)
    found = await book.find_project(each.name)
    if found.why:
        return refused(each, found.why, services)
    if without_secrets(found.text, services) != found.text:
        why = "its name reads like a secret, which memory does not keep"
        return refused(each, why, services)
    told = ActionOutcome(kind="project_on", what=found.text)
    return Switch(SetState(PROJECT, found.text), told)


def _elsewhere(inbound: Inbound, services: Services) -> tuple[Switch, ...]:
    """Have forgotten what somebody with several accounts once switched on elsewhere."""
    person = services.acquaintances.find(account_of(inbound))
    if person is None or not (inbound.is_direct and person.aliases):
        return ()
    scopes = person.scopes[1:]
    return (Switch(Forget(scopes=scopes, kinds=("state",), keys=(PROJECT,))),)


def is_owners_word(inbound: Inbound, services: Services) -> bool:
    """Whether an owner's own words are answered, and not what an agent made of them."""
    return account_of(inbound) in services.approvers and not inbound.chain.agents


def forgetful(services: Services) -> str:
    """Say why nobody could remember a project; empty: they can."""
    kit = services.memory
    if kit is None or not kit.config.states:
        return "there is no memory to keep it in"
    return ""


def without_secrets(text: str, services: Services) -> str:
    """Take out what may not be kept, and halves of characters."""
    whole = text.encode("utf-8", "replace").decode()
    return redacted(services.redact(whole)).strip()


def refused(each: Jottable, why: str, services: Services) -> ActionOutcome:
    """Tell that nothing came of one."""
    what = without_secrets(about(each), services)
    return ActionOutcome(kind="refused", what=what, why=why)


def about(each: Jottable) -> str:
    """Name what it is about, for people."""
    match each:
        case actions.ImproveSkill(skill=skill):
            return skill
        case actions.ReportBug(text=text):
            return text
        case actions.ActivateProject(name=name):
            return name
        case actions.DeactivateProject():
            return PROJECT
        case _:
            assert_never(each)


HEADING = "## Lessons"
FENCE = "---"
CODE = ("```", "~~~")
ITEM = "- "

# Chosen: they are sent with every message that calls for the skill; fifty of them are
# some 6,000 tokens at most, and nobody keeps more rules than that.
MOST_LESSONS = 50
LONGEST_LESSON = 500
"""Characters."""


class NotebookAddition(msgspec.Struct, frozen=True):
    """A notebook's file with a lesson added."""

    text: str
    """The whole file; as it was if the lesson stands there already."""

    why: str = ""
    """Why nothing was added, for the agent that asked; empty on success."""


def read_lesson(lesson: str) -> str:
    """Make one line of a lesson; empty: there is nothing in it."""
    return one_line(lesson, LONGEST_LESSON + 1)


def add(text: str, lesson: str, most_chars: int) -> NotebookAddition:
    """Add a lesson to a skill's file.

    Args:
        text: the file, with its head.
        lesson: as `read_lesson` gives it.
        most_chars: longest instructions, the head not counted.
    """
    lines = text.split("\n")
    body = _body(lines)
    outside, is_open = _outside_code(lines, body)
    if why := _why_not(lesson, has_head=body > 0, is_open=is_open):
        return NotebookAddition(text, why)
    start, stop = _section(lines, outside)
    there = {line.rstrip() for line in lines[start:stop] if line.startswith(ITEM)}
    if ITEM + lesson in there:
        return NotebookAddition(text)
    end = "\r" if lines[0].endswith("\r") else ""
    behind = _behind(lines, start, stop)
    lines[behind:behind] = [line + end for line in _new(lines, start, behind, lesson)]
    if lines[-1].strip():
        lines.append("")  # so that the file ends with a line's end
    if len(there) >= MOST_LESSONS:
        why = f"it has its {MOST_LESSONS} lessons; somebody has to take some out"
    elif len("\n".join(lines[body:])) > most_chars:
        why = f"its instructions would be above {most_chars} characters"
    return NotebookAddition(text if why else "\n".join(lines), why)


def _why_not(lesson: str, *, has_head: bool, is_open: bool) -> str:
    """Say why nothing can be added, if so."""
    if not lesson:
        return "there is nothing to learn in it"
    if len(lesson) > LONGEST_LESSON:
        return f"a lesson has {LONGEST_LESSON} characters at most"
    if not has_head:
        return "its SKILL.md has no head, so it is none"
    return "a block of code in its SKILL.md has no end" if is_open else ""


def _body(lines: list[str]) -> int:
    """Give the first line behind the head; 0: there is no head."""
    if lines[0].removeprefix("\ufeff").rstrip() != FENCE:
        return 0
    ends = (n for n, line in enumerate(lines[1:], 1) if line.rstrip() == FENCE)
    return next(ends, -1) + 1


def _outside_code(lines: list[str], body: int) -> tuple[list[int], bool]:
    """Give the lines of the body that are no code, and whether some code has no end."""
    outside: list[int] = []
    mark = ""
    for number, line in enumerate(lines[body:], body):
        fence = line.lstrip(" ")[:3]
        if fence in CODE and mark in ("", fence):
            mark = "" if mark else fence
        elif not mark:
            outside.append(number)
    return outside, bool(mark)


def _section(lines: list[str], outside: list[int]) -> tuple[int, int]:
    """Give the lines of the lessons, heading included; where they belong, if none."""
    start = next((n for n in outside if lines[n].rstrip() == HEADING), len(lines))
    behind = (n for n in outside if n > start and lines[n].startswith(("# ", "## ")))
    return start, next(behind, len(lines))


def _behind(lines: list[str], start: int, stop: int) -> int:
    """Give the line before which a new lesson stands, blank ones at the end kept."""
    while stop > start and not lines[stop - 1].strip():
        stop -= 1
    return stop


def _new(lines: list[str], start: int, behind: int, lesson: str) -> list[str]:
    """Give the lines that are new: the lesson, and what must stand before it."""
    if behind > start + 1:
        return [ITEM + lesson]
    if behind == start + 1:
        return ["", ITEM + lesson]
    before = [] if lines[-1:] == [""] else [""]
    return [*before, HEADING, "", ITEM + lesson]
