"""A company that remembers: everything real but platform, model, embedder and disk."""

from __future__ import annotations

from dataclasses import dataclass, field

from actors.config.memory import MemoryConfig
from actors.memory import notes as noting
from actors.memory.kit import MemoryKit, MemoryMetrics
from actors.ports import Embedder, Tool
from actors.services import Services
from connectors.tools.memory import Find, MemorySearchTool, SaveMemoryTool
from runtime.actor.ref import ActorRef
from runtime.clock import Clock
from runtime.store.facts import FactListing
from runtime.store.port import Store
from runtime.system import ActorSystem
from tests.fakes.company.desked import Desked
from tests.fakes.company.furnished import changed


@dataclass
class Minded(Desked):
    """A cast whose agents remember as those of a started company do."""

    memory: MemoryConfig = field(default_factory=MemoryConfig)
    embedder: Embedder | None = None
    owners: tuple[str, ...] = ()
    system: ActorSystem | None = None
    """Set by whoever opens the company and wants the memory's tools to work."""

    def __post_init__(self) -> None:
        super().__post_init__()
        figures = MemoryMetrics(self.metrics)
        self.kit = MemoryKit(self.memory, figures, self.embedder)

    @property
    def services(self) -> Services:
        return changed(
            super().services,
            memory=self.kit,
            remember=noting.remember,
            owners=frozenset(self.owners),
        )

    def find(self, name: str) -> ActorRef | None:
        return None if self.system is None else self.system.find(name)

    def equip(self) -> None:
        """Give out the tools of memory, on the rows of now."""
        tools = memory_tools(self.find, self.clock, self.store)
        self.tools = tuple(tools.values())

    async def known(self, *scopes: str, agent: str = "anna") -> list[str]:
        """Give what is remembered in some scopes, the oldest first."""
        listing = FactListing(agent=agent, scopes=scopes, now=self.clock.wall())
        return [x.text for x in reversed(await self.store.facts.listed(listing))]


def memory_tools(find: Find, clock: Clock, store: Store) -> dict[str, Tool]:
    """Make the tools of memory, by name."""
    tools = (MemorySearchTool(find, clock), SaveMemoryTool(find, clock, store))
    return {tool.spec.name: tool for tool in tools}
