"""Agents, and their runs: what one did about one message; on the kernel's side.

A run is read from the message's row, the journal of its turn and the ledger; nothing
else is stored. It says which model and tools were used, how long it took and what it
cost; `callboard replay` has the arguments and results of tools. Runs are deleted with
their messages, some days after those were settled. Callers see no runs of channels that
they may not see.

Agents are listed, created, changed, enabled and disabled. Rows and rules are those of a
conductor (`[hiring]`) and of `callboard agents`: an agent of the settings is changed in
the settings only, and one that is created here gets what `[hiring]` grants. A caller
with the scope `operate` counts as an owner.

Clients describe an agent as a *character* of ElizaOS. What an agent here can have is
taken over; what only a runtime of ElizaOS has (plugins, examples of messages) is left
out, and named in the answer.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Literal, cast
from uuid import UUID

import msgspec
import trio
from msgspec import structs

from actors import names
from actors.agents import rows as staff_rows
from actors.agents.hired import HiredAgent, shown_of
from actors.agents.hiring import Requester
from actors.agents.messages import Conduct, ReadStaff
from actors.agents.rows import (
    AGENT,
    AT_REST,
    Conducted,
    Outcome,
    StaffChange,
    StaffRows,
)
from actors.journal.parts import in_one_part
from actors.journal.records import USAGE, UsageRecord
from actors.messages.deliveries import Delivery
from actors.messages.inbound import Inbound, ToolCall
from actors.messages.keys import session_key
from actors.messages.state import outcome_of
from actors.rules.markers.actions import AgentFields, CreateAgent, Staffing, UpdateAgent
from actors.turn.machine import ModelReplied, ToolReturned
from actors.turn.steps import ROUND, TOOL
from connectors.chat.platforms import Backstage
from connectors.web.eliza.keys import ApiCaller
from connectors.web.eliza.messages import (
    ElizaChannel,
    Json,
    as_ulid,
    as_uuid,
    missing,
    own_id,
    to_uuid,
    wrong,
)
from connectors.web.eliza.services.channels import Channels
from connectors.web.eliza.services.memories import MemoryReader
from connectors.web.history import ConnectorStore
from connectors.web.server import ApiError
from runtime.actor.ref import ActorRef
from runtime.errors import SequenceConflictError
from runtime.store.rows import (
    Answered,
    Commit,
    Entry,
    StoredEvent,
    StoredMessage,
    StoredRecord,
    decoded,
)

RunStatus = Literal["started", "completed", "timeout", "error"]

STATUSES: tuple[RunStatus, ...] = ("started", "completed", "timeout", "error")

MODEL_TYPE = "TEXT_LARGE"
"""The name of the answering model in official agents."""


class RunStep(msgspec.Struct, frozen=True):
    """One event of a run."""

    type: str
    """Its name in the API: `MODEL_USED`, …"""

    at: int
    """Milliseconds."""

    data: dict[str, object] = {}


class AgentRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    agent_id: str
    inbound: Inbound
    row: StoredMessage
    used: UsageRecord | None = None
    """The ledger's row of its last attempt; None: none, or deleted."""

    steps: tuple[RunStep, ...] = ()

    @property
    def id(self) -> str:
        """Its id for clients."""
        return as_uuid(self.inbound.id)

    @property
    def status(self) -> RunStatus:
        """Its status."""
        if self.row.state in {"accepted", "running"}:
            return "started"
        if outcome_of(self.row.state, self.row.reason) == "replied":
            return "completed"
        return "timeout" if "timeout" in self.row.reason else "error"

    @property
    def started_at(self) -> int:
        """Milliseconds."""
        return int((self.row.started_at or self.row.at) * 1000)

    @property
    def ended_at(self) -> int | None:
        """Milliseconds; None: it is running."""
        return int(self.row.settled_at * 1000) if self.row.settled_at else None


