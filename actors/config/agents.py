"""Settings of agents: persona and tools, hiring by conductors, autonomous work.

What people set about an agent that goes on by itself: when, how far, for whom.
"""

import re
import unicodedata
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from actors.config.prompt import ContextConfig
from actors.config.routes import GroupConfig, RoutingConfig
from actors.config.schedule import HeartbeatConfig, ScheduledConfig
from actors.config.values import Count

MarkerFamily = Literal[
    "memory",
    "state",
    "delegation",
    "forget",
    "language",
    "personality",
    "reward",
    "lesson",
    "schedule",
    "heartbeat",
    "project",
    "skill",
    "bug",
    "purge",
]
"""Families of directives that are allowed together; see
`actors/rules/markers/tags.py`.
"""

UNLESS_TOLD: tuple[MarkerFamily, ...] = (
    "memory",
    "delegation",
    "forget",
    "language",
    "schedule",
    "project",
    "skill",
)
"""The families that people of any agent ask for. Each costs room in every prompt, and
small models begin to write what they are told of without need.
"""


class HiringConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Who may have conductors create agents and clients, and with which rights."""

    who: Literal["everyone", "owners", "nobody"] = "nobody"
    """Whose messages let a conductor create agents."""

    max_agents: Annotated[int, Meta(ge=0, le=500)] = 20
    """Most agents created by conductors, disabled ones included."""

    max_clients: Annotated[int, Meta(ge=0, le=5_000)] = 500
    """Most clients."""

    models: tuple[str, ...] = ()
    """Models that created agents may use beside their conductor's; name patterns."""

    tools: tuple[str, ...] = ()
    """Tools that created agents may have; none unless listed."""

    delegated_tools: Literal["none", "read", "write", "all"] = "read"
    """Which of these tools they may use for tasks delegated by another agent."""

    autonomy: Literal["read-only", "supervised", "full"] = "supervised"
    """What they may do with their tools without approval."""


DisplayName = Annotated[
    str,
    Meta(
        max_length=64,
        pattern=r"^(\w([\w .'-]|[^\x00-\u02ff\u2000-\u2bff])*(?<![ '-]))?$",
        description="letters, digits, blanks and . ' - _, beginning with a letter",
    ),
]
"""What an agent may be called, but for what `is_display_name` refuses."""

