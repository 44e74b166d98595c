"""What `callboard init` can choose from, and the settings file it writes. Pure.

Providers and connectors are those of the settings' own shape and of the example files
that come with the program: who adds one there finds it here.

The tables of a platform are those of its example file, with the agent's name put in.
Where something is still missing they are written as comments, so that the file is right
as it is.
"""

from __future__ import annotations

import re
import textwrap
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, cast

import msgspec

from actors.config.values import Name
from connectors.chat.platforms import platforms
from connectors.config.models import (
    AnthropicModelConfig,
    GoogleModelConfig,
    HttpModelConfig,
    OllamaModelConfig,
    OpenAIModelConfig,
)
from runtime.config.messages import toml
from runtime.secret import SecretSourceError, from_environment

EMBEDDED, OLLAMA = "embedded", "ollama"
TERMINAL, HTTP, PAGE = "terminal", "http", "page"

KINDS: dict[str, type[HttpModelConfig]] = {
    "openai": OpenAIModelConfig,
    "anthropic": AnthropicModelConfig,
    "google": GoogleModelConfig,
    "ollama": OllamaModelConfig,
}
ORDER = ("anthropic", "openai", "google", "openrouter")
"""Whose key counts first where there are several; then by name."""

MOST_MODEL_NAME = 200
"""Characters."""

MATRIX_ID = re.compile(r"@[a-z0-9._=/+-]+:[A-Za-z0-9.-]+(:\d{1,5})?")


class ChoiceError(Exception):
    """An answer is not understood; the text says which would be."""


class ProviderPreset(msgspec.Struct, frozen=True, kw_only=True):
    """A provider of models, as an example file configures it."""

    name: str
    kind: str
    """As in `[models.main]`."""

    model: str
    variable: str = ""
    """Where its key usually stands in the environment; empty: it asks for none."""

    base_url: str = ""
    """Empty: the kind's own."""


class AgentTemplate(msgspec.Struct, frozen=True):
    """An agent to begin with; its texts are in `config/templates/<name>/`."""

    agent: str
    """How it is called if nobody says otherwise."""

    description: str


TEMPLATES = {
    "assistant": AgentTemplate("anna", "An assistant for everyday questions."),
    "analyst": AgentTemplate("ben", "Works with numbers, plans and comparisons."),
    "host": AgentTemplate("mia", "The host of a group: greets, answers, introduces."),
}

Source = Literal["env", "file"]


class KeyPlace(msgspec.Struct, frozen=True):
    """Where a key is found; never the key itself."""

    source: Source
    place: str
    """Name of the variable, or path as the settings are to have it."""


class ModelChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The model that was chosen."""

    provider: ProviderPreset
    model: str
    key: KeyPlace | None = None
    base_url: str = ""
    """Empty: the provider's."""

    takes_tools: bool = True


class SettingsPlan(msgspec.Struct, frozen=True, kw_only=True):
    """All answers of `callboard init`."""

    choice: ModelChoice
    agent: str
    template: str
    people: tuple[str, ...]
    """Kinds of connectors."""

    matrix_id: str = ""
    """The agent's account; empty: nobody said."""

    others: tuple[tuple[str, str], ...] = ()
    """Further agents, to whom the first may hand work: name and template."""


NO_MODEL = ProviderPreset(name=EMBEDDED, kind="scripted", model="")


def providers(folder: Path) -> dict[str, ProviderPreset]:
    """Read which providers the example files know, in the order in which they count."""
    found: dict[str, ProviderPreset] = {}
    for path in sorted(folder.glob("*.toml")):
        provider = read_provider(path.stem, path.read_text(encoding="utf-8"))
        if provider is not None:
            found[provider.name] = provider
    rank = {name: place for place, name in enumerate(ORDER)}
    names = sorted(found, key=lambda name: (rank.get(name, len(rank)), name))
    return {name: found[name] for name in names} | {EMBEDDED: NO_MODEL}


