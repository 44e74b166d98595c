"""Puts the pieces together.

Settings in, a running company out. With `transports.py`, where a new transport is
registered, `offers.py` (models) and `toolbox.py` (tools) all that knows classes.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import trio

from actors import names, noting, webhook_intake
from actors.account import Account
from actors.company import Company
from actors.letters import is_owed_an_answer
from actors.metrics import LineMetrics
from actors.persona import Persona
from actors.rules.admission import policy
from actors.rules.agent_access import agent_access
from actors.rules.message_state import RetryPolicy
from actors.rules.routes import binding_of, routing_table
from actors.services import Services
from actors.supervisor import tree
from actors.transport import ManyAccounts
from actors.webhook_metrics import WebhookMetrics
from connectors import receipt_key
from connectors.access_checks import access_of, approvers
from connectors.announcing import Announcing
from connectors.bridge import Bridge
from connectors.checklists import read_checklist
from connectors.config import AppConfig, TerminalConfig
from connectors.drain import Drain
from connectors.edges import Edges
from connectors.hiring import hiring_of
from connectors.hooking import Hooking
from connectors.hooks.tree import book_of
from connectors.locale import load_voices
from connectors.model_checks import find_zone
from connectors.notebook import make_notebook
from connectors.personas import Personas
from connectors.posting import announcer_of, make_receivers
from connectors.remembering import make_memory
from connectors.standing import standing_of
from connectors.steward import steward_of
from connectors.stock import Stock, open_stock
from connectors.toolbox import make_media_reader, make_tools
from connectors.tools.files import Desks
from connectors.tools.memory import memory_tools
from connectors.transports import MakeTransport, Parts
from connectors.web.openai_api import HttpTransport
from connectors.web.operations import Operations
from connectors.web.webhooks import Door, Doors
from connectors.webhook_doors import doors_of
from runtime.child import ChildSpec
from runtime.clock import SystemClock
from runtime.ids import IdSource
from runtime.metrics import Metrics
from runtime.sqlite_file import SqliteFile, SqliteOptions
from runtime.sqlite_store import SqliteStore
from runtime.system import ActorSystem, SystemConfig, open_system
from runtime.watchdog import WatchdogConfig

if TYPE_CHECKING:
    from actors.notifying import Receiver
    from actors.ports import Tool
    from actors.transport import Transport
    from connectors.sandbox.runner import Sandbox
    from connectors.tool_sources import ToolSources
    from runtime.clock import Clock
    from runtime.deadletters import DeadLetter
    from runtime.store import Store

SOURCES = "connectors.tool_sources"
"""Imported only for settings with servers of tools, or with skills."""

MakeSources = Callable[..., "ToolSources"]


@dataclass(frozen=True)
class Kit:
    """What agents work with."""

    tools: Mapping[str, Tool]
    """By name."""

    desks: Desks
    """The folders in which some of them work."""

    further: ToolSources | None = None
    """Servers of tools and skills, if the settings have any."""

    hooks: tuple[ChildSpec, ...] = ()
    """What runs beside the way of a message."""


@dataclass
class App:
    """A running company."""

    system: ActorSystem
    metrics: Metrics
    store: Store
    transports: Mapping[str, Transport]
    clock: Clock
    stock: Stock
    personas: Personas
    webhooks: WebhookMetrics
    doors: Mapping[str, Door] = field(default_factory=dict[str, Door])
    """The webhooks that come in; replaced as a whole, never changed."""

    receivers: tuple[Receiver, ...] = ()
    announcing: Announcing | None = None
    """Tells other programs of what no actor tells of."""

    is_draining: bool = False
    ended: dict[str, trio.Event] = field(default_factory=dict[str, trio.Event])
    """By connector: set when its platform has ended for good."""

    async def readiness(self) -> tuple[str, ...]:
        """Say why messages cannot be answered now; nothing: they can."""
        if self.is_draining:
            return ("it is being stopped",)
        reasons = [] if self.store.healthy else ["the store cannot write: see the log"]
        reasons += [
            f"connector {name} is not running"
            for name in self.transports
            if self.system.find(names.connector(name)) is None
        ]
        reasons += [
            f"connector {name} hears nobody: {transport.trouble}"
            for name, transport in self.transports.items()
            if isinstance(transport, ManyAccounts) and transport.trouble
        ]
        return tuple(reasons)

    async def drain(self, within: float) -> None:
        """Take nothing more in; wait until all is answered, or that many seconds."""
        self.is_draining = True
        drain = Drain(self.system, self.store, self.clock, tuple(self.transports))
        await drain.run(within)


@asynccontextmanager
async def open_app(
    config: AppConfig,
    transports: Mapping[str, MakeTransport],
    redact: Callable[[str], str] = str,
    private: Iterable[Path] = (),
) -> AsyncGenerator[App]:
    """Run a company until the block ends; then stop it in order.

    Args:
        config: checked settings.
        transports: which connector accounts to run, and how each is made.
        redact: takes secrets out of what the audit keeps.
        private: files of settings and secrets, which no program may reach.

    Raises:
        connectors.sandbox.plan.SandboxError: agents may run programs, and there is no
            sandbox.
        runtime.errors.StoreError: the database cannot be used.
        runtime.errors.SettingsError: a script file is wrong.
        OSError: an address cannot be listened on, or a file cannot be read.
    """
    clock = SystemClock()
    metrics = Metrics()
    line = LineMetrics(metrics)
    async with AsyncExitStack() as stack:
        stock = await open_stock(config, clock, metrics, private)
        sandbox, stock.current = stock.sandbox, stock.catalogue(config)
        desks = Desks(config.workspace)
        tools = make_tools(config, clock, sandbox, stack, desks)
        store = await _store(config, line, stack)
        hooking = Hooking(config, sandbox)
        services = Services(
            store=store,
            clock=clock,
            ids=IdSource(clock),
            metrics=line,
            limits=config.limits,
            sessions=config.sessions,
            compaction=config.compaction,
            buffering=config.buffering,
            busy_policies=config.busy_policies,
            watchdog=config.watchdog,
            zone=find_zone(config.sessions.time_zone) or UTC,  # checked before
            audit=config.audit,
            owners=frozenset(config.owners),
            approvers=approvers(config),
            agent_access=agent_access(config.access, approvers(config)),
            tool_calls=config.tool_calls,
            approvals=config.approvals,
            collaboration=config.collaboration,
            presence=config.presence,
            hooks=book_of(hooking.hooks),
            permissions=config.permissions,
            receipt_key=receipt_key.load_or_make(Path(config.store.path)),
            redact=redact,
            scheduler=config.scheduler,
            find_zone=find_zone,
            standing=standing_of(config),
            read_checklist=read_checklist,
            media=make_media_reader(config, clock, sandbox, stack),
            people=config.people,
            commands=config.commands,
            voices=load_voices(config.people.language),
            started_at=clock.monotonic(),
            memory=make_memory(config, clock, metrics, stack),
            remember=noting.remember if config.memory.enabled else None,
            announcer=announcer_of(config),
        )
        watched = SystemConfig(watchdog=WatchdogConfig())
        system = await stack.enter_async_context(open_system(watched))
        metrics.watch(system)
        personas = Personas(persona_folders(config), metrics)
        posts = WebhookMetrics(metrics)
        app = App(system, metrics, store, {}, clock, stock, personas, posts)
        app.announcing = Announcing(services, system.find)
        app.receivers = make_receivers(config, clock, posts, stack)
        tools |= memory_tools(system.find, clock, store)
        kit = Kit(
            tools,
            desks,
            _further(config, sandbox, app),
            hooking.branches(metrics, store, clock),
        )
        company = _company(config, services, kit, app, transports)
        _reserve_addresses(app, stack)
        await system.start_root(tree(company), names.ROOT)
        _bounce_dead_letters(system)
        yield app


def _company(
    config: AppConfig,
    services: Services,
    kit: Kit,
    app: App,
    transports: Mapping[str, MakeTransport],
) -> Company:
    bridge = Bridge()
    parts = Parts(
        clock=services.clock,
        ids=services.ids,
        bridge=bridge,
        operations=Operations(
            render=app.metrics.render,
            content_type=app.metrics.content_type,
            readiness=app.readiness,
        ),
        store=services.store,
        metrics=app.metrics,
        agents=lambda: company.roster.team.names,
        doors=_doors(config, app),
    )
    made = {name: make(parts) for name, make in transports.items()}
    app.transports = made
    app.ended = {name: trio.Event() for name in made}
    lessons = None if kit.further is None else kit.further.lessons
    needs_loop = any(isinstance(each, HttpTransport) for each in made.values())
    edges = ChildSpec(name="edges", start=lambda: Edges(bridge), shutdown=30.0)
    servers = () if kit.further is None else (kit.further.spec,)
    skills = dict if kit.further is None else kit.further.described
    steward = steward_of(config, skills, kit.desks, app.metrics)
    company = Company(
        personas=tuple(_persona(name, config, kit, app) for name in config.agents),
        transports=made,
        routes=routing_table(
            config.agents,
            map(binding_of, config.routes),
            config.default_agent,
        ),
        services=replace(
            services,
            accounts=_accounts(config, made),
            notebook=make_notebook(config, lessons),
        ),
        catalogue=lambda: app.stock.current,
        hiring=hiring_of(config, kit.tools),
        edges=(*([edges] if needs_loop else []), *servers, *steward),
        hooks=kit.hooks,
        on_listener_end=lambda name: app.ended[name].set(),
        receivers=app.receivers,
    )
    return company


def _doors(config: AppConfig, app: App) -> Doors | None:
    """Say which webhooks come in, and who takes them."""
    if not config.webhooks.incoming:
        return None
    app.doors = doors_of(config)
    hand_in = partial(webhook_intake.hand_in, app.system.find)
    return Doors(lambda: app.doors, hand_in, app.webhooks)


def _accounts(
    config: AppConfig, transports: Mapping[str, Transport]
) -> dict[str, Account]:
    """Say what the domain must know of each connector."""
    accounts: dict[str, Account] = {}
    for name, transport in transports.items():
        settings = config.connectors.get(name, TerminalConfig())
        retries = RetryPolicy(
            attempts=config.retries.attempts,
            retries_failures=settings.retry_failures,
            first_wait=config.retries.first_wait,
            longest_wait=config.retries.longest_wait,
            stuck_after=config.retries.stuck_after,
        )
        on_unknown = (
            settings.on_unknown if isinstance(settings, TerminalConfig) else "resend"
        )
        access = access_of(settings)
        accounts[name] = Account(
            transport.abilities,
            retries,
            on_unknown,
            None if access is None else policy(access, config.owners),
            transport.presence is not None,
        )
    return accounts


def _reserve_addresses(app: App, stack: AsyncExitStack) -> None:
    """Take the addresses before anything runs.

    Why: a supervisor would try again for ever what only the operator can mend.
    """
    for transport in app.transports.values():
        if isinstance(transport, HttpTransport):
            stack.callback(transport.release)
            transport.reserve()


def persona_folders(config: AppConfig) -> dict[str, Path]:
    """Say which agents have a folder of their own."""
    return {
        name: agent.persona
        for name, agent in config.agents.items()
        if agent.persona is not None
    }


def _persona(name: str, config: AppConfig, kit: Kit, app: App) -> Persona:
    agent = config.agents[name]
    return Persona(
        name=name,
        config=agent,
        read_files=app.personas.reading(name),
        zone=find_zone(agent.context.time_zone) or UTC,  # checked with the settings
        tools={tool: kit.tools[tool] for tool in agent.tools if tool in kit.tools},
        sources=() if kit.further is None else kit.further.sources,
        skills=() if kit.further is None else kit.further.skills[name],
        colleagues={each: config.agents[each].description for each in agent.delegates},
        everybody=tuple(config.agents),
        remembers=config.memory.enabled,
        has_projects=config.projects.folder is not None,
    )


def _further(config: AppConfig, sandbox: Sandbox, app: App) -> ToolSources | None:
    """Make what servers of tools and skills need, if the settings have any."""
    if not (config.mcp_servers or config.skills.folders):
        return None
    make = cast("MakeSources", importlib.import_module(SOURCES).make_sources)
    return make(config, sandbox, app.metrics, app.system.find)


async def _store(
    config: AppConfig, line: LineMetrics, stack: AsyncExitStack
) -> SqliteStore:
    options = SqliteOptions(synchronous=config.store.synchronous)
    file = SqliteFile(Path(config.store.path), options)
    store = await SqliteStore.open(file, on_commit=line.commit)
    stack.push_async_callback(store.aclose)
    return store


def _bounce_dead_letters(system: ActorSystem) -> None:
    """Have somebody answer for messages that no actor handled."""
    system.dead_letters.observe(partial(_bounce, system))


def _bounce(system: ActorSystem, letter: DeadLetter) -> None:
    bounce = system.find(names.BOUNCE)
    # At the end nobody is told: what was not answered is taken up at the next start.
    is_wanted = is_owed_an_answer(letter) and not system.kernel.is_closing
    if bounce is not None and is_wanted:
        bounce.tell(letter)
