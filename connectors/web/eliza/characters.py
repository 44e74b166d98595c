"""Agents as clients describe them (ElizaOS' *characters*), and what is made of that.

Pure. What an agent here can have is taken over: name, description, what it is told.
What only a runtime of ElizaOS has (plugins, settings, examples of messages) is left
out, and named in the answer.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

import msgspec

from actors.rules.actions import AgentFields
from connectors.web.eliza.errors import wrong

if TYPE_CHECKING:
    from connectors.web.eliza.shapes import Json

PARTS = {
    "system": "",
    "prompt": "",
    "bio": "About you:",
    "lore": "What you have seen:",
    "topics": "What you know about:",
    "adjectives": "What you are like:",
}
"""What an agent is told, in this order, each under its heading."""

KNOWN = {*PARTS, "style", "name", "description", "model", "tools", "delegates"}

NOT_MEANT = {"id", "username", "status", "enabled", "createdAt", "updatedAt"}
"""What clients send back as they read it."""

Texts = list[str] | str


class Character(msgspec.Struct, frozen=True, kw_only=True):
    """One character, as far as it can be an agent here."""

    name: str = ""
    description: str = ""
    system: Texts = ""
    prompt: Texts = ""
    bio: Texts = ""
    lore: Texts = ""
    topics: Texts = ""
    adjectives: Texts = ""
    style: dict[str, list[str]] = {}
    model: str | None = None
    """Which of `[models.<name>]`."""

    tools: tuple[str, ...] | None = None
    delegates: tuple[str, ...] | None = None


class Wish(msgspec.Struct, frozen=True):
    """What somebody wishes an agent to be."""

    slug: str
    """Its name, as the settings have them."""

    fields: AgentFields
    left_out: tuple[str, ...] = ()
    """What cannot be had here."""


def wish_of(given: Json) -> Wish:
    """Read a character, whole or in part.

    Raises:
        ApiError: 400, with the field that is wrong.
    """
    try:
        read = msgspec.convert(given, Character)
    except msgspec.ValidationError as error:
        text, _, where = str(error).partition(" - at `$")
        raise wrong(text, where.strip(".`")) from None
    about = read.description or " ".join(lines(read.bio)[:1])
    fields = AgentFields(
        name=read.name or None,
        description=about or None,
        prompt=told(read) or None,
        model=read.model,
        tools=read.tools,
        delegates=read.delegates,
    )
    left_out = sorted(
        key for key, value in given.items() if value and key not in KNOWN | NOT_MEANT
    )
    return Wish(slug_of(read.name), fields, tuple(left_out))


def character_in(body: Json) -> Json:
    """Find the character in the body of a request.

    Raises:
        ApiError: 400: there is none, or it is a file of this machine.
    """
    if body.get("characterPath"):
        raise wrong("is a file of this machine; send characterJson", "characterPath")
    for key in ("characterJson", "agent"):
        found = body.get(key)
        if isinstance(found, dict):
            return cast("Json", found)
    if "name" not in body:
        raise wrong("is missing", "characterJson")
    return body


def slug_of(name: str) -> str:
    """Make the name of an agent out of that of a character."""
    plain = re.sub(r"[^a-z0-9_-]+", "-", name.casefold()).strip("-_")
    return plain[:32].rstrip("-_")


def told(read: Character) -> str:
    """Put together what an agent is told about itself."""
    found: list[str] = []
    for field, heading in PARTS.items():
        text = "\n".join(lines(getattr(read, field)))
        if text:
            found.append(f"{heading}\n{text}" if heading else text)
    for kind, rules in read.style.items():
        if rules:
            found.append("\n".join((f"How you write ({kind}):", *rules)))
    return "\n\n".join(found)


def lines(given: Texts) -> list[str]:
    """Give the lines of a text that may be a list of them."""
    every = [given] if isinstance(given, str) else given
    return [each for each in every if each.strip()]