def steps_of(events: tuple[StoredEvent, ...]) -> tuple[RunStep, ...]:
    """Read the steps of a turn; unreadable ones of other releases are left out."""
    found: list[RunStep] = []
    calls: dict[str, ToolCall] = {}
    for event in events:
        at = int(event.at * 1000)
        try:
            if event.kind == ROUND:
                replied = msgspec.json.decode(event.body, type=ModelReplied)
                calls |= {each.id: each for each in replied.tool_calls}
                found += of_round(replied, at)
            elif event.kind == TOOL:
                ended = msgspec.json.decode(event.body, type=ToolReturned)
                found.append(of_tool(ended, calls.get(ended.call_id), at))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue
    return tuple(found)


def of_round(replied: ModelReplied, at: int) -> list[RunStep]:
    """Give the steps of one model reply that calls tools."""
    usage = replied.usage
    tokens = usage_shown(usage.input_tokens, usage.output_tokens)
    model: Json = {"modelType": MODEL_TYPE, "usage": tokens}
    if replied.spent:
        model["provider"] = replied.spent[-1].provider
        model["modelName"] = replied.spent[-1].model
    begun: list[RunStep] = [
        RunStep("ACTION_STARTED", at, {"actionName": each.name, "actionId": each.id})
        for each in replied.tool_calls
    ]
    return [RunStep("MODEL_USED", at, model), *begun]


def of_tool(ended: ToolReturned, call: ToolCall | None, at: int) -> RunStep:
    """Give the step of one finished tool call."""
    name = call.name if call is not None else ended.call_id
    data: Json = {"actionName": name, "actionId": ended.call_id}
    return RunStep("ACTION_COMPLETED", at, data | {"success": not ended.is_error})


def events_of(run: AgentRun) -> list[RunStep]:
    """Give all steps of a run, with its beginning and, if it has ended, its end."""
    began: Json = {"runId": run.id, "source": run.inbound.platform_fields.get("source")}
    told = [RunStep("RUN_STARTED", run.started_at, began), *run.steps]
    if run.ended_at is None:
        return told
    if run.used is not None and run.used.rounds > models_in(run):
        told.append(RunStep("MODEL_USED", run.ended_at, model_shown(run.used)))
    ended: Json = {"runId": run.id, "status": run.status, "reason": run.row.reason}
    took: Json = {"duration": run.ended_at - run.started_at}
    return [*told, RunStep("RUN_ENDED", run.ended_at, ended | took)]


def run_shown(run: AgentRun) -> Json:
    """Show the summary of a run."""
    failed = [each for each in run.steps if each.data.get("success") is False]
    actions = [each for each in run.steps if each.type == "ACTION_STARTED"]
    ended, agent_id = run.ended_at, run.agent_id
    used = run.used
    rounds = used.rounds if used is not None else 0
    metadata: Json = {
        "sourceId": message_of(run.inbound),
        "channelId": run.inbound.address.chat,
        "attempts": run.row.attempts,
        "reason": run.row.reason,
    }
    if used is not None:
        metadata |= model_shown(used) | {"costUsd": used.cost}
    return {
        "runId": run.id,
        "status": run.status,
        "startedAt": run.started_at,
        "endedAt": ended,
        "durationMs": None if ended is None else max(0, ended - run.started_at),
        "messageId": own_id(agent_id, message_of(run.inbound)),
        "roomId": own_id(agent_id, run.inbound.address.chat),
        "entityId": own_id(agent_id, to_uuid(run.inbound.sender_id)),
        "counts": {
            "actions": len(actions),
            "modelCalls": max(rounds, models_in(run)),
            "errors": len(failed) + (run.status in {"error", "timeout"}),
            "evaluators": 0,
        },
        "metadata": metadata,
    }


