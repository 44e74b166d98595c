"""Puts the pieces together.

Settings in, a running company out. All that knows classes is here, in `models.py`,
`connectors/tools/registry.py` and `connectors/chat/platforms.py`.

Says when a start makes a new database: nobody should run an empty company unawares.

A path that is meant for another folder, or a database that was moved away, looks like
any first start otherwise.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import trio

from actors import names
from actors.inbound.undeliverable import is_owed_an_answer
from actors.journal.unsettled import newest_id
from actors.metrics import LineMetrics
from actors.models.limiter import StuckModels
from actors.models.messages import BudgetsLeft, RefusedAccounts
from actors.operations.keeper import UNHURRIED
from actors.operations.sweeper import Sweeper
from actors.services import Duties, InForce, Services
from actors.transport import MayBeShutOut, Transport
from actors.tree import Company, tree
from actors.webhooks import intake as webhook_intake
from actors.webhooks.messages import Receiver, WebhookMetrics
from connectors.admin import settings as applied
from connectors.admin.settings import Origins, Way, written
from connectors.app.accounts import edges_specs
from connectors.app.agents_md import GuideSource as Guided, steward_spec
from connectors.app.assembly import furnished, persona_folders, settled
from connectors.app.hooks import Hooking
from connectors.app.inspection import (
    Gauges,
    NodeAnswers,
    editor_of,
    inside_type,
    write_tree,
)
from connectors.app.kit import Kit, Workbench
from connectors.app.models import Stock, open_stock
from connectors.app.reload.apply import sources_spec
from connectors.app.shutdown import Drain
from connectors.app.webhooks import Announcing, doors_of, make_receivers
from connectors.asyncio_bridge.bridge import Bridge
from connectors.chat.platforms import (
    Backstage,
    IncomingWebhook,
    IncomingWebhooks,
    MakeTransport,
    Operations,
    TransportParts,
    serving,
)
from connectors.chat.server_transport import ServerTransport
from connectors.config.app import AdminConfig, AppConfig, address_of
from connectors.config.checks import find_zone
from connectors.files import receipt_key
from connectors.files.blobs import BlobFolder, folder_of
from connectors.files.personas import Personas
from connectors.settings.checks.schedule import read_checklist
from connectors.tools.workspace.files import Desks
from runtime.actor.dead_letters import DeadLetter
from runtime.clock import Clock, SystemClock
from runtime.errors import KernelError, StoreRefusedError
from runtime.ids import IdSource
from runtime.sqlite.database import SqliteDatabase
from runtime.sqlite.file import SqliteFile, SqliteOptions
from runtime.sqlite.store import SqliteStore
from runtime.store.database import Database
from runtime.store.port import Store
from runtime.supervision.child import ChildSpec
from runtime.supervision.watchdog import WatchdogConfig
from runtime.system import ActorSystem, SystemConfig, open_system
from runtime.telemetry.logs import EventLog
from runtime.telemetry.metrics import Metrics

if TYPE_CHECKING:
    import socket

    from connectors.app.nodes import CompanySeat
    from connectors.app.tracing import MessageTracer
    from connectors.web.operations import AdminServer
    from connectors.web.page.views.base import ViewSources
    from runtime.postgresql.store import PostgresqlStore

LOG = EventLog("store")


class Beginning:
    """What stands at the database's path before it is opened, which may make it.

    Raises:
        StoreRefusedError: it was emptied: the file is there, with nothing in it, beside
            what only a database in use leaves.
    """

    def __init__(self, path: Path) -> None:
        self._path = path = path.absolute()
        self._is_empty = applied.is_empty(path)
        self._beside = applied.left_beside(path)
        if self._is_empty and self._beside and path.exists():
            raise StoreRefusedError(applied.EMPTIED.format(path, self._beside[0]))

    def tell(self) -> None:
        """Say that it is elsewhere, or a new one, if so; it is open by now."""
        if self._path.is_symlink():
            # Why told: the file there has been made private to this user.
            target = str(self._path.resolve())
            LOG.info("the database is a link", path=str(self._path), target=target)
        if not self._is_empty:
            return
        if self._beside:
            LOG.warning(
                "a new database was made, beside files of one that is gone",
                path=str(self._path),
                beside=", ".join(self._beside),
                hint="if that one was moved away, stop, and put it back here",
            )
        else:
            LOG.warning("a new database was made", path=str(self._path))


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

    gauges: Gauges
    """What scrapers are shown that nobody counts."""

    admin: AdminServer | None = None
    """The server that operators ask; None: there is none."""

    company: Company = field(init=False)
    steward: ChildSpec = field(init=False)
    """Who keeps the guides in agents' folders true."""

    parts: TransportParts = field(init=False)
    """What transports are made from."""

    doors: Mapping[str, IncomingWebhook] = field(
        default_factory=dict[str, "IncomingWebhook"]
    )
    """The webhooks that come in; replaced as a whole, never changed."""

    hooks: tuple[ChildSpec, ...] = ()
    """What runs beside the way of a message."""

    receivers: tuple[Receiver, ...] = ()
    announcing: Announcing | None = None
    """Tells other programs of what no actor tells of."""

    origins: Origins = field(default_factory=dict[Way, object])
    """Where its settings were written; nothing as long as nobody says."""

    files: tuple[Path, ...] = ()
    """The settings file, and what it includes; nothing as long as nobody says."""

    seat: CompanySeat | None = None
    """As which node it runs; None: as the only process."""

    sockets: dict[str, socket.socket] = field(
        default_factory=dict[str, "socket.socket"]
    )
    """By connector that is to start, what listens for it already."""

    is_draining: bool = False
    is_damaged: bool = False
    """Whether damage was found in the database, which is final."""

    told_to_end: trio.Event = field(default_factory=trio.Event)
    """Set when somebody who may asked for the end over a connector."""

    ended: dict[str, trio.Event] = field(default_factory=dict[str, trio.Event])
    """By connector: set when its platform has ended for good."""

    elsewhere: dict[str, tuple[object, Transport]] = field(
        default_factory=dict[str, "tuple[object, Transport]"]
    )
    """By connector that another node runs: its settings, and what was made from them to
    learn its abilities; it never runs."""

    def known(self, config: AppConfig) -> dict[str, Transport]:
        """Give the connectors that are spoken of here: those of other nodes, too."""
        names = self.elsewhere_now(config)
        before, self.elsewhere = self.elsewhere, {}
        for name in names:
            settings = config.connectors[name]
            made = before.get(name)
            if made is None or made[0] != settings:
                made = settings, serving(config)[name](self.parts)
            self.elsewhere[name] = made
        return {x: made for x, (_, made) in self.elsewhere.items()} | self.transports

    def elsewhere_now(self, config: AppConfig | None = None) -> list[str]:
        """Name the connectors that another node may have."""
        config = self.config if config is None else config
        return [] if self.seat is None else self.seat.runs_elsewhere(config)

    def guided(self) -> tuple[Guided, Desks]:
        """Say what the guides in agents' folders are to tell now."""
        kit = self.bench.kit
        skills = dict if kit.further is None else kit.further.described
        return Guided(self.config, skills), kit.desks

    async def refresh(self) -> None:
        """Bring the metrics up to date that nobody counts."""
        asked = self.system.find(names.MODELS)
        left: object = ()
        if asked is not None and self.config.budgets:
            with suppress(KernelError):
                left = await asked.ask(BudgetsLeft(), timeout=1.0)
        if self.seat is not None and self.seat.peers is not None:
            duties = self.seat.duties
            parts = duties.parts or frozenset()
            self.gauges.show_node(len(parts), runs_company=duties.has_rest)
        await self.gauges.refresh(
            await self.readiness(),
            {name: not self._trouble(name) for name in self.transports},
            msgspec.convert(left, tuple[tuple[str, str, str, float], ...]),
        )

    def _trouble(self, connector: str) -> str:
        """Say why a connector hears nobody; empty: it does."""
        if self.system.find(names.connector(connector)) is None:
            return "is not running"
        transport = self.transports[connector]
        if isinstance(transport, MayBeShutOut) and transport.trouble:
            return f"hears nobody: {transport.trouble}"
        return ""

    async def readiness(self) -> tuple[str, ...]:
        """Say why messages cannot be answered now; nothing: they can."""
        if self.is_draining:
            return ("it is being stopped",)
        reasons = [] if self.store.healthy else ["the store cannot write: see the log"]
        if self.is_damaged:
            reasons = ["the database is damaged: see the log"]
        if self.seat is not None and (trouble := self.seat.node.trouble()):
            reasons.append(trouble)
        reasons += [
            f"model {name} keeps all its turns waiting"
            for name in await self._named(names.LIMITER, StuckModels())
        ]
        reasons += await self._refused(RefusedAccounts(if_all=True))
        reasons += [
            f"connector {name} {trouble}"
            for name in self.transports
            if (trouble := self._trouble(name))
        ]
        return tuple(reasons)

    async def warnings(self) -> tuple[str, ...]:
        """Say what needs somebody, whether messages can be answered or not."""
        return tuple(await self._refused(RefusedAccounts()))

    async def _refused(self, question: RefusedAccounts) -> list[str]:
        return [
            f"account {name} is not let in: check its key"
            for name in await self._named(names.MODELS, question)
        ]

    async def _named(self, actor: str, question: object) -> tuple[str, ...]:
        """Ask an actor what cannot answer; nobody is named while it is restarted."""
        asked = self.system.find(actor)
        if asked is None:
            return ()
        try:
            found = await asked.ask(question, timeout=1.0)
        except KernelError:
            return ()
        return msgspec.convert(found, tuple[str, ...])

    async def drain(self, within: float) -> bool:
        """Take nothing more in; wait until all is answered, or that many seconds.

        Returns:
            Whether nothing was left.
        """
        duties = self.company.services.duties
        self.is_draining = True
        # A part that is still here is answered for until it is given away at rest.
        duties.is_leaving = duties.parts is None
        return await self.drain_of(tuple(self.transports)).run(within)

    def drain_of(
        self,
        connectors: Collection[str],
        *,
        is_the_end: bool = True,
        has_moved: bool = False,
    ) -> Drain:
        """Make what brings connectors to rest; see `Drain`."""
        return Drain(
            self.system,
            self.store,
            self.clock,
            connectors,
            is_the_end=is_the_end,
            duties=self.company.services.duties,
            has_moved=has_moved,
        )


