"""A company behind the web that a test can look into."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from actors.config import AgentConfig, LimitsConfig
from actors.memory_config import MemoryConfig
from actors.memory_kit import MemoryKit, MemoryMetrics
from actors.metrics import LineMetrics
from actors.persona import Persona
from actors.roster import Roster, Settled
from actors.rules.routes import routing_table
from actors.services import Furnishing, InForce, Services
from actors.session_config import SessionConfig
from connectors.web.backstage import Backstage
from runtime.clock import SystemClock
from runtime.ids import IdSource
from runtime.metrics import Metrics

if TYPE_CHECKING:
    from actors.ports import Speaker, Transcriber
    from runtime.memory_store import MemoryStore
    from runtime.ref import ActorRef

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
    transcriber: Transcriber | None = None
    speaker: Speaker | None = None
    ends: int = 0
    """How often it was told to end."""

    def __post_init__(self) -> None:
        """Make what is kept over questions."""
        clock, metrics = SystemClock(), Metrics()
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
        agents = {name: AgentConfig() for name in self.names}
        personas = tuple(Persona(name, config) for name, config in agents.items())
        self.roster = Roster(Settled(personas, routing_table(agents)))

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