def logs_of(run: AgentRun) -> list[Json]:
    """Show a run as entries of an agent's log, the newest first."""
    shown = run_shown(run)
    about: Json = {
        "agentId": run.agent_id,
        "entityId": shown["entityId"],
        "roomId": shown["roomId"],
    }
    found: list[Json] = []
    for number, step in enumerate(events_of(run)):
        kind, text = kind_of(step)
        body: Json = step.data | {"runId": run.id, "event": step.type}
        if step.type == "MODEL_USED":
            body["modelKey"] = step.data.get("modelName")
        entry: Json = {
            "id": to_uuid(f"log/{run.id}/{number}"),
            "type": kind,
            "message": text,
            "body": body,
            "timestamp": step.at,
            "createdAt": step.at,
        }
        found.append(about | entry)
    return found[::-1]


def kind_of(step: RunStep) -> tuple[str, str]:
    """Give the type and the text of a step in a log."""
    match step.type:
        case "MODEL_USED":
            model = step.data.get("modelName") or "a model"
            return f"useModel:{MODEL_TYPE}", f"asked {model}"
        case "ACTION_STARTED":
            return "action", f"began {step.data['actionName']}"
        case "ACTION_COMPLETED":
            end = "ended" if step.data["success"] else "failed"
            return "action", f"{step.data['actionName']} {end}"
        case "RUN_ENDED":
            return "run_event", f"run ended: {step.data['status']}"
        case _:
            return "run_event", "run began"


def models_in(run: AgentRun) -> int:
    """Count the model replies among a run's steps."""
    return sum(each.type == "MODEL_USED" for each in run.steps)


def model_shown(used: UsageRecord) -> Json:
    """Show the model of a run, with its tokens."""
    return {
        "modelType": MODEL_TYPE,
        "provider": used.provider,
        "modelName": used.model,
        "usage": usage_shown(used.input_tokens, used.output_tokens),
    }


def usage_shown(read: int, wrote: int) -> Json:
    """Show numbers of tokens."""
    return {
        "prompt_tokens": read,
        "completion_tokens": wrote,
        "total_tokens": read + wrote,
    }


def message_of(inbound: Inbound) -> str:
    """Give the id of a run's message; of a copy, the original's."""
    end = f"+{inbound.agent}" if inbound.copy_of else ""
    return inbound.platform_id.removesuffix(end)


PAGE = 50
"""Messages read at once: each may contain files."""

MOST_PAGES = 40
"""Pages of one room that are read for one request."""

MOST_USAGE = 1_000
"""Rows of the ledger that are read: an agent's newest."""

REORDERED = 60_000
"""Most milliseconds between the making of a message's id and its storing."""

MOST_STEPS = 200
"""Steps of one run that are shown."""


class RunQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs a request wants."""

    status: RunStatus | Literal["all"] = "all"
    begin: int = 0
    """Milliseconds."""

    end: int = 0
    """Milliseconds; 0: up to now."""

    limit: int = 20

    def fits(self, run: AgentRun) -> bool:
        """Whether a run is wanted."""
        is_in_time = run.started_at >= self.begin
        if self.end:
            is_in_time = is_in_time and run.started_at <= self.end
        return is_in_time and self.status in {"all", run.status}


class RunReader:
    """Reads runs."""

    def __init__(
        self,
        place: ConnectorStore,
        channels: Channels,
        memories: MemoryReader,
        backstage: Backstage,
    ) -> None:
        self._connector = place.connector
        self._channels = channels
        self._memories = memories
        self._store = place.store
        self._backstage = backstage

    async def listed(
        self, caller: ApiCaller, agent_id: str, room: str, wanted: RunQuery
    ) -> tuple[list[AgentRun], bool]:
        """Give runs of an agent, the newest first, and whether there are more.

        Args:
            room: id of a channel or room; empty: the rooms that changed last.

        Raises:
            ApiError: 404, 403.
            StoreError: the disk fails.
        """
        used = await self._used(agent_id)
        found: list[AgentRun] = []
        for channel in self._memories.asked(caller, agent_id, room):
            found += await self._some(agent_id, channel, used, wanted)
        found.sort(key=lambda each: -each.started_at)
        shown = [await self._whole(each) for each in found[: wanted.limit]]
        return shown, len(found) > wanted.limit

    async def one(
        self, caller: ApiCaller, agent_id: str, run_id: str, room: str
    ) -> AgentRun:
        """Give one run with all its steps.

        Raises:
            ApiError: 404, 403.
            StoreError: the disk fails.
        """
        name, used = as_ulid(run_id), await self._used(agent_id)
        made = UUID(run_id).int >> 80  # milliseconds: a ULID begins with its time
        for channel in self._memories.asked(caller, agent_id, room):
            async with aclosing(self._of_room(agent_id, channel, used)) as runs:
                async for run in runs:
                    if run.inbound.id == name:
                        return await self._whole(run)
                    if run.row.at * 1000 < made - REORDERED:
                        break
        raise missing("run", run_id)

    async def _some(
        self,
        agent_id: str,
        channel: ElizaChannel,
        used: dict[str, UsageRecord],
        wanted: RunQuery,
    ) -> list[AgentRun]:
        """Give the wanted runs of one room, and one more if there are more."""
        found: list[AgentRun] = []
        async with aclosing(self._of_room(agent_id, channel, used)) as runs:
            async for run in runs:
                if len(found) > wanted.limit or run.started_at < wanted.begin:
                    break
                if wanted.fits(run):
                    found.append(run)
        return found

    async def _of_room(
        self, agent_id: str, channel: ElizaChannel, used: dict[str, UsageRecord]
    ) -> AsyncGenerator[AgentRun]:
        agent, before = self._channels.need_agent(agent_id), 0
        for _ in range(MOST_PAGES):
            stream = f"{self._connector}/{channel.id}"
            page = await self._store.exchanges(stream, before, PAGE)
            # Why a thread: a page may be megabytes, and would block this loop.
            heard, said_by = await trio.to_thread.run_sync(read_page, page)
            for each, inbound in heard:
                usage = used.get(inbound.id)
                who = inbound.agent or said_by.get(inbound.id, "")
                who = who or (agent if usage is not None else sole(inbound))
                is_unheard = usage is None and each.message.state == "dropped"
                if who == agent and not is_unheard:
                    row = structs.replace(each.message, body=b"")
                    yield AgentRun(
                        agent_id=agent_id, inbound=inbound, row=row, used=usage
                    )
            if len(page) < PAGE:
                return
            before = page[-1].message.number

    async def _whole(self, run: AgentRun) -> AgentRun:
        """Read the steps of a run."""
        agent = self._channels.need_agent(run.agent_id)
        scope = self._backstage.services.sessions.session_scope
        key = session_key(run.inbound, agent, scope).text
        events = await self._store.read(f"{key}/{run.inbound.id}", 0, MOST_STEPS)
        return structs.replace(run, steps=steps_of(events))

    async def _used(self, agent_id: str) -> dict[str, UsageRecord]:
        """Read the ledger's rows of an agent, by message id."""
        agent = self._channels.need_agent(agent_id)
        rows = await self._store.records(USAGE, agent, limit=MOST_USAGE)
        return await trio.to_thread.run_sync(used_in, rows)


def used_in(rows: tuple[StoredRecord, ...]) -> dict[str, UsageRecord]:
    """Read rows of the ledger, by message id; of each, the last attempt."""
    found: dict[str, UsageRecord] = {}
    for row in rows:
        name = row.id.partition("#")[0]
        if name not in found:
            used = decoded(row, UsageRecord)
            if used is not None:
                found[name] = used
    return found


def read_page(
    page: tuple[Answered, ...],
) -> tuple[list[tuple[Answered, Inbound]], dict[str, str]]:
    """Read messages, and which agent answered each."""
    read = [(each, inbound_of(each)) for each in page]
    heard = [(each, inbound) for each, inbound in read if inbound is not None]
    return heard, agents_in(page)


