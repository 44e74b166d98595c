"""Carries out what a change of the settings comes to, on those concerned alone.

First everything is made that may be wrong: as long as that fails, nothing has changed.
Then each part is put in its place, in an order in which nobody meets a name that is not
there yet: models before the agents that ask them, agents before the connectors by which
people reach them. A part that does not answer leaves the rest for the next try, and
every part may be put in its place twice. Each part is compared with what it was put in
its place by, so what failed halfway and is then taken back is undone.

Restarts those servers of tools whose settings have changed, and no other.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import trio

from actors import names
from actors.agents.messages import ReplaceConfiguredStaff
from actors.models.messages import ReplaceCatalogue
from actors.schedule.messages import AppointmentsChanged
from actors.tree import memory_children
from connectors.app.accounts import Doors, let_go
from connectors.app.assembly import furnished, models_of, persona_folders, settled
from connectors.app.kit import PARTS, Kit, Workbench
from connectors.app.models import accounts
from connectors.app.webhooks import doors_of
from connectors.files.personas import read_persona
from runtime.errors import DeclineStart, KernelError
from runtime.supervision.child import ChildSpec
from runtime.supervision.supervisor import RenewChild, StopChild
from runtime.telemetry.logs import EventLog, Writing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from actors.models.catalogue import Catalogue
    from actors.rules.prompt.brief import PersonaFiles
    from actors.transport import Transport
    from connectors.app.accounts import Serves
    from connectors.app.app import App
    from connectors.app.reload.rules import Step
    from connectors.app.tool_sources import ToolSources
    from connectors.config.app import AppConfig
    from runtime.actor.actor import Actor
    from runtime.actor.ref import ActorRef

    Find = Callable[[str], ActorRef | None]

# Chosen: four times what a server may take to end.
WITHIN = 60.0

TOOLS = f"{names.ROOT}/tools"
SERVERS = f"{TOOLS}/servers"
SKILLS = f"{TOOLS}/skills"


def sources_spec(bench: Workbench) -> ChildSpec:
    """Say how the actors of servers and skills are started, as they are then."""

    def start() -> Actor:
        if bench.kit.further is None:
            raise DeclineStart
        return bench.kit.further.spec.start()

    return ChildSpec(name="tools", start=start, shutdown=30.0)


async def renew_servers(
    bench: Workbench, before: ToolSources | None, after: ToolSources | None
) -> None:
    """Have the servers run that there are to be.

    Args:
        before: what ran.
        after: what is to run; None: there never were any.

    Raises:
        KernelError: a server does not end, or its actors do not start.
    """
    if after is None or before is after:
        return
    find, above = bench.find, sources_spec(bench)
    after.roll.specs = after.servers
    if find(TOOLS) is None:
        # It comes to stand behind all others, and so is stopped before them: a turn
        # that is not over when the drain is may then find its tools gone.
        await _ask(find, names.ROOT, RenewChild(above))
        return
    known: Mapping[str, object] = {} if before is None else before.settings
    for name in known.keys() - after.settings.keys():
        await _ask(find, SERVERS, StopChild(name, forget=True))
    for name, settings in after.settings.items():
        if known.get(name) != settings:
            await _ask(find, SERVERS, RenewChild(after.servers[name]))
    if before is None or before.brought != after.brought:
        await _ask(find, TOOLS, RenewChild(after.of_skills))
        await _ask(find, TOOLS, RenewChild(after.starter))


async def _ask(find: Find, above: str, order: RenewChild | StopChild) -> None:
    supervisor = find(above)
    if supervisor is None:
        raise KernelError(f"{above} is being restarted; tried again soon")
    await supervisor.ask(order, timeout=WITHIN)


LOG = EventLog("settings")

# Chosen: the accounts answer at once, but may have to add up a long ledger; a branch
# of the tree may have to end first.
TAKEN_OVER_WITHIN = 60.0

MEMORY = ("memory", "scribe", "embedding", "recollections")
"""The children of an agent that are its memory, last started first."""

GUIDED = ("agents", "projects", "skills", "workspace")
"""Settings of which guides in agents' folders tell."""

