"""What people set about an agent that goes on by itself: when, how far, for whom."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

Within = Annotated[float, Meta(gt=0, le=86_400)]


class AutonomousConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What an agent does though nobody has written to it (F300).

    A planner decides whether to act at all; only then an executor works, with tools.
    """

    repeat: str = ""
    """When the planner is asked: `every 6h`, `daily`, cron such as `0 9 * * 1-5`;
    empty: never."""

    report_to: str = ""
    """The chat that is told what was done, as `connector/chat`; needed with `repeat`.
    """

    thread: str = ""
    """The platform's id of a thread there."""

    in_group: bool = False
    """Whether that chat is a group."""

    on_behalf_of: str = ""
    """The platform's id of a person whose memory, budgets and permissions count;
    empty: in a direct chat the chat's own id, in a group nobody."""

    goal: Annotated[str, Meta(max_length=4_000)] = ""
    """What it is to look after, beside what its persona says."""

    planner: str = ""
    """The model that decides; empty: `routing.cheap`, or the agent's own."""

    executor: str = ""
    """The model that carries out the plan; empty: the agent's own."""

    planner_timeout: Within = 60.0
    """Seconds that deciding may take, all tries together."""

    planner_retries: Annotated[int, Meta(ge=0, le=5)] = 2
    """How often it is asked again after a decision that cannot be read."""

    executor_timeout: Within = 300.0
    """Seconds that carrying out may take; never more than any turn of the agent."""

    executor_rounds: Annotated[int, Meta(ge=0, le=100)] = 10
    """Rounds of tool calls in one run."""

    run_tokens: Annotated[int, Meta(ge=1_000)] = 60_000
    """Tokens, read and written, that one run may take, planner and executor together;
    the last of them are kept for the report."""

    plan_lasts: Within = 3_600.0
    """Seconds after which a plan that nobody has begun is not carried out any more."""