@asynccontextmanager
async def open_app(  # noqa: PLR0913  what a company is made of
    config: AppConfig,
    transports: Mapping[str, MakeTransport],
    redact: Callable[[str], str] = str,
    private: Iterable[Path] = (),
    clock: Clock | None = None,
    admin: AdminConfig | None = None,
    *,
    seat: CompanySeat | None = None,
) -> AsyncGenerator[App]:
    """Run a company until the block ends; then stop it in order.

    Args:
        transports: which connector accounts to run, and how each is made.
        redact: takes secrets out of what the audit keeps.
        private: files of settings and secrets, which no program may reach.
        clock: None is the machine's.
        admin: where operators may ask; None: nowhere.
        seat: as which node it runs; None: as the only process.

    Raises:
        connectors.sandbox.plan.SandboxError: agents may run programs, and there is no
            sandbox.
        runtime.errors.StoreError: the database cannot be used.
        runtime.errors.SettingsError: a script file is wrong.
        OSError: an address cannot be listened on, or a file cannot be read.
    """
    clock = clock or SystemClock()
    metrics = Metrics(node=config.nodes.name)
    line = LineMetrics(metrics)
    async with AsyncExitStack() as stack:
        tracer = await _trace(config, clock, metrics, stack)
        stock = await open_stock(config, clock, metrics, private)
        stock.current = stock.catalogue(config)
        store = await _store(config, line, stack, seat)
        hooking = Hooking(config, stock.sandbox)
        blobs = BlobFolder(folder_of(config), config.files, clock)
        services = Services(
            store=store,
            clock=clock,
            ids=IdSource(clock, after=await newest_id(store)),
            metrics=line,
            in_force=InForce(furnished(None, config, Kit(), {})),
            hooks=hooking.book,
            receipt_key=receipt_key.load_or_make(Path(config.store.path)),
            redact=redact,
            read_checklist=read_checklist,
            find_zone=find_zone,
            started_at=clock.monotonic(),
            duties=Duties() if seat is None else seat.duties,
            trace=None if tracer is None else tracer.take,
            traceparent=None if tracer is None else tracer.traceparent,
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
            Gauges(metrics, _database(config), clock),
        )
        app.seat = seat
        app.doors = doors_of(config)
        app.hooks = hooking.branches(metrics, store, clock)
        app.receivers = make_receivers(config, clock, posts, stack)
        app.company = _company(config, services, app, transports, admin, stack)
        app.announcing = Announcing(app.company.services, system.find)
        app.sockets = {} if seat is None else seat.sockets
        _reserve_addresses(app, stack)
        store.when_damaged(partial(_give_up_waiting, app, line))
        await system.start_root(tree(app.company), names.ROOT)
        _bounce_dead_letters(system)
        yield app


