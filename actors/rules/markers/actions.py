"""Actions: what a model may request by inline directives, one struct each.

Pure. `parse` makes them. They are carried out in this order: memory, hiring by a
conductor, all others in the order of the text, delegation last. So memories are saved
before a conversation is closed, and a delegate finds everything done.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeVar

import msgspec

from actors.rules.markers.tags import Family


class SaveFact(msgspec.Struct, frozen=True):
    """`[MEMORY:category] text [/MEMORY]`."""

    category: str
    """In lower case: `sticky`, `user_preference`, …"""

    text: str


class SetAgentState(msgspec.Struct, frozen=True):
    """`[STATE:key] value [/STATE]`."""

    key: str
    value: str


class AddReward(msgspec.Struct, frozen=True):
    """`REWARD: +1|domain|lesson`."""

    score: Literal[-1, 0, 1]
    """1 helpful, 0 neutral, -1 redundant."""

    domain: str
    text: str


class AddLesson(msgspec.Struct, frozen=True):
    """`LESSON: domain|rule`."""

    domain: str
    rule: str


class SetPersonality(msgspec.Struct, frozen=True):
    """`PERSONALITY: style`."""

    style: str


class PurgeFacts(msgspec.Struct, frozen=True):
    """`PURGE_FACTS` : forget what is known of the asking person."""


class AgentFields(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Fields of an agent that a conductor may set; None leaves one unchanged."""

    slug: str | None = None
    """Its name in settings and tags; derived from `name` by default."""

    name: str | None = None
    description: str | None = None
    role: str | None = None
    model: str | None = None
    prompt: str | None = None
    tools: tuple[str, ...] | None = None
    delegates: tuple[str, ...] | None = None


class CreateAgent(msgspec.Struct, frozen=True):
    """`[CREATE_AGENT] … [/CREATE_AGENT]`."""

    slug: str
    fields: AgentFields


class UpdateAgent(msgspec.Struct, frozen=True):
    """`[UPDATE_AGENT:slug] … [/UPDATE_AGENT]`."""

    slug: str
    fields: AgentFields
    """At least one is set."""


