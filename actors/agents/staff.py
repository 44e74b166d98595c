"""The actor that knows all agents, and tells everybody else."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import msgspec

from actors import names
from actors.agents import rows as staff_rows
from actors.agents.hired import Client, HiredAgent
from actors.agents.hiring import HiringDecision, HiringRules, Requester
from actors.agents.messages import (
    Conduct,
    Hired,
    ListStaff,
    PersonaReplaced,
    ReadStaff,
    ReplaceConfiguredStaff,
    ReplaceTable,
    StaffList,
)
from actors.agents.roster import Team, is_alike, make_team
from actors.agents.rows import AGENT, CLIENT, Conducted, StaffChange, StaffRows
from actors.journal import notices as telling
from actors.protocol import Route, StopDelegated
from actors.schedule.messages import AppointmentsChanged
from runtime.actor.actor import Actor
from runtime.actor.mailbox import MailboxConfig
from runtime.actor.ref import UNANSWERED
from runtime.errors import KernelError, StoreError
from runtime.supervision.keyed import ToAwake
from runtime.supervision.supervisor import StartChild, StopChild
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from actors.rules.markers.actions import Staffing
    from actors.tree import Company
    from runtime.store.rows import Entry, Record
    from runtime.supervision.child import ChildSpec

LOG = EventLog("staff")

# Chosen: an answer is stored within milliseconds of what was decided for it; a disk
# that takes longer finds a version that is not the one it expects, and changes nothing.
HELD_FOR = 60.0
"""Seconds for which the names of an answer that is not stored yet are kept for it."""

READ_AGAIN = 2.0
"""Seconds until what failed is tried again: to read the rows, to start an agent."""

STARTS_WITHIN = 30.0
"""Seconds that the branch of an agent may take to start."""

# Chosen: as much as an agent with all its children is given to stop.
ENDS_WITHIN = 60.0


class EndBranch(msgspec.Struct, frozen=True):
    """A note to itself: an agent that left has had the time to finish."""

    name: str
    number: int
    """Which leave it was: one who came back in between stays."""


class HandOn(msgspec.Struct, frozen=True):
    """A note to itself: agents that are new are known; go on with what is for them."""


class ReservedName(msgspec.Struct, frozen=True):
    """A name that an answer which is being committed makes or changes."""

    message: str
    version: int
    """Of the row when that was decided; 0 if there was none."""

    until: float
    """Monotonic seconds."""


class Staff(Actor):
    """Decides what conductors may make, and tells everybody who works here.

    Takes: `Conduct`, `ListStaff`, `ReplaceConfiguredStaff` (asked); `Hired` from
        sessions; `StopDelegated` from the router; `ReadStaff` from the store's keeper.
    Sends: `StartChild` and `StopChild` to the supervisor of agents; `ReplaceTable`, and
        what came with `Hired`, to the router; `PersonaReplaced` to awake sessions;
        `AppointmentsChanged` to the scheduler if settings are taken over late.
    Keeps: the rows as they were read last, the team made of them, and names that are
        being made. It writes nothing: an answer's commit carries what it decides.
    Fails: never by the disk or by an agent that does not start; it tries again.
    Ends: with the system. When it starts, it reads all rows before there are agents.

    Args:
        branch: says how the branch of an agent is started.
    """

    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=10_000)
    deadline: ClassVar[float | None] = None  # starting a branch has its own

    def __init__(self, company: Company, branch: Callable[[str], ChildSpec]) -> None:
        super().__init__()
        self._branch = branch
        self._roster = company.roster
        self._store = company.services.store
        self._services = company.services
        self._rows = StaffRows()
        self._held: dict[str, ReservedName] = {}
        self._leaves: dict[str, int] = {}
        self._is_reading_again = False
        self._handed: list[Route | StopDelegated] = []
        """What waits for agents that nobody knows yet, and stops that came since."""

        self._is_resettled = False
        """Whether what agents work with is new, though it may look alike."""

    async def on_start(self) -> None:
        """Read who was made before; a disk that fails keeps the company from opening.

        Raises:
            StoreError: the rows cannot be read.
        """
        if self.find(names.AGENTS) is not None:  # this is not the first incarnation
            for name in self._roster.team.leaving:
                self._let_go(name)
            self.note(ReadStaff())
            return
        self._rows = await staff_rows.read(self._store)
        self._roster.team = team = self._team()
        self._tell_of(team, {})

    def on_receive(self, message: object) -> object:
        """Decide, tell who is here, or have it be so."""
        match message:
            case Conduct() | ListStaff() | ReplaceConfiguredStaff():
                return self._on_asked(message)
            case Hired():
                return self._hired(message)
            case StopDelegated() | HandOn():
                return self._on_handed(message)
            case ReadStaff():
                return self._read()
            case EndBranch():
                return self._end_branch(message)
            case _:
                return super().on_receive(message)

    def _on_asked(
        self, message: Conduct | ListStaff | ReplaceConfiguredStaff
    ) -> object:
        match message:
            case Conduct(wishes=wishes, maker=maker):
                return self._conduct(wishes, maker)
            case ListStaff():
                return self._listed()
            case ReplaceConfiguredStaff(settled=settled):
                self._roster.settled, self._is_resettled = settled, True
                return self._renew()

    def _listed(self) -> StaffList:
        team = self._roster.team
        described = {x: team.personas[x].config.description for x in team.names}
        return StaffList(described, {x: team.table.shown(x) for x in team.names})

    # --- what conductors wish -------------------------------------------------------

    async def _conduct(
        self, wishes: tuple[Staffing, ...], maker: Requester
    ) -> Conducted:
        """Decide about the wishes of one answer; nothing is changed yet."""
        # Why read anew: another program may have written a moment ago.
        rows = await staff_rows.read(self._store)
        clients = await staff_rows.client_ids(self._store)
        now = self._services.clock.monotonic()
        self._forget_held(rows)
        # Those of the same message are its own, from an attempt that was cut off.
        self._held = {x: h for x, h in self._held.items() if h.message != maker.message}
        terms = self._roster.settled.hiring.terms
        known = {name: stored.agent for name, stored in rows.agents.items()}
        busy = (*self._held, *rows.unreadable)
        decided = HiringRules(maker, terms, known, clients, busy).decide(wishes)
        for outcome in decided.outcomes:
            self._services.metrics.hirings.add(1, maker.agent, outcome.kind)
        for name in decided.agents:
            version = rows.version(name)
            self._held[name] = ReservedName(maker.message, version, now + HELD_FOR)
        return self._written(decided, maker, rows)

    def _written(
        self, decided: HiringDecision, maker: Requester, rows: StaffRows
    ) -> Conducted:
        entries: list[Entry] = []
        records: list[Record] = []
        for name, agent in decided.agents.items():
            version = rows.version(name)
            row = self._without_secrets(agent)
            entries.append(staff_rows.as_entry(AGENT, name, row, version))
            records.append(self._record(name, row, version, maker))
        for key, client in decided.clients.items():
            row_of = self._without_secrets(client)
            entries.append(staff_rows.as_entry(CLIENT, key, row_of, 0))
            records.append(self._record(key, row_of, 0, maker))
        entries += telling.of_hiring(decided, rows, maker, self._services)
        made = {name: each.description for name, each in decided.agents.items()}
        return Conducted(tuple(entries), tuple(records), decided.outcomes, made)

    def _record(
        self, name: str, row: HiredAgent | Client, version: int, maker: Requester
    ) -> Record:
        change = StaffChange(
            kind=AGENT if isinstance(row, HiredAgent) else CLIENT,
            outcome="updated" if version else "created",
            version=version + 1,
            by=maker.agent,
            asked_by=maker.person,
            message=maker.message,
            # Why not a client's: once forgotten, nothing of them is to be left.
            row=row if isinstance(row, HiredAgent) else None,
        )
        return staff_rows.as_record(self._services.ids.new(), name, change)

    def _without_secrets(self, row: staff_rows.Row) -> staff_rows.Row:
        """Take secrets out of all that was written freely."""
        freely = ("title", "description", "role", "prompt", "email", "phone", "notes")
        redact = self._services.redact
        changes = {x: redact(getattr(row, x)) for x in freely if hasattr(row, x)}
        return msgspec.structs.replace(row, **changes)

    # --- who is here ------------------------------------------------------------------

    async def _read(self) -> None:
        self._is_reading_again = False
        is_late = self._is_resettled
        if not await self._renew():
            return
        self.tell(names.STAFF, HandOn())
        if is_late:
            # Whoever changed the settings did not wait: heartbeats stand in them, too.
            self._pass_on(names.SCHEDULER, AppointmentsChanged())

    async def _hired(self, hired: Hired) -> None:
        """Have what is stored be so; then go on with what was handed on."""
        self._handed += hired.routes
        if await self._renew():
            # Behind the stops that came meanwhile.
            self.tell(names.STAFF, HandOn())

    def _on_handed(self, message: StopDelegated | HandOn) -> object:
        """Go on with what was handed on, and the stops behind it, in their order."""
        if isinstance(message, StopDelegated):
            self._handed += (message,) if self._handed else ()
        elif not self._is_reading_again:  # else more came, for agents not known yet
            handed, self._handed = self._handed, []
            for each in handed:
                self.tell(names.ROUTER, each)
        return None

    async def _renew(self) -> bool:
        """Read all rows; start whoever is new, and tell everybody; False: not yet."""
        try:
            self._rows = await staff_rows.read(self._store)
        except StoreError as error:
            LOG.warning("agents not read again yet", why=str(error))
            self._read_again()
            return False
        self._forget_held(self._rows)
        before, team = self._roster.team, self._team()
        self._roster.team = team
        for name in team.names:
            if self.find(names.agent(name)) is None:
                await self._start(name)
        for name, persona in team.personas.items():
            was = before.personas.get(name)
            if was is not None and (self._is_resettled or not is_alike(was, persona)):
                self._pass_on(names.sessions(name), ToAwake(PersonaReplaced(persona)))
        self._is_resettled = False
        if (team.table, team.leaving) != (before.table, before.leaving):
            self._tell_router(team)
        for name in team.leaving - before.leaving:
            self._let_go(name)
        self._tell_of(team, before.left_out)
        return True

    def _forget_held(self, rows: StaffRows) -> None:
        """Give names free whose change is stored, or never will be."""
        now = self._services.clock.monotonic()
        self._held = {
            name: held
            for name, held in self._held.items()
            if held.until > now and rows.version(name) == held.version
        }

    def _team(self) -> Team:
        roster = self._roster
        return make_team(roster.settled, self._rows, roster.team.personas)

    async def _start(self, name: str) -> None:
        agents = self.find(names.AGENTS)
        if agents is None:
            return  # it starts all of them when it starts
        try:
            await agents.ask(StartChild(self._branch(name)), timeout=STARTS_WITHIN)
        except (KernelError, *UNANSWERED) as error:
            LOG.warning("agent not started yet", agent=name, why=str(error))
            self._read_again()
        else:
            LOG.info("agent started", agent=name)

    def _let_go(self, name: str) -> None:
        """Have an agent hear nothing more, finish what it has begun, and then end."""
        number = self._leaves[name] = self._leaves.get(name, 0) + 1
        limits = self._services.limits
        own = self._roster.persona(name).turn_seconds(limits)
        longest = max(limits.longest_turn, limits.turn_timeout, own)
        self.after(longest + ENDS_WITHIN, EndBranch(name, number))

    async def _end_branch(self, ending: EndBranch) -> None:
        name, team = ending.name, self._roster.team
        if name not in team.leaving or self._leaves.get(name) != ending.number:
            return
        agents = self.find(names.AGENTS)
        if agents is not None:
            try:
                await agents.ask(StopChild(name, forget=True), timeout=ENDS_WITHIN)
            except (KernelError, *UNANSWERED) as error:
                LOG.warning("agent not ended yet", agent=name, why=str(error))
                self.after(READ_AGAIN, ending)
                return
        staying = {x: each for x, each in team.personas.items() if x != name}
        self._roster.team = left = replace(team, personas=staying)
        self._tell_router(left)
        del self._leaves[name]
        LOG.info("agent ended", agent=name)

    def _tell_router(self, team: Team) -> None:
        finishing = tuple(sorted(team.leaving))
        self._pass_on(names.ROUTER, ReplaceTable(team.table, finishing))

    def _read_again(self) -> None:
        if not self._is_reading_again:
            self._is_reading_again = True
            self.after(READ_AGAIN, ReadStaff())

    def _pass_on(self, name: str, message: object) -> None:
        if self.find(name) is not None:  # else it is told when it starts
            self.tell(name, message)

    def _tell_of(self, team: Team, before: Iterable[str]) -> None:
        """Say which agents cannot run, once each."""
        for name in self._rows.unreadable:
            LOG.warning("agent left out: its row cannot be read", agent=name)
        for name, why in team.left_out.items():
            if name not in before:
                LOG.warning("agent left out", agent=name, why=why)