CONFINED: frozenset[Step] = frozenset({"sandbox"})
"""What is changed as it is made: how programs are confined from then on."""

TURNS_END_WITHIN = 60.0
"""Seconds beside the longest turn after which nobody uses what was replaced."""


@dataclass(frozen=True)
class PreparedParts:
    """What is ready to be put in its place."""

    catalogue: Catalogue | None
    kit: Kit
    texts: dict[str, PersonaFiles]
    doors: dict[str, Transport] = field(default_factory=dict[str, "Transport"])


class TakingOver:
    """Changes a running company.

    Args:
        serves: says which connectors run by some settings; None: always the same.
        writing: the log; None: its level is not the settings'.
    """

    def __init__(
        self, app: App, serves: Serves | None = None, writing: Writing | None = None
    ) -> None:
        self._app = app
        self._doors = Doors(app, serves)
        self._writing = writing
        self._sources = app.bench.kit.further
        """Those whose servers run: if some could not be renewed, not those in use."""

        # What each part was put in its place by: of a change that failed halfway, the
        # settings as a whole say nothing of that.
        self._accounts = accounts(app.config)
        self._folders = persona_folders(app.config)
        self._guided = guided(app.config)
        self.owed: frozenset[Step] = frozenset()
        """Who may go by settings that failed halfway, and has to be seen to even if
        nothing else changes."""

    @property
    def is_begun(self) -> bool:
        """Whether a change was begun and not ended: some parts go by other settings."""
        return bool(self.owed - CONFINED)

    async def carry_out(
        self, target: AppConfig, steps: frozenset[Step], private: Iterable[Path]
    ) -> None:
        """Have the company go by other settings.

        Args:
            steps: who is concerned; who is owed something is, too.
            private: files of settings and secrets, which no program may reach.

        Raises:
            SettingsError: something in them is wrong; nothing has changed.
            SandboxError: likewise: programs cannot be confined as they say.
            OSError: likewise: a file cannot be read.
            KernelError: an actor does not answer; try the same again.
        """
        steps |= self.owed
        self.owed |= CONFINED  # the rest is still as it was if making fails
        made = await self._make(target, steps, private)
        self.owed = steps
        try:
            await self._put(target, steps, made)
        finally:
            let_go(each for each in made.doors.values() if each not in self._in_use())
            if self._app.bench.kit is not made.kit:
                await self._app.bench.discard(made.kit)
        self.owed = frozenset()
        limits, programs = target.limits, target.program_seconds.values()
        longest = max(limits.longest_turn, limits.turn_timeout, *programs)
        await self._app.bench.tidy(longest + TURNS_END_WITHIN)

    def _in_use(self) -> list[Transport]:
        return list(self._app.transports.values())

    async def _make(
        self, target: AppConfig, steps: frozenset[Step], private: Iterable[Path]
    ) -> PreparedParts:
        app = self._app
        kit = app.bench.kit
        texts = await trio.to_thread.run_sync(read_texts, self._folders, target)
        doors = self._doors.prepare(target) if "connectors" in steps else {}
        try:
            app.known(target)  # packages may be missing for one of another node
            parts: tuple[Step, ...] = tuple(x for x in PARTS if x in steps)
            kit = await app.bench.make(target, parts)
            catalogue = None
            if "catalogue" in steps:
                catalogue = await app.stock.renew(target, private)
            else:
                await app.stock.keep(target, private)
        except BaseException:  # cancelled, too: nobody else could close them
            let_go(doors.values())
            await app.bench.discard(kit)
            raise
        return PreparedParts(catalogue, kit, texts, doors)

    async def _put(
        self, target: AppConfig, steps: frozenset[Step], made: PreparedParts
    ) -> None:
        if self._writing is not None and "log" in steps:
            log = target.log
            self._writing.change(log.level, log.format, has_words=log.texts)
        if made.catalogue is not None:
            await self._replace_catalogue(target, made.catalogue)
        self._app.bench.use(made.kit)
        self._look_up(target)
        if "sources" in steps:
            await renew_servers(self._app.bench, self._sources, made.kit.further)
            self._sources = made.kit.further
        if "memory" in steps:
            await self._renew_memories()
        if "agents" in steps:
            await self._resettle(target, made.texts)
        if "connectors" in steps:
            await self._change_doors(target, made.doors)
        self._tell_scheduler()

    async def _replace_catalogue(self, target: AppConfig, made: Catalogue) -> None:
        """Hand the accounts what can be asked now."""
        before, after = self._accounts, accounts(target)
        # Why before: a turn that asks right after finds no model that is gone by then.
        place = self._app.company.services.in_force
        place.current = replace(place.current, agent_models=models_of(target))
        renewed = frozenset(name for name in before if before[name] != after.get(name))
        models = self._actor(names.MODELS)
        await models.ask(ReplaceCatalogue(made, renewed), timeout=TAKEN_OVER_WITHIN)
        self._app.stock.current, self._accounts = made, after

    def _look_up(self, target: AppConfig) -> None:
        """Have all actors see these settings whenever they look something up."""
        app = self._app
        app.config, app.doors = target, doors_of(target)
        place = app.company.services.in_force
        kit = app.bench.kit
        place.current = furnished(place.current, target, kit, app.known(target))

    async def _renew_memories(self) -> None:
        services = self._app.company.services
        for name in self._app.company.roster.team.personas:
            above = self._app.system.find(f"{names.AGENTS}/{name}")
            if above is None:
                continue  # it has what is new when it starts
            specs = memory_children(name, services)
            there = {spec.name for spec in specs}
            for child in MEMORY:
                if child not in there:
                    order = StopChild(child, forget=True)
                    await above.ask(order, timeout=TAKEN_OVER_WITHIN)
            for spec in specs:
                await above.ask(RenewChild(spec), timeout=TAKEN_OVER_WITHIN)

    async def _resettle(
        self, target: AppConfig, texts: dict[str, PersonaFiles]
    ) -> None:
        """Have those work here who are to, and everybody know it."""
        app, self._folders = self._app, persona_folders(target)
        app.personas.adopt(self._folders, texts, app.system.find)
        order = ReplaceConfiguredStaff(settled(target, app.bench.kit, app.personas))
        if not await self._actor(names.STAFF).ask(order, timeout=TAKEN_OVER_WITHIN):
            LOG.warning("who works here is taken over as soon as the store can be read")
        if self._guided != guided(target):
            guides = RenewChild(app.steward)
            await self._actor(names.ROOT).ask(guides, timeout=TAKEN_OVER_WITHIN)
            self._guided = guided(target)

    async def _change_doors(
        self, target: AppConfig, made: dict[str, Transport]
    ) -> None:
        elsewhere = self._app.elsewhere_now(target)
        for name in self._doors.leaving(target):
            within, has_moved = target.limits.drain_timeout, name in elsewhere
            await self._doors.close(name, within, has_moved=has_moved)
            if name in made:
                await self._doors.open(name, made[name], target)
        # Not before: what was under way for those that went needs their leases.
        if self._app.seat is not None:
            self._app.seat.node.go_by(target)
        for name, transport in made.items():
            if name not in self._app.transports:
                await self._doors.open(name, transport, target)
        await self._doors.stand_in(target)
        self._doors.take_up()  # of one of another kind, other chats are ours now
        self._look_up(target)

    def _tell_scheduler(self) -> None:
        """Have appointments looked at again: their connectors may be others."""
        scheduler = self._app.system.find(names.SCHEDULER)
        if scheduler is not None:
            scheduler.tell(AppointmentsChanged())

    def _actor(self, name: str) -> ActorRef:
        found = self._app.system.find(name)
        if found is None:
            raise KernelError(f"{name} is being restarted; tried again soon")
        return found


def guided(config: AppConfig) -> tuple[object, ...]:
    """Give all that guides in agents' folders tell of."""
    return tuple(getattr(config, name) for name in GUIDED)


def read_texts(
    before: Mapping[str, Path], target: AppConfig
) -> dict[str, PersonaFiles]:
    """Read the folders of agents that had none, or another; it blocks.

    Args:
        before: the folders that are known.

    Raises:
        SettingsError: one cannot be used.
    """
    return {
        name: read_persona(folder)
        for name, folder in persona_folders(target).items()
        if before.get(name) != folder
    }