class CreateCron(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[CREATE_CRON] … [/CREATE_CRON]`."""

    schedule: str
    """Cron, or `every 2h`; the scheduler parses it."""

    prompt: str
    agent: str = ""
    """Name of the agent; empty: the writing agent."""

    name: str = ""


class CreateHeartbeat(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[CREATE_HEARTBEAT] … [/CREATE_HEARTBEAT]`."""

    prompt: str
    minutes: int = 30
    """From 1 to `MAX_MINUTES`."""

    agent: str = ""
    """Name of the agent; empty: the writing agent."""


class CreateClient(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[CREATE_CLIENT] … [/CREATE_CLIENT]`."""

    name: str
    email: str = ""
    phone: str = ""
    notes: str = ""


class Schedule(msgspec.Struct, frozen=True):
    """`SCHEDULE: text | due | repeat` and `SCHEDULE_ACTION: …`."""

    text: str
    due: str
    """As written; the scheduler parses it."""

    repeat: str = "once"
    """In lower case."""

    is_action: bool = False
    """Whether the agent does it; otherwise a person is reminded."""


class CancelTask(msgspec.Struct, frozen=True):
    """`CANCEL_TASK: id`."""

    id_prefix: str


class UpdateTask(msgspec.Struct, frozen=True):
    """`UPDATE_TASK: id | text | due | repeat`; an empty part stays unchanged."""

    id_prefix: str
    text: str = ""
    due: str = ""
    repeat: str = ""


class SwitchLanguage(msgspec.Struct, frozen=True):
    """`LANG_SWITCH: code`."""

    language: str
    """As written: a code (`de`) or a name."""


class ForgetConversation(msgspec.Struct, frozen=True):
    """`FORGET_CONVERSATION`."""


class AddHeartbeatItem(msgspec.Struct, frozen=True):
    """`HEARTBEAT_ADD: item`."""

    item: str


class RemoveHeartbeatItem(msgspec.Struct, frozen=True):
    """`HEARTBEAT_REMOVE: item`."""

    item: str


class SetHeartbeatInterval(msgspec.Struct, frozen=True):
    """`HEARTBEAT_INTERVAL: minutes`."""

    minutes: int
    """From 1 to `MAX_MINUTES`."""


class ImproveSkill(msgspec.Struct, frozen=True):
    """`SKILL_IMPROVE: name | lesson`."""

    skill: str
    lesson: str


class ReportBug(msgspec.Struct, frozen=True):
    """`BUG_REPORT: text`."""

    text: str


class ActivateProject(msgspec.Struct, frozen=True):
    """`PROJECT_ACTIVATE: name`."""

    name: str


class DeactivateProject(msgspec.Struct, frozen=True):
    """`PROJECT_DEACTIVATE`."""


class SendFile(msgspec.Struct, frozen=True):
    """`[IMAGE:path | caption]`, `[DOCUMENT:…]`, `[AUDIO:…]`, `[VOICE:…]`."""

    path: str
    """Path as written, relative to the agent's folder."""

    kind: Literal["image", "document", "audio", "voice", "video", ""] = ""
    """Kind in which to show it, if its bytes allow it; empty: detect from its bytes."""

    caption: str = ""


class Delegation(msgspec.Struct, frozen=True):
    """One agent asks another: `[DELEGATE:agent] task [/DELEGATE]`."""

    agent: str
    """Name of the delegate in lower case; it may not exist."""

    task: str
    """The task, stripped; never empty."""


MAX_MINUTES = 43_200
"""Longest time between two heartbeats: 30 days."""

Remembering = (
    SaveFact | SetAgentState | AddReward | AddLesson | SetPersonality | PurgeFacts
)
"""Carried out first, in the order of the text."""

Staffing = CreateAgent | UpdateAgent | CreateClient
"""Carried out by `actors/agents/staff.py`."""

Conducting = Staffing | CreateCron | CreateHeartbeat
"""Carried out next; only for conductors."""

Arranging = (
    Schedule
    | CancelTask
    | UpdateTask
    | SwitchLanguage
    | ForgetConversation
    | AddHeartbeatItem
    | RemoveHeartbeatItem
    | SetHeartbeatInterval
    | ImproveSkill
    | ReportBug
    | ActivateProject
    | DeactivateProject
    | SendFile
)
"""Carried out after that, in the order of the text."""

Action = Remembering | Conducting | Arranging | Delegation


def rank(action: Action) -> int:
    """Return the rank of an action; lower ones are carried out first."""
    if isinstance(action, Remembering):
        return 0
    if isinstance(action, Conducting):
        return 1
    return 3 if isinstance(action, Delegation) else 2


FAMILY: dict[type[Action], Family] = {
    SaveFact: "memory",
    SetAgentState: "state",
    AddReward: "reward",
    AddLesson: "lesson",
    SetPersonality: "personality",
    PurgeFacts: "purge",
    CreateAgent: "conductor",
    UpdateAgent: "conductor",
    CreateCron: "conductor",
    CreateHeartbeat: "conductor",
    CreateClient: "conductor",
    Schedule: "schedule",
    CancelTask: "schedule",
    UpdateTask: "schedule",
    SwitchLanguage: "language",
    ForgetConversation: "forget",
    AddHeartbeatItem: "heartbeat",
    RemoveHeartbeatItem: "heartbeat",
    SetHeartbeatInterval: "heartbeat",
    ImproveSkill: "skill",
    ReportBug: "bug",
    ActivateProject: "project",
    DeactivateProject: "project",
    SendFile: "files",
    Delegation: "delegation",
}
"""Family of each action, as in `tags.py`."""

TEXTS: dict[type[msgspec.Struct], tuple[str, ...]] = {
    AgentFields: ("name", "description", "role", "prompt"),
    SaveFact: ("text",),
    SetAgentState: ("value",),
    AddReward: ("text",),
    AddLesson: ("rule",),
    SetPersonality: ("style",),
    CreateCron: ("prompt", "name"),
    CreateHeartbeat: ("prompt",),
    CreateClient: ("name", "email", "phone", "notes"),
    Schedule: ("text",),
    UpdateTask: ("text",),
    AddHeartbeatItem: ("item",),
    RemoveHeartbeatItem: ("item",),
    ImproveSkill: ("lesson",),
    ReportBug: ("text",),
    SendFile: ("path", "caption"),
    Delegation: ("task",),
}
"""The fields that hold free text. All others are names, keys, times and numbers."""

_Texts = TypeVar("_Texts", bound=msgspec.Struct)


def reworded(action: _Texts, word: Callable[[str], str]) -> _Texts:
    """Replace each free text of an action.

    Args:
        word: gives the new text for one; a blank one is not asked for.
    """
    if isinstance(action, CreateAgent | UpdateAgent):
        fields = reworded(action.fields, word)
        return msgspec.structs.replace(action, fields=fields)
    texts = {name: getattr(action, name) for name in TEXTS.get(type(action), ())}
    changed = {name: word(text) for name, text in texts.items() if text}
    return msgspec.structs.replace(action, **changed) if changed else action
