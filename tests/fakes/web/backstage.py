"""A company behind the web that a test can look into."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from actors import names
from actors.agents import rows as staff_rows
from actors.agents.hired import HiringTerms
from actors.agents.hiring import HiringRules
from actors.agents.messages import Conduct
from actors.agents.persona import Persona
from actors.agents.roster import ConfiguredStaff, Roster
from actors.agents.rows import Conducted
from actors.config.agents import AgentConfig
from actors.config.limits import LimitsConfig
from actors.config.memory import MemoryConfig
from actors.config.sessions import SessionConfig
from actors.memory.kit import MemoryKit, MemoryMetrics
from actors.metrics import LineMetrics
from actors.ports import Speaker, Transcriber
from actors.rules.groups.routes import routing_table
from actors.services import Furnishing, InForce, Services
from connectors.chat.platforms import Backstage
from runtime.actor.ref import ActorRef
from runtime.clock import SystemClock
from runtime.ids import IdSource
from runtime.telemetry.metrics import Metrics
from tests.fakes.store.in_memory import MemoryStore

SECRET = "the-secret-of-the-house"  # noqa: S105  a test looks for it


@dataclass
class FakeCompany:
    """What is behind it."""

    store: MemoryStore
    names: tuple[str, ...] = ("anna", "ben")
    actors: dict[str, Any] = field(default_factory=dict[str, Any])
    """What is found, by name."""

    settings: dict[str, str] = field(default_factory=dict[str, str])
    session_scope: Any = "chat"
    shown: dict[str, str] = field(default_factory=dict[str, str])
    """What people call them, if not by their names."""

    conductor: str = ""
    """Who of them leads the others."""

    transcriber: Transcriber | None = None
    speaker: Speaker | None = None
    ends: int = 0
    """How often it was told to end."""

    def __post_init__(self) -> None:
        """Make what is kept over questions."""
        clock, metrics = SystemClock(), Metrics()
        for name in self.names:
            self.actors.setdefault(names.sessions(name), Told())
        self.services = Services(
            store=self.store,
            clock=clock,
            ids=IdSource(clock),
            metrics=LineMetrics(metrics),
            in_force=InForce(
                Furnishing(
                    limits=LimitsConfig(),
                    sessions=SessionConfig(session_scope=self.session_scope),
                    memory=MemoryKit(MemoryConfig(), MemoryMetrics(metrics)),
                )
            ),
            redact=lambda text: text.replace(SECRET, "***"),
        )
        agents = {
            name: AgentConfig(
                is_conductor=name == self.conductor,
                model="main",
                display_name=self.shown.get(name, ""),
            )
            for name in self.names
        }
        personas = tuple(Persona(name, config) for name, config in agents.items())
        self.roster = Roster(ConfiguredStaff(personas, routing_table(agents)))

    def backstage(self) -> Backstage:
        """Give what the web has of it."""
        return Backstage(
            services=self.services,
            roster=lambda: self.roster,
            find=self.find,
            voice=lambda: self,
            settings=lambda: self.settings,
            end=self.end,
        )

    def find(self, name: str) -> ActorRef | None:
        """Find what stands for an actor."""
        found: ActorRef | None = self.actors.get(name)
        return found

    def end(self) -> None:
        """Count that it is to end."""
        self.ends += 1


class Told:
    """Stands for an actor: keeps what it is told."""

    def __init__(self) -> None:
        self.messages: list[Any] = []

    def tell(self, message: object) -> None:
        """Keep it."""
        self.messages.append(message)


class FakeStaff:
    """Stands for who says who works here: decides by the rules, and reads the rows.

    Args:
        company: which it is.
        terms: what the settings grant.
    """

    def __init__(self, company: FakeCompany, terms: HiringTerms) -> None:
        self._company = company
        self._terms = terms

    async def ask(self, message: object, **_: object) -> object:
        """Answer as `Staff` does."""
        rows = await staff_rows.read(self._company.store)
        if isinstance(message, Conduct):
            known = {name: stored.agent for name, stored in rows.agents.items()}
            decided = HiringRules(message.maker, self._terms, known).decide(
                message.wishes
            )
            entries = tuple(
                staff_rows.as_entry(staff_rows.AGENT, name, row, rows.version(name))
                for name, row in decided.agents.items()
            )
            return Conducted(entries, (), decided.outcomes)
        active = [x for x, each in rows.agents.items() if each.agent.is_active]
        own = [each.name for each in self._company.roster.settled.personas]
        here = [each for each in own if each not in rows.at_rest]
        self._company.names = (*here, *active)
        return None
