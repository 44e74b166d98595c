"""The tree: who starts whom, in which order, and who is restarted with whom.

callboard
├── store                the store's keeper
├── limiter              how many turns run at once
├── models               which account is asked, and what may be spent
├── hooks                the operator's own code beside a message's way (if any)
│   ├── own              one branch for each hook
│   └── questions        one actor for each message that hooks are asked about
├── collaboration        how often agents speak to each other
├── people               who everybody is
├── pairing              who was let in, and who asks to be
├── staff                which agents there are
├── owners               tells those who run the company what they must know
├── warden               kills what hangs, by the operator's hand
├── bounce               answers for what nobody handled
├── edges …              what the edges bring along (the asyncio loop)
├── agents
│   └── <name>
│       ├── recollections  one actor for each thing its memory is asked
│       ├── embedding    makes vectors of what it remembers
│       ├── scribe       writes its days down
│       ├── memory       what it remembers
│       ├── turns        one actor for each running turn
│       ├── condensers   one actor for each conversation that is being summed up
│       ├── consultants  one actor for what each colleague asks, for each person
│       ├── agent
│       └── sessions     one actor for each conversation that is awake
├── checks               one actor for each question whom a message is for
├── router
├── closer               ends conversations that sleep (if it is to now)
├── scheduler            what was promised for later
├── webhooks             takes in what other programs want done
├── notifiers
│   └── <name>           tells another program what happens
└── connectors
    └── <name>
        ├── couriers     one actor for each chat that is spoken to
        ├── acknowledgements  one actor for each message that gets a sign
        ├── connector
        └── listener     or `listeners`, with one supervisor for each account

Of several nodes one has a connector that connects to its platform. At the others
`connector` and `acknowledgements` tell that one what is to be shown.

What the tree of actors is made from: personas, transports, routes, services.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from actors import names
from actors.agents.agent import Agent
from actors.agents.persona import Persona
from actors.agents.roster import ConfiguredStaff, HiringParts, Roster
from actors.agents.staff import Staff
from actors.collaboration.consultant import Consultant
from actors.collaboration.counter import Collaboration
from actors.hooks.asker import HookAsker
from actors.inbound.connector import Connector
from actors.inbound.listener import Listener
from actors.inbound.relevance import MOST_CHECKS, MOST_EARLY, RelevanceChecker
from actors.inbound.router import Router
from actors.inbound.undeliverable import Undeliverable
from actors.memory.memory import MOST_OPEN, Embedding, Memory, Scribe
from actors.memory.recall import Recollection
from actors.models.accounts import Accounts
from actors.models.catalogue import Catalogue
from actors.models.limiter import Limiter
from actors.operations.keeper import Keeper
from actors.operations.warden import Warden
from actors.outbound.courier import Courier
from actors.outbound.hints import AwayConnector
from actors.outbound.reactions import ReactionSender
from actors.people.owners import Owners
from actors.people.pairing import Pairing
from actors.people.people import People
from actors.rules.groups.assignments import StickyRoutes
from actors.rules.groups.routes import RoutingTable
from actors.schedule.scheduler import Scheduler
from actors.services import Services
from actors.session.closer import Closer
from actors.session.condenser import Condenser
from actors.session.session import Session
from actors.transport import Listening, ManyAccounts, Transport
from actors.turn.turn import Turn
from actors.webhooks.intake import WebhookIntake
from actors.webhooks.messages import Receiver
from actors.webhooks.notifier import Notifier
from runtime.supervision.child import ChildSpec
from runtime.supervision.keyed import KeyedConfig, KeyedSupervisor
from runtime.supervision.restarts import Backoff
from runtime.supervision.supervisor import Supervisor, SupervisorConfig

# Chosen: with its back-off a child that always fails is started ten times in
# its first minute and then once a minute, so it never takes its siblings along.
PATIENT = SupervisorConfig()
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
    store = services.store
    connectors = company.transports.keys()  # as they are whenever somebody looks
    branch = partial(_branch, company)
    # Outlives its router: sessions have in hand what that one gave them.
    allotted = StickyRoutes(company.roster.team.table)

    def keeper() -> Keeper:
        return Keeper(
            store,
            services.sure_clock,
            audit_keep=lambda: services.audit.keep_days * DAY,
            slots_keep=lambda: services.scheduler.history_days * DAY,
            connectors=connectors,
            webhooks=tuple(each.name for each in company.receivers),
            duties=services.duties,
        )

    def limiter() -> Limiter:
        shown = services.metrics.turns_waiting, services.metrics.turns_running
        return Limiter(
            lambda: services.limits.max_in_flight,
            *shown,
            connectors=partial(_count_shared, company),
        )

    hooks = ChildSpec(name="hooks", start=lambda: _hooks(company), shutdown=15.0)
    children = (
        ChildSpec(name="store", start=keeper, shutdown=30.0),
        ChildSpec(name="limiter", start=limiter),
        ChildSpec(name="models", start=lambda: Accounts(services, company.catalogue())),
        ChildSpec(name="collaboration", start=lambda: Collaboration(services)),
        ChildSpec(name="people", start=lambda: People(services)),
        ChildSpec(name="pairing", start=lambda: Pairing(services)),
        ChildSpec(name="staff", start=lambda: Staff(company, branch)),
        ChildSpec(name="owners", start=lambda: Owners(services)),
        ChildSpec(name="warden", start=lambda: Warden(services)),
        ChildSpec(name="bounce", start=lambda: Undeliverable(services)),
        *company.edges,
        *([hooks] if company.hooks else []),
        ChildSpec(name="agents", start=lambda: _agents(company), shutdown=30.0),
        ChildSpec(name="checks", start=lambda: _checks(company)),
        ChildSpec(
            name="router",
            start=lambda: Router(
                allotted.renewed(company.roster.team.table), connectors, services
            ),
        ),
        ChildSpec(name="closer", start=lambda: Closer(services)),
        ChildSpec(
            name="scheduler",
            start=lambda: Scheduler(services, connectors, company.roster),
        ),
        ChildSpec(name="webhooks", start=lambda: WebhookIntake(services)),
        ChildSpec(name="notifiers", start=lambda: _notifiers(company)),
        ChildSpec(name="connectors", start=lambda: _connectors(company), shutdown=30.0),
    )
    return Supervisor(children, SupervisorConfig(intensity=5, period=30.0))


def _notifiers(company: Company) -> Supervisor:
    children = tuple(
        ChildSpec(
            name=each.name,
            start=partial(Notifier, each, company.services),
            shutdown=1.0,
        )
        for each in company.receivers
    )
    return Supervisor(children, PATIENT)


def _checks(company: Company) -> KeyedSupervisor:
    config = KeyedConfig(
        is_permanent=False, most=MOST_CHECKS + MOST_EARLY, shutdown=1.0
    )
    roster, services = company.roster, company.services
    return KeyedSupervisor(
        lambda _key: RelevanceChecker(roster.persona, services), config, names.ROUTER
    )


def _hooks(company: Company) -> Supervisor:
    def questions() -> KeyedSupervisor:
        config = KeyedConfig(is_permanent=False, most=100_000, shutdown=1.0)
        return KeyedSupervisor(lambda _key: HookAsker(), config)

    children = (
        ChildSpec(
            name="own", start=lambda: Supervisor(company.hooks, PATIENT), shutdown=10.0
        ),
        ChildSpec(name="questions", start=questions),
    )
    return Supervisor(children, PATIENT)


def _agents(company: Company) -> Supervisor:
    here = company.roster.team.names
    return Supervisor([_branch(company, name) for name in here], PATIENT)


def _branch(company: Company, name: str) -> ChildSpec:
    """Say how an agent is started, with all that belongs to it."""
    start = partial(_agent, name, company.roster, company.services)
    return ChildSpec(name=name, start=start, shutdown=20.0)


def _agent(name: str, roster: Roster, services: Services) -> Supervisor:
    # Why by name: whoever starts later finds the agent as it is by then.
    def turns() -> KeyedSupervisor:
        config = KeyedConfig(is_permanent=False, most=100_000, shutdown=1.0)
        return KeyedSupervisor(turn, config, notify)

    def condensers() -> KeyedSupervisor:
        config = KeyedConfig(is_permanent=False, most=100_000, shutdown=1.0)
        return KeyedSupervisor(condenser, config, notify)

    def sessions() -> KeyedSupervisor:
        return KeyedSupervisor(session, partial(_conversing, services))

    def turn(_key: str) -> Turn:
        return Turn(roster.persona(name), services)

    def condenser(_key: str) -> Condenser:
        return Condenser(roster.persona(name), services)

    def session(key: str) -> Session:
        return Session(key, roster.persona(name), services)

    def agent() -> Agent:
        return Agent(name, roster.persona(name).read_files)

    notify = names.agent(name)
    children = (
        *memory_children(name, services),
        ChildSpec(name="turns", start=turns),
        ChildSpec(name="condensers", start=condensers),
        ChildSpec(name="agent", start=agent),
        _consultants(name, roster, services),
        ChildSpec(name="sessions", start=sessions, shutdown=10.0),
    )
    return Supervisor(children, PATIENT)


def _conversing(services: Services) -> KeyedConfig:
    """Say how conversations live, by the settings of now."""
    return KeyedConfig(idle_after=services.sessions.idle_after)


def _consultants(name: str, roster: Roster, services: Services) -> ChildSpec:
    """Say who answers an agent's colleagues."""

    def consultants() -> KeyedSupervisor:
        return KeyedSupervisor(
            lambda key: Consultant(key, partial(roster.persona, name), services),
            partial(_conversing, services),
        )

    return ChildSpec(name="consultants", start=consultants, shutdown=10.0)


