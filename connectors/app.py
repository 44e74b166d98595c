"""Puts the pieces together.

Settings in, a running company out. With `transports.py`, where a new transport is
registered, `offers.py` (models) and `toolbox.py` (tools) all that knows classes.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from actors import names, webhook_intake
from actors.company import Company
from actors.letters import is_owed_an_answer
from actors.metrics import LineMetrics
from actors.services import InForce, Services
from actors.supervisor import tree
from actors.sweeper import Sweeper
from actors.transport import ManyAccounts
from actors.webhook_metrics import WebhookMetrics
from connectors import receipt_key
from connectors.announcing import Announcing
from connectors.beginnings import Beginning
from connectors.blobs import BlobFolder, folder_of
from connectors.bridge import Bridge
from connectors.checklists import read_checklist
from connectors.drain import Drain
from connectors.edges import edges_spec
from connectors.furnishing import furnished, persona_folders, settled
from connectors.hooking import Hooking
from connectors.insight import inside_type, write_tree
from connectors.kit import Kit, Workbench
from connectors.model_checks import find_zone
from connectors.personas import Personas
from connectors.posting import make_receivers
from connectors.servers import sources_spec
from connectors.show import Way, written
from connectors.steward import Source as Guided
from connectors.steward import steward_spec
from connectors.stock import Stock, open_stock
from connectors.transports import MakeTransport, Parts
from connectors.web.backstage import Backstage
from connectors.web.operations import Operations
from connectors.web.server import Served
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
    from collections.abc import AsyncGenerator, Callable, Iterable, Mapping

    from actors.notifying import Receiver
    from actors.transport import Transport
    from connectors.config import AppConfig
    from connectors.show import Origins
    from connectors.tools.files import Desks
    from runtime.clock import Clock
    from runtime.deadletters import DeadLetter
    from runtime.store import Store


DAY = 86_400.0


@dataclass
class App:
    """A running company."""

    system: ActorSystem
    metrics: Metrics
    store: Store
    transports: dict[str, Transport]
    clock: Clock
    stock: Stock
    personas: Personas
    bench: Workbench
    """Has what agents work with."""

    config: AppConfig
    """What it goes by now."""

    webhooks: WebhookMetrics
    blobs: BlobFolder
    """Where the bytes of files lie that agents send."""

    company: Company = field(init=False)
    steward: ChildSpec = field(init=False)
    """Who keeps the guides in agents' folders true."""

    parts: Parts = field(init=False)
    """What transports are made from."""

    doors: Mapping[str, Door] = field(default_factory=dict[str, "Door"])
    """The webhooks that come in; replaced as a whole, never changed."""

    hooks: tuple[ChildSpec, ...] = ()
    """What runs beside the way of a message."""

    receivers: tuple[Receiver, ...] = ()
    announcing: Announcing | None = None
    """Tells other programs of what no actor tells of."""

    origins: Origins = field(default_factory=dict[Way, object])
    """Where its settings were written; nothing as long as nobody says."""

    is_draining: bool = False
    told_to_end: trio.Event = field(default_factory=trio.Event)
    """Set when somebody who may asked for the end over a connector."""

    ended: dict[str, trio.Event] = field(default_factory=dict[str, trio.Event])
    """By connector: set when its platform has ended for good."""

    def guided(self) -> tuple[Guided, Desks]:
        """Say what the guides in agents' folders are to tell now."""
        kit = self.bench.kit
        skills = dict if kit.further is None else kit.further.described
        return Guided(self.config, skills), kit.desks

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
        stock.current = stock.catalogue(config)
        store = await _store(config, line, stack)
        hooking = Hooking(config, stock.sandbox)
        blobs = BlobFolder(folder_of(config), config.files, clock)
        services = Services(
            store=store,
            clock=clock,
            ids=IdSource(clock),
            metrics=line,
            in_force=InForce(furnished(None, config, Kit(), {})),
            hooks=hooking.book,
            receipt_key=receipt_key.load_or_make(Path(config.store.path)),
            redact=redact,
            read_checklist=read_checklist,
            find_zone=find_zone,
            started_at=clock.monotonic(),
        )
        # Closed after the actors, who may use it to the end.
        bench = Workbench(clock, metrics, store, stock.sandbox, blobs=blobs)
        stack.push_async_callback(bench.aclose)
        watched = SystemConfig(watchdog=WatchdogConfig())
        system = await stack.enter_async_context(open_system(watched))
        # What is durable is in the file, and nothing more will be: whoever runs this
        # program starts it again.
        store.when_broken(system.kernel.crash)
        metrics.watch(system)
        personas = Personas(persona_folders(config), metrics)
        bench.find = system.find
        bench.kit = await bench.make(config)
        posts = WebhookMetrics(metrics)
        app = App(
            system,
            metrics,
            store,
            {},
            clock,
            stock,
            personas,
            bench,
            config,
            posts,
            blobs,
        )
        app.doors = doors_of(config)
        app.hooks = hooking.branches(metrics, store, clock)
        app.receivers = make_receivers(config, clock, posts, stack)
        app.company = _company(config, services, app, transports)
        app.announcing = Announcing(app.company.services, system.find)
        _reserve_addresses(app, stack)
        await system.start_root(tree(app.company), names.ROOT)
        _bounce_dead_letters(system)
        yield app


