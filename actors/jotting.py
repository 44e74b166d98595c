"""Has written down what an answer says of skills, bugs and projects (F255 to F257).

Files are no part of the answer's commit: they are written before it, and the same thing
twice stands there once. Which project somebody works on is a state in memory, which
comes with the commit; so it is only a note here, considered with the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, assert_never

import msgspec

from actors.notes import Forget, Note, SetState
from actors.rules import actions
from actors.rules.approvals import person as account_of
from actors.rules.confirming import Outcome
from actors.rules.secrets import redacted
from runtime.logs import EventLog, Quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from actors.messages import Inbound
    from actors.persona import Persona
    from actors.ports import Notebook
    from actors.rules.actions import Action
    from actors.rules.confirming import OutcomeKind
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


class Stated(Protocol):
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
    outcome: Outcome | None = None
    """None: it only goes with another, and nobody is told of it."""


class Jotted(msgspec.Struct, frozen=True):
    """What came of skills, bugs and projects in one answer."""

    outcomes: tuple[Outcome, ...] = ()
    """Of what is done, or refused."""

    switches: tuple[Switch, ...] = ()

    @property
    def notes(self) -> tuple[Note, ...]:
        """Give what memory is still to consider, in order."""
        return tuple(each.note for each in self.switches)

    def told(self, note: Note, outcome: Outcome) -> Outcome | None:
        """Say what to tell people of a note that memory has considered.

        Args:
            note: any note, of whatever family.
            outcome: what is told of it otherwise.

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
        self, notes: Iterable[Note], outcomes: Iterable[Outcome]
    ) -> tuple[Outcome, ...]:
        """Say what to tell people of notes that memory has considered.

        Args:
            notes: all of an answer, these among them.
            outcomes: what is told of each otherwise, in the same order.
        """
        told = (self.told(*each) for each in zip(notes, outcomes, strict=True))
        return tuple(each for each in told if each is not None)


async def jot(
    wants: Iterable[Action], inbound: Inbound, persona: Persona, services: Services
) -> Jotted:
    """Write down what an answer has of these families; never fails.

    Args:
        wants: all that the answer asks for; others' families are passed over.
        inbound: what it answers.
        persona: who answers.
        services: the notebook, and who the owners are.
    """
    outcomes: list[Outcome] = []
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
    return Jotted(tuple(outcomes), tuple(switches))


async def project_text(states: Iterable[Stated], notebook: Notebook | None) -> str:
    """Give what the operator wrote of the active project; empty: there is none.

    Args:
        states: what memory has for a message, the newest first.
        notebook: knows the projects; None: there are none.
    """
    name = next((each.text for each in states if each.key == PROJECT), "")
    if not name or notebook is None:
        return ""
    found = await notebook.read_project(name)
    if found.why:
        LOG.warning("project not read", project=Quoted(name), why=found.why)
    return found.text


async def _write(
    each: Writing, inbound: Inbound, persona: Persona, services: Services
) -> Outcome:
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
    return Outcome(kind=kind, what=jot.text)


async def _switch(each: Switching, services: Services) -> Outcome | Switch:
    """Find out what memory is to be told of the active project."""
    if isinstance(each, actions.DeactivateProject):
        note = Forget(kinds=("state",), keys=(PROJECT,))
        return Switch(note, Outcome(kind="project_off"))
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
    told = Outcome(kind="project_on", what=found.text)
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


def refused(each: Jottable, why: str, services: Services) -> Outcome:
    """Tell that nothing came of one."""
    what = without_secrets(about(each), services)
    return Outcome(kind="refused", what=what, why=why)


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