def inbound_of(answered: Answered) -> Inbound | None:
    """Read a message without its files; None: another release wrote it."""
    read = decoded(answered.message, Inbound)
    if read is None:
        return None
    return structs.replace(read, attachments=(), history=())


def agents_in(page: tuple[Answered, ...]) -> dict[str, str]:
    """Give the agent that answered each message, from the deliveries."""
    found: dict[str, str] = {}
    for row in (delivery for each in page for delivery in each.deliveries):
        delivery = decoded(row, Delivery)
        if delivery is not None and delivery.agent:
            found.setdefault(row.id.partition(":")[0], delivery.agent)
    return found


def sole(inbound: Inbound) -> str:
    """Give the only agent that heard a message; empty: several did."""
    return inbound.present[0] if len(inbound.present) == 1 else ""


PROMPT_PARTS = {
    "system": "",
    "prompt": "",
    "bio": "About you:",
    "lore": "What you have seen:",
    "topics": "What you know about:",
    "adjectives": "What you are like:",
}
"""The fields of a character that make the prompt, in order, with their headings."""

KNOWN_FIELDS = {
    *PROMPT_PARTS,
    "style",
    "name",
    "description",
    "model",
    "tools",
    "delegates",
}

IGNORED_FIELDS = {"id", "username", "status", "enabled", "createdAt", "updatedAt"}
"""Fields that clients send back unchanged."""

Texts = list[str] | str


class Character(msgspec.Struct, frozen=True, kw_only=True):
    """One character, as far as agents here have its fields."""

    name: str = ""
    description: str = ""
    system: Texts = ""
    prompt: Texts = ""
    bio: Texts = ""
    lore: Texts = ""
    topics: Texts = ""
    adjectives: Texts = ""
    style: dict[str, list[str]] = {}
    model: str | None = None
    """The name in `[models.<name>]`."""

    tools: tuple[str, ...] | None = None
    delegates: tuple[str, ...] | None = None


class AgentWish(msgspec.Struct, frozen=True):
    """An agent as a client wants it."""

    slug: str
    """Its name, in the form of the settings."""

    fields: AgentFields
    left_out: tuple[str, ...] = ()
    """Fields that agents here do not have."""


def wish_of(given: Json) -> AgentWish:
    """Read a character, whole or in part.

    Raises:
        ApiError: 400, with the field that is wrong.
    """
    try:
        read = msgspec.convert(given, Character)
    except msgspec.ValidationError as error:
        text, _, where = str(error).partition(" - at `$")
        raise wrong(text, where.strip(".`")) from None
    about = read.description or " ".join(lines_of(read.bio)[:1])
    fields = AgentFields(
        name=read.name or None,
        description=about or None,
        prompt=prompt_of(read) or None,
        model=read.model,
        tools=read.tools,
        delegates=read.delegates,
    )
    left_out = sorted(
        key
        for key, value in given.items()
        if value and key not in KNOWN_FIELDS | IGNORED_FIELDS
    )
    return AgentWish(slug_of(read.name), fields, tuple(left_out))


def character_in(body: Json) -> Json:
    """Find the character in the body of a request.

    Raises:
        ApiError: 400: none, or the path of a file on this machine.
    """
    if body.get("characterPath"):
        raise wrong("is a file of this machine; send characterJson", "characterPath")
    for key in ("characterJson", "agent"):
        found = body.get(key)
        if isinstance(found, dict):
            return cast("Json", found)
    if "name" not in body:
        raise wrong("is missing", "characterJson")
    return body


def slug_of(name: str) -> str:
    """Make an agent's name from a character's name."""
    plain = re.sub(r"[^a-z0-9_-]+", "-", name.casefold()).strip("-_")
    return plain[:32].rstrip("-_")


def prompt_of(read: Character) -> str:
    """Write the prompt of an agent."""
    found: list[str] = []
    for field, heading in PROMPT_PARTS.items():
        text = "\n".join(lines_of(getattr(read, field)))
        if text:
            found.append(f"{heading}\n{text}" if heading else text)
    for kind, rules in read.style.items():
        if rules:
            found.append("\n".join((f"How you write ({kind}):", *rules)))
    return "\n\n".join(found)