_LETTER_OR_SIGN = re.compile(r"[\w .'-]")
_UNSEEN = re.compile(
    "[\u034f\u17b4\u17b5\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
MOST_MARKS = 4
"""Most marks on a letter, as in pointed Hebrew; more would cover the lines around."""


def is_display_name(text: str) -> bool:
    """Tell whether all in a `DisplayName` may be in one.

    Beside letters, digits and a few signs, these are marks after a letter, as Thai,
    Hindi and pointed Hebrew have them. What controls, turns the direction around or is
    not seen is refused, so that no name passes for another.
    """
    marks = MOST_MARKS  # none may stand at the beginning
    for each in text:
        is_mark = unicodedata.category(each) in {"Mn", "Mc"}
        marks = marks + 1 if is_mark else 0
        if not is_mark:
            if not _LETTER_OR_SIGN.match(each):
                return False
            if not each.isalpha():
                marks = MOST_MARKS
        elif marks > MOST_MARKS or _UNSEEN.match(each):
            return False
    return True


Within = Annotated[float, Meta(gt=0, le=86_400)]


class AutonomousConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Autonomous work: what an agent does without a message.

    A planner decides whether to act at all. Only then an executor works, with tools.
    """

    repeat: str = ""
    """When the planner runs: `every 6h`, `daily`, or cron such as `0 9 * * 1-5`; empty:
    never.
    """

    report_to: str = ""
    """Chat that gets the report, as `connector/chat`; required with `repeat`.
    """

    thread: str = ""
    """The platform's id of a thread in that chat."""

    in_group: bool = False
    """Whether that chat is a group."""

    on_behalf_of: str = ""
    """The platform's id of a person whose memory, budgets and permissions count;
    empty: in a direct chat the chat's own id, in a group nobody."""

    goal: Annotated[str, Meta(max_length=4_000)] = ""
    """The agent's goal, beside its persona."""

    planner: str = ""
    """Model of the planner; empty: `routing.cheap`, or the agent's own."""

    executor: str = ""
    """Model of the executor; empty: the agent's own."""

    planner_timeout: Within = 60.0
    """Time limit of the planner in seconds, all tries together."""

    executor_timeout: Within = 300.0
    """Time limit of the executor in seconds; at most that of the agent's turns."""

    executor_rounds: Annotated[int, Meta(ge=0, le=100)] = 10
    """Most rounds of tool calls in one run."""

    run_tokens: Annotated[int, Meta(ge=1_000)] = 60_000
    """Token limit of one run, input and output of planner and executor together; a part
    is reserved for the report.
    """


class AgentConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """One agent: its persona, its model, its tools and rights.

    `[agent_defaults]` has the same keys; an agent inherits every key that its own table
    does not set, also inside tables of it.
    """

    display_name: DisplayName = ""
    """What people and clients call it: `Eliza`, `Dr. Anna Weber`; empty: its name."""

    model: str = "scripted"
    """Name of its `[models.<name>]`."""

    prompt: str = ""
    """Its system prompt, after the persona's text."""

    persona: Path | None = None
    """Folder with IDENTITY.md, SOUL.md and so on, relative to the settings file."""

    description: str = ""
    """One line for other agents about what this one is for."""

    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    """Sampling temperature; unset uses the provider's default."""

    max_tokens: Count | None = None
    """Longest answer in tokens; unset uses the provider's default."""

    max_history: Annotated[int, Meta(ge=0, le=10_000)] = 50
    """Most lines of the conversation that are sent with a question, the newest. When
    there are more, the older ones are summarised. 0: none are sent.
    """

    max_tool_rounds: Annotated[int, Meta(ge=0, le=100)] = 5
    """Most rounds of tool calls in one turn; after them it must answer in text."""

    tools: tuple[str, ...] = ()
    """Tools that it may call; none unless listed. `mcp:files` means all tools of that
    server, `mcp:files/read_*` some.
    """

    skills: tuple[str, ...] = ()
    """Skills that it may use, by name or pattern; none unless listed."""

    autonomy: Literal["read-only", "supervised", "full"] = "supervised"
    """What it may do with its tools without approval: only read; read, with approval
    for everything else; or everything.
    """

    tool_permissions: dict[str, Literal["allow", "ask", "deny"]] = {}
    """Rules for single tools, by name pattern; they take precedence over `autonomy`."""

    delegated_tools: Literal["none", "read", "write", "all"] = "read"
    """Which of its tools it may use for tasks delegated by another agent: none; those
    that read; also those that change its own things; all.
    """

    send_new_images: bool = False
    """Whether new and changed pictures in the agent's folder are sent with its answer
    and then deleted.
    """

    send_tool_images: bool = False
    """Whether pictures from its tools are sent with its answer."""

    show_tool_calls: bool = False
    """Whether people see a notice when a tool call begins."""

    delegates: tuple[str, ...] = ()
    """Agents that it may delegate to; none unless listed."""

    routing: RoutingConfig = field(default_factory=RoutingConfig)

    context: ContextConfig = field(default_factory=ContextConfig)

    groups: GroupConfig = field(default_factory=GroupConfig)

    autonomous: AutonomousConfig = field(default_factory=AutonomousConfig)

    heartbeat: HeartbeatConfig = field(default_factory=HeartbeatConfig)

    scheduled: ScheduledConfig = field(default_factory=ScheduledConfig)

    is_conductor: bool = False
    """Whether it is a conductor: its delegations have priority, and it may create
    agents.
    """

    markers: tuple[MarkerFamily, ...] = UNLESS_TOLD
    """Inline directives in its text that are carried out. People never see any."""

    hide_narration: bool = False
    """Whether lines are hidden in which it announces what it will look up."""

    json_answers: bool = False
    """Whether it answers in objects with `text`, `thought` and `actions`."""
