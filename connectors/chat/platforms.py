"""The kinds of connectors, and all that the rest of the program asks of each.

A kind is one package. Its `platform.py` describes it as a `Platform`: settings and
their checks, limits, markup, what agents are told of it. Its `transport.py` and
`doctor.py` are imported only when they are needed, because libraries take their time.
`PACKAGES` is the one place where a kind is registered.

`Gates` knows who takes the HTTP calls of chat platforms, by connector and account. A
transport opens its gates while it listens; `connectors/web/webhooks.py` has the
address. A gate looks at who brings something before a byte of it is read, or before it
is taken.

`TransportParts` is all that a transport may be made from: the answers to operators, the
incoming webhooks, access to the agents.
"""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache, partial
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, cast, runtime_checkable

import msgspec

from actors.config.presence import PresenceConfig
from actors.messages.deliveries import TakesFiles
from actors.messages.inbound import Address
from actors.rules.text.measure import CHARACTERS, Measure
from actors.webhooks.messages import Trigger, Triggered, WebhookMetrics
from actors.webhooks.signature import Keys, Scheme
from connectors.config.app import AppConfig, ConnectorConfig
from connectors.config.checks import RETIRED
from runtime.errors import SettingsError

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    import httpx

    from actors.agents.roster import Roster
    from actors.ports import Speaker, Transcriber
    from actors.rules.prompt.texts import ReplyStyle
    from actors.services import Services
    from actors.transport import Transport
    from connectors.admin.probes import Probe
    from connectors.asyncio_bridge.bridge import Bridge
    from connectors.chat.markup.dialect import Dialect
    from connectors.files.blobs import BlobFolder
    from connectors.web.page.views.base import ViewSources
    from connectors.web.peers import Peers
    from runtime.actor.ref import ActorRef
    from runtime.clock import Clock
    from runtime.config.loader import Complaint
    from runtime.ids import IdSource
    from runtime.store.port import Store
    from runtime.telemetry.metrics import Metrics


Place = tuple[str, str]
"""Connector and account; no account: the platform has one address for all of them."""


class TokenGate(Protocol):
    """Takes the calls for one account; a secret header shows that they are genuine."""

    def lets_in(self, headers: Mapping[str, str]) -> bool:
        """Return whether a request comes from the platform; fails closed.

        Called on the server's thread: looks at nothing that changes.

        Args:
            headers: by their names in small letters.
        """
        ...

    async def take(self, body: bytes) -> bool:
        """Store the messages of a call; in a trio task.

        Returns:
            Whether the platform may forget it.
        """
        ...


class PlatformCall(msgspec.Struct, frozen=True, kw_only=True):
    """One HTTP request of a platform, as it came."""

    method: str = "POST"
    """`GET` only where the gate's `Terms` say so."""

    query: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    """What stands behind the `?`, without what came twice."""

    headers: Mapping[str, str]
    """By their names in small letters; none that came twice, so that nobody who adds
    one decides anything by it."""

    body: bytes = b""
    """Every byte, as signatures are over them."""


class PlatformAnswer(msgspec.Struct, frozen=True):
    """The HTTP answer to a platform."""

    status: int
    """With 401 and 503 the server says the rest."""

    body: bytes = b""
    media_type: str = "application/json"

    retry_after: float | None = None
    """Seconds after which it is to be brought again, with 503."""

    refused: str = ""
    """Why somebody was not let in, in one bounded word: put on record."""


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """Which requests the server may read for a gate."""

    methods: tuple[str, ...] = ("POST",)
    media_types: tuple[str, ...] = ("application/json",)

    most_bytes: int | None = None
    """Longest body; None: what the server reads of anybody's."""


