"""Agents are made, changed, put to rest and woken by clients; on the kernel's side.

The same rows, and the same rules, as when a conductor does it (`[hiring]`) or the
command line (`callboard agents`): an agent of the settings is changed there alone, and
one that is made here has what `[hiring]` grants. Who may do it (scope `operate`) counts
as an owner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import structs

from actors import names, staff_rows
from actors.rules.actions import CreateAgent, UpdateAgent
from actors.rules.hiring import Maker
from actors.staff_rows import AGENT, AT_REST, Conducted, StaffChange
from actors.staffing import Conduct, ReadStaff
from connectors.web.eliza.errors import missing
from connectors.web.eliza.ids import to_uuid
from connectors.web.errors import ApiError
from runtime.errors import SequenceConflictError
from runtime.rows import Commit

if TYPE_CHECKING:
    from actors.rules.actions import Staffing
    from actors.rules.hired import HiredAgent
    from actors.staff_rows import Outcome, Rows
    from connectors.web.backstage import Backstage
    from connectors.web.eliza.characters import Wish
    from connectors.web.eliza.keys import Caller
    from runtime.entries import Entry
    from runtime.ref import ActorRef
    from runtime.store import Store

DECIDED_WITHIN = 10.0
IN_FORCE_WITHIN = 60.0
"""Seconds: a branch of the tree is started, or told to finish."""

BY = "the web"
SETTINGS = "the settings"


class Employee(msgspec.Struct, frozen=True, kw_only=True):
    """One agent, at work or at rest."""

    name: str
    description: str = ""
    model: str = ""
    tools: tuple[str, ...] = ()
    made_by: str = SETTINGS
    prompt: str = ""
    """What it was told, if a conductor or a client made it."""

    is_active: bool = True
    updated_at: float = 0.0
    """Unix seconds; 0 for those of the settings."""

    @property
    def id(self) -> str:
        """Its id for clients."""
        return to_uuid(self.name)

    @property
    def is_settled(self) -> bool:
        """Whether the settings made it."""
        return self.made_by == SETTINGS


class Employing:
    """Does it.

    Args:
        connector: its name.
        store: the database.
        backstage: who works here.
    """

    def __init__(self, connector: str, store: Store, backstage: Backstage) -> None:
        self._connector = connector
        self._store = store
        self._backstage = backstage

    async def all(self) -> tuple[Employee, ...]:
        """Give all agents: those at work first, then by name.

        Raises:
            StoreError: the disk fails.
        """
        rows = await staff_rows.read(self._store)
        settled = self._backstage.roster().settled.personas
        found = {each.name: each for each in map(of_row, rows_of(rows))}
        for persona in settled:
            config = persona.config
            found[persona.name] = Employee(
                name=persona.name,
                description=config.description,
                model=config.model,
                tools=config.tools,
                is_active=persona.name not in rows.at_rest,
            )
        return tuple(
            sorted(found.values(), key=lambda each: (not each.is_active, each.name))
        )

    async def one(self, agent_id: str) -> Employee:
        """Give one agent.

        Raises:
            ApiError: 404.
            StoreError: the disk fails.
        """
        for each in await self.all():
            if each.id == agent_id:
                return each
        raise missing("agent", agent_id)

    async def make(self, caller: Caller, wish: Wish) -> Employee:
        """Make an agent, and have it start.

        Raises:
            ApiError: it may not be made so.
            StoreError: the disk fails.
        """
        if not wish.slug:
            raise ApiError(400, "a name is needed", code="create_error", param="name")
        await self._conduct(caller, CreateAgent(wish.slug, wish.fields), "create_error")
        return await self.one(to_uuid(wish.slug))

    async def change(self, caller: Caller, agent: Employee, wish: Wish) -> Employee:
        """Change an agent.

        Raises:
            ApiError: it may not be changed so.
            StoreError: the disk fails.
        """
        asked = UpdateAgent(agent.name, wish.fields)
        await self._conduct(caller, asked, "update_error")
        return await self.one(agent.id)

    async def put_to(self, agent: Employee, *, is_active: bool) -> Employee:
        """Let an agent rest, which finishes what it has begun; or wake it.

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
        return await self.one(agent.id)

    async def remove(self, agent: Employee) -> None:
        """Forget an agent that was made; its conversations stay.

        Raises:
            ApiError: 409: the settings made it.
            StoreError: the disk fails.
        """
        if agent.is_settled:
            text = f"{agent.name} is in the settings: take its table out, or stop it"
            raise ApiError(409, text, code="agent_of_settings", may_repeat=False)
        version = (await staff_rows.read(self._store)).version(agent.name)
        entry = staff_rows.as_entry(AGENT, agent.name, None, version)
        change = StaffChange(kind=AGENT, outcome="removed", version=0, by=BY)
        await self._write(entry, change)

    async def _conduct(self, caller: Caller, wish: Staffing, code: str) -> None:
        """Have a wish decided as a conductor's would be, and stored."""
        personas = self._backstage.roster().settled.personas
        conductor = next((x.name for x in personas if x.config.is_conductor), "")
        services = self._backstage.services
        maker = Maker(
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
        await self._commit(
            Commit(at=maker.now, entries=conducted.entries, records=conducted.records)
        )

    async def _write(self, entry: Entry, change: StaffChange) -> None:
        services = self._backstage.services
        record = staff_rows.as_record(services.ids.new(), entry.id, change)
        await self._commit(staff_rows.as_commit(services.clock.wall(), entry, record))

    async def _commit(self, commit: Commit) -> None:
        """Store a change, and have it be so."""
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


def rows_of(rows: Rows) -> list[HiredAgent]:
    """Give all agents that were made."""
    return [stored.agent for stored in rows.agents.values()]


def of_row(agent: HiredAgent) -> Employee:
    """Read an agent that was made."""
    return Employee(
        name=agent.name,
        description=agent.description,
        model=agent.model,
        tools=agent.tools,
        made_by=agent.made_by,
        prompt=agent.prompt,
        is_active=agent.is_active,
        updated_at=agent.updated_at,
    )
