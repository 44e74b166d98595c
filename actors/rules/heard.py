"""People's lines as a model may see them: harmless, in a group signed; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.rules.hygiene import Injection, clean, harmless_name, in_group, of_person

if TYPE_CHECKING:
    from collections.abc import Iterable

    from actors.messages import Inbound, Line


class Hearing(msgspec.Struct, frozen=True):
    """How the words of people are to be read."""

    injection: Injection = "mark"
    is_group: bool = False
    mentions: tuple[str, ...] = ()
    """What calls the agent in a group."""


def sender_of(inbound: Inbound, agents: Iterable[str]) -> str:
    """Name whoever wrote a message, so that no person passes for an agent.

    Args:
        inbound: of a person, or what an agent handed on.
        agents: names of all agents.
    """
    if inbound.chain.agents:
        return inbound.sender_name
    return of_person(inbound.sender_name, agents)


def hear(lines: Iterable[Line], hearing: Hearing) -> tuple[Line, ...]:
    """Make the lines of people harmless; all others stay as they are.

    In a group each text begins with its writer's name, which the line itself then no
    longer has: no model is told it twice.
    """
    return tuple(
        _hear(line, hearing) if line.role == "user" else line for line in lines
    )


def _hear(line: Line, hearing: Hearing) -> Line:
    text = clean(line.text, hearing.injection).text
    name = harmless_name(line.name) if line.name else ""
    if hearing.is_group and name:
        text, name = in_group(text, name, hearing.mentions), ""
    if text == line.text and name == line.name:
        return line
    return msgspec.structs.replace(line, text=text, name=name)