@runtime_checkable
class SignedGate(Protocol):
    """A gate whose platform signs the body and reads the answer."""

    @property
    def terms(self) -> Terms:
        """What is read for it; constant for its life."""
        ...

    def lets_in(self, headers: Mapping[str, str]) -> bool:
        """Return whether a body is to be read at all; as `TokenGate.lets_in`."""
        ...

    def check(self, call: PlatformCall) -> PlatformAnswer | None:
        """Let a request in, or answer it at once: 401 if it is not the platform's.

        Called on threads of the server's, so that strangers cost the actors nothing:
        looks at nothing that changes. Fails closed.

        Returns:
            None: it comes from the platform, and goes on to `answer`.
        """
        ...

    async def answer(self, call: PlatformCall) -> PlatformAnswer:
        """Store the messages of a call; in a trio task."""
        ...


AnyGate = TokenGate | SignedGate


class Gates:
    """All open gates.

    Read on the server's thread, so that the map is replaced and never changed.
    """

    def __init__(self) -> None:
        self._open: Mapping[Place, AnyGate] = {}

    def find(self, place: Place) -> AnyGate | None:
        """Return a gate; None: there is none, or nobody is behind it now."""
        return self._open.get(place)

    @contextmanager
    def opened(self, place: Place, gate: AnyGate) -> Generator[None]:
        """Open a gate until the block ends."""
        self._open = {**self._open, place: gate}
        try:
            yield
        finally:
            if self._open.get(place) is gate:
                kept = {key: each for key, each in self._open.items() if key != place}
                self._open = kept


PACKAGES = (
    "connectors.chat.terminal",
    "connectors.web.openai",
    "connectors.chat.discord",
    "connectors.chat.matrix",
    "connectors.chat.slack",
    "connectors.web.page",
    "connectors.chat.qq",
    "connectors.chat.telegram",
    "connectors.web.eliza",
    "connectors.chat.websocket",
    "connectors.chat.whatsapp",
)
"""The package of each kind, one a line."""

MB, MIB = 1_000_000, 1_048_576

C = TypeVar("C", bound=ConnectorConfig)
"""The settings of one connector."""

T = TypeVar("T")


class PlatformLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one platform accepts. 0 means no limit, unless a field says otherwise.

    Each figure has its source in the `platform.py` that sets it. "Measured" there means
    against the platform's own client library or server. Where a platform does not say
    in which unit it counts, the strictest is used: UTF-16 units, in which an emoji
    counts 2.
    """

    text: int = 0
    """Longest message, in the platform's unit; the longest edit, too."""

    part: int = 0
    """Length at which replies are cut, as `measure` counts; less than `text`, because
    markup may need a little more than was counted."""

    measure: Measure = CHARACTERS
    """How much of a message a text takes in the platform's markup."""

    caption: int = 0
    """Longest text with a file, in the unit of `text`."""

    typing_for: float = 0.0
    """Seconds after which the platform stops showing that somebody writes; 0: it never
    does. Matrix lets the sender choose."""

    upload_bytes: int = 0
    """Largest file that can be sent."""

    image_bytes: int = 0
    """Largest file that is shown as an image."""

    clip_bytes: int = 0
    """Largest sound or video that is played; a larger one is sent as a document."""

    uncaptioned: tuple[str, ...] = ()
    """Kinds of files that cannot have a caption."""


NO_LIMITS = PlatformLimits()


def no_complaints(
    _mine: Mapping[str, ConnectorConfig], _app: AppConfig
) -> Iterable[Complaint]:
    """Complain of nothing."""
    return ()


def never(_config: ConnectorConfig) -> bool:
    """Say no of every connector."""
    return False


def always(_config: ConnectorConfig) -> bool:
    """Say yes of every connector."""
    return True


def no_people(_config: ConnectorConfig) -> Iterable[str]:
    """Name nobody."""
    return ()


