"""What a message replies to becomes part of what the agent reads (P24); pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.rules.hygiene import as_item, harmless_name, of_person

if TYPE_CHECKING:
    from collections.abc import Iterable

    from actors.messages import Inbound

# Chosen: enough to know which message it was; the conversation has the rest.
MOST_CHARACTERS = 1_000

QUOTED = "(In reply to {name}, who wrote: “{text}”)"


def with_quote(text: str, inbound: Inbound, agents: Iterable[str] = ()) -> str:
    """Put what a message replies to behind its words.

    Behind: what calls the agent stands at the beginning of its words.

    Args:
        text: the words, maybe with what attachments say.
        inbound: the message.
        agents: names of all agents; no person passes for one.
    """
    quoted = inbound.quoted
    if quoted is None or not quoted.text.strip():
        return text
    name = harmless_name(quoted.agent or of_person(quoted.sender_name, agents))
    words = as_item(quoted.text)
    if len(words) > MOST_CHARACTERS:
        words = f"{words[: MOST_CHARACTERS - 1]}…"
    return f"{text}\n\n{QUOTED.format(name=name, text=words)}".lstrip()
