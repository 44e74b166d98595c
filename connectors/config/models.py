"""The settings of models and embedders. To add a kind, add a Struct here.

A Struct names its kind (`tag`) and the module whose `make_model` makes it, and stands
in the union `ModelConfig`. One in this process is an `EmbeddedModelConfig`; one of a
provider is an `HttpModelConfig`, with an account of the same kind beside it. The
settings of memory at the edges say who makes vectors, and where daily logs lie.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, cast

import msgspec
from msgspec import Meta, Struct

from actors.config.memory import MemoryConfig
from actors.config.values import Count, Seconds
from actors.models.catalogue import OWN, PROGRAM, PriceList, Prices
from runtime.config.loader import CommandText, GivenSecret, WrittenPath, load
from runtime.secret import OpenText

Price = Annotated[float, Meta(ge=0)]
HeaderName = Annotated[str, Meta(pattern="[A-Za-z0-9_-]+", max_length=100)]
Connections = Annotated[int, Meta(ge=1, le=10_000)]


class EmbeddedModelConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """A model that runs in this process: no address, no account, no fallbacks."""

    # Which module makes it; imported only for settings that name the kind.
    module: ClassVar[str]


class ScriptedModelConfig(
    EmbeddedModelConfig, frozen=True, tag_field="kind", tag="scripted"
):
    """The offline model: answers by rules, without a key or a network."""

    module = "connectors.models.scripted"

    script: Path
    """Rules file, relative to the settings file."""


class CliModelConfig(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="cli"
):
    """A program that answers: Claude Code, Codex, or one that is called as either is.

    It always runs in the sandbox. It keeps each conversation in a folder of its own,
    `<workspace>/cli/<agent>/<conversation>`, which is also its `HOME`.
    """

    fallbacks: tuple[str, ...] = ()
    """Models to ask when this one cannot answer, in order."""

    model: str = ""
    """Given with `model_flag`; empty leaves it to the program."""

    command: Annotated[tuple[CommandText, ...], Meta(min_length=1)] = ("claude",)
    """The program, and arguments that come first. A file that one of them names is
    looked for beside the settings, and may be read."""

    arguments: tuple[str, ...] = (
        "-p",
        "--output-format",
        "json",
        "--dangerously-skip-permissions",
    )
    """What makes it read the prompt from standard input, print JSON and ask nobody."""

    model_flag: str = "--model"
    """Empty: it has none."""

    turns_flag: str = "--max-turns"
    """Empty: it has none."""

    resume_flag: str = "--resume"
    """Goes on with an earlier conversation; empty: it cannot, and is told all anew."""

    servers_flag: str = "--mcp-config"
    """Names a file with servers of tools (MCP); empty: it takes none."""

    max_turns: Count = 25
    """Steps it may take at a time; it is started again up to five times for more."""

    variables: dict[str, str] = {}
    """Variables it is given; it sees no others, but for a few harmless ones."""

    secrets: dict[str, GivenSecret] = {}
    """Variables that are secrets, as its key: `{ ANTHROPIC_API_KEY = { env = "…" } }`.
    Their values never reach the log."""

    readable: tuple[Path, ...] = ()
    """Folders it may read besides the system's: where it is installed, for example."""

    writable: tuple[Path, ...] = ()
    """Folders it may change besides its own."""

    timeout: Seconds = 3600.0
    """Seconds until it is killed. Its agents' turns may take as long, whatever
    `limits.turn_timeout` says."""

    max_at_once: Count = 4
    """Of its processes, three quarters of them for one person; more answers wait."""


class ConnectionConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How a provider is reached over HTTP."""

    base_url: str
    """Address that all requests begin with."""

    api_key: GivenSecret | None = None
    """Leave it out for a server that asks for none."""

    headers: dict[HeaderName, OpenText] = {}
    """Further headers of each request, as `{ api-key = { env = "AZURE_KEY" } }`. They
    count more than those of the provider's kind."""

    stream: bool = True
    """Whether answers are read word by word, as they are written, or in one piece."""

    connect_timeout: Seconds = 10.0
    """Seconds until the connection stands, encryption included."""

    first_byte_timeout: Seconds = 60.0
    """Seconds from asking to the first byte of the answer, connecting included."""

    idle_timeout: Seconds = 60.0
    """Seconds between two pieces of a streamed answer."""

    total_timeout: Seconds = 280.0
    """Seconds for the whole call; below `limits.turn_timeout`, so that the person
    hears which part was slow."""

    max_connections: Connections = 128
    """Calls at once; more wait up to `connect_timeout`."""