@dataclass(frozen=True, kw_only=True)
class Platform(Generic[C]):
    """One kind of connector."""

    package: str
    """Holds `transport.py` with `make_transport(name, config, parts)`, `doctor.py` with
    `probes(name, config, network)`, and `markup.py` with the class `dialect`."""

    config: type[C]
    """The settings of one connector; their tag is the kind."""

    retired: Mapping[str, str] = field(default_factory=dict[str, str])
    """Settings that are gone, by name, and why; see `config/checks.py`."""

    check: Callable[[Mapping[str, C], AppConfig], Iterable[Complaint]] = no_complaints
    """Names everything in the settings of its connectors, by name, that does not fit
    together with the rest."""

    name: str = "this place"
    """What people call the platform."""

    extra: str = ""
    """The optional dependencies that it needs; empty: none."""

    limits: PlatformLimits = NO_LIMITS
    """What the platform accepts."""

    dialect: str = ""
    """The class in `markup.py` that writes the platform's markup; empty: the platform
    shows Markdown, HTML or plain text."""

    reply_style: ReplyStyle | None = None
    """What agents are told of writing there; None: nothing."""

    is_public: bool = False
    """Whether strangers can write there, from accounts that the platform gives them.
    Only owners may write then unless `access` says more, and a stranger can be given a
    pairing code."""

    names_agent: bool = True
    """Whether each message is for an agent that its account, chat or request names.
    False: routes or `default_agent` choose one."""

    needs_owners: bool = False
    """Whether its transport is made anew when the connector's owners change."""

    has_doctor: bool = True
    """Whether there is a `doctor.py`. Without, `callboard doctor` looks at the port of
    a connector that has one."""

    shares_chats: bool = False
    """Whether several nodes share the chats of a connector: each works on those whose
    part it has, wherever people come in."""

    is_server: bool = True
    """Whether it is reason enough to run `callboard serve`."""

    only_calls: Callable[[C], bool] = never
    """Whether a connector connects to its platform, and is never connected to: then any
    node of a company can have it."""

    owners: Callable[[C], Iterable[str]] = no_people
    """Names the senders who are owners of the company because they are let in."""

    approvers: Callable[[C], Iterable[str]] = no_people
    """Names further senders who may approve any tool call."""

    @property
    def kind(self) -> str:
        """Its name in settings and in `Inbound.platform`."""
        return str(self.config.__struct_config__.tag)

    @property
    def takes_files(self) -> TakesFiles:
        """Which files it accepts, as its transport tells the domain.

        Captions leave as much room for what was not counted as parts of a text do.
        """
        limits = self.limits
        caption = limits.caption * limits.part // limits.text if limits.text else 0
        return TakesFiles(
            max_bytes=limits.upload_bytes,
            max_image_bytes=limits.image_bytes,
            max_caption=caption,
            uncaptioned=limits.uncaptioned,
            platform=self.name,
        )

    def markup(self) -> Dialect | None:
        """Give its markup, without any mention that may call somebody; None: none."""
        if not self.dialect:
            return None
        make = getattr(self._module("markup"), self.dialect)
        return cast("Callable[[], Dialect]", make)()

    def make_transport(self, name: str, config: C, parts: TransportParts) -> Transport:
        """Make the transport of one connector.

        Raises:
            SettingsError: packages are missing that it needs.
        """
        try:
            make = cast("TransportFactory[C]", self._module("transport").make_transport)
        except ModuleNotFoundError as error:
            if not self.extra:
                raise
            raise SettingsError(
                f"connectors.{name}: it needs the extra {self.extra!r}, as there is no"
                f" module {error.name!r}: pip install 'callboard[{self.extra}]'"
            ) from error
        return make(name, config, parts)

    def probes(
        self, name: str, config: C, network: httpx.AsyncBaseTransport | None = None
    ) -> Iterable[Probe]:
        """Give what `callboard doctor` asks about one connector; see `has_doctor`."""
        look = cast("Probes[C]", self._module("doctor").probes)
        return look(name, config, network)

    def _module(self, part: str) -> ModuleType:
        return importlib.import_module(f"{self.package}.{part}")


TransportFactory = Callable[[str, C, "TransportParts"], "Transport"]
MakeTransport = Callable[["TransportParts"], "Transport"]
Probes = Callable[[str, C, "httpx.AsyncBaseTransport | None"], Iterable["Probe"]]
AnyPlatform = Platform[ConnectorConfig]


