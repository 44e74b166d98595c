"""Settings of appointments, heartbeats and quiet hours.

What people can set so that what agents do by the clock disturbs and costs little.

Only types, bounds and defaults. `actors/schedule/quiet_hours.py` parses the hours, and
`actors/schedule/conditions.py` applies the rest.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

MAX_MINUTES = 43_200
"""A month: longest time between two heartbeats, also for those that a model asks
for.
"""

MOST_GROUPS = 16
"""Most parallel turns of one heartbeat."""

Hours = Annotated[
    str,
    Meta(
        pattern=r"^([a-z]{3}(-[a-z]{3})? )?\d\d:\d\d-\d\d:\d\d$",
        description='hours as "22:00-07:00", also "sat-sun 00:00-24:00"',
    ),
]
"""A time range of each day or some days; an end before the start is on the next day."""


OwnHours = Annotated[
    str,
    Meta(
        pattern=r"^(never|([a-z]{3}(-[a-z]{3})? )?\d\d:\d\d-\d\d:\d\d)$",
        description='hours as "22:00-07:00", also "sat-sun 00:00-24:00"; or "never"',
    ),
]
"""The same, or `never` for none."""


class QuietConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Quiet hours, in which nothing scheduled starts."""

    hours: tuple[Hours, ...] = ()
    """The quiet hours, such as `22:00-07:00` or `sat-sun 00:00-24:00`; empty: none."""

    time_zone: str = ""
    """Time zone of the hours; empty: that of each appointment."""

    kinds: tuple[
        Literal["reminder", "task", "cron", "heartbeat", "autonomous"], ...
    ] = (
        "cron",
        "heartbeat",
        "autonomous",
    )
    """Kinds of appointments that do not start in these hours."""

    then: Literal["skip", "move"] = "skip"
    """What happens to them: they are skipped (`skip`), or run once after the quiet
    hours (`move`). One-time appointments are always moved.
    """


class ScheduledConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What an agent may spend on scheduled turns."""

    daily_tokens: Annotated[int, Meta(ge=0)] = 0
    """Tokens a day, input and output, that one agent may use for reminders, tasks,
    cron, heartbeats and autonomous work; further ones are skipped until midnight. 0: no
    limit.
    """

    model: str = ""
    """Model of scheduled turns without one of their own; empty: the agent's."""


class HeartbeatConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Heartbeat: an agent checks regularly whether there is anything to do."""

    chat: str = ""
    """Chat for its findings, as `connector/chat`; empty: no heartbeat unless people in
    a chat ask for one.
    """

    thread: str = ""
    """The platform's id of a thread in that chat."""

    is_direct: bool = True
    """Whether that chat is a direct chat with one person."""

    sender: str = ""
    """The platform's id of the person on whose behalf it runs, in that person's
    conversation; empty: in a direct chat the chat's id, in a group nobody.
    """

    every: Annotated[int, Meta(ge=1, le=MAX_MINUTES)] = 30
    """Minutes between heartbeats, counted from midnight: with 30 at :00 and :30."""

    file: Annotated[str, Meta(pattern=r"^[^/\\]+$", description="a file's name")] = (
        "HEARTBEAT.md"
    )
    """The list of what it looks after, in the persona's folder; read at each beat."""

    max_groups: Annotated[int, Meta(ge=1, le=MOST_GROUPS)] = 4
    """Most domains of the checklist that run in parallel, each in a turn of its own;
    further ones share the last turn. 1: all in one turn.
    """

    model: str = ""
    """Its model; empty: `scheduled.model`."""

    context: Literal["light", "whole"] = "light"
    """What it sees: identity, tools and checklist (`light`); also memory, skills and
    lessons (`whole`). It never sees the conversation.
    """

    unless_busy: Literal["agent", "chat", "never"] = "agent"
    """When a heartbeat is skipped: while the agent works anywhere (`agent`), in this
    chat (`chat`), or never for that reason.
    """

    quiet: tuple[OwnHours, ...] = ()
    """Quiet hours instead of those of `[scheduler.quiet]`; empty: those; `never`:
    none.
    """


class SchedulerConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Reminders, tasks for later, cron and heartbeats."""

    is_on: bool = True
    """Whether scheduled work runs; if off, nothing can be scheduled either."""

    reminders: Literal["plain", "worded"] = "plain"
    """How a reminder is sent: word for word without a model (`plain`), or in the
    agent's own words (`worded`).
    """

    catch_up: Literal["skip", "once", "all"] = "once"
    """What to do about times that passed while the program was down, for repeating
    appointments: skip them, run the last one, or run all, the newest ten.
    One-time appointments run late, and heartbeats are never made up for.
    """

    most_failures: Annotated[int, Meta(ge=0, le=100)] = 3
    """Failures in a row after which a repeating appointment is paused; 0: never."""

    history_days: Annotated[float, Meta(gt=0, le=3_650)] = 30.0
    """Days for which the history of runs is kept."""

    most_per_person: Annotated[int, Meta(ge=1, le=10_000)] = 50
    """Most appointments of one person."""

    most_per_agent: Annotated[int, Meta(ge=1, le=100_000)] = 500
    """Most appointments of one agent, for all people."""

    shortest_period: Annotated[float, Meta(ge=1, le=86_400)] = 60.0
    """Shortest period of repeating appointments in seconds."""

    max_items: Annotated[int, Meta(ge=1, le=1_000)] = 30
    """Most items on the checklist of one heartbeat."""

    time_zone: str = "UTC"
    """Time zone of the day for `daily_tokens`."""

    report_to: str = ""
    """Chat that is told, as `connector/chat`, that an agent's tokens are used up for
    the day; empty: `approvals.approval_chat`, or the chat of the skipped work.
    """

    quiet: QuietConfig = field(default_factory=QuietConfig)