class HttpModelConfig(ConnectionConfig, frozen=True, kw_only=True):
    """A model of a provider that is asked over HTTP.

    Without `accounts` the table is the account, too; with them it says nothing of how
    to reach the provider.
    """

    # Which module makes it; imported only for settings that name the kind, as HTTP
    # clients take a fifth of the whole start.
    module: ClassVar[str]

    # Kind under which price lists have its models; empty: its own.
    priced_as: ClassVar[str] = ""

    model: str
    """The provider's name of the model."""

    accounts: tuple[str, ...] = ()
    """Which of `[accounts.<name>]` have it."""

    fallbacks: tuple[str, ...] = ()
    """Models to ask when no account can answer for this one, in order."""

    larger: str = ""
    """The model to ask when a conversation is too long for this one."""

    context_window: Count | None = None
    """Tokens it reads at most, question, history and all; unset: what the agent's
    `context.window_tokens` says."""

    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    """Share of the likeliest words it chooses from; unset: the provider's default."""

    extra_body: dict[str, Any] = {}
    """Further parameters of each request in the provider's own words, merged into its
    body at every depth, as `{ service_tier = "flex" }`."""

    takes_images: bool = True
    """Whether the model can see; a picture is named to one that cannot."""

    takes_tools: bool = True
    """Whether the model can call tools; they are kept from one that cannot."""

    input_price: Price | None = None
    """US dollars for a million tokens read; unset: as the price list says."""

    cached_price: Price | None = None
    """US dollars for a million tokens that the provider had in its cache; unset: as
    those read, or as the price list says."""

    output_price: Price | None = None
    """US dollars for a million tokens written; unset: as the price list says."""

    def parameters(self) -> dict[str, object]:
        """Write `top_p` and its kin as the provider calls them."""
        return given(top_p=self.top_p)


class OpenAIModelConfig(
    HttpModelConfig, frozen=True, kw_only=True, tag_field="kind", tag="openai"
):
    """Any server that speaks OpenAI's Chat Completions."""

    module = "connectors.models.openai.model"

    base_url: str = "https://api.openai.com/v1"
    """Address up to and without `/chat/completions`."""

    max_tokens_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """How the provider calls the bound on an answer's tokens."""

    seed: int | None = None
    """For answers that are alike each time, as far as the provider can."""

    reasoning_effort: str = ""
    """How long it thinks: `low`, `medium`, `high` or what else the provider takes;
    empty: as it likes."""

    def parameters(self) -> dict[str, object]:
        """Write them as the provider calls them."""
        effort = self.reasoning_effort or None
        return given(top_p=self.top_p, seed=self.seed, reasoning_effort=effort)


class OpenAIResponsesModelConfig(
    HttpModelConfig, frozen=True, kw_only=True, tag_field="kind", tag="openai_responses"
):
    """OpenAI's Responses API, or any server that speaks it."""

    module = "connectors.models.openai.model"
    priced_as = "openai"

    base_url: str = "https://api.openai.com/v1"
    """Address up to and without `/responses`."""

    reasoning_effort: str = ""
    """How long it thinks: `low`, `medium`, `high` or what else the provider takes;
    empty: as it likes."""

    def parameters(self) -> dict[str, object]:
        """Write them as the provider calls them."""
        effort = self.reasoning_effort
        reasoning = {"effort": effort} if effort else None
        return given(top_p=self.top_p, reasoning=reasoning)


class AnthropicModelConfig(
    HttpModelConfig, frozen=True, kw_only=True, tag_field="kind", tag="anthropic"
):
    """Anthropic's Messages, or any server that speaks it."""

    module = "connectors.models.anthropic"

    base_url: str = "https://api.anthropic.com/v1"
    """Address up to and without `/messages`."""

    max_tokens: Count = 8_192
    """Most tokens of an answer where the agent says nothing: the API wants a number."""


