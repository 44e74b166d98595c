"""Settings of collaboration between agents."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

Few = Annotated[int, Meta(ge=1, le=32)]
Seconds = Annotated[float, Meta(gt=0, le=86_400)]

ToolsThere = Literal["none", "memory", "read"]
"""Tools of an agent while it answers another agent."""


class CollaborationConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """How agents consult each other, in private and visibly in a group."""

    enabled: bool = True
    """Whether they may consult each other; delegation works in any case."""

    tools: ToolsThere = "read"
    """Tools of the consulted agent: none; its memory; or tools that read, within its
    own `delegated_tools`.
    """

    visible: bool = False
    """Whether agents of a group hear each other when one writes @name."""

    visible_chats: tuple[str, ...] = ()
    """Groups where they always do, as `connector/chat`; `*` matches anything."""

    visible_max_turns: Few = 4
    """Most visible answers between agents that one message of a person may cause."""

    max_rounds: Annotated[int, Meta(ge=0, le=1_000)] = 5
    """Most exchanges of two agents of one chat in a row, beside the one that each
    message of a person may cause.
    """

    cooldown: Annotated[float, Meta(ge=0, le=86_400)] = 30.0
    """Seconds after which they may speak to each other again."""

    timeout: Seconds = 120.0
    """Time limit of one consultation in seconds, all its turns together."""

    max_turns: Few = 5
    """Most questions of one consultation that an agent continues by itself."""

    max_agents: Few = 6
    """Most agents that may be consulted at once."""

    max_chars: Annotated[int, Meta(ge=100, le=100_000)] = 4_000
    """Longest question and answer in characters; the middle of a longer one is cut."""

    max_exchanges: Annotated[int, Meta(ge=1, le=100)] = 10
    """Most questions of one consultation of two agents, for one person in one chat."""