@cache
def platform_in(package: str) -> AnyPlatform:
    """Give the description of the kind that a package holds."""
    module = importlib.import_module(f"{package}.platform")
    return cast("AnyPlatform", module.PLATFORM)


def platforms() -> tuple[AnyPlatform, ...]:
    """Give all kinds of connectors, in the order in which they are registered."""
    return tuple(map(platform_in, PACKAGES))


def all_retired() -> Mapping[str, Mapping[str, str]]:
    """Give the settings that are gone, with those of all kinds of connectors."""
    return {**RETIRED, **{each.config.__name__: each.retired for each in platforms()}}


def platform_of(config: ConnectorConfig) -> AnyPlatform:
    """Give the kind of a connector."""
    return next(each for each in platforms() if type(config) is each.config)


def platform_of_kind(kind: str) -> AnyPlatform:
    """Give a kind by its name in settings."""
    return next(each for each in platforms() if each.kind == kind)


def setting_of(config: ConnectorConfig | None, key: str, default: T) -> T:
    """Give a setting that not every kind of connector has.

    Args:
        config: the settings of one connector; None: it is in no settings file.
        default: what counts where the kind lacks it; of the same type.
    """
    return cast("T", getattr(config, key, default))


def reply_styles() -> dict[str, ReplyStyle]:
    """Give what agents are told of writing on each platform, by kind."""
    return {
        each.kind: each.reply_style
        for each in platforms()
        if each.reply_style is not None
    }


def serving(config: AppConfig) -> dict[str, MakeTransport]:
    """Choose the connectors that `callboard serve` runs."""

    def make(name: str, connector: ConnectorConfig, parts: TransportParts) -> Transport:
        parts = replace(parts, owners=config.owners)
        return platform_of(connector).make_transport(name, connector, parts)

    return {
        name: partial(make, name, connector)
        for name, connector in config.connectors.items()
    }


def no_tree(_top: str, _past: str) -> bytes:
    """Give an empty actor tree."""
    return b"{}"


async def nothing_to_warn_of() -> tuple[str, ...]:
    """Warn of nothing."""
    return ()


async def nothing_to_refresh() -> None:
    """Leave all metrics as they are."""


class NodeQuestions(Protocol):
    """Answers questions of other nodes (`connectors.admin.nodes`).

    Each answer is a status of HTTP, and what was asked for, or why there is nothing.
    """

    def refusal(self, node: str, seal: str, body: bytes) -> tuple[int, bytes] | None:
        """Say why a question is not answered; None: it is. Any thread may ask.

        Args:
            node: the name of the node that is asked.
        """
        ...

    async def answer(self, body: bytes) -> tuple[int, bytes]:
        """Answer a question that is not refused; in a trio task."""
        ...


class Operations(msgspec.Struct, frozen=True):
    """Gives the answers to operators."""

    render: Callable[[str, bool], tuple[bytes, str]]
    """Writes the metrics; gives them and their media type. Takes the `Accept` of the
    request, and whether `refresh` has just succeeded. Called in a thread."""

    readiness: Callable[[], Awaitable[tuple[str, ...]]]
    """Gives the reasons why the kernel is not ready; empty: it is. In a trio task."""

    warnings: Callable[[], Awaitable[tuple[str, ...]]] = nothing_to_warn_of
    """Gives what needs somebody though messages may be answered. In a trio task."""

    refresh: Callable[[], Awaitable[None]] = nothing_to_refresh
    """Brings the metrics up to date that nobody counts: whether it is ready, what
    waits, what is left of budgets. In a trio task."""

    tree: Callable[[str, str], bytes] = no_tree
    """Writes the actor tree as JSON. Takes the name of a branch (empty: all), and the
    name after which to go on. Called in a thread, as many actors take time. Raises
    `MisuseError` if the branch is no actor, or several."""

    nodes: NodeQuestions | None = None
    """Answers the other nodes of the company; None: there are none."""


