"""Slash commands: messages for the runtime instead of for an agent.

Pure and total. A command is a word right after a `/` that opens the message, alone or
followed by a blank: `/stop`, `/stop@anna`, `/help me`. Everything else is ordinary
text, above all paths (`/usr/bin`) and a lone `/`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from actors.rules.text.similarity import near_misses

# Chosen: 32 characters, the longest command Telegram knows; longer is text.
_COMMAND = re.compile(r"/([A-Za-z][A-Za-z0-9_-]{0,31})(?:@([\w.-]+))?(?=\s|\Z)")

# `@anna /help`, `@anna: /help`; the name is then the command's own.
_CALLED = re.compile(r"\s*@([\w.-]+)[,:]?\s+(?=/[A-Za-z])")

LONGEST_ID = 32
"""Longest approval id, in characters, that is parsed."""

LONGEST_REST = 400
"""Most characters of a command's arguments that are read; skills get all of them."""


class PlainText(msgspec.Struct, frozen=True):
    """The message is ordinary text for an agent, not a command."""


class Stop(msgspec.Struct, frozen=True):
    """`/stop`: cancel the running turn and drop the waiting messages."""

    agent: str = ""
    """Whom it is for, as written; empty: whoever hears it."""

    is_all: bool = False
    """Whether it applies to everybody's messages in this chat; only owners may do
    that.
    """


class ApprovalDecision(msgspec.Struct, frozen=True):
    """`/approve` or `/deny`: the answer to an approval request for a tool call."""

    approval_id: str
    """In capitals; may name no pending request. Empty means the only pending request of
    the chat.
    """

    is_approved: bool
    is_lasting: bool = False
    """Whether further calls of that tool run without approval for a while."""

    agent: str = ""
    """Whom it is for, as written; empty: whoever hears it."""


class OtherCommand(msgspec.Struct, frozen=True):
    """Any other command, known or not; `actors/commands/dispatch.py` carries it out."""

    word: str
    """The word without the `/`, in lower case."""

    rest: str = ""
    """The arguments, cut to `LONGEST_REST` characters."""

    agent: str = ""
    """Whom it is for, as written; empty: whoever hears it. In a group it may be a
    bot that is none of ours."""


Command = PlainText | Stop | ApprovalDecision | OtherCommand


def parse_command(text: str) -> Command:
    """Parse a person's message as a command; it may follow one mention."""
    called = _CALLED.match(text)
    match = _COMMAND.match(text, called.end() if called else 0)
    if match is None:
        return PlainText()
    name = called[1].rstrip(".-") if called else ""
    word, agent = match[1].lower(), match[2] or name
    rest = text[match.end() : match.end() + LONGEST_REST].strip()
    match word:
        case "stop":
            return Stop(agent, is_all=rest.split()[:1] == ["all"])
        case "approve" | "deny":
            return _decision(word, rest.split(), agent) or OtherCommand(
                word, rest, agent
            )
        case _:
            return OtherCommand(word, rest, agent)


def _decision(word: str, rest: list[str], agent: str) -> ApprovalDecision | None:
    is_approved = word == "approve"
    is_lasting = is_approved and rest[-1:] == ["always"]
    named = rest[:-1] if is_lasting else rest
    if len(named) > 1:
        return None
    approval_id = named[0][:LONGEST_ID].upper() if named else ""
    return ApprovalDecision(approval_id, is_approved, is_lasting, agent)


def as_command(skill: str) -> str:
    """Return a skill's name as a command; platforms allow no `-` in a command."""
    return re.sub(r"[^a-z0-9_]+", "_", skill.casefold()).strip("_")


def near(word: str, known: Iterable[str]) -> tuple[str, ...]:
    """Find commands that a mistyped one may have meant, the closest first."""
    return near_misses(word, known)