def memory_children(agent: str, services: Services) -> tuple[ChildSpec, ...]:
    """Say what an agent's memory is made of; nothing if it has none."""
    kit = services.memory
    if kit is None:
        return ()
    embedder, book = kit.embedder, kit.log_book

    def recollections() -> KeyedSupervisor:
        config = KeyedConfig(is_permanent=False, most=MOST_OPEN, shutdown=1.0)
        return KeyedSupervisor(
            lambda _key: Recollection(agent, kit, services), config, names.memory(agent)
        )

    specs = [ChildSpec(name="recollections", start=recollections)]
    if embedder is not None:
        make = partial(Embedding, agent, kit, embedder, services)
        specs.append(ChildSpec(name="embedding", start=make))
    if book is not None:
        write = partial(Scribe, agent, book, kit, services.sure_clock)
        specs.append(ChildSpec(name="scribe", start=write))
    specs.append(ChildSpec(name="memory", start=partial(Memory, agent, kit, services)))
    return tuple(specs)


def _count_shared(company: Company) -> int:
    """Count the connectors that share the turns of a model."""
    found = company.transports.values()
    here = sum([not transport.abilities.is_operators for transport in found])
    return here + len({*company.elsewhere()} - company.transports.keys())


def _connectors(company: Company) -> Supervisor:
    there = dict.fromkeys((*company.transports, *company.elsewhere()))
    return Supervisor([connector_branch(company, name) for name in there], PATIENT)