def _company(
    config: AppConfig,
    services: Services,
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
            tree=partial(write_tree, app.system, services.redact),
        ),
        store=services.store,
        metrics=app.metrics,
        blobs=app.blobs,
        agents=lambda: company.roster.team.names,
        backstage=Backstage(
            services=services,
            roster=lambda: company.roster,
            find=app.system.find,
            voice=lambda: app.bench.kit,
            settings=lambda: written(app.config),
            end=app.told_to_end.set,
        ),
        doors=_doors(app),
        inside=lambda: inside_type()(
            app.system,
            services,
            app.metrics,
            lambda: app.config,
            app.readiness,
            lambda: app.origins,
        ),
    )
    app.parts = parts
    made = app.transports
    made.update((name, make(parts)) for name, make in transports.items())
    app.ended.update((name, trio.Event()) for name in made)
    place = services.in_force
    place.current = furnished(place.current, config, app.bench.kit, made)
    kit, who = app.bench.kit, settled(config, app.bench.kit, app.personas)
    servers = () if kit.further is None else (sources_spec(app.bench),)
    app.steward = steward_spec(app.guided, app.metrics)
    company = Company(
        personas=who.personas,
        transports=made,
        routes=who.routes,
        services=services,
        catalogue=lambda: app.stock.current,
        hiring=who.hiring,
        edges=(
            edges_spec(bridge, made),
            *servers,
            app.steward,
            _sweeper(app, services),
        ),
        hooks=app.hooks,
        on_listener_end=lambda name: app.ended[name].set(),
        receivers=app.receivers,
    )
    return company


def _sweeper(app: App, services: Services) -> ChildSpec:
    """Say who removes the bytes of files that have gone out."""
    keep = app.config.files.keep_days * DAY
    start = partial(Sweeper, app.store, app.blobs, services.sure_clock, keep)
    return ChildSpec(name="sweeper", start=start)


def _doors(app: App) -> Doors:
    """Say which webhooks come in, and who takes them."""
    hand_in = partial(webhook_intake.hand_in, app.system.find)
    return Doors(lambda: app.doors, hand_in, app.webhooks)


def _reserve_addresses(app: App, stack: AsyncExitStack) -> None:
    """Take the addresses before anything runs.

    Why: a supervisor would try again for ever what only the operator can mend.
    """
    for transport in app.transports.values():
        if isinstance(transport, Served):
            stack.callback(transport.release)
            transport.reserve()


async def _store(
    config: AppConfig, line: LineMetrics, stack: AsyncExitStack
) -> SqliteStore:
    options = SqliteOptions(synchronous=config.store.synchronous)
    file = SqliteFile(Path(config.store.path), options)
    beginning = Beginning(file.path)
    store = await SqliteStore.open(file, on_commit=line.commit)
    beginning.tell()
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
