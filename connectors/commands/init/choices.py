"""What `callboard init` can choose from, and how an answer is read.

Providers and connectors are those of the settings' own shape and of the example files
that come with the program: who adds one there finds it here.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
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
    """Read which providers the example files know, in the order in which they count.

    Args:
        folder: of the settings files that come with the program.
    """
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
        raise ChoiceError(f"there is no {name!r}; known: {', '.join(known)}")
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
