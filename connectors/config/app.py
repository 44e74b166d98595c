"""The whole settings file as a Struct, and the edges' own parts of it.

Only shapes, bounds and defaults; `connectors/settings/load.py` checks what must fit
together. Knows no chat platform: each brings its own `ConnectorConfig`.
`config/default.toml` lists every field, and a test keeps it true.
"""

import importlib.util
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from actors.config.access import (
    AccessConfig,
    AgentAccessConfig,
    CommandsConfig,
    PeopleConfig,
)
from actors.config.agents import AgentConfig, HiringConfig
from actors.config.collaboration import CollaborationConfig
from actors.config.limits import (
    ApprovalConfig,
    AuditConfig,
    BudgetConfig,
    LedgerConfig,
    LimitsConfig,
    PermissionConfig,
    ToolCallConfig,
)
from actors.config.presence import PresenceConfig
from actors.config.routes import RouteConfig
from actors.config.schedule import SchedulerConfig
from actors.config.sessions import (
    BufferingConfig,
    BusyPolicyConfig,
    CompactionConfig,
    SessionConfig,
    WatchdogConfig,
)
from actors.config.values import AgentName, Count, Name, Pace, Seconds
from actors.messages.state import RetryConfig
from connectors.config.hooks import HookConfig, WebhooksConfig
from connectors.config.mcp import McpServerConfig, ServerName, SkillsConfig
from connectors.config.models import (
    AccountConfig,
    CliModelConfig,
    EmbedderConfig,
    MemorySettings,
    ModelConfig,
)
from connectors.config.tools import (
    FetchConfig,
    FilesConfig,
    MediaConfig,
    SandboxConfig,
    WebSearchConfig,
    WorkspaceConfig,
)
from runtime.config.loader import GivenSecret, WrittenPath
from runtime.errors import SettingsError
from runtime.secret import Secret


class NotebookConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What agents write down for whoever runs them."""

    bug_file: WrittenPath = ""
    """The file of bugs that they report; empty: `bugs.md` beside the database."""


class ProjectsConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What people work on, as the operator describes it."""

    folder: Path | None = None
    """Holds `<name>.md`, or `<name>/PROJECT.md`, for each; unset: there are none."""


class StoreConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Where messages, conversations and answers are kept."""

    kind: Literal["sqlite", "postgresql"] = "sqlite"
    """What keeps them: a file, or a PostgreSQL server (extra `postgresql`)."""

    path: Annotated[WrittenPath, Meta(min_length=1)] = "var/callboard.db"
    """The database file; its folder is made if it is missing. With `postgresql` no such
    file is made; its folder holds what else is kept, such as the key of receipts."""

    dsn: GivenSecret | None = None
    """The address of the PostgreSQL database, which may hold a password."""

    synchronous: Literal["full", "normal"] = "full"
    """`full` survives a power cut; `normal` may lose the last moment, is faster."""


class NodesConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Several processes for one company, which share its chats."""

    name: Annotated[str, Meta(max_length=32)] = ""
    """The name of this process among them; each needs its own. Empty: there is only
    this process."""

    address: str = ""
    """Host name or address under which the other nodes reach the connectors of this
    one. Empty, which only goes without a connector of kind `http` or `websocket`: they
    pass nothing on to it."""

    ttl: Annotated[float, Meta(ge=2, le=60)] = 6.0
    """Seconds without a sign of life after which another node takes over."""


LIBRARY = "psycopg"
"""What the extra `postgresql` brings."""

INSTALL = "pip install 'callboard[postgresql]'"


def address_of(store: StoreConfig) -> str:
    """Give the address of a PostgreSQL database, with its password.

    Raises:
        SettingsError: it is not set, or what it needs is not installed.
    """
    if store.dsn is None:
        raise SettingsError(
            '[store] kind = "postgresql" needs the address of the database',
            hint='dsn = { env = "CALLBOARD_DATABASE" }',
        )
    if importlib.util.find_spec(LIBRARY) is None:
        raise SettingsError("the extra 'postgresql' is not installed", hint=INSTALL)
    return store.dsn.reveal()


class ConnectorConfig(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"
):
    """The settings of one connector; each kind has settings of its own.

    `connectors/chat/platforms.py` says which kinds there are.
    """


