"""Asks model accounts for their list of models, which costs nothing.

A list tells that the address is right, that the key is taken, and mostly whether the
models that settings name are there.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from http import HTTPStatus
from typing import cast

import httpx
import msgspec

from connectors.admin.probes import Finding, Probe, State
from connectors.app.models import accounts
from connectors.config.app import AppConfig
from connectors.config.models import (
    AnthropicModelConfig,
    GoogleModelConfig,
    HttpModelConfig,
    OllamaModelConfig,
    OpenAIModelConfig,
    OpenAIResponsesModelConfig,
    ScriptedModelConfig,
)
from connectors.models.anthropic import AnthropicFormat
from connectors.models.format import Format
from connectors.models.google import GoogleFormat
from connectors.models.http.connections import (
    address,
    check_address,
    likely_base,
    request_headers,
    sendable_key,
)
from connectors.models.ollama import OllamaFormat
from connectors.models.openai.model import OpenAIFormat, OpenAIResponsesFormat
from connectors.models.scripted import load_script
from runtime.errors import SettingsError

ABOUT = "model"
MOST_BYTES = 8 * 1024 * 1024
"""Of a list; OpenRouter's has some 700 KB."""

NOT_LET_IN = frozenset({401, 403})
NO_LIST = frozenset({404, 405, 501})
TOO_MANY, FAULT = 429, 500
LATEST = ":latest"
FOLDER = "models/"


class ModelName(msgspec.Struct, frozen=True):
    """A model, in any provider's words."""

    id: str = ""
    name: str = ""


class ModelListing(msgspec.Struct, frozen=True):
    """A list of models, in any provider's words."""

    data: tuple[ModelName, ...] = ()
    models: tuple[ModelName, ...] = ()


def model_probes(
    app: AppConfig, transport: httpx.AsyncBaseTransport | None = None
) -> Iterator[Probe]:
    """Give a probe for each account, and each model or server of speech without one."""
    for name, config in accounts(app).items():
        table = "accounts" if name in app.accounts else "models"
        place = f"{table}.{name}"
        if isinstance(config, HttpModelConfig):
            wanted = wanted_models(app, name)
            ask = partial(ask_account, place, config, wanted, transport)
            yield Probe(ABOUT, place, ask)
        elif isinstance(config, ScriptedModelConfig):
            yield Probe(ABOUT, place, partial(read_script, place, config))
    for name, server in (
        ("transcriber", app.media.transcriber),
        ("speaker", app.media.speaker),
    ):
        if server is not None:
            place, model, base = f"media.{name}", server.model, server.base_url
            # They have the address, the keys and the list of OpenAI's models.
            like = OpenAIModelConfig(model=model, base_url=base, api_key=server.api_key)
            ask = partial(ask_account, place, like, (model,), transport)
            yield Probe(ABOUT, place, ask)


def wanted_models(app: AppConfig, account: str) -> tuple[str, ...]:
    """Name the models that an account must have."""
    names = [
        model.model
        for name, model in app.models.items()
        if isinstance(model, HttpModelConfig) and account in (model.accounts or (name,))
    ]
    return tuple(dict.fromkeys(names))


async def read_script(place: str, config: ScriptedModelConfig) -> list[Finding]:
    """Read the rules of an embedded model."""
    try:
        load_script(config.script)
    except SettingsError as error:
        return [Finding("wrong", ABOUT, f"{place}: {error}", error.hint)]
    return [Finding("ok", ABOUT, f"{place}: embedded, its rules are right")]


async def ask_account(
    place: str,
    config: HttpModelConfig,
    wanted: tuple[str, ...],
    transport: httpx.AsyncBaseTransport | None = None,
) -> list[Finding]:
    """Ask an account for its models.

    Args:
        place: of the account in the settings.
        wanted: the models it must have.
        transport: what carries the request; None is the network.
    """
    if config.api_key is not None and not config.api_key.is_set:
        config.api_key.reveal()  # raises what `ask_all` tells
    for header in config.headers.values():
        header.reveal()  # likewise
    try:
        url = check_address(config.base_url)
        whole = msgspec.structs.replace(config, stream=False)
        form = format_of(config)
        headers = request_headers(whole, url, sendable_key(config), form)
    except SettingsError as error:
        return [Finding("wrong", ABOUT, f"{place}: {error}", error.hint)]
    try:
        async with httpx.AsyncClient(transport=transport, trust_env=False) as client:
            status, body = await fetch(client, list_address(config), headers)
            elsewhere = ""
            if status in NO_LIST or (status == HTTPStatus.OK and not is_list(body)):
                elsewhere = await find_elsewhere(client, config, headers)
    except (httpx.HTTPError, ValueError) as error:
        text = f"{place}: nobody answers at {url.host} as it should ({said(error)})"
        return [Finding("wrong", ABOUT, text, unreachable(config))]
    if elsewhere:
        text = f"{place}: {url.host} has nothing under base_url, but under {elsewhere}"
        return [Finding("wrong", ABOUT, text, f'set base_url = "{elsewhere}"')]
    if status != HTTPStatus.OK:
        return [refusal(place, url.host, status)]
    return listed(place, config, body, wanted)