def connector_branch(company: Company, name: str) -> ChildSpec:
    """Say how a connector is started, with all that belongs to it.

    Its transport is looked up when it starts: another may have come in its place. One
    that has none is at another node.
    """

    def start() -> Supervisor:
        transport = company.transports.get(name)
        if transport is None:
            return _away(name, company.services)
        return _connector(name, transport, company)

    return ChildSpec(name=name, start=start, shutdown=20.0)


def _away(name: str, services: Services) -> Supervisor:
    start = partial(AwayConnector, name, services.duties)
    children = (
        ChildSpec(name="acknowledgements", start=start),
        ChildSpec(name="connector", start=start),
    )
    return Supervisor(children, PATIENT)


def _connector(name: str, transport: Transport, company: Company) -> Supervisor:
    services = company.services

    def couriers() -> KeyedSupervisor:
        config = KeyedConfig(idle_after=COURIER_IDLE)
        return KeyedSupervisor(lambda _key: Courier(name, transport, services), config)

    def connector() -> Connector:
        paces_threads = transport.abilities.paces_threads
        return Connector(name, services, paces_threads=paces_threads)

    def acknowledgements() -> KeyedSupervisor:
        config = KeyedConfig(idle_after=COURIER_IDLE, is_permanent=False, most=1_000)
        return KeyedSupervisor(
            lambda _key: ReactionSender(name, transport, services), config
        )

    signs = ChildSpec(name="acknowledgements", start=acknowledgements, shutdown=1.0)
    children = (
        ChildSpec(name="couriers", start=couriers, shutdown=10.0),
        *([] if transport.presence is None else [signs]),
        ChildSpec(name="connector", start=connector),
        _listening(name, transport, company),
    )
    return Supervisor(children, LISTENING)


