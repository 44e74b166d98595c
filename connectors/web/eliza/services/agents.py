"""Lists, creates, changes, enables and disables agents; on the kernel's side.

Rows and rules are those of a conductor (`[hiring]`) and of `callboard agents`: an agent
of the settings is changed in the settings only, and one that is created here gets what
`[hiring]` grants. A caller with the scope `operate` counts as an owner.

Clients describe an agent as a *character* of ElizaOS. What an agent here can have is
taken over; what only a runtime of ElizaOS has (plugins, examples of messages) is left
out, and named in the answer.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

import msgspec
from msgspec import structs

from actors import names
from actors.agents import rows as staff_rows
from actors.agents.hired import HiredAgent, shown_of
from actors.agents.hiring import Requester
from actors.agents.messages import Conduct, ReadStaff
from actors.agents.rows import AGENT, AT_REST, Conducted, StaffChange
from actors.journal.parts import in_one_part
from actors.rules.markers.actions import AgentFields, CreateAgent, Staffing, UpdateAgent
from connectors.web.eliza.errors import missing, wrong
from connectors.web.eliza.ids import to_uuid
from connectors.web.errors import ApiError
from runtime.errors import SequenceConflictError
from runtime.store.rows import Commit, Entry

if TYPE_CHECKING:
    from actors.agents.rows import Outcome, StaffRows
    from connectors.web.context import Backstage
    from connectors.web.eliza.keys import ApiCaller
    from connectors.web.eliza.messages import Json
    from connectors.web.history import ConnectorStore
    from runtime.actor.ref import ActorRef


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


class AgentService:
    """Lists and changes agents."""

    def __init__(self, place: ConnectorStore, backstage: Backstage) -> None:
        self._connector = place.connector
        self._store = place.store
        self._backstage = backstage

    async def all(self) -> tuple[AgentRecord, ...]:
        """Give all agents: enabled ones first, then by name.

        Raises:
            StoreError: the disk fails.
        """
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
            StoreError: the disk fails.
        """
        for each in await self.all():
            if agent_id in {each.id, to_uuid(each.name)}:
                return each
        raise missing("agent", agent_id)

    async def make(self, caller: ApiCaller, wish: AgentWish) -> AgentRecord:
        """Create an agent, and start it.

        Raises:
            ApiError: it is refused.
            StoreError: the disk fails.
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
            StoreError: the disk fails.
        """
        asked = UpdateAgent(agent.name, wish.fields)
        await self._conduct(caller, asked, "update_error")
        return await self.one(to_uuid(agent.name))

    async def put_to(self, agent: AgentRecord, *, is_active: bool) -> AgentRecord:
        """Enable an agent, or disable it after it finished its work.

        Raises:
            ApiError: somebody changed or removed it at the same moment.
            StoreError: the disk fails.
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
            StoreError: the disk fails.
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
        services = self._backstage.services
        maker = Requester(
            agent=conductor,
            is_conductor=bool(conductor),
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