async def find_elsewhere(
    client: httpx.AsyncClient, config: HttpModelConfig, headers: dict[str, str]
) -> str:
    """Look whether the API is where its kind mostly is; gives that base_url, or "".

    Raises:
        httpx.HTTPError: the server is gone.
        ValueError: what it answers is longer than any list.
    """
    base = likely_base(config)
    if not base:
        return ""
    there = list_address(msgspec.structs.replace(config, base_url=base))
    status, body = await fetch(client, there, headers)
    is_found = status in NOT_LET_IN or (status == HTTPStatus.OK and is_list(body))
    return base if is_found else ""


def is_list(body: bytes) -> bool:
    """Whether this is a list of models."""
    try:
        msgspec.json.decode(body, type=ModelListing)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True


async def fetch(
    client: httpx.AsyncClient, url: str, headers: dict[str, str]
) -> tuple[int, bytes]:
    """Fetch a status and a body.

    Raises:
        httpx.HTTPError: there is none.
        ValueError: it is longer than any list.
    """
    found = bytearray()
    async with client.stream("GET", url, headers=headers, timeout=None) as response:
        async for piece in response.aiter_bytes():
            found += piece
            if len(found) > MOST_BYTES:
                raise ValueError(f"an answer of more than {MOST_BYTES} bytes")
    return response.status_code, bytes(found)


def said(error: Exception) -> str:
    """Say what happened; some errors have no words."""
    return str(error) or type(error).__name__


def format_of(config: HttpModelConfig) -> Format:
    """Find the format that an account speaks, for its headers."""
    match config:
        case AnthropicModelConfig():
            return AnthropicFormat(config)
        case GoogleModelConfig():
            return GoogleFormat(config)
        case OllamaModelConfig():
            return OllamaFormat(config)
        case OpenAIResponsesModelConfig():
            return OpenAIResponsesFormat(config)
        case _:
            return OpenAIFormat(cast("OpenAIModelConfig", config))


def list_address(config: HttpModelConfig) -> str:
    """Say where an account's list of models is."""
    match config:
        case AnthropicModelConfig():
            path = "/models?limit=1000"
        case GoogleModelConfig():
            path = "/models?pageSize=1000"
        case OllamaModelConfig():
            path = "/api/tags"
        case _:
            path = "/models"
    return str(address(config.base_url, path))


def unreachable(config: HttpModelConfig) -> str:
    """Say what to do where nobody answers."""
    if isinstance(config, OllamaModelConfig):
        return "start it with `ollama serve`, or set base_url to where it runs"
    return "check this machine's network, and base_url"


def refusal(place: str, host: str, status: int) -> Finding:
    """Say what a status means."""
    state: State = "wrong"
    if status in NOT_LET_IN:
        text, cure = "does not take the key", "copy it again, and set it anew"
    elif status in NO_LIST:
        state = "unknown"
        text, cure = "has no list of models, so that the key was not tried", ""
    elif status == TOO_MANY:
        state = "warning"
        text, cure = "has had too many calls just now", "wait a minute, and look again"
    elif status >= FAULT:
        state = "warning"
        text, cure = "has trouble now", "wait, and see the provider's status page"
    else:
        text, cure = "does not answer as it should", "check base_url"
    return Finding(state, ABOUT, f"{place}: {host} {text} (HTTP {status})", cure)


def listed(
    place: str, config: HttpModelConfig, body: bytes, wanted: tuple[str, ...]
) -> list[Finding]:
    """Say which of the wanted models are on a list."""
    try:
        listing = msgspec.json.decode(body, type=ModelListing)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        text = f"{place}: what answers there gives no list of models"
        return [Finding("wrong", ABOUT, text, "check base_url and kind")]
    names = [each.id or each.name for each in (*listing.data, *listing.models)]
    missing = [model for model in wanted if not is_listed(model, names)]
    if not missing:
        known = "the key is taken, " if config.api_key else ""
        text = f"{place}: reached, {known}{', '.join(wanted) or 'no model'}"
        return [Finding("ok", ABOUT, text)]
    text = f"{place}: {', '.join(missing)} is not among its {len(names)} models"
    if isinstance(config, OllamaModelConfig):
        return [Finding("wrong", ABOUT, text, f"ollama pull {missing[0]}")]
    # Lists leave things out: aliases, models on trial, those of other regions.
    return [Finding("warning", ABOUT, text, "check how the provider writes the name")]


def is_listed(model: str, known: list[str]) -> bool:
    """Whether a list has a model, or one that the name is short for."""
    names = [each.removeprefix(FOLDER).removesuffix(LATEST) for each in known]
    plain = model.removeprefix(FOLDER).removesuffix(LATEST)
    return plain in names or any(each.startswith(f"{plain}-20") for each in names)
