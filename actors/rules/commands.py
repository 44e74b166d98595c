"""What people can say to the runtime instead of to an agent.

Pure and total. A command is a word right after a `/` that opens the message,
alone or followed by a blank: `/stop`, `/stop@anna`, `/help me`. Everything else is
ordinary text, above all paths (`/usr/bin`) and a lone `/`.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from actors.rules.near import did_you_mean, near_misses

CommandName = Literal["stop", "approve", "deny", "help"]

COMMANDS: dict[CommandName, str] = {
    "stop": "stop what you asked here, and what other agents do because of it",
    "approve": "let a tool run: /approve 3F, or /approve 3F always",
    "deny": "do not let a tool run: /deny 3F",
    "help": "show this list",
}
"""What each command does, as `/help` shows it."""

# Chosen: 32 characters, the longest command Telegram knows; longer is text.
_COMMAND = re.compile(r"/([A-Za-z][A-Za-z0-9_-]{0,31})(?:@([\w.-]+))?(?=\s|\Z)")


LONGEST_ID = 32
"""Letters of a request's id that are looked at."""


class Words(msgspec.Struct, frozen=True):
    """Ordinary text, for an agent."""


class Stop(msgspec.Struct, frozen=True):
    """Stop the current answer, and drop what waits."""

    agent: str = ""
    """Whom it is for, as written; empty: whoever hears it."""


class Help(msgspec.Struct, frozen=True):
    """List the commands; see `help_text`."""

    agent: str = ""
    """Whom it is for, as written; empty: whoever hears it."""


class Decision(msgspec.Struct, frozen=True):
    """Let a tool call run, or not."""

    approval_id: str
    """In capitals; may name nothing that waits. Empty: the only one in the chat."""

    is_approved: bool
    is_lasting: bool = False
    """Whether further calls of that tool need not be asked for, for a while."""

    agent: str = ""
    """Whom it is for, as written; empty: whoever hears it."""


class UnknownCommand(msgspec.Struct, frozen=True):
    """Looks like a command, but is none."""

    word: str
    """The word without the `/`, in lower case."""

    text: str
    """A line for the person who wrote it."""

    agent: str = ""
    """Whom it is for, as written; empty: whoever hears it. In a group it may be a
    bot that is none of ours, and then the line is better left unsaid."""


Command = Words | Stop | Help | Decision | UnknownCommand


def parse_command(text: str) -> Command:
    """Tell whether a message of a person is a command, and which."""
    match = _COMMAND.match(text)
    if match is None:
        return Words()
    word, agent = match[1].lower(), match[2] or ""
    match word:
        case "stop":
            return Stop(agent)
        case "help":
            return Help(agent)
        case "approve" | "deny":
            return _decision(word, text[match.end() :].split(), agent)
        case _:
            hint = did_you_mean(near_misses(word, COMMANDS), prefix="/")
            line = f"There is no command /{word}.{hint} /help lists all commands."
            return UnknownCommand(word, line, agent)


def _decision(word: str, rest: list[str], agent: str) -> Decision | UnknownCommand:
    is_approved = word == "approve"
    is_lasting = is_approved and rest[-1:] == ["always"]
    named = rest[:-1] if is_lasting else rest
    if len(named) > 1:
        line = f"Say which one: /{word} and the letters that stand in the question."
        return UnknownCommand(word, line, agent)
    approval_id = named[0][:LONGEST_ID].upper() if named else ""
    return Decision(approval_id, is_approved, is_lasting, agent)


def help_text() -> str:
    """List the commands, one in a line."""
    return "\n".join(f"/{name} - {meaning}" for name, meaning in COMMANDS.items())
