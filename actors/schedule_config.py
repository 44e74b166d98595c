"""What people can set about appointments: how many, how late, said by whom."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from actors.quiet_config import QuietConfig


class SchedulerConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Reminders, tasks for later, cron and heartbeats."""

    is_on: bool = True
    """Whether anything that is due is carried out; off, nothing can be set either."""

    reminders: Literal["plain", "worded"] = "plain"
    """How a reminder is said: as it was set, without asking a model; or in the agent's
    own words."""

    catch_up: Literal["skip", "once", "all"] = "once"
    """What is done about times that passed while the program stood: of what repeats,
    none; the last one; all, up to `catch_up_most`. What happens once is done late, and
    a heartbeat is never made up for."""

    catch_up_most: Annotated[int, Meta(ge=1, le=100)] = 10
    """Times that are made up for with `all`, the newest."""

    late_within: Annotated[float, Meta(ge=0, le=86_400)] = 60.0
    """Seconds by which something may be late without having been missed."""

    most_failures: Annotated[int, Meta(ge=0, le=100)] = 3
    """What repeats is paused after it failed so often in a row; 0: never."""

    history_days: Annotated[float, Meta(gt=0, le=3_650)] = 30.0
    """Days for which it is kept what became of each time."""

    most_per_person: Annotated[int, Meta(ge=1, le=10_000)] = 50
    """Appointments that one person may have."""

    most_per_agent: Annotated[int, Meta(ge=1, le=100_000)] = 500
    """Appointments that one agent may have, for whomever."""

    shortest_period: Annotated[float, Meta(ge=1, le=86_400)] = 60.0
    """Seconds that must lie between two times of what repeats."""

    max_text: Annotated[int, Meta(ge=10, le=100_000)] = 2_000
    """Characters of what is to be said or done."""

    max_items: Annotated[int, Meta(ge=1, le=1_000)] = 30
    """Items on the list of one heartbeat."""

    time_zone: str = "UTC"
    """Where the day begins at midnight that `daily_tokens` of agents are for."""

    report_to: str = ""
    """Who is told, as `connector/chat`, that an agent's tokens are used up for the day;
    empty: `approvals.approval_chat`, or the chat of what is left out."""

    quiet: QuietConfig = field(default_factory=QuietConfig)
