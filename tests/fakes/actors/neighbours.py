"""What an actor needs around it to be tested alone: probes instead of neighbours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from actors import names
from actors.agents.persona import Persona
from actors.collaboration.counter import Collaboration
from actors.config.agents import AgentConfig
from actors.config.limits import LimitsConfig
from actors.config.sessions import SessionConfig
from actors.messages.deliveries import Delivery
from actors.messages.inbound import Address, Inbound
from actors.metrics import LineMetrics
from actors.models.accounts import Accounts
from actors.models.catalogue import of_one
from actors.services import Furnishing, InForce, Services
from runtime.ids import IdSource
from runtime.system import ActorSystem
from runtime.telemetry.metrics import Metrics
from runtime.testing import Probe
from tests.fakes.company.company import FakeModel, TrioClock
from tests.fakes.store.in_memory import MemoryStore

ROOM = Address("fake", "room")


def make_services(
    store: MemoryStore | None = None,
    limits: LimitsConfig | None = None,
    metrics: Metrics | None = None,
) -> Services:
    clock = TrioClock()
    return Services(
        store=store or MemoryStore(),
        clock=clock,
        ids=IdSource(clock),
        metrics=LineMetrics(metrics or Metrics()),
        in_force=InForce(
            Furnishing(
                limits=limits or LimitsConfig(notice_after=0.0),
                sessions=SessionConfig(),
            )
        ),
    )


def words(text: str = "hello", number: int = 1, **fields: Any) -> Inbound:
    """Make a message of a person."""
    given: dict[str, Any] = {
        "id": f"m{number}",
        "platform": "fake",
        "platform_id": f"p{number}",
        "address": ROOM,
        "sender_id": "zoe",
        "sender_name": "zoe",
        "text": text,
        "received_at": 1.0,
    }
    return Inbound(**{**given, **fields})


def saying(number: int = 1, chat: str = "room") -> Delivery:
    """Make something to say."""
    return Delivery(
        id=f"m{number}:0",
        correlation_id=f"m{number}",
        address=Address("fake", chat),
        agent="anna",
        text=f"answer {number}",
    )


def anna(**config: Any) -> Persona:
    settings = AgentConfig(**config)
    return Persona(
        name="anna",
        config=settings,
        colleagues=dict.fromkeys(settings.delegates, ""),
        everybody=("anna", "ben", "carl"),
    )


def probe(
    system: ActorSystem, name: str, answer: Callable[[Any], Any] | None = None
) -> Probe:
    """Spawn a probe under the name of a neighbour."""
    made = Probe(answer)
    system.spawn(made, name=name)
    return made


def open_accounts(
    system: ActorSystem, services: Services, model: FakeModel | None = None
) -> None:
    """Spawn the actor that says which model is asked."""
    catalogue = of_one(model or FakeModel(), model="fake-1")
    system.spawn(Accounts(services, catalogue), name=names.MODELS)
    system.spawn(Collaboration(services), name=names.COLLABORATION)


def of_kind(probe: Probe, kind: type) -> list[Any]:
    return [each for each in probe.received if isinstance(each, kind)]