def read_provider(name: str, text: str) -> ProviderPreset | None:
    """Read the one model of an example file; None if it is no example of a provider."""
    tables = cast("dict[str, dict[str, dict[str, object]]]", tomllib.loads(text))
    model = tables.get("models", {}).get("main", {})
    if set(tables.get("models", {})) != {"main"} or model.get("kind") not in KINDS:
        return None
    key = cast("dict[str, str]", model.get("api_key", {}))
    return ProviderPreset(
        name=name,
        kind=str(model["kind"]),
        model=str(model["model"]),
        variable=key.get("env", ""),
        base_url=str(model.get("base_url", "")),
    )


def usable_keys(
    known: Mapping[str, ProviderPreset], environment: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Find keys in the environment.

    Returns:
        The variable's name by the provider's; and why others that are set are none.
        Values are never told.
    """
    usable: dict[str, str] = {}
    useless: list[str] = []
    for name, provider in known.items():
        if provider.variable and provider.variable in environment:
            try:
                from_environment(provider.variable, environment)
            except SecretSourceError as error:
                useless.append(error.text)
            else:
                usable[name] = provider.variable
    return usable, useless


def read_model(
    answer: str, known: Mapping[str, ProviderPreset]
) -> tuple[ProviderPreset, str]:
    """Read `provider` or `provider/model`.

    Returns:
        The provider, and the model's name; empty: nobody named one.

    Raises:
        ChoiceError: there is no such provider, or no model can be called so.
    """
    name, _, model = answer.strip().partition("/")
    if name.lower() not in known:
        text = f"there is no {name!r}; known: {', '.join(known)}"
        raise ChoiceError(f"{text}; with a model, for example: openai/{name}")
    model = model.strip()
    if len(model) > MOST_MODEL_NAME or not model.isprintable():
        raise ChoiceError(f"no model's name is like that: {model[:40]!r}")
    return known[name.lower()], model


def read_agent(answer: str) -> str:
    """Read an agent's name.

    Raises:
        ChoiceError: agents are not called so.
    """
    try:
        return msgspec.convert(answer.strip().lower(), Name)
    except msgspec.ValidationError as error:
        text = "a name is a letter, then up to 31 of: small letters, digits, - and _"
        raise ChoiceError(text) from error


def read_agents(answer: str) -> tuple[str, ...]:
    """Read names of agents with commas between them, the first to be asked first.

    Raises:
        ChoiceError: agents are not called so, or two are called the same.
    """
    names = tuple(map(read_agent, answer.split(",")))
    if len({*names}) < len(names):
        raise ChoiceError("two agents cannot have the same name")
    return names


def read_one(answer: str, known: Iterable[str]) -> str:
    """Read one of several words.

    Raises:
        ChoiceError: it is none of them.
    """
    word, words = answer.strip().lower(), tuple(known)
    if word not in words:
        raise ChoiceError(f"there is no {word!r}; known: {', '.join(words)}")
    return word


def read_people(answer: str, known: Iterable[str]) -> tuple[str, ...]:
    """Read a list of kinds of connectors, each once.

    Raises:
        ChoiceError: one is unknown, or there is none.
    """
    words = answer.replace(",", " ").split()
    if not words:
        raise ChoiceError(f"name at least one of: {', '.join(known)}")
    names = tuple(known)
    return tuple(dict.fromkeys(read_one(word, names) for word in words))


def read_matrix_id(answer: str) -> str:
    """Read the id of an account; nothing stays nothing.

    Raises:
        ChoiceError: it is none.
    """
    word = answer.strip()
    if word and not MATRIX_ID.fullmatch(word):
        raise ChoiceError("a Matrix id is like @anna:example.org")
    return word


def connector_kinds(folder: Path) -> tuple[str, ...]:
    """Name the kinds of connectors that the settings know and that can be written.

    Those of platforms need an example file that shows one.
    """
    kinds = [each.kind for each in platforms()]
    has_example = {each.stem for each in folder.glob("*.toml")}
    return tuple(k for k in kinds if k in {TERMINAL, HTTP} or k in has_example)


SCRIPT = "embedded_script.toml"
MATRIX = "matrix"
EXAMPLE_AGENT = "anna"
PLACEHOLDER = re.compile(r"example\.(?:org|com|net)\b")
YOURS = re.compile(r"^(\w+) = .*# yours\b")
"""A value that an example can only make up."""

OWNERS = re.compile(r'^(?:# ?)?(owners = \[".+)$')
WIDTH = 86
"""Of comments, in characters."""

HEADER = re.compile(r"^\[+\s*([^\]]+?)\s*\]+")
OWN_TOOLS = ("calculate", "clock")

OLLAMA_WINDOW = 32_768
"""Tokens. The server's own bound is small, and what is longer it drops silently."""


def settings_text(
    plan: SettingsPlan,
    blocks: Mapping[str, str],
    why: Mapping[str, str],
    owners: tuple[str, ...] = (),
) -> str:
    """Write the whole file.

    Args:
        blocks: tables of platforms, by kind.
        why: platforms that are left out for now, and what they lack.
        owners: lines that show how owners are named.
    """
    lines = [
        "# Settings of Callboard, made by `callboard init`. Change what you like:",
        "# `callboard config check` says whether it is right, `callboard doctor`",
        "# whether it works, `callboard config explain` what else most companies set.",
        "",
        f"default_agent = {toml(plan.agent)} # answers when nobody is named",
        *owners,
        "",
        "[store]",
        "# Starts at the folder of this file, wherever Callboard is started.",
        'path = "var/callboard.db"',
        "",
        *model_lines(plan.choice),
        *people_lines(plan, blocks, why),
        *agent_lines(plan),
    ]
    return "\n".join(lines) + "\n"


def owner_line(text: str, plan: SettingsPlan) -> str:
    """Find how an example file names owners; as a comment, empty if it does not."""
    for line in text.splitlines():
        if match := OWNERS.match(line):
            domain = plan.matrix_id.partition(":")[2]
            known = PLACEHOLDER.sub(domain, match[1]) if domain else match[1]
            return f"# {known}"
    return ""


def model_lines(choice: ModelChoice) -> Iterator[str]:
    """Write the model's table."""
    provider = choice.provider
    yield "[models.main]"
    yield f"kind = {toml(provider.kind)}"
    if provider.name == EMBEDDED:
        yield "# No model is asked: it follows the rules in this file."
        yield f"script = {toml(SCRIPT)}"
        yield ""
        return
    yield f"model = {toml(choice.model)}"
    base_url = choice.base_url or provider.base_url
    if base_url:
        yield f"base_url = {toml(base_url)}"
    if choice.key is not None:
        yield "# Where the key is found. The key itself never stands in this file."
        yield f"api_key = {{ {choice.key.source} = {toml(choice.key.place)} }}"
    if not choice.takes_tools:
        yield "takes_tools = false # it refused them when it was tried"
    if provider.name == OLLAMA:
        yield "# Tokens. What is longer the server would drop without a word."
        yield f"context_tokens = {OLLAMA_WINDOW:_}"
    yield ""


def people_lines(
    plan: SettingsPlan, blocks: Mapping[str, str], why: Mapping[str, str]
) -> Iterator[str]:
    """Write where people write."""
    for kind in plan.people:
        if kind == TERMINAL:
            yield "[connectors.terminal] # used by `callboard chat`"
            yield 'kind = "terminal"'
        elif kind == HTTP:
            yield "# Used by `callboard serve`; only this machine reaches it. To let"
            yield '# others in, set host, and api_key = { env = "CALLBOARD_API_KEY" }.'
            yield "[connectors.http]"
            yield 'kind = "http"'
            yield "port = 8080"
        elif kind in why:
            reason = f"{kind} is left out for now: {why[kind]}"
            yield from (f"# {line}" for line in textwrap.wrap(reason, WIDTH))
            yield "# Then take away the `#` of these lines; more: config/default.toml."
            yield "#"
            yield from (f"# {line}".rstrip() for line in blocks[kind].splitlines())
        else:
            if kind == PAGE:
                yield "# For `callboard serve`; `callboard login` lets a browser in."
            yield from blocks[kind].splitlines()
        yield ""


def agent_lines(plan: SettingsPlan) -> Iterator[str]:
    """Write the agents' tables."""
    yield f"[agents.{plan.agent}]"
    yield 'model = "main"'
    yield "# Who it is stands in this folder; a change is in its next answer."
    yield f"persona = {toml(f'agents/{plan.agent}')}"
    yield f"tools = {toml(OWN_TOOLS)} # all: docs/agents/tools.md"
    if plan.others:
        names = tuple(name for name, _ in plan.others)
        yield f"delegates = {toml(names)} # may be handed work; others: @name"
    for name, template in plan.others:
        yield ""
        yield f"[agents.{name}]"
        yield 'model = "main"'
        yield f"description = {toml(TEMPLATES[template].description)}"
        yield f"persona = {toml(f'agents/{name}')}"
        yield f"tools = {toml(OWN_TOOLS)}"


def example_block(text: str, kind: str, plan: SettingsPlan) -> str:
    """Take a platform's tables from its example file, with the agent's name in.

    Args:
        kind: the connector's, which is also its name there.
    """
    wanted = (f"connectors.{kind}", f"presence.connectors.{kind}")
    chosen: list[str] = []
    for table in tables_of(text):
        name = header_name(table)
        if any(name == each or name.startswith(f"{each}.") for each in wanted):
            chosen.append(table.strip())
    return with_answers("\n\n".join(chosen), plan)


def tables_of(text: str) -> Iterator[str]:
    """Cut a file into its tables, each with the comments that stand right above it."""
    above: list[str] = []
    table: list[str] = []
    for line in text.splitlines():
        if HEADER.match(line):
            yield "\n".join(table)
            table = [*above, line]
            above = []
        elif line.startswith("#"):
            above.append(line)
        else:
            table += [*above, line]
            above = []
    yield "\n".join([*table, *above])


def header_name(table: str) -> str:
    """Find the name of a table; empty: it is what stands before all tables."""
    for line in table.splitlines():
        match = HEADER.match(line)
        if match:
            return match[1]
    return ""


def with_answers(block: str, plan: SettingsPlan) -> str:
    """Put the agent's name and account into an example."""
    if plan.matrix_id:
        domain = plan.matrix_id.partition(":")[2]
        block = block.replace("@anna:example.org", plan.matrix_id)
        block = block.replace("https://matrix.example.org", f"https://{domain}")
    return re.sub(rf'(?<=["\.]){EXAMPLE_AGENT}(?=["\.\]])', plan.agent, block)


def lacking(block: str) -> str:
    """Say what an example still needs; empty: nothing that can be seen."""
    lines = [line for line in block.splitlines() if not line.startswith("#")]
    made_up = [match[1] for line in lines if (match := YOURS.match(line))]
    if any(PLACEHOLDER.search(line) for line in lines):
        made_up.insert(0, "addresses and accounts")
    if made_up:
        return f"it needs {' and '.join(made_up)} of yours instead of the example's"
    return ""


def is_called(example: str) -> bool:
    """Whether a platform calls us, by the HTTP server that its example has."""
    return any(header_name(each) == f"connectors.{HTTP}" for each in tables_of(example))


def persona_text(text: str, agent: str) -> str:
    """Put an agent's name into a template's text."""
    return text.replace("{Name}", agent[:1].upper() + agent[1:])
