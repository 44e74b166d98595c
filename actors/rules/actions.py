"""What a model may ask of the runtime in its text: one Struct for each request.

Pure. `markers.parse` makes these; whoever carries them out asks `isinstance`. They
come in the order in which they are to be carried out: what is remembered first, then
what a conductor sets up, then the rest as it stood in the text, delegation last
(F235). So what an answer saves is saved before the conversation is closed, and who is
handed work finds all of it done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from actors.rules.tags import Family


class SaveFact(msgspec.Struct, frozen=True):
    """`[MEMORY:category] text [/MEMORY]` (F136)."""

    category: str
    """In lower case: `sticky`, `user_preference`, …"""

    text: str


class SetState(msgspec.Struct, frozen=True):
    """`[STATE:key] value [/STATE]` (F137)."""

    key: str
    value: str


class AddReward(msgspec.Struct, frozen=True):
    """`REWARD: +1|domain|lesson` (F247)."""

    score: Literal[-1, 0, 1]
    """1 helpful, 0 neutral, -1 redundant."""

    domain: str
    text: str


class AddLesson(msgspec.Struct, frozen=True):
    """`LESSON: domain|rule` (F248)."""

    domain: str
    rule: str


class SetPersonality(msgspec.Struct, frozen=True):
    """`PERSONALITY: style` (F249)."""

    style: str


class PurgeFacts(msgspec.Struct, frozen=True):
    """`PURGE_FACTS` (F258): forget what is known of whoever asked."""


class AgentFields(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a conductor may say of an agent; None leaves it as it is."""

    slug: str | None = None
    """Its name in settings and tags; made from `name` if it is not given."""

    name: str | None = None
    description: str | None = None
    role: str | None = None
    model: str | None = None
    prompt: str | None = None
    tools: tuple[str, ...] | None = None
    delegates: tuple[str, ...] | None = None


class CreateAgent(msgspec.Struct, frozen=True):
    """`[CREATE_AGENT] … [/CREATE_AGENT]` (F237)."""

    slug: str
    fields: AgentFields


class UpdateAgent(msgspec.Struct, frozen=True):
    """`[UPDATE_AGENT:slug] … [/UPDATE_AGENT]` (F238)."""

    slug: str
    fields: AgentFields
    """At least one is set."""


class CreateCron(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[CREATE_CRON] … [/CREATE_CRON]` (F239)."""

    schedule: str
    """Cron, or `every 2h`; read by whoever keeps appointments."""

    prompt: str
    agent: str = ""
    """Who does it; empty: whoever wrote this."""

    name: str = ""


class CreateHeartbeat(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[CREATE_HEARTBEAT] … [/CREATE_HEARTBEAT]` (F240)."""

    prompt: str
    minutes: int = 30
    """From 1 to `MAX_MINUTES`."""

    agent: str = ""
    """Whose; empty: of whoever wrote this."""


class CreateClient(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[CREATE_CLIENT] … [/CREATE_CLIENT]` (F241)."""

    name: str
    email: str = ""
    phone: str = ""
    notes: str = ""


class Schedule(msgspec.Struct, frozen=True):
    """`SCHEDULE: text | due | repeat` and `SCHEDULE_ACTION: …` (F243, F244)."""

    text: str
    due: str
    """As written; read by whoever keeps appointments."""

    repeat: str = "once"
    """In lower case."""

    is_action: bool = False
    """Whether the agent is to do it; else somebody is reminded."""


class CancelTask(msgspec.Struct, frozen=True):
    """`CANCEL_TASK: id` (F245)."""

    id_prefix: str


class UpdateTask(msgspec.Struct, frozen=True):
    """`UPDATE_TASK: id | text | due | repeat` (F246); empty leaves it as it is."""

    id_prefix: str
    text: str = ""
    due: str = ""
    repeat: str = ""


class SwitchLanguage(msgspec.Struct, frozen=True):
    """`LANG_SWITCH: code` (F250)."""

    language: str
    """As written: a code (`de`) or a name."""


class ForgetConversation(msgspec.Struct, frozen=True):
    """`FORGET_CONVERSATION` (F126, F251)."""


class AddHeartbeatItem(msgspec.Struct, frozen=True):
    """`HEARTBEAT_ADD: item` (F252)."""

    item: str


class RemoveHeartbeatItem(msgspec.Struct, frozen=True):
    """`HEARTBEAT_REMOVE: item` (F253)."""

    item: str


class SetHeartbeatInterval(msgspec.Struct, frozen=True):
    """`HEARTBEAT_INTERVAL: minutes` (F254)."""

    minutes: int
    """From 1 to `MAX_MINUTES`."""


class ImproveSkill(msgspec.Struct, frozen=True):
    """`SKILL_IMPROVE: name | lesson` (F255)."""

    skill: str
    lesson: str


class ReportBug(msgspec.Struct, frozen=True):
    """`BUG_REPORT: text` (F256)."""

    text: str


class ActivateProject(msgspec.Struct, frozen=True):
    """`PROJECT_ACTIVATE: name` (F257)."""

    name: str


class DeactivateProject(msgspec.Struct, frozen=True):
    """`PROJECT_DEACTIVATE`."""


class SendFile(msgspec.Struct, frozen=True):
    """`[IMAGE:path | caption]`, `[DOCUMENT:…]`, `[AUDIO:…]`, `[VOICE:…]` (F177)."""

    path: str
    """As written; read by whoever has the agent's folder."""

    kind: Literal["image", "document", "audio", "voice", "video", ""] = ""
    """How it is to be shown, if its bytes allow it; empty: as they say."""

    caption: str = ""


class Delegation(msgspec.Struct, frozen=True):
    """One agent asks another: `[DELEGATE:agent] task [/DELEGATE]` (F242)."""

    agent: str
    """Name of the agent asked, in lower case; it may not exist."""

    task: str
    """What to do, without the blanks around it; never empty."""


MAX_MINUTES = 43_200
"""Longest time between two heartbeats: 30 days."""

Remembering = SaveFact | SetState | AddReward | AddLesson | SetPersonality | PurgeFacts
"""Carried out first, in the order of the text."""

Staffing = CreateAgent | UpdateAgent | CreateClient
"""What `staff` carries out."""

Conducting = Staffing | CreateCron | CreateHeartbeat
"""Carried out next; only a conductor's."""

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
    """Say when an action is carried out: lower ones first."""
    if isinstance(action, Remembering):
        return 0
    if isinstance(action, Conducting):
        return 1
    return 3 if isinstance(action, Delegation) else 2


FAMILY: dict[type[Action], Family] = {
    SaveFact: "memory",
    SetState: "state",
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
"""Of which family of marks each is, as in `rules/tags.py`."""