async def _trace(
    config: AppConfig, clock: Clock, metrics: Metrics, stack: AsyncExitStack
) -> MessageTracer | None:
    """Open what sends traces; None: they are not wanted."""
    if not config.tracing.is_on:
        return None
    # Why here: OpenTelemetry is an extra, and takes a tenth of a second to load.
    from connectors.app.tracing import open_tracer  # noqa: PLC0415

    kinds = {
        name: str(each.__struct_config__.tag) for name, each in config.models.items()
    }
    tracer = open_tracer(config.tracing, kinds, clock, metrics)
    if tracer is not None:
        stack.push_async_callback(tracer.aclose)
    return tracer


def _company(
    config: AppConfig,
    services: Services,
    app: App,
    transports: Mapping[str, MakeTransport],
    admin: AdminConfig | None,
    stack: AsyncExitStack,
) -> Company:
    bridge = Bridge()
    if app.seat is not None:
        services.duties.ask = app.seat.circle(services.receipt_key).ask_others
    read_tree = partial(write_tree, app.system, services.redact)

    def inside() -> ViewSources:
        return inside_type()(
            app.system,
            services,
            app.metrics,
            _database(config),
            lambda: app.config,
            app.readiness,
            lambda: app.origins,
            lambda: editor_of(app.files, lambda: app.config, lambda: app.origins),
            nodes=None if app.seat is None else app.seat.circle(services.receipt_key),
        )

    parts = TransportParts(
        clock=services.clock,
        ids=services.ids,
        bridge=bridge,
        operations=Operations(
            render=app.gauges.render,
            readiness=app.readiness,
            warnings=app.warnings,
            refresh=app.refresh,
            tree=read_tree,
            nodes=None
            if app.seat is None
            else NodeAnswers(
                app.seat.node.name, services.receipt_key, read_tree, inside
            ),
        ),
        store=services.store,
        database=Path(config.store.path),
        metrics=app.metrics,
        presence=lambda: services.presence,
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
        doors=_doors(app, services),
        peers=None if app.seat is None else app.seat.peers,
        inside=inside,
    )
    app.parts = parts
    if admin is not None:
        # Why here: `chat` has no HTTP server, and its libraries take long to load.
        from connectors.web.operations import make_admin_server  # noqa: PLC0415

        app.admin = make_admin_server(admin, parts)
        if app.admin is not None:
            stack.callback(app.admin.release)
    made = app.transports
    made.update((name, make(parts)) for name, make in transports.items())
    app.ended.update((name, trio.Event()) for name in made)
    place = services.in_force
    place.current = furnished(place.current, config, app.bench.kit, app.known(config))
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
            *edges_specs(bridge, made, app.admin),
            *servers,
            app.steward,
            _sweeper(app, services),
        ),
        hooks=app.hooks,
        elsewhere=app.elsewhere_now,
        on_listener_end=lambda name: app.ended[name].set(),
        receivers=app.receivers,
    )
    return company


