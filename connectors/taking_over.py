"""Carries out what a change of the settings comes to, on those concerned alone.

First everything is made that may be wrong: as long as that fails, nothing has changed.
Then each part is put in its place, in an order in which nobody meets a name that is not
there yet: models before the agents that ask them, agents before the connectors by which
people reach them. A part that does not answer leaves the rest for the next try, and
every part may be put in its place twice. Each part is compared with what it was put in
its place by, so what failed halfway and is then taken back is undone.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import trio

from actors import names
from actors.calls import ReplaceCatalogue
from actors.scheduling import LookAgain
from actors.staffing import Resettle
from actors.supervisor import memory_children
from connectors.doors import Doors, let_go
from connectors.furnishing import furnished, models_of, persona_folders, settled
from connectors.kit import PARTS
from connectors.offers import accounts
from connectors.personas import read_persona
from connectors.servers import renew_servers
from connectors.webhook_doors import doors_of
from runtime.errors import KernelError
from runtime.logs import EventLog
from runtime.supervisor import RenewChild, StopChild

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from actors.catalogue import Catalogue
    from actors.rules.briefing import PersonaFiles
    from actors.transport import Transport
    from connectors.app import App
    from connectors.config import AppConfig
    from connectors.doors import Serves
    from connectors.kit import Kit
    from connectors.live_table import Step
    from runtime.logs import Writing
    from runtime.ref import ActorRef

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
class Made:
    """What is ready to be put in its place."""

    catalogue: Catalogue | None
    kit: Kit
    texts: dict[str, PersonaFiles]
    doors: dict[str, Transport] = field(default_factory=dict[str, "Transport"])


class TakingOver:
    """Changes a running company.

    Args:
        app: the company.
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
            target: what it is to go by.
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
        limits = target.limits
        longest = max(limits.longest_turn, limits.turn_timeout)
        await self._app.bench.tidy(longest + TURNS_END_WITHIN)

    def _in_use(self) -> list[Transport]:
        return list(self._app.transports.values())

    async def _make(
        self, target: AppConfig, steps: frozenset[Step], private: Iterable[Path]
    ) -> Made:
        app = self._app
        kit = app.bench.kit
        texts = await trio.to_thread.run_sync(read_texts, self._folders, target)
        doors = self._doors.prepare(target) if "connectors" in steps else {}
        try:
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
        return Made(catalogue, kit, texts, doors)

    async def _put(self, target: AppConfig, steps: frozenset[Step], made: Made) -> None:
        if self._writing is not None and "log" in steps:
            log = target.log
            has_words = target.audit.texts
            self._writing.change(log.level, log.format, has_words=has_words)
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
        kit, transports = app.bench.kit, app.transports
        place.current = furnished(place.current, target, kit, transports)

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
        order = Resettle(settled(target, app.bench.kit, app.personas))
        if not await self._actor(names.STAFF).ask(order, timeout=TAKEN_OVER_WITHIN):
            LOG.warning("who works here is taken over as soon as the store can be read")
        if self._guided != guided(target):
            guides = RenewChild(app.steward)
            await self._actor(names.ROOT).ask(guides, timeout=TAKEN_OVER_WITHIN)
            self._guided = guided(target)

    async def _change_doors(
        self, target: AppConfig, made: dict[str, Transport]
    ) -> None:
        for name in self._doors.leaving(target):
            await self._doors.close(name, target.limits.drain_timeout)
            if name in made:
                await self._doors.open(name, made[name], target)
        for name, transport in made.items():
            if name not in self._app.transports:
                await self._doors.open(name, transport, target)
        self._look_up(target)

    def _tell_scheduler(self) -> None:
        """Have appointments looked at again: their connectors may be others."""
        scheduler = self._app.system.find(names.SCHEDULER)
        if scheduler is not None:
            scheduler.tell(LookAgain())

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
        target: settings, with the folders there are to be.

    Raises:
        SettingsError: one cannot be used.
    """
    return {
        name: read_persona(folder)
        for name, folder in persona_folders(target).items()
        if before.get(name) != folder
    }