def lines_of(given: Texts) -> list[str]:
    """Give a text, or a list of texts, as lines that are not blank."""
    every = [given] if isinstance(given, str) else given
    return [each for each in every if each.strip()]


DECIDED_WITHIN = 10.0
IN_FORCE_WITHIN = 60.0
"""Seconds until a change is in force: an agent's branch is started or stopped."""

BY = "the web"
SETTINGS = "the settings"


class AgentRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One agent, enabled or disabled."""

    name: str
    shown: str = ""
    """What people call it; empty: its name."""

    description: str = ""
    model: str = ""
    tools: tuple[str, ...] = ()
    made_by: str = SETTINGS
    prompt: str = ""
    """Its prompt, if a conductor or a client created it."""

    is_active: bool = True
    updated_at: float = 0.0
    """Unix seconds; 0 for agents of the settings."""

    @property
    def id(self) -> str:
        """Its id for clients."""
        return to_uuid(self.shown or self.name)

    @property
    def is_settled(self) -> bool:
        """Whether the settings define it."""
        return self.made_by == SETTINGS


NO_CONDUCTOR = (
    "no agent of the settings makes others: set is_conductor = true for one, and"
    " [hiring] who"
)


class AgentService:
    """Lists and changes agents.

    Methods that read or write rows raise `StoreError` if the disk fails.
    """

    def __init__(self, place: ConnectorStore, backstage: Backstage) -> None:
        self._connector = place.connector
        self._store = place.store
        self._backstage = backstage

    async def all(self) -> tuple[AgentRecord, ...]:
        """Give all agents: enabled ones first, then by name."""
        rows = await staff_rows.read(self._store)
        roster = self._backstage.roster()
        settled, groups = roster.settled.personas, roster.team.table.groups
        found = {
            each.name: structs.replace(each, shown=groups[each.name].shown)
            if each.name in groups
            else each
            for each in map(of_row, rows_of(rows))
        }
        for persona in settled:
            config = persona.config
            found[persona.name] = AgentRecord(
                name=persona.name,
                shown=persona.shown,
                description=config.description,
                model=config.model,
                tools=config.tools,
                is_active=persona.name not in rows.at_rest,
            )
        return tuple(
            sorted(found.values(), key=lambda each: (not each.is_active, each.name))
        )

    async def one(self, agent_id: str) -> AgentRecord:
        """Give one agent, by its id or that of its name.

        Raises:
            ApiError: 404.
        """
        for each in await self.all():
            if agent_id in {each.id, to_uuid(each.name)}:
                return each
        raise missing("agent", agent_id)

    async def make(self, caller: ApiCaller, wish: AgentWish) -> AgentRecord:
        """Create an agent, and start it.

        Raises:
            ApiError: it is refused.
        """
        if not wish.slug:
            raise ApiError(400, "a name is needed", code="create_error", param="name")
        await self._conduct(caller, CreateAgent(wish.slug, wish.fields), "create_error")
        return await self.one(to_uuid(wish.slug))

    async def change(
        self, caller: ApiCaller, agent: AgentRecord, wish: AgentWish
    ) -> AgentRecord:
        """Change an agent.

        Raises:
            ApiError: it is refused.
        """
        asked = UpdateAgent(agent.name, wish.fields)
        await self._conduct(caller, asked, "update_error")
        return await self.one(to_uuid(agent.name))

    async def put_to(self, agent: AgentRecord, *, is_active: bool) -> AgentRecord:
        """Enable an agent, or disable it after it finished its work.

        Raises:
            ApiError: somebody changed or removed it at the same moment.
        """
        outcome: Outcome = "enabled" if is_active else "disabled"
        if agent.is_active == is_active:
            return agent
        if agent.is_settled:
            entry = staff_rows.as_rest(agent.name, is_active=is_active)
            await self._write(
                entry, StaffChange(kind=AT_REST, outcome=outcome, version=0, by=BY)
            )
        else:
            rows = await staff_rows.read(self._store)
            stored = rows.agents.get(agent.name)
            if stored is None:
                raise missing("agent", agent.id)  # somebody was faster
            row = structs.replace(stored.agent, is_active=is_active)
            entry = staff_rows.as_entry(AGENT, agent.name, row, stored.version)
            version = stored.version + 1
            await self._write(
                entry,
                StaffChange(
                    kind=AGENT, outcome=outcome, version=version, by=BY, row=row
                ),
            )
        return await self.one(to_uuid(agent.name))

    async def remove(self, agent: AgentRecord) -> None:
        """Delete a created agent; its conversations stay.

        Raises:
            ApiError: 409: the settings define it.
        """
        if agent.is_settled:
            text = f"{agent.name} is in the settings: take its table out, or stop it"
            raise ApiError(409, text, code="agent_of_settings", may_repeat=False)
        version = (await staff_rows.read(self._store)).version(agent.name)
        entry = staff_rows.as_entry(AGENT, agent.name, None, version)
        change = StaffChange(kind=AGENT, outcome="removed", version=0, by=BY)
        await self._write(entry, change)

    async def _conduct(self, caller: ApiCaller, wish: Staffing, code: str) -> None:
        """Have a change decided as a conductor's would be, and store it."""
        personas = self._backstage.roster().settled.personas
        conductor = next((x.name for x in personas if x.config.is_conductor), "")
        if not conductor:
            raise ApiError(400, NO_CONDUCTOR, code=code)
        services = self._backstage.services
        maker = Requester(
            agent=conductor,
            is_conductor=True,
            person=f"{self._connector}/{caller.entity or caller.name or 'key'}",
            is_owner=True,
            is_delegated=False,
            message=services.ids.new(),
            now=services.clock.wall(),
        )
        conducted: Conducted = await self._staff().ask(
            Conduct((wish,), maker), timeout=DECIDED_WITHIN
        )
        for outcome in conducted.outcomes:
            if outcome.kind not in {"agent_created", "agent_updated"}:
                why = outcome.why or f"there is no agent {outcome.what} that was made"
                raise ApiError(400, f"{outcome.what}: {why}", code=code)
        entries, records = conducted.entries, conducted.records
        commit = Commit(at=maker.now, entries=entries, records=records)
        if entries:
            commit = in_one_part(commit, entries[0].part, maker.message)
        await self._commit(commit)

    async def _write(self, entry: Entry, change: StaffChange) -> None:
        services = self._backstage.services
        record = staff_rows.as_record(services.ids.new(), entry.id, change)
        await self._commit(staff_rows.as_commit(services.clock.wall(), entry, record))

    async def _commit(self, commit: Commit) -> None:
        """Store a change, and wait until it is in force."""
        try:
            await self._store.commit(commit)
        except SequenceConflictError as error:
            text = "somebody changed this agent at the same moment; try again"
            raise ApiError(409, text, code="conflict") from error
        await self._staff().ask(ReadStaff(), timeout=IN_FORCE_WITHIN)

    def _staff(self) -> ActorRef:
        found = self._backstage.find(names.STAFF)
        if found is None:
            text = "who says who works here is being restarted; try again"
            raise ApiError(503, text, code="unavailable", retry_after=1.0)
        return found


def rows_of(rows: StaffRows) -> list[HiredAgent]:
    """Give all created agents."""
    return [stored.agent for stored in rows.agents.values()]


def of_row(agent: HiredAgent) -> AgentRecord:
    """Read a created agent."""
    return AgentRecord(
        name=agent.name,
        shown=shown_of(agent),
        description=agent.description,
        model=agent.model,
        tools=agent.tools,
        made_by=agent.made_by,
        prompt=agent.prompt,
        is_active=agent.is_active,
        updated_at=agent.updated_at,
    )
