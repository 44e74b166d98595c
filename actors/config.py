"""What the domain lets people set: agents, conversations, routes, limits.

Only shapes, bounds and defaults. Reading files is `runtime/config.py`; whether a
name used here exists (a model, a tool, another agent) is checked once for the
whole file in `connectors/config.py`. `config/default.toml` lists every field with
its default, and a test keeps the two the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from actors.autonomous_config import AutonomousConfig
from actors.group_config import GroupConfig, RouteActivation
from actors.marker_config import UNLESS_TOLD, MarkerFamily
from actors.prompt_config import ContextConfig
from actors.quiet_config import HeartbeatConfig, ScheduledConfig

Name = Annotated[
    str,
    Meta(
        pattern="^[a-z][a-z0-9_-]{0,31}$",
        description="a small letter, then up to 31 small letters, digits, - or _",
    ),
]
"""How agents, models and connectors are called in the settings."""

Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Count = Annotated[int, Meta(ge=1)]


class HintConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Words that say which model a message is for."""

    words: Annotated[tuple[str, ...], Meta(min_length=1)]
    """Whole words, in any case; one of them is enough."""

    model: str
    """The model that answers then."""


class RoutingConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Which model answers what, beside the agent's own."""

    hints: tuple[HintConfig, ...] = ()
    """Models by words of the message; the first that fits counts."""

    classify: bool = False
    """Whether a model is asked first if a message needs several steps."""

    classifier: str = ""
    """Whom that is asked; empty: `cheap`, or the agent's own model."""

    cheap: str = ""
    """Answers what needs no steps; empty: the agent's own model."""

    strong: str = ""
    """Answers step by step what needs several; empty: the agent's own model."""

    max_steps: Annotated[int, Meta(ge=2, le=20)] = 6
    """Steps of one answer; one that would need more is answered without."""


class AgentConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """One agent: who it is, what it thinks with, what it may do.

    `[agent_defaults]` has this shape too; an agent takes from it every key that
    its own table does not give.
    """

    model: str = "scripted"
    """Which of `[models.<name>]` it thinks with."""

    prompt: str = ""
    """What it is told about itself; comes after the persona's text."""

    persona: Path | None = None
    """Folder with IDENTITY.md, SOUL.md and so on; relative to the settings file."""

    description: str = ""
    """One line for the other agents: what to come to this one for."""

    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    """How freely the model words its answers; unset leaves it to the provider."""

    max_tokens: Count | None = None
    """Most tokens of one answer; unset leaves it to the provider."""

    max_history: Annotated[int, Meta(ge=0, le=10_000)] = 20
    """Lines of the conversation sent along with a question, newest kept."""

    max_tool_rounds: Annotated[int, Meta(ge=0, le=100)] = 5
    """Rounds of tool calls in one turn; after them it must answer in words."""

    tools: tuple[str, ...] = ()
    """Tools it may call; none unless listed. `mcp:files` stands for all tools of that
    server, `mcp:files/read_*` for some."""

    skills: tuple[str, ...] = ()
    """Skills it may use, by name or pattern; none unless listed."""

    autonomy: Literal["read-only", "supervised", "full"] = "supervised"
    """What it may do with its tools by itself: only look things up; look things up,
    and ask before anything else; or everything."""

    tool_permissions: dict[str, Literal["allow", "ask", "deny"]] = {}
    """What single tools need whatever the autonomy says, by patterns of their names."""

    delegated_tools: Literal["none", "read", "write", "all"] = "read"
    """Which of its tools it may use for work that another agent handed on: none;
    those that look things up; those, too, that change something of its own; all."""

    send_new_images: bool = False
    """Whether pictures that are new or changed in the agent's folder after a turn go
    out with its answer, and are removed there (F280)."""

    send_tool_images: bool = False
    """Whether pictures that its tools give it, as those of servers do, go out with its
    answer, too."""

    show_tool_calls: bool = False
    """Whether people are told of each tool call when it begins."""

    delegates: tuple[str, ...] = ()
    """Agents it may hand work to; none unless listed."""

    routing: RoutingConfig = field(default_factory=RoutingConfig)

    context: ContextConfig = field(default_factory=ContextConfig)

    groups: GroupConfig = field(default_factory=GroupConfig)

    autonomous: AutonomousConfig = field(default_factory=AutonomousConfig)

    heartbeat: HeartbeatConfig = field(default_factory=HeartbeatConfig)

    scheduled: ScheduledConfig = field(default_factory=ScheduledConfig)

    is_conductor: bool = False
    """Whether what it hands on comes before what other agents hand on, and whether its
    conductor's tags count."""

    markers: tuple[MarkerFamily, ...] = UNLESS_TOLD
    """Which marks in its text may be carried out. None is ever shown."""

    hide_narration: bool = False
    """Whether lines are left out in which it tells what it will look up."""

    json_answers: bool = False
    """Whether it answers in objects with `text`, `thought` and `actions`."""


class RetryConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What becomes of a message whose turn failed or was cut off."""

    attempts: Annotated[int, Meta(ge=1, le=20)] = 3
    """Most turns that one message may begin, also those that the end of the process
    cut off; then it is given up, and listed by `callboard queue list`."""

    first_wait: Seconds = 120.0
    """Seconds until a failed turn is begun again; doubled for each further time."""

    longest_wait: Seconds = 3600.0
    """Seconds that no such wait is longer than."""

    stuck_after: Annotated[float, Meta(ge=0, le=86_400)] = 0.0
    """Seconds after its start at which a turn that the end of the process cut off is
    given up at the next start instead of resumed; 0 resumes all."""


class AuditConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The record of who asked what, and what was answered."""

    texts: bool = True
    """Whether the words are kept, here and in the log; who, when, how long and how it
    ended always are."""

    keep_days: Annotated[float, Meta(gt=0, le=36_500)] = 90.0
    """Days until a record is removed."""


class ToolCallConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What keeps the tool calls of one turn within bounds."""

    max_parallel_tools: Annotated[int, Meta(ge=1, le=32)] = 4
    """Calls of one round that run at once; the others wait."""

    tool_timeout: Seconds = 150.0
    """Seconds one call may take, waiting for leave not counted."""

    max_result_chars: Annotated[int, Meta(ge=100)] = 20_000
    """Longest result a model is shown, in characters; of a longer one the middle is
    cut out."""

    warn_after: Annotated[int, Meta(ge=2, le=100)] = 3
    """From this repetition of a call with the same result on, the model is warned."""

    block_after: Annotated[int, Meta(ge=2, le=100)] = 5
    """From this one on, the call is not run."""

    break_after: Annotated[int, Meta(ge=2, le=100)] = 7
    """With this one the model must answer in words."""


class ApprovalConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """How people are asked before a tool runs."""

    timeout: Seconds = 120.0
    """Seconds until no answer is a no; the turn waits, so below `turn_timeout`."""

    asker_may_approve: tuple[Literal["read", "write", "run"], ...] = ("read", "write")
    """Calls that whoever asked the agent may approve, by what they can do at worst;
    the owners may approve all."""

    plain_words_after: Annotated[float, Meta(ge=0, le=60)] = 1.0
    """Seconds that a question has stood in its chat before a plain yes or no, or a
    command without its id, is an answer to it."""

    approval_chat: str = ""
    """Where owners are asked, as `connector/chat`; empty: where it came up."""

    always_for: Seconds = 3600.0
    """Seconds that `/approve … always` lasts, unless the conversation sleeps before."""


class PermissionConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What tools need in some chats, or for some people.

    Of all tables that fit, the first that names the tool counts. In every pattern,
    `*` stands for anything.
    """

    agent: str = "*"
    """Name of the agent."""

    connector: str = "*"
    """Name of the connector that the words came in by."""

    chat: str = "*"
    """The platform's id of the chat."""

    sender: str = "*"
    """The platform's id of the person whose words it goes back to."""

    delegated: bool = False
    """Whether `ask` and `allow` are for work that another agent handed on, or for
    what people ask for; `deny` is for both."""

    deny: tuple[str, ...] = ()
    """Tools that are not even offered; comes before `ask` and `allow`."""

    ask: tuple[str, ...] = ()
    """Tools for which somebody is asked; comes before `allow`."""

    allow: tuple[str, ...] = ()
    """Tools that may run."""


class RouteConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Whose chats are whose.

    The first route that fits a message counts. In direct chats its agent answers,
    unless the message names another one itself; where no route fits, the default agent
    does. In a group it says whose the chat is: whether its agent answers there, the
    agent's `groups` say, and others there only answer when they are called.
    """

    agent: str
    """Name of the agent."""

    connector: str = "*"
    """Name of a connector; `*` stands for anything, also inside a name."""

    chat: str = "*"
    """The platform's id of a chat; `*` stands for anything, also inside an id."""

    kind: Literal["any", "direct", "group"] = "any"
    """Which chats it is for: all, those with one person, or groups."""

    roles: tuple[str, ...] = ()
    """What the writer must be on the platform, one of these; empty: anybody fits."""

    activation: RouteActivation = "agent"
    """When its agent answers in these groups; `agent`: as the agent's `groups` say."""


class BudgetConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """How much may be spent in a day or a month, and what happens then."""

    scope: Literal["all", "agent", "user"]
    """Whose spending is added up: everybody's together, each agent's, each person's."""

    period: Literal["day", "month"] = "day"
    """After which time it begins anew, at midnight."""

    who: str = "*"
    """The name of an agent, or `connector/sender id` of a person; `*` stands for
    anything. Each of them has this budget for itself."""

    soft_usd: Annotated[float, Meta(ge=0)] | None = None
    """US dollars after which `on_soft` happens."""

    hard_usd: Annotated[float, Meta(ge=0)] | None = None
    """US dollars after which `on_hard` happens."""

    soft_tokens: Annotated[int, Meta(ge=0)] | None = None
    """Tokens, read and written, after which `on_soft` happens."""

    hard_tokens: Annotated[int, Meta(ge=0)] | None = None
    """Tokens, read and written, after which `on_hard` happens."""

    on_soft: Literal["warn", "downgrade"] = "warn"
    """`warn` writes it into the log; `downgrade` has another model answer."""

    downgrade_to: str = ""
    """The model that answers instead."""

    on_hard: Literal["stop"] = "stop"
    """No model is asked any more, and whoever asks is told until when."""


class LedgerConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """How what models cost is added up."""

    time_zone: str = "UTC"
    """Where a budget's day begins at midnight: `UTC`, `Europe/Berlin`, …"""

    prices: Path | None = None
    """The price list; unset: the one that comes with the program."""


class LimitsConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What keeps one conversation from taking everything."""

    max_in_flight: Count = 64
    """Turns running at once, over all agents; further messages wait."""

    max_hops: Annotated[int, Meta(ge=0, le=32)] = 4
    """How often work may be handed on, counted from a person's message."""

    max_delegations: Annotated[int, Meta(ge=0, le=1_000)] = 16
    """Tasks that one message of a person may cause to be handed on, and questions that
    agents may ask each other because of it, all in all; several agents that hear it
    share them evenly, one for each at least."""

    turn_timeout: Seconds = 300.0
    """Seconds one turn may take, tools and model included, of an agent that has no
    tools or may call them in one round."""

    turn_timeout_scale: Annotated[int, Meta(ge=1, le=100)] = 4
    """For how many rounds of tool calls a turn gets that time again, at most."""

    longest_turn: Seconds = 1200.0
    """Seconds no turn takes longer than, however many rounds it may have."""

    notice_after: Annotated[float, Meta(ge=0, le=3_600)] = 15.0
    """Seconds after which a person who has heard nothing is told that it takes longer;
    0: never. How often again, says `presence.status_every`."""

    max_waiting: Annotated[int, Meta(ge=0, le=1_000)] = 10
    """Messages waiting behind the running turn of one conversation; one more is
    refused with a note. As many again of people of whom none waits yet."""

    told_again_after: Annotated[float, Meta(ge=0, le=86_400)] = 60.0
    """Seconds in which a person is told once that messages of theirs in a chat are
    refused or let go; those between are only counted. 0: each time."""

    max_open: Count = 5_000
    """Messages of one connector that are taken in and not answered yet; one more is
    refused, and may be sent again."""

    drain_timeout: Annotated[float, Meta(ge=0, le=3_600)] = 10.0
    """Seconds that `serve` goes on answering after it was told to stop; what is left
    then is answered after the next start."""

    max_message_chars: Count = 100_000
    """Longest message taken in, in characters; a longer one is refused."""

    max_reply_chars: Count = 100_000
    """Longest answer sent out, in characters; a longer one is cut, and says so."""
