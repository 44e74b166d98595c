"""What a prompt is built from: everything that is known before a model is asked; pure.

Each part is what one place of the program knows: the persona's folder, the settings,
the message, memory, the tools. Whoever has nothing to say leaves its part empty.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

import msgspec

from actors.prompt_config import ContextConfig
from actors.rules.tags import Family

if TYPE_CHECKING:
    from collections.abc import Iterable

    from actors.messages import Inbound

Mode = Literal["conversation", "collaboration", "visible", "planning", "autonomous"]
"""What a model is asked for: to answer people; to be consulted by another agent, behind
the scenes or in a group where all read it; to decide whether to do anything by itself;
to do it."""

BY_ITSELF: frozenset[Mode] = frozenset({"planning", "autonomous"})
"""Modes in which there are no words of anybody to go by."""

SPOKEN_TO: frozenset[Mode] = frozenset({"collaboration", "visible"})
"""Modes in which another agent speaks to it, and it has less to do."""


def mode_of(inbound: Inbound) -> Mode:
    """Say what the turn of a message is asked for."""
    if inbound.occasion == "autonomous":
        return "planning"
    if inbound.occasion == "plan":
        return "autonomous"
    return "visible" if inbound.chain.turns else "conversation"


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class PersonaFiles(msgspec.Struct, frozen=True):
    """The texts of a persona's folder, in the order of the prompt (F171)."""

    identity: str = ""
    soul: str = ""
    motivations: str = ""
    goals: str = ""
    agents: str = ""
    legacy: str = ""

    def named(self) -> Iterable[tuple[str, str]]:
        """Give each file's name, without its ending, and its text."""
        return msgspec.structs.asdict(self).items()


NO_FILES = PersonaFiles()


class Entry(msgspec.Struct, frozen=True):
    """One thing that memory has; its text is somebody's, never an instruction."""

    text: str
    key: str = ""
    """What it is about, or a state's name; may be empty."""


class Memories(msgspec.Struct, frozen=True):
    """What memory has for one message; the most important first."""

    sticky: tuple[Entry, ...] = ()
    """Never trimmed, never forgotten by themselves."""

    relevant: tuple[Entry, ...] = ()
    """What goes with the message."""

    states: tuple[Entry, ...] = ()
    project: str = ""
    """What the operator wrote of the project they are working on (F257)."""

    profile: tuple[Entry, ...] = ()
    """About the person."""

    lessons: tuple[Entry, ...] = ()
    outcomes: tuple[Entry, ...] = ()
    tasks: tuple[Entry, ...] = ()
    summaries: tuple[str, ...] = ()
    """Of what was said earlier, oldest first."""

    logs: tuple[str, ...] = ()
    """What was noted of each of the last days, oldest first."""

    language: str = ""
    """In which the person wishes to be answered."""


NO_MEMORIES = Memories()


class Place(msgspec.Struct, frozen=True):
    """Where the message was said; names and ids are what a platform says."""

    platform: str = ""
    """Kind of connector: `terminal`, `http`, `telegram`, …"""

    connector: str = ""
    chat: str = ""
    thread: str = ""
    is_direct: bool = True
    takes_media: bool = False
    """Whether what is said there may hold marks for pictures and the like."""


NOWHERE = Place()


class Brief(msgspec.Struct, frozen=True, kw_only=True):
    """All that one prompt is built from."""

    name: str
    """The agent's."""

    context: ContextConfig
    files: PersonaFiles = NO_FILES
    prompt: str = ""
    """What the settings say."""

    colleagues: dict[str, str] = {}
    """Whom work may be handed to: name and description."""

    partners: tuple[str, ...] = ()
    """Agents of this group that hear it when their names are called."""

    path: tuple[str, ...] = ()
    """Who handed the message on to whom, down to this agent; empty: a person wrote."""

    conducting: str = ""
    """What a conductor is told of the agents it may make."""

    tools: frozenset[str] = frozenset()
    """Names of what may be called."""

    marks: frozenset[Family] = frozenset()
    """Which marks of its text come to something."""

    standing: tuple[str, ...] = ()
    """What sources of tools say, the same for every message of a session: which skills
    there are (F175)."""

    notes: tuple[str, ...] = ()
    """What they say now: skills that the message calls for, servers out of order."""

    place: Place = NOWHERE
    words: str = ""
    """The message."""

    memories: Memories = NO_MEMORIES
    summaries: tuple[str, ...] = ()
    """What earlier parts of this very conversation were about, oldest first (F132)."""

    left_out: int = 0
    """How many of its messages are not shown."""

    mode: Mode = "conversation"
    now: datetime = EPOCH
    """In the time zone in which the agent is told it."""
