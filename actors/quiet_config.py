"""What people can set so that what agents do by the clock disturbs and costs little.

Only shapes, bounds and defaults, as in `config.py`. `rules/quiet_hours.py` reads the
hours, `barring.py` goes by the rest.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

MAX_MINUTES = 43_200
"""A month: longest time between two heartbeats, as a model may ask for, too."""

MOST_GROUPS = 16
"""Turns that one heartbeat may be, at the same time."""

Hours = Annotated[
    str,
    Meta(
        pattern=r"^([a-z]{3}(-[a-z]{3})? )?\d\d:\d\d-\d\d:\d\d$",
        description='hours as "22:00-07:00", also "sat-sun 00:00-24:00"',
    ),
]
"""A stretch of each day, or of some; one that ends before it begins ends the day
after."""


OwnHours = Annotated[
    str,
    Meta(
        pattern=r"^(never|([a-z]{3}(-[a-z]{3})? )?\d\d:\d\d-\d\d:\d\d)$",
        description='hours as "22:00-07:00", also "sat-sun 00:00-24:00"; or "never"',
    ),
]
"""The same, or `never`, which stands for none."""


class QuietConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """When nothing is begun by the clock."""

    hours: tuple[Hours, ...] = ()
    """The hours, as `22:00-07:00` or `sat-sun 00:00-24:00`; none: never."""

    time_zone: str = ""
    """By whose clocks; empty: by those that each appointment goes by."""

    kinds: tuple[
        Literal["reminder", "task", "cron", "heartbeat", "autonomous"], ...
    ] = (
        "cron",
        "heartbeat",
        "autonomous",
    )
    """What is not begun in these hours."""

    then: Literal["skip", "move"] = "skip"
    """What becomes of it: it is left out; it comes once when the hours are over. What
    happens only once always does."""


class ScheduledConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What an agent may spend on what it does by the clock."""

    daily_tokens: Annotated[int, Meta(ge=0)] = 0
    """Tokens, read and written, that one agent takes in a day for reminders, tasks,
    cron, heartbeats and what it does by itself; what comes after that is left out until
    midnight. 0: no limit."""

    model: str = ""
    """Which model does it, but for what has one of its own; empty: the agent's."""


class HeartbeatConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """How an agent looks, again and again, whether there is anything to do."""

    chat: str = ""
    """Where it tells what it finds, as `connector/chat`; empty: it looks after nothing
    unless people in a chat ask it to."""

    thread: str = ""
    """The platform's id of a thread in that chat."""

    is_direct: bool = True
    """Whether that is a chat with one person, and no group."""

    sender: str = ""
    """On whose behalf: the platform's id of a person, who then reads on in their own
    conversation; empty: in a direct chat the chat's id, in a group nobody's."""

    every: Annotated[int, Meta(ge=1, le=MAX_MINUTES)] = 30
    """Minutes, counted from midnight: with 30 at :00 and :30."""

    file: Annotated[str, Meta(pattern=r"^[^/\\]+$", description="a file's name")] = (
        "HEARTBEAT.md"
    )
    """The list of what it looks after, in the persona's folder; read at each beat."""

    max_groups: Annotated[int, Meta(ge=1, le=MOST_GROUPS)] = 4
    """Domains of the list that are looked after at the same time, each by a turn of its
    own; what more there are share the last one. 1: all in one turn."""

    model: str = ""
    """Which model does it; empty: as `scheduled.model` says."""

    context: Literal["light", "whole"] = "light"
    """What it is told: who it is, its tools and the list; or its memory, skills and
    lessons, too. Of the conversation it is told nothing in either case."""

    unless_busy: Literal["agent", "chat", "never"] = "agent"
    """When a beat is left out: while the agent is at work anywhere; in this chat; never
    for that reason."""

    quiet: tuple[OwnHours, ...] = ()
    """Hours without a beat, instead of those of `[scheduler.quiet]`; empty: those;
    `never`: none."""

    ack_chars: Annotated[int, Meta(ge=0, le=100_000)] = 300
    """An answer with `HEARTBEAT_OK` and no more than so many other characters says
    nothing; 0: any word beside it is told."""
