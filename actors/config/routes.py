"""Settings of routing: which agents hear a message, and which model answers it."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from actors.config.groups import RouteActivation


class HintConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Words in a message that select a model."""

    words: Annotated[tuple[str, ...], Meta(min_length=1)]
    """Whole words, case-insensitive; one of them is enough."""

    model: str
    """The model to use."""


class RoutingConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Which model answers which messages, beside the agent's own."""

    hints: tuple[HintConfig, ...] = ()
    """Models by words in the message; the first match counts."""

    classify: bool = False
    """Whether a model first decides if a message needs several steps."""

    classifier: str = ""
    """Model that decides; empty: `cheap`, or the agent's own model."""

    cheap: str = ""
    """Model for messages that need no steps; empty: the agent's own model."""

    strong: str = ""
    """Model for messages that need several steps; empty: the agent's own model."""

    max_steps: Annotated[int, Meta(ge=2, le=20)] = 6
    """Most steps of one answer; a message that needs more is answered without steps."""


class RouteConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Whose chats are whose.

    The first matching route counts. In direct chats its agent answers, unless the
    message names another one; without a match the default agent answers. In a group the
    chat belongs to its agent: the agent's `groups` settings decide whether it answers,
    and other agents answer only when they are called.
    """

    agent: str
    """Name of the agent."""

    connector: str = "*"
    """Name of a connector; `*` matches anything, also inside a name."""

    chat: str = "*"
    """The platform's id of a chat; `*` matches anything, also inside an id."""

    kind: Literal["any", "direct", "group"] = "any"
    """Kind of chats: any, direct chats with one person, or groups."""

    roles: tuple[str, ...] = ()
    """The sender must have one of these roles on the platform; empty matches
    everybody.
    """

    activation: RouteActivation = "agent"
    """When its agent answers in these groups; `agent`: as in the agent's `groups`."""