class GoogleModelConfig(
    HttpModelConfig, frozen=True, kw_only=True, tag_field="kind", tag="google"
):
    """Google's generateContent."""

    module = "connectors.models.google"

    base_url: str = "https://generativelanguage.googleapis.com/v1beta"
    """Address up to and without `/models/`."""

    seed: int | None = None
    """For answers that are alike each time, as far as the provider can."""

    def parameters(self) -> dict[str, object]:
        """Write them as the provider calls them."""
        own = given(topP=self.top_p, seed=self.seed)
        return {"generationConfig": own} if own else {}


class OllamaModelConfig(
    HttpModelConfig, frozen=True, kw_only=True, tag_field="kind", tag="ollama"
):
    """An Ollama server."""

    module = "connectors.models.ollama"

    base_url: str = "http://127.0.0.1:11434"
    """Address up to and without `/api/chat`."""

    takes_images: bool = False
    """Whether the model can see; most that run at home cannot."""

    context_tokens: Count | None = None
    """Tokens the model reads at most; unset leaves it to the server, which drops what
    is too long without a word."""

    seed: int | None = None
    """For answers that are alike each time."""

    def parameters(self) -> dict[str, object]:
        """Write them as the server calls them."""
        own = given(top_p=self.top_p, seed=self.seed)
        return {"options": own} if own else {}


ModelConfig = (
    ScriptedModelConfig
    | CliModelConfig
    | OpenAIModelConfig
    | OpenAIResponsesModelConfig
    | AnthropicModelConfig
    | GoogleModelConfig
    | OllamaModelConfig
)


class HttpAccountConfig(ConnectionConfig, frozen=True, kw_only=True):
    """An account with a provider, for models that name it."""

    preference: Annotated[int, Meta(ge=-1_000, le=1_000)] = 0
    """Lower ones are asked first; among equals the one used least."""


class OpenAIAccountConfig(
    HttpAccountConfig, frozen=True, kw_only=True, tag_field="kind", tag="openai"
):
    """An account at any server that speaks OpenAI's Chat Completions."""

    base_url: str = "https://api.openai.com/v1"
    """Address up to and without `/chat/completions`."""

    max_tokens_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """How the provider calls the bound on an answer's tokens."""


class OpenAIResponsesAccountConfig(
    HttpAccountConfig,
    frozen=True,
    kw_only=True,
    tag_field="kind",
    tag="openai_responses",
):
    """An account at OpenAI, or any server that speaks its Responses API."""

    base_url: str = "https://api.openai.com/v1"
    """Address up to and without `/responses`."""


class AnthropicAccountConfig(
    HttpAccountConfig, frozen=True, kw_only=True, tag_field="kind", tag="anthropic"
):
    """An account at Anthropic, or any server that speaks its Messages."""

    base_url: str = "https://api.anthropic.com/v1"
    """Address up to and without `/messages`."""

    max_tokens: Count = 8_192
    """Most tokens of an answer where the agent says nothing: the API wants a number."""


class GoogleAccountConfig(
    HttpAccountConfig, frozen=True, kw_only=True, tag_field="kind", tag="google"
):
    """An account for Google's generateContent."""

    base_url: str = "https://generativelanguage.googleapis.com/v1beta"
    """Address up to and without `/models/`."""


class OllamaAccountConfig(
    HttpAccountConfig, frozen=True, kw_only=True, tag_field="kind", tag="ollama"
):
    """An Ollama server."""

    base_url: str = "http://127.0.0.1:11434"
    """Address up to and without `/api/chat`."""

    context_tokens: Count | None = None
    """Tokens the models read at most; unset leaves it to the server, which drops what
    is too long without a word."""


AccountConfig = (
    OpenAIAccountConfig
    | OpenAIResponsesAccountConfig
    | AnthropicAccountConfig
    | GoogleAccountConfig
    | OllamaAccountConfig
)

KINDS: dict[type[HttpAccountConfig], type[HttpModelConfig]] = {
    OpenAIAccountConfig: OpenAIModelConfig,
    OpenAIResponsesAccountConfig: OpenAIResponsesModelConfig,
    AnthropicAccountConfig: AnthropicModelConfig,
    GoogleAccountConfig: GoogleModelConfig,
    OllamaAccountConfig: OllamaModelConfig,
}
"""Which models an account of each kind can have."""