def _listening(name: str, transport: Transport, company: Company) -> ChildSpec:
    """Say how a transport listens: by itself, or each of its accounts by itself."""
    store = company.services.store
    if not isinstance(transport, ManyAccounts):

        def listener() -> Listener:
            end = partial(company.on_listener_end, name)
            return Listener(name, transport, store, end)

        return ChildSpec(name="listener", start=listener, restart="transient")

    def alone(what: Listening) -> Supervisor:
        # Why: restarts are counted by supervisor, and an account that always fails
        # must not use up those of the others. Its end is not its platform's.
        start = partial(Listener, name, what, store, str)
        spec = ChildSpec(name="listener", start=start, restart="transient")
        return Supervisor((spec,), PATIENT)

    accounts = tuple(
        ChildSpec(name=account, start=partial(alone, what), shutdown=10.0)
        for account, what in transport.listeners.items()
    )
    return ChildSpec(
        name="listeners", start=lambda: Supervisor(accounts, PATIENT), shutdown=15.0
    )


@dataclass(frozen=True)
class Company:
    """What the tree is made from."""

    personas: tuple[Persona, ...]
    """Agents that the settings have at first."""

    transports: Mapping[str, Transport]
    """By the name of the connector account, those that run now: whoever takes changed
    settings over puts one in another's place."""

    routes: RoutingTable
    services: Services
    catalogue: Callable[[], Catalogue] = Catalogue
    """Gives the models, and the accounts they are to be had on, as the settings have
    them now; asked whenever the accounts' actor starts."""

    edges: tuple[ChildSpec, ...] = ()
    """Actors of the edges that must run before connectors do."""

    hooks: tuple[ChildSpec, ...] = ()
    """One branch for each hook, under its name; each has an actor called `hook`."""

    hiring: HiringParts = field(default_factory=HiringParts)
    """What agents are made from that conductors make."""

    receivers: tuple[Receiver, ...] = ()
    """Other programs that are told what happens."""

    roster: Roster = field(init=False)
    """Who works here now; at first, and until rows are read, the settings' agents."""

    elsewhere: Callable[[], Iterable[str]] = tuple
    """Names the connectors of which another node may have the transport."""

    on_listener_end: Callable[[str], object] = str
    """Called with a connector's name when its platform has ended for good."""

    def __post_init__(self) -> None:
        """Begin with the agents of the settings."""
        settled = ConfiguredStaff(self.personas, self.routes, self.hiring)
        object.__setattr__(self, "roster", Roster(settled))
