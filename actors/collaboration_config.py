"""What the domain lets people set about agents that work with each other."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

Few = Annotated[int, Meta(ge=1, le=32)]
Seconds = Annotated[float, Meta(gt=0, le=86_400)]

ToolsThere = Literal["none", "memory", "read"]
"""What an agent may use that is spoken to by another one."""


class CollaborationConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """How agents ask each other, behind the scenes and in the open."""

    enabled: bool = True
    """Whether they may at all; work is handed on in any case."""

    tools: ToolsThere = "read"
    """What who is asked may use: nothing; its memory; or what looks something up, as
    far as its own `delegated_tools` go."""

    visible: bool = False
    """Whether agents of a group hear each other where one writes @name."""

    visible_chats: tuple[str, ...] = ()
    """Groups where they do in any case, as `connector/chat`; `*` is anything."""

    visible_max_turns: Few = 4
    """Answers to each other in the open that one message of a person may cause."""

    max_rounds: Annotated[int, Meta(ge=0, le=1_000)] = 5
    """How often two agents of one chat may speak to each other in a row, beside the
    once that each message of a person may cause."""

    cooldown: Annotated[float, Meta(ge=0, le=86_400)] = 30.0
    """Seconds after which they may again."""

    timeout: Seconds = 120.0
    """Seconds that one consultation may take, all its turns together."""

    max_turns: Few = 5
    """Questions of one consultation that an agent has carried on by itself."""

    max_agents: Few = 6
    """Agents that may be asked at once."""

    max_parallel: Few = 4
    """How many of them answer at the same time; the others wait."""

    max_chars: Annotated[int, Meta(ge=100, le=100_000)] = 4_000
    """Characters of a question, and of an answer; of a longer one the middle is cut."""

    max_sessions: Few = 8
    """Consultations of two agents, for one person in one chat, that may be gone on
    with; one more, and the one longest ago cannot."""

    max_exchanges: Annotated[int, Meta(ge=1, le=100)] = 10
    """Questions of one of them."""

    max_age: Seconds = 86_400.0
    """Seconds after its last answer in which it may be gone on with."""
