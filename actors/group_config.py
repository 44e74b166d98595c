"""What people can set about an agent in chats where several read along.

Only shapes, bounds and defaults, as in `config.py`; `rules/activation.py` decides.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

Activation = Literal["mention", "always", "never"]
"""When an agent answers in a group."""

RouteActivation = Literal["agent", "mention", "always", "never"]
"""The same for some groups only; `agent`: as it does elsewhere."""


class GroupConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """When one agent answers in a group, and what it is told of the rest."""

    activation: Activation = "mention"
    """`mention`: when it is meant, as the settings below say; `always`: every person's
    words; `never`: nothing that is said in groups."""

    mention_patterns: tuple[Annotated[str, Meta(min_length=1)], ...] = ()
    """Words that call it, beside `@name`: whole words, in any case. Where they do
    nothing but call it, they are left out of what its model reads."""

    # Chosen: 0. Whoever was answered goes on talking to people at least as often as to
    # the agent; a window is for chats where that is not so, or with `relevance_check`.
    # Not done: for ever (F069). What never ends is never taken away; a year is enough.
    reply_window: Annotated[float, Meta(ge=0, le=525_600)] = 0.0
    """Minutes after its answer in which the same person need not call it again in the
    same chat, up to a year; 0: people always must."""

    relevance_check: bool = False
    """Whether a model is asked, inside that time, if words are meant for it. If nobody
    can say in time, it answers."""

    broadcast_check: bool = False
    """Whether a model is asked, of words that call nobody, if they are meant for
    everybody. If nobody can say in time, it is silent."""

    check_model: str = ""
    """Whom that is asked; empty: `routing.cheap`, or the agent's own model."""

    check_timeout: Annotated[float, Meta(gt=0, le=60)] = 5.0
    """Seconds that may take; what is said next in the chat waits as long."""

    pending_messages: Annotated[int, Meta(ge=0, le=500)] = 50
    """Most messages of a group that it is told of when it answers there: those that
    were said since it last did, the newest kept. 0: none."""

    bots: Literal["never", "mention"] = "never"
    """What it does about other people's programs: nothing; or it answers those that
    mention it."""

    bot_rounds: Annotated[int, Meta(ge=1, le=100)] = 5
    """Answers to one such program in one chat until it has to be quiet for a while."""

    bot_cooldown: Annotated[float, Meta(gt=0, le=86_400)] = 30.0
    """Seconds of quiet after which it answers that program again."""