def _sweeper(app: App, services: Services) -> ChildSpec:
    """Say who removes the bytes of files that have gone out."""
    keep = app.config.files.keep_days * DAY
    start = partial(Sweeper, app.store, app.blobs, services.sure_clock, keep)
    return ChildSpec(name="sweeper", start=start)


def _doors(app: App, services: Services) -> IncomingWebhooks:
    """Say which webhooks come in, and who takes them."""
    hand_in = partial(webhook_intake.hand_in, app.system.find)
    key = services.frame_key
    return IncomingWebhooks(lambda: app.doors, hand_in, app.webhooks, key)


def _reserve_addresses(app: App, stack: AsyncExitStack) -> None:
    """Take the addresses before anything runs.

    Why: a supervisor would try again for ever what only the operator can mend.
    """
    for name, server in app.transports.items():
        if isinstance(server, ServerTransport):
            stack.callback(server.release)
            server.reserve(app.sockets.pop(name, None))


async def _store(
    config: AppConfig,
    line: LineMetrics,
    stack: AsyncExitStack,
    seat: CompanySeat | None,
) -> SqliteStore | PostgresqlStore:
    if config.store.kind == "postgresql":
        return await _store_on_server(config, line, stack, seat)
    options = SqliteOptions(synchronous=config.store.synchronous)
    file = SqliteFile(Path(config.store.path), options)
    beginning = Beginning(file.path)
    store = await SqliteStore.open(file, on_commit=line.commit)
    beginning.tell()
    stack.push_async_callback(store.aclose)
    return store


