"""Settings of routing: which agents hear a message, and which model answers it."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

Activation = Literal["mention", "always", "never"]
"""When an agent answers in a group."""

RouteActivation = Literal["agent", "mention", "always", "never"]
"""The same for the groups of a route; `agent`: as in the agent's own settings."""


class GroupConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """When an agent answers in a group, and what it knows of other messages."""

    activation: Activation = "mention"
    """`mention`: when it is addressed, by the settings below; `always`: every person's
    message; `never`: no message in groups.
    """

    mention_patterns: tuple[Annotated[str, Meta(min_length=1)], ...] = ()
    """Words that call it, beside `@name`: whole words, case-insensitive. Where they
    only call it, its model does not see them.
    """

    own_name: bool = True
    """Whether a message calls it that begins with its name, as "anna, …", "Hey anna …"
    and "Anna?", or ends with it. Off for a name that is an everyday word.
    """

    # Chosen: 0. Whoever was answered goes on talking to people at least as often as to
    # the agent; a window is for chats where that is not so, or with `relevance_check`.
    # Not done: for ever. What never ends is never taken away; a year is enough.
    reply_window: Annotated[float, Meta(ge=0, le=525_600)] = 0.0
    """Minutes after its answer for which the same person need not call it again in the
    same chat, up to a year; 0: people always must.
    """

    relevance_check: bool = False
    """Whether a model checks, within that time, if a message is meant for it. Without a
    result in time it answers.
    """

    broadcast_check: bool = False
    """Whether a model checks if a message that calls nobody is meant for everybody.
    Without a result in time it stays silent.
    """

    check_model: str = ""
    """Model of these checks; empty: `routing.cheap`, or the agent's own model."""

    check_timeout: Annotated[float, Meta(gt=0, le=60)] = 5.0
    """Time limit of a check in seconds; further messages of the chat wait meanwhile."""

    pending_messages: Annotated[int, Meta(ge=0, le=500)] = 50
    """Most messages of a group, since its last answer there, that it sees when it
    answers; the newest are kept. 0: none.
    """

    bots: Literal["never", "mention"] = "never"
    """What it does about other bots: ignore them, or answer those that mention it."""

    bot_rounds: Annotated[int, Meta(ge=1, le=100)] = 5
    """Most answers to one bot in one chat before it pauses."""

    bot_cooldown: Annotated[float, Meta(gt=0, le=86_400)] = 30.0
    """Seconds of the pause after which it answers that bot again."""


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
