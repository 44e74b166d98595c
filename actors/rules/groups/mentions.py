"""Mentions: which agents a person's message calls by `@name`. Pure.

Mentions that the platform itself reports are in `Inbound.mentions`; `activation.py`
joins both. `addressing.py` reads whom an agent's own answer calls.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# A name begins after a non-word character, so that the @ of a mail address is no
# mention, and consists of letters, digits, _ and -.
_MENTION = re.compile(r"(?<!\w)@([\w-]+)")

# Telegram's clients write a command for one of several bots so: `/help@anna`.
_COMMANDED = re.compile(r"/[A-Za-z][\w-]*@([\w-]+)(?=\s|\Z)")


def mentioned(text: str, agents: Mapping[str, str]) -> tuple[str, ...]:
    """Return the known agents that a person's text mentions, in its order, each once.

    Args:
        text: the message.
        agents: names of the agents by their case-folded names.
    """
    found: dict[str, None] = {}
    if "@" not in text:
        return ()
    commanded = _COMMANDED.match(text)
    for match in [commanded] if commanded else _MENTION.finditer(text):
        word = match[1].casefold()
        # A dash after a name ends a clause more often than it belongs to a name.
        agent = agents.get(word) or agents.get(word.rstrip("-"))
        if agent is not None:
            found[agent] = None
    return tuple(found)