async def _store_on_server(
    config: AppConfig,
    line: LineMetrics,
    stack: AsyncExitStack,
    seat: CompanySeat | None,
) -> PostgresqlStore:
    from runtime.postgresql.server import PostgresqlOptions, PostgresqlServer  # noqa: PLC0415  see `_database`
    from runtime.postgresql.store import PostgresqlStore  # noqa: PLC0415

    options = PostgresqlOptions(synchronous=config.store.synchronous)
    if seat is not None:
        options = PostgresqlOptions(
            seat=seat.fence,
            leases=seat.node.leases_for if seat.peers is not None else None,
            concerns_others=None if seat.peers is None else seat.node.concerns_others,
            channel=seat.node.channel,
            unhurried=UNHURRIED,
        )
    server = PostgresqlServer(address_of(config.store), options)
    store = await PostgresqlStore.open(server, on_commit=line.commit)
    stack.push_async_callback(store.aclose)
    return store


def _database(config: AppConfig) -> Database:
    """Give the database from outside, for pages and figures that count rows."""
    if config.store.kind == "sqlite":
        return SqliteDatabase(Path(config.store.path))
    # Why here: psycopg takes a tenth of a second to load, and most have a file.
    from runtime.postgresql.database import PostgresqlDatabase  # noqa: PLC0415
    from runtime.postgresql.server import PostgresqlServer  # noqa: PLC0415

    return PostgresqlDatabase(PostgresqlServer(address_of(config.store)))


def _give_up_waiting(app: App, line: LineMetrics, damage: str) -> None:
    """Say that the database is damaged; end what clients wait for."""
    LOG.error(
        "the database is damaged: nothing is stored any more",
        why=damage,
        hint="callboard doctor; then stop, callboard restore COPY, and start again",
    )
    app.is_damaged = True
    line.damaged.set(1)
    for transport in app.transports.values():
        if isinstance(transport, ServerTransport):
            transport.give_up("the database is damaged: nothing can be answered")


def _bounce_dead_letters(system: ActorSystem) -> None:
    """Have somebody answer for messages that no actor handled."""
    system.dead_letters.observe(partial(_bounce, system))


def _bounce(system: ActorSystem, letter: DeadLetter) -> None:
    bounce = system.find(names.UNDELIVERABLE)
    # At the end nobody is told: what was not answered is taken up at the next start.
    is_wanted = is_owed_an_answer(letter) and not system.kernel.is_closing
    if bounce is not None and is_wanted:
        bounce.tell(letter)
