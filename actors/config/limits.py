"""Settings of what agents may use: tools, approvals, budgets and turns."""

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from actors.config.values import Count, Seconds


class AuditConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The audit log of questions and answers."""

    texts: bool = True
    """Whether message texts are kept. Sender, time, duration and outcome always are."""

    keep_days: Annotated[float, Meta(gt=0, le=36_500)] = 90.0
    """Days until a record is deleted."""


class ToolCallConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of the tool calls of one turn."""

    max_parallel_tools: Annotated[int, Meta(ge=1, le=32)] = 4
    """Most calls of one round that run in parallel; the others wait."""

    tool_timeout: Seconds = 150.0
    """Time limit of one call in seconds, without the wait for approval."""

    max_result_chars: Annotated[int, Meta(ge=100)] = 20_000
    """Longest result that a model sees, in characters; the middle of a longer one is
    cut.
    """

    warn_after: Annotated[int, Meta(ge=2, le=100)] = 3
    """Repetitions of a call with the same result after which the model is warned."""

    block_after: Annotated[int, Meta(ge=2, le=100)] = 5
    """Repetitions after which the call is not run."""

    break_after: Annotated[int, Meta(ge=2, le=100)] = 7
    """Repetitions after which the model must answer in text."""


class ApprovalConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """How people approve tool calls."""

    timeout: Seconds = 120.0
    """Seconds after which a missing answer means no. The turn waits, so below
    `turn_timeout`.
    """

    asker_may_approve: tuple[Literal["read", "write", "run"], ...] = ("read", "write")
    """Calls that the asking person may approve, by their strongest effect; owners may
    approve all.
    """

    approval_chat: str = ""
    """Chat where owners are asked, as `connector/chat`; empty: the chat of the turn."""

    always_for: Seconds = 3600.0
    """Seconds for which `/approve … always` lasts, or until the conversation sleeps."""


class PermissionConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Tool permissions for some chats or people.

    The first matching table that names the tool decides. In every pattern, `*` matches
    anything.
    """

    agent: str = "*"
    """Name of the agent."""

    connector: str = "*"
    """Name of the connector of the message."""

    chat: str = "*"
    """The platform's id of the chat."""

    sender: str = "*"
    """The platform's id of the person whose message caused the call."""

    delegated: bool = False
    """Whether `ask` and `allow` apply to delegated tasks, or to people's requests;
    `deny` applies to both.
    """

    deny: tuple[str, ...] = ()
    """Tools that are not offered to the model; takes precedence over `ask` and
    `allow`.
    """

    ask: tuple[str, ...] = ()
    """Tools that need approval; takes precedence over `allow`."""

    allow: tuple[str, ...] = ()
    """Tools that run without approval."""


class BudgetConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """A budget for a day or a month, and what happens when it is used up."""

    scope: Literal["all", "agent", "connector", "user"]
    """Whose spending counts: everybody's together, each agent's, that of all who come
    by one connector and share its key, or each person's."""

    period: Literal["day", "month"] = "day"
    """Period after which it restarts, at midnight."""

    who: str = "*"
    """Name of an agent or connector, or `connector/sender id` of a person; `*` matches
    anything.
    Each one has this budget for itself.
    """

    soft_usd: Annotated[float, Meta(ge=0)] | None = None
    """US dollars after which `on_soft` happens."""

    hard_usd: Annotated[float, Meta(ge=0)] | None = None
    """US dollars after which no model is called any more, and people are told until
    when."""

    soft_tokens: Annotated[int, Meta(ge=0)] | None = None
    """Input and output tokens after which `on_soft` happens."""

    hard_tokens: Annotated[int, Meta(ge=0)] | None = None
    """Input and output tokens after which no model is called any more."""

    on_soft: Literal["warn", "downgrade"] = "warn"
    """`warn` logs a warning; `downgrade` uses another model."""

    downgrade_to: str = ""
    """The model to use instead."""


class LedgerConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """How the cost of models is added up."""

    time_zone: str = "UTC"
    """Time zone of a budget's day: `UTC`, `Europe/Berlin`, …"""

    prices: Path | None = None
    """The price list; unset: the shipped one."""


class LimitsConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Limits, so that no conversation can take everything."""

    max_in_flight: Count = 64
    """Most turns of one model that run at once, over all agents; further messages wait.
    One of several connectors may hold three quarters of them; one caller (an API key,
    or a client's address) three quarters of its connector's; one person of theirs.
    Quarters are rounded down, but everybody may have one.
    """

    max_hops: Annotated[int, Meta(ge=0, le=32)] = 4
    """Longest delegation chain, counted from a person's message."""

    max_delegations: Annotated[int, Meta(ge=0, le=1_000)] = 16
    """Most delegations and consultations that one message of a person may cause in
    total. Several agents that hear it share them evenly, with at least one each.
    """

    turn_timeout: Seconds = 300.0
    """Time limit in seconds of a turn with at most one round of tool calls, tools and
    model included.
    """

    turn_timeout_scale: Annotated[int, Meta(ge=1, le=100)] = 4
    """Most rounds of tool calls for which a turn gets that time again."""

    longest_turn: Seconds = 1200.0
    """Time limit of any turn in seconds, however many rounds it has."""

    notice_after: Annotated[float, Meta(ge=0, le=3_600)] = 15.0
    """Seconds after which a waiting person is told that it takes longer; 0: never.
    `presence.status_every` sets the repetition.
    """

    max_waiting: Annotated[int, Meta(ge=0, le=1_000)] = 10
    """Most messages that wait behind the running turn of one conversation; one more is
    refused with a notice. As many again from people who have less than an equal part.
    """

    told_again_after: Annotated[float, Meta(ge=0, le=86_400)] = 60.0
    """Seconds for which a person gets one notice about refused or dropped messages in a
    chat; further ones are only counted. 0: a notice each time.
    """

    max_open: Count = 5_000
    """Most accepted and unanswered messages of one connector; one more is refused and
    may be sent again. One caller may have three quarters of them, one person three
    quarters of their caller's.
    """

    drain_timeout: Annotated[float, Meta(ge=0, le=3_600)] = 10.0
    """Seconds for which `serve` keeps answering after it was told to stop; the rest is
    answered after the next start, or by another node. A connector that changes, is
    removed or moves to another node has as long to finish what is under way.
    """

    max_message_chars: Count = 100_000
    """Longest accepted message in characters; a longer one is refused."""

    max_reply_chars: Count = 100_000
    """Longest answer in characters; a longer one is cut and says so."""
