"""What the domain lets people set about agents that a conductor makes."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct


class HiringConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """By whose word conductors set up agents and clients, and what these may have."""

    who: Literal["everyone", "owners", "nobody"] = "nobody"
    """At whose words a conductor's tags are carried out."""

    max_agents: Annotated[int, Meta(ge=0, le=500)] = 20
    """Agents that conductors may have made, those at rest included."""

    max_clients: Annotated[int, Meta(ge=0, le=5_000)] = 500
    """Clients that are kept."""

    models: tuple[str, ...] = ()
    """Models they may think with beside their maker's own, by patterns of names."""

    tools: tuple[str, ...] = ()
    """Tools they may be given; none unless listed."""

    delegated_tools: Literal["none", "read", "write", "all"] = "read"
    """Which of these they may use for work that another agent handed on."""

    autonomy: Literal["read-only", "supervised", "full"] = "supervised"
    """What they may do with their tools by themselves."""

    max_prompt_chars: Annotated[int, Meta(ge=100, le=32_000)] = 8_000
    """Longest text that one of them is told about itself, in characters."""