class Voice(Protocol):
    """The models that transcribe recordings and speak texts, as the settings say."""

    @property
    def transcriber(self) -> Transcriber | None:
        """Transcribes recordings; None: not set."""
        ...

    @property
    def speaker(self) -> Speaker | None:
        """Speaks texts; None: not set."""
        ...


@dataclass(frozen=True)
class Backstage:
    """Access to the agents, the settings and the end of the program."""

    services: Services
    roster: Callable[[], Roster]
    """Gives all agents."""

    find: Callable[[str], ActorRef | None]
    """Gives a living actor by its name."""

    voice: Callable[[], Voice]
    settings: Callable[[], Mapping[str, str]]
    """Writes all settings out, secrets masked: `models.main.model` and its value."""

    end: Callable[[], None]
    """Ends the program in order, as a signal from outside would."""


PING = "ping"
"""GitHub's event that only says that the webhook was set up."""


class IncomingWebhook(msgspec.Struct, frozen=True, kw_only=True):
    """One webhook of the settings."""

    scheme: Scheme
    keys: Keys
    window: float
    """Seconds by which the sender's clock may differ."""

    agents: tuple[str, ...]
    address: Address
    platform: str
    task: str
    events: tuple[str, ...]
    fields: tuple[str, ...]
    max_chars: int
    is_group: bool
    per_minute: int
    max_open: int

    def wants(self, event: str) -> bool:
        """Tell whether an event starts a task."""
        if not self.events:
            return event != PING
        return any(fnmatchcase(event, pattern) for pattern in self.events)


class IncomingWebhooks(msgspec.Struct, frozen=True):
    """All webhooks, and the function that stores their deliveries."""

    find: Callable[[], Mapping[str, IncomingWebhook]]
    """Gives webhooks by name, as the settings are now. Called on the edge's thread."""

    hand_in: Callable[[Trigger], Awaitable[Triggered]]
    """Stores a delivery; in a trio task."""

    metrics: WebhookMetrics

    frame_key: bytes
    """Key of the frames around what webhooks bring."""


@dataclass(frozen=True)
class TransportParts:
    """Everything that a transport may be made from; each takes what it needs."""

    clock: Clock
    ids: IdSource
    bridge: Bridge
    """Leads to the asyncio loop, where the web server and some SDKs live."""

    operations: Operations
    agents: Callable[[], tuple[str, ...]]
    """Names the agents that people can speak to now; any thread may call it."""

    store: Store
    metrics: Metrics
    backstage: Backstage
    inside: Callable[[], ViewSources]
    """Gives what the operators' views look at, once all of it has been made."""

    blobs: BlobFolder | None = None
    """Has the bytes of files that agents send; None: they send none."""

    doors: IncomingWebhooks | None = None
    """The incoming webhooks; None: there are none."""

    peers: Peers | None = None
    """The other nodes of the company, which share chats with this one; None: none."""

    gates: Gates = field(default_factory=Gates)
    """Where the HTTP server finds who takes a platform's calls."""

    owners: tuple[str, ...] = ()
    """Who runs the company, each as `connector/sender id`."""

    presence: Callable[[], PresenceConfig] = PresenceConfig
    """Gives what people are to see while an answer is being made."""

    database: Path | None = None
    """Where the database lies, beside which other processes may be let in; None: in
    memory."""

    network: httpx.AsyncBaseTransport | None = None
    """Carries HTTP requests to platforms; None: the network does."""

    _made: dict[object, object] = field(default_factory=dict[object, object])

    def shown(self, agent: str) -> str:
        """Give what people call an agent; any thread may call it."""
        return self.backstage.roster().team.table.shown(agent)

    def once(self, make: Callable[[Metrics], T]) -> T:
        """Make metrics that all connectors of one kind share, at the first call.

        Args:
            make: registers them; later calls with the same one get the same metrics.
        """
        if make not in self._made:
            self._made[make] = make(self.metrics)
        return cast("T", self._made[make])