def given(**parameters: object) -> dict[str, object]:
    """Give those that are set."""
    return {name: each for name, each in parameters.items() if each is not None}


def merged(
    under: Mapping[str, object], over: Mapping[str, object]
) -> dict[str, object]:
    """Merge two tables at every depth; `over` counts where both have a value."""
    found = dict(under)
    for key, value in over.items():
        below = found.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            below = cast("dict[str, object]", below)
            found[key] = merged(below, cast("dict[str, object]", value))
        else:
            found[key] = value
    return found


def kind_of(settings: ConnectionConfig) -> str:
    """Give the `kind` of a model or an account."""
    return str(settings.__struct_config__.tag)


def as_model(account: HttpAccountConfig) -> HttpModelConfig:
    """Write an account down as the settings of its client, which name no model."""
    given = msgspec.structs.asdict(account)
    del given["preference"]
    return KINDS[type(account)](model="", **given)


Dimensions = Annotated[int, Meta(ge=16, le=8_192)]


class HttpEmbedderConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An embedder that is asked over HTTP."""

    model: str
    """The provider's name of the model."""

    base_url: str
    """Address that all requests begin with."""

    api_key: GivenSecret | None = None
    """Sent as a bearer token; leave it out for a server that asks for none."""

    dimensions: Dimensions | None = None
    """Asked of models that can make shorter vectors; unset: the model's own."""

    max_text_chars: Count = 8_000
    """Most characters of a text that are sent; of a longer one the beginning."""

    timeout: Seconds = 30.0
    """Seconds for one request; a question waits half of `memory.recall_timeout`."""


class OpenAIEmbedderConfig(
    HttpEmbedderConfig, frozen=True, kw_only=True, tag_field="kind", tag="openai"
):
    """OpenAI's embeddings, or any server that speaks them."""

    model: str = "text-embedding-3-small"
    """The provider's name of the model."""

    base_url: str = "https://api.openai.com/v1"
    """Address up to and without `/embeddings`."""


class OllamaEmbedderConfig(
    HttpEmbedderConfig, frozen=True, kw_only=True, tag_field="kind", tag="ollama"
):
    """An Ollama server."""

    model: str = "nomic-embed-text"
    """The server's name of the model."""

    base_url: str = "http://127.0.0.1:11434"
    """Address up to and without `/api/embed`."""


EmbedderConfig = OpenAIEmbedderConfig | OllamaEmbedderConfig

HASHING = "hashing"
OFF = "off"


class MemorySettings(MemoryConfig, frozen=True, kw_only=True):
    """What agents remember, how it is found, where it is written down."""

    folder: WrittenPath = "var/memory"
    """The folder of the daily logs, `<folder>/<agent>/memory/YYYY-MM-DD.md`; no tool of
    an agent reaches it."""

    embedder: str = HASHING
    """Who makes vectors of what is remembered: `hashing` (embedded; by words and their
    parts), `off`, or one of `[embedders.<name>]`."""


def load_prices(path: Path) -> PriceList:
    """Read a price list.

    Raises:
        runtime.errors.SettingsError: it is none.
    """
    return load(path, PriceList, environment={}).value


def prices_of(model: ModelConfig, price_list: PriceList) -> Prices:
    """Find a model's prices: its own, or those of the list."""
    if isinstance(model, CliModelConfig):
        return Prices(version=PROGRAM)
    if not isinstance(model, HttpModelConfig):
        return Prices()
    listed = price_list.find(model.priced_as or kind_of(model), model.model)
    own = (model.input_price, model.output_price, model.cached_price)
    if all(each is None for each in own):
        return listed
    return Prices(
        input=listed.input if model.input_price is None else model.input_price,
        output=listed.output if model.output_price is None else model.output_price,
        cached=own_cached(model, listed),
        version=OWN,
    )


def own_cached(model: HttpModelConfig, listed: Prices) -> float | None:
    """Find the price of cached tokens; one of another price list would be a mixture."""
    if model.cached_price is not None:
        return model.cached_price
    return listed.cached if model.input_price is None else None
