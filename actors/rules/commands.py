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

CommandName = Literal["stop", "help"]

COMMANDS: dict[CommandName, str] = {
    "stop": "stop the answer being written and forget what waits behind it",
    "help": "show this list",
}
"""What each command does, as `/help` shows it."""

# Chosen: 32 characters, the longest command Telegram knows; longer is text.
_COMMAND = re.compile(r"/([A-Za-z][A-Za-z0-9_-]{0,31})(?:@([\w.-]+))?(?=\s|\Z)")


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


class UnknownCommand(msgspec.Struct, frozen=True):
    """Looks like a command, but is none."""

    word: str
    """The word without the `/`, in lower case."""

    text: str
    """A line for the person who wrote it."""

    agent: str = ""
    """Whom it is for, as written; empty: whoever hears it. In a group it may be a
    bot that is none of ours, and then the line is better left unsaid."""


Command = Words | Stop | Help | UnknownCommand


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
        case _:
            hint = did_you_mean(near_misses(word, COMMANDS), prefix="/")
            line = f"There is no command /{word}.{hint} /help lists all commands."
            return UnknownCommand(word, line, agent)


def help_text() -> str:
    """List the commands, one in a line."""
    return "\n".join(f"/{name} - {meaning}" for name, meaning in COMMANDS.items())
