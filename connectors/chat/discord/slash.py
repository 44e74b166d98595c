"""The runtime's own commands, as Discord offers them; pure.

Source: developers' reference, "Application Commands".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.rules.commands import COMMANDS

if TYPE_CHECKING:
    from connectors.chat.loose_json import Json

CHAT_INPUT, STRING = 1, 3
IN_SERVERS, WITH_THE_BOT = 0, 1
MOST_CHARS = 100
"""Of a description."""

THINKING, SAY = 5, 4
"""Types of answers: one that is to come, and one that is said now."""

ONLY_TO_THEM = 1 << 6
"""The flag of a message that nobody else sees."""

ANSWERED_WITHIN = 2.0
"""Seconds until a choice is answered by what is known then; Discord gives three."""

LIVES_FOR = 14 * 60.0
"""Seconds in which the first answer may be said; Discord gives fifteen minutes."""


def commands() -> list[Json]:
    """Describe all commands."""
    return [described(word) for word in COMMANDS]


def described(word: str) -> Json:
    """Describe one command; what follows it is one field of text."""
    spec = COMMANDS[word]
    found: Json = {
        "type": CHAT_INPUT,
        "name": word,
        "description": spec.meaning[:MOST_CHARS],
        "contexts": [IN_SERVERS, WITH_THE_BOT],
        "options": [],
    }
    if spec.arguments:
        found["options"] = [
            {
                "type": STRING,
                "name": "text",
                "description": spec.arguments[:MOST_CHARS],
                "required": False,
            }
        ]
    return found


def thinking() -> Json:
    """Say that an answer is to come."""
    return {"type": THINKING}


def refusal(words: str) -> Json:
    """Say to them alone why there is none."""
    said: Json = {
        "content": words,
        "flags": ONLY_TO_THEM,
        "allowed_mentions": {"parse": []},
    }
    return {"type": SAY, "data": said}
