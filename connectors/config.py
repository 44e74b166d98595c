"""The whole settings file as a Struct, and the edges' own parts of it.

Only shapes, bounds and defaults; what must fit together is `settings.py`. Knows no
concrete edge. `config/default.toml` lists every field, and a test keeps it true.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from actors.config import (
    AgentConfig,
    AuditConfig,
    Count,
    LimitsConfig,
    Name,
    RetryConfig,
    RouteConfig,
    Seconds,
    SessionConfig,
)
from runtime.secret import Secret

PERSONA_FILES = ("IDENTITY.md", "SOUL.md", "MOTIVATIONS.md", "GOALS.md", "AGENTS.md")
"""What a persona's folder may hold, in the order of the prompt (F171)."""


class StoreConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Where messages, conversations and answers are kept."""

    path: str = "var/callboard.db"
    """The database file. Relative to the current directory, unlike paths of things
    that are read: state belongs to where you run it, not beside the settings."""

    synchronous: Literal["full", "normal"] = "full"
    """`full` survives a power cut; `normal` may lose the last moment, is faster."""


class ScriptedModelConfig(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="scripted"
):
    """The embedded model: answers by rules, without a key or a network."""

    script: Path
    """Rules file, relative to the settings file."""


class OpenAIModelConfig(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="openai"
):
    """Any server that speaks OpenAI's Chat Completions."""

    model: str
    """The provider's name of the model."""

    base_url: str = "https://api.openai.com/v1"
    """Address up to and without `/chat/completions`."""

    api_key: Secret | None = None
    """Sent as a bearer token; leave it out for a local server without keys."""

    connect_timeout: Seconds = 10.0
    """Seconds until the connection stands, encryption included."""

    first_byte_timeout: Seconds = 60.0
    """Seconds from asking to the first byte of the answer, connecting included."""

    idle_timeout: Seconds = 60.0
    """Seconds between two pieces of a streamed answer."""

    total_timeout: Seconds = 280.0
    """Seconds for the whole call; below `limits.turn_timeout`, so that the person
    hears which part was slow."""

    max_connections: Annotated[int, Meta(ge=1, le=10_000)] = 128
    """Calls at once; more wait up to `connect_timeout`."""

    input_price: Annotated[float, Meta(ge=0)] = 0.0
    """US dollars for a million tokens read, for the ledger."""

    output_price: Annotated[float, Meta(ge=0)] = 0.0
    """US dollars for a million tokens written, for the ledger."""

    max_tokens_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """How the provider calls the bound on an answer's tokens."""


class TerminalConfig(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="terminal"
):
    """The terminal that `callboard chat` runs in."""

    user: str = "you"
    """Name of the person at the keyboard, as the agents see it."""

    retry_failures: bool = True
    """Whether a turn that failed is begun again after a while, by `[retries]`."""

    on_unknown: Literal["resend", "hold"] = "resend"
    """What is done after a crash about an answer that may have been shown: say it
    again, or keep it back until `callboard queue retry` or `drop` decides."""


class HttpConfig(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="http"
):
    """The HTTP server of `callboard serve`."""

    host: str = "127.0.0.1"
    """Address to listen on; another than this machine's own needs `api_key`."""

    port: Annotated[int, Meta(ge=0, le=65_535)] = 8080
    """TCP port; 0 takes any free one."""

    api_key: Secret | None = None
    """Bearer token that clients must send; unset asks for none."""

    retry_failures: bool = False
    """Whether a turn that failed is begun again after a while, by `[retries]`. False:
    the client is told at once, and may ask again."""

    max_body_bytes: Count = 1_048_576
    """Longest request body, in bytes; a longer one is refused unread."""

    body_timeout: Seconds = 15.0
    """Seconds a client may take to send its body."""

    max_connections: Count = 512
    """Connections held at once; further ones are told to try again."""


class LogConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What goes to standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least important kind of line that is written."""

    format: Literal["text", "json"] = "text"
    """`text` for eyes, `json` (one object in each line) for machines."""

    pace: Annotated[float, Meta(ge=0, le=10)] = 0.05
    """Seconds that a line below a warning may wait, so that many are written at once;
    0 writes each at once."""


class SandboxConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Where the programs run that agents start."""

    mode: Literal["auto", "bubblewrap", "landlock", "none"] = "auto"
    """`auto`: bubblewrap if it works here, else Landlock. `none`: no protection."""

    required: bool = True
    """Whether programs are refused where there is no sandbox; False runs them with no
    protection then."""

    readable: tuple[Path, ...] = ()
    """Files and folders that all programs may read, besides what the system needs."""


class FetchConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What may be fetched from addresses that people and models give."""

    allow: tuple[str, ...] = ()
    """Exceptions: networks and hosts with ports that are reached though they are not
    public, as `10.1.0.0/16`, `10.1.2.3` or `search.lan:8080`."""

    max_bytes: Annotated[int, Meta(ge=1, le=1_073_741_824)] = 10_485_760
    """Longest answer, as sent and as unpacked, in bytes."""

    timeout: Seconds = 30.0
    """Seconds for one answer, redirects included."""

    max_redirects: Annotated[int, Meta(ge=0, le=20)] = 3
    """Redirects that are followed; each is checked like the first address."""

    max_at_once: Annotated[int, Meta(ge=1, le=1_000)] = 8
    """Answers fetched at once; more wait, within their `timeout`."""

    page_chars: Annotated[int, Meta(ge=100, le=1_000_000)] = 3_000
    """Most characters of a page that the tool `http_fetch` gives at once."""


class WebSearchConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The search engine behind the tool `web_search`."""

    kind: Literal["off", "searxng", "brave"] = "off"
    """Which engine; `off`: no agent can have the tool."""

    base_url: str = ""
    """Its address: of SearXNG up to and without `/search`; of Brave empty."""

    api_key: Secret | None = None
    """Brave's key."""

    results: Annotated[int, Meta(ge=1, le=20)] = 5
    """Pages given for one search."""


class WorkspaceConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Where agents keep the files they work on."""

    path: str = "var/workspace"
    """The folder; each agent has one of its own in it. Relative to the current
    directory, as the database is."""

    max_bytes: Count = 104_857_600
    """Most bytes of all files of one agent, as its tools count them."""

    max_file_bytes: Count = 10_485_760
    """Longest file that the tools read or write, in bytes."""

    max_files: Count = 10_000
    """Most files and folders of one agent."""

    read_chars: Annotated[int, Meta(ge=100, le=1_000_000)] = 8_000
    """Most characters of a file that the tool `read_file` gives at once."""


ModelConfig = ScriptedModelConfig | OpenAIModelConfig
ConnectorConfig = TerminalConfig | HttpConfig


class AppConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that one settings file says."""

    default_agent: str = ""
    """Answers direct chats that name no agent and fit no route; empty: nobody."""

    owners: tuple[str, ...] = ()
    """Who runs this company, each as `connector/sender id`; their messages come
    first."""

    store: StoreConfig = field(default_factory=StoreConfig)
    log: LogConfig = field(default_factory=LogConfig)
    sessions: SessionConfig = field(default_factory=SessionConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    retries: RetryConfig = field(default_factory=RetryConfig)
    audit: AuditConfig = field(default_factory=AuditConfig)
    sandbox: SandboxConfig = field(default_factory=SandboxConfig)
    fetch: FetchConfig = field(default_factory=FetchConfig)
    web_search: WebSearchConfig = field(default_factory=WebSearchConfig)
    workspace: WorkspaceConfig = field(default_factory=WorkspaceConfig)
    models: dict[Name, ModelConfig] = field(default_factory=dict[str, ModelConfig])
    connectors: dict[Name, ConnectorConfig] = field(
        default_factory=dict[str, ConnectorConfig]
    )
    agent_defaults: AgentConfig = field(default_factory=AgentConfig)
    agents: dict[Name, AgentConfig] = field(default_factory=dict[str, AgentConfig])
    routes: tuple[RouteConfig, ...] = ()