class ChatConfig(ConnectorConfig, frozen=True, kw_only=True):
    """What all chat platforms can be set to where agents have accounts."""

    access: AccessConfig | None = None
    """Who may write; unset: its owners alone."""

    retry_failures: bool = True
    """Whether a turn that failed is begun again after a while, by `[retries]`."""

    request_timeout: Seconds = 30.0
    """Seconds a request may take in all."""

    max_media_bytes: Count = 10_485_760
    """Largest file that is fetched with a message, in bytes; all files of one message
    have at most 40 MiB together."""

    pace: Pace = 1.0
    """Least seconds between two messages in one chat."""


class ServerConfig(ConnectorConfig, frozen=True, kw_only=True):
    """What all web servers can be set to."""

    host: str = "127.0.0.1"
    """Address to listen on; another than this machine's own needs `api_key`."""

    port: Annotated[int, Meta(ge=0, le=65_535)] = 8080
    """TCP port; 0 takes any free one."""

    max_body_bytes: Count = 1_048_576
    """Longest request body, in bytes; a longer one is refused unread."""

    body_timeout: Seconds = 15.0
    """Seconds a client may take to send its body."""

    max_connections: Count = 512
    """Connections held at once; further ones are told to try again."""

    trusted_proxies: tuple[str, ...] = ()
    """Addresses, or networks, of proxies before this server. What they say of where a
    request comes from (`X-Forwarded-For`) is believed, and nobody else's word."""


class HttpConfig(ServerConfig, frozen=True, kw_only=True, tag="http"):
    """The HTTP server of `callboard serve`."""

    api_key: Secret | None = None
    """Bearer token that clients must send; unset asks for none."""

    retry_failures: bool = False
    """Whether a turn that failed is begun again after a while, by `[retries]`. False:
    the client is told at once, and may ask again."""

    access: AccessConfig | None = None
    """Whose messages are taken in, by their `user`; unset: everybody's who has the
    key. What a client says of its user is believed."""


ADMIN_PORT = 8082
"""TCP port for operators where nobody has set one."""


class AdminConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Where operators and monitoring look at what `callboard serve` runs."""

    is_on: bool = True
    """Whether `/metrics`, `/healthz`, `/readyz` and `/actors` are served there."""

    host: str = "127.0.0.1"
    """Address to listen on; another than this machine's own needs `api_key`."""

    port: Annotated[int, Meta(ge=0, le=65_535)] | None = None
    """TCP port; 0 takes any free one. Unset: 8082, or none if another program has that;
    a port that is set and taken ends the start."""

    api_key: Secret | None = None
    """Bearer token for `/metrics` and `/actors`; unset asks for none. Probes never need
    it."""


class LogConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What is logged, and where."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least important kind of line that is written."""

    format: Literal["text", "json"] = "text"
    """`text` for eyes, `json` (one object in each line) for machines."""

    pace: Annotated[float, Meta(ge=0, le=10)] = 0.05
    """Seconds that a line below a warning may wait, so that many are written at once;
    0 writes each at once."""

    texts: bool = False
    """Whether lines may hold what people and agents say, and what providers and
    programs answer, as that may quote people. False: who, where, how long, how it
    ended."""

    file: WrittenPath = ""
    """The file to which lines are appended instead of standard error; empty: none."""

    max_file_bytes: Annotated[int, Meta(ge=10_000)] = 50_000_000
    """Size at which that file becomes `<file>.1`, in place of the one before, and a new
    one begins."""


class TracingConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Where the steps of each message are sent as a trace (extra `otel`)."""

    is_on: bool = False
    """Whether messages are traced."""

    endpoint: str = ""
    """Address of the collector that takes OTLP over HTTP; `/v1/traces` is added unless
    it ends so. Empty: what OTEL_EXPORTER_OTLP_ENDPOINT and its like say, else
    http://localhost:4318."""

    headers: dict[str, GivenSecret] = field(default_factory=dict[str, GivenSecret])
    """HTTP headers for the collector, such as `authorization`."""

    sample_ratio: Annotated[float, Meta(ge=0, le=1)] | None = None
    """Part of all messages that are traced, from 0 to 1. Unset: what
    OTEL_TRACES_SAMPLER says, else all."""


OTEL_LIBRARY = "opentelemetry.exporter.otlp.proto.http"
"""What the extra `otel` brings, last of all."""

OTEL_INSTALL = "pip install 'callboard[otel]'"


def has_otel() -> bool:
    """Tell whether the extra `otel` is installed."""
    try:
        return importlib.util.find_spec(OTEL_LIBRARY) is not None
    except ModuleNotFoundError:  # of a package above it
        return False


class AppConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that one settings file says."""

    default_agent: str = ""
    """Answers direct chats that name no agent and fit no route; empty: nobody."""

    owners: tuple[str, ...] = ()
    """Who runs this company, each as `connector/sender id`; their messages come
    first."""

    store: StoreConfig = field(default_factory=StoreConfig)
    nodes: NodesConfig = field(default_factory=NodesConfig)
    admin: AdminConfig = field(default_factory=AdminConfig)
    log: LogConfig = field(default_factory=LogConfig)
    tracing: TracingConfig = field(default_factory=TracingConfig)
    sessions: SessionConfig = field(default_factory=SessionConfig)
    compaction: CompactionConfig = field(default_factory=CompactionConfig)
    buffering: BufferingConfig = field(default_factory=BufferingConfig)
    busy_policies: tuple[BusyPolicyConfig, ...] = ()
    watchdog: WatchdogConfig = field(default_factory=WatchdogConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    retries: RetryConfig = field(default_factory=RetryConfig)
    audit: AuditConfig = field(default_factory=AuditConfig)
    sandbox: SandboxConfig = field(default_factory=SandboxConfig)
    fetch: FetchConfig = field(default_factory=FetchConfig)
    web_search: WebSearchConfig = field(default_factory=WebSearchConfig)
    workspace: WorkspaceConfig = field(default_factory=WorkspaceConfig)
    files: FilesConfig = field(default_factory=FilesConfig)
    media: MediaConfig = field(default_factory=MediaConfig)
    memory: MemorySettings = field(default_factory=MemorySettings)
    tool_calls: ToolCallConfig = field(default_factory=ToolCallConfig)
    approvals: ApprovalConfig = field(default_factory=ApprovalConfig)
    collaboration: CollaborationConfig = field(default_factory=CollaborationConfig)
    presence: PresenceConfig = field(default_factory=PresenceConfig)
    scheduler: SchedulerConfig = field(default_factory=SchedulerConfig)
    permissions: tuple[PermissionConfig, ...] = ()
    people: PeopleConfig = field(default_factory=PeopleConfig)
    commands: CommandsConfig = field(default_factory=CommandsConfig)
    hiring: HiringConfig = field(default_factory=HiringConfig)
    ledger: LedgerConfig = field(default_factory=LedgerConfig)
    budgets: tuple[BudgetConfig, ...] = ()
    accounts: dict[Name, AccountConfig] = field(
        default_factory=dict[str, AccountConfig]
    )
    models: dict[Name, ModelConfig] = field(default_factory=dict[str, ModelConfig])
    embedders: dict[Name, EmbedderConfig] = field(
        default_factory=dict[str, EmbedderConfig]
    )
    connectors: dict[Name, ConnectorConfig] = field(
        default_factory=dict[str, ConnectorConfig]
    )
    agent_defaults: AgentConfig = field(default_factory=AgentConfig)
    access: tuple[AgentAccessConfig, ...] = ()
    agents: dict[AgentName, AgentConfig] = field(default_factory=dict[str, AgentConfig])
    routes: tuple[RouteConfig, ...] = ()
    mcp_servers: dict[ServerName, McpServerConfig] = field(
        default_factory=dict[str, McpServerConfig], name="mcpServers"
    )
    mcp_servers_file: Path | None = None
    """A JSON file with `mcpServers`, as other programs have it; a server that the
    settings have too is theirs."""

    hooks: dict[Name, HookConfig] = field(default_factory=dict[str, HookConfig])
    skills: SkillsConfig = field(default_factory=SkillsConfig)
    notebook: NotebookConfig = field(default_factory=NotebookConfig)
    projects: ProjectsConfig = field(default_factory=ProjectsConfig)
    webhooks: WebhooksConfig = field(default_factory=WebhooksConfig)

    @property
    def program_seconds(self) -> dict[str, float]:
        """Give the models that are programs, and how long each may take."""
        return {
            name: model.timeout
            for name, model in self.models.items()
            if isinstance(model, CliModelConfig)
        }

    @property
    def program_agents(self) -> frozenset[str]:
        """Name the agents whose model is a program."""
        programs = self.program_seconds
        return frozenset(n for n, each in self.agents.items() if each.model in programs)

    @property
    def has_http(self) -> bool:
        """Whether there is an HTTP server, which platforms can call."""
        return any(isinstance(each, HttpConfig) for each in self.connectors.values())
