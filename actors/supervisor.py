"""The tree: who starts whom, in which order, and who is restarted with whom.

callboard
├── store                the store's keeper
├── limiter              how many turns run at once
├── models               which account is asked, and what may be spent
├── bounce               answers for what nobody handled
├── edges …              what the edges bring along (the asyncio loop)
├── agents
│   └── <name>
│       ├── turns        one actor for each running turn
│       ├── agent
│       └── sessions     one actor for each conversation that is awake
├── router
└── connectors
    └── <name>
        ├── couriers     one actor for each chat that is spoken to
        ├── connector
        └── listener
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from actors import names
from actors.accounts import Accounts
from actors.agent import Agent
from actors.bounce import Bounce
from actors.connector import Connector
from actors.courier import Courier
from actors.keeper import Keeper
from actors.limiter import Limiter
from actors.listener import Listener
from actors.router import Router
from actors.session import Session
from actors.turn import Turn
from runtime.child import ChildSpec
from runtime.keyed import KeyedConfig, KeyedSupervisor
from runtime.restarts import Backoff
from runtime.supervisor import Supervisor, SupervisorConfig

if TYPE_CHECKING:
    from actors.company import Company
    from actors.persona import Persona
    from actors.ports import Transport
    from actors.services import Services

# Chosen: with the back-off below a child that always fails is started ten times in
# its first minute and then once a minute, so it never takes its siblings along.
PATIENT = SupervisorConfig(intensity=12, period=60.0, backoff=Backoff())
LISTENING = SupervisorConfig(
    intensity=30, period=60.0, backoff=Backoff(first=0.5, then=1.0)
)

# Chosen: a courier is cheap to wake. It remembers what it said for as long as a session
# and a look into the outbox may hand it the same delivery: a moment.
COURIER_IDLE = 15.0

DAY = 86_400.0


def tree(company: Company) -> Supervisor:
    """Make the supervisor above all others."""
    services = company.services
    store, clock = services.store, services.clock
    most = services.limits.max_in_flight
    connectors = frozenset(company.transports)

    def keeper() -> Keeper:
        keep = services.audit.keep_days * DAY
        return Keeper(store, clock, audit_keep=keep, connectors=connectors)

    children = (
        ChildSpec(name="store", start=keeper, shutdown=30.0),
        ChildSpec(name="limiter", start=lambda: Limiter(most)),
        ChildSpec(name="models", start=lambda: Accounts(services, company.catalogue())),
        ChildSpec(name="bounce", start=lambda: Bounce(services)),
        *company.edges,
        ChildSpec(name="agents", start=lambda: _agents(company), shutdown=30.0),
        ChildSpec(
            name="router",
            start=lambda: Router(company.routes, connectors, services),
        ),
        ChildSpec(name="connectors", start=lambda: _connectors(company), shutdown=30.0),
    )
    return Supervisor(children, SupervisorConfig(intensity=5, period=30.0))


def _agents(company: Company) -> Supervisor:
    children = tuple(
        ChildSpec(
            name=persona.name,
            start=partial(_agent, persona, company.services),
            shutdown=20.0,
        )
        for persona in company.personas
    )
    return Supervisor(children, PATIENT)


def _agent(persona: Persona, services: Services) -> Supervisor:
    def turns() -> KeyedSupervisor:
        config = KeyedConfig(is_permanent=False, most=100_000, shutdown=1.0)
        return KeyedSupervisor(lambda _key: Turn(persona, services), config, notify)

    def sessions() -> KeyedSupervisor:
        config = KeyedConfig(idle_after=services.sessions.idle_after)
        return KeyedSupervisor(lambda key: Session(key, persona, services), config)

    notify = names.agent(persona.name)
    children = (
        ChildSpec(name="turns", start=turns),
        ChildSpec(name="agent", start=lambda: Agent(persona.name)),
        ChildSpec(name="sessions", start=sessions, shutdown=10.0),
    )
    return Supervisor(children, PATIENT)


def _connectors(company: Company) -> Supervisor:
    children = tuple(
        ChildSpec(
            name=name,
            start=partial(_connector, name, transport, company),
            shutdown=20.0,
        )
        for name, transport in company.transports.items()
    )
    return Supervisor(children, PATIENT)


def _connector(name: str, transport: Transport, company: Company) -> Supervisor:
    services = company.services

    def couriers() -> KeyedSupervisor:
        config = KeyedConfig(idle_after=COURIER_IDLE)
        return KeyedSupervisor(lambda _key: Courier(name, transport, services), config)

    def listener() -> Listener:
        store = services.store
        return Listener(name, transport, store, lambda: company.on_listener_end(name))

    children = (
        ChildSpec(name="couriers", start=couriers, shutdown=10.0),
        ChildSpec(name="connector", start=lambda: Connector(name, services)),
        ChildSpec(name="listener", start=listener, restart="transient"),
    )
    return Supervisor(children, LISTENING)
