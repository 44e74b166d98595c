"""The brief: everything that a prompt is built from. Pure.

Each part comes from one place: the persona's folder, the settings, the message, memory,
the tools. A place with nothing to say leaves its part empty.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from actors.config.prompt import ContextConfig
from actors.messages.inbound import Inbound
from actors.rules.markers.descriptions import Mode
from actors.rules.markers.tags import Family
from actors.rules.prompt.texts import ReplyStyle

BY_ITSELF: frozenset[Mode] = frozenset({"planning", "autonomous"})
"""Modes without a person's message."""


def mode_of(inbound: Inbound) -> Mode:
    """Return the mode of a message's turn."""
    if inbound.occasion == "autonomous":
        return "planning"
    if inbound.occasion == "plan":
        return "autonomous"
    return "visible" if inbound.chain.turns else "conversation"


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class PersonaFiles(msgspec.Struct, frozen=True):
    """Texts of a persona's folder, in the order of the prompt."""

    identity: str = ""
    soul: str = ""
    motivations: str = ""
    goals: str = ""
    agents: str = ""
    legacy: str = ""

    def named(self) -> Iterable[tuple[str, str]]:
        """Return each file's name, without suffix, and its text."""
        return msgspec.structs.asdict(self).items()


NO_FILES = PersonaFiles()


class PromptMemory(msgspec.Struct, frozen=True):
    """One remembered fact or state. Its text is data, never an instruction."""

    text: str
    key: str = ""
    """Subject of a fact or name of a state; may be empty."""


class Memories(msgspec.Struct, frozen=True):
    """Memories for one message, the most important first."""

    sticky: tuple[PromptMemory, ...] = ()
    """Sticky facts: never trimmed and never forgotten automatically."""

    relevant: tuple[PromptMemory, ...] = ()
    """Facts that are relevant to the message."""

    states: tuple[PromptMemory, ...] = ()
    project: str = ""
    """The operator's text about the active project."""

    profile: tuple[PromptMemory, ...] = ()
    """Facts about the person."""

    lessons: tuple[PromptMemory, ...] = ()
    outcomes: tuple[PromptMemory, ...] = ()
    tasks: tuple[PromptMemory, ...] = ()
    summaries: tuple[str, ...] = ()
    """Summaries of earlier conversations, oldest first."""

    logs: tuple[str, ...] = ()
    """Daily logs of the last days, oldest first."""

    language: str = ""
    """Language in which the person wants answers."""


NO_MEMORIES = Memories()


class ChatBrief(msgspec.Struct, frozen=True):
    """The chat of the message; names and ids come from the platform."""

    platform: str = ""
    """Kind of connector: `terminal`, `http`, …"""

    connector: str = ""
    chat: str = ""
    thread: str = ""
    is_direct: bool = True
    takes_media: bool = False
    """Whether answers there may hold directives for pictures and other files."""

    reply_style: ReplyStyle | None = None
    """What the agent is told of writing there; None: nothing."""


NOWHERE = ChatBrief()


class Brief(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that one prompt is built from."""

    name: str
    """The agent's name."""

    context: ContextConfig
    files: PersonaFiles = NO_FILES
    prompt: str = ""
    """The prompt in the settings."""

    colleagues: dict[str, str] = {}
    """Agents that work can be delegated to: names and descriptions."""

    partners: tuple[str, ...] = ()
    """Agents of this group that hear the answer if it calls their names."""

    path: tuple[str, ...] = ()
    """Delegation path down to this agent; empty for a person's message."""

    conducting: str = ""
    """Text for a conductor about the agents that it may create."""

    tools: frozenset[str] = frozenset()
    """Names of the available tools."""

    marks: frozenset[Family] = frozenset()
    """Families of inline directives that are in effect."""

    standing: tuple[str, ...] = ()
    """Notes of tool sources that are the same for every message of a session, such as
    the list of skills.
    """

    notes: tuple[str, ...] = ()
    """Notes of tool sources for this message: triggered skills, unavailable servers."""

    place: ChatBrief = NOWHERE
    words: str = ""
    """The message."""

    memories: Memories = NO_MEMORIES
    summaries: tuple[str, ...] = ()
    """Summaries of earlier parts of this conversation, oldest first."""

    left_out: int = 0
    """Number of its messages that are not shown."""

    said: tuple[str, ...] = ()
    """Texts of people's messages that are shown."""

    mode: Mode = "conversation"
    now: datetime = EPOCH
    """Present time, in the agent's time zone."""
