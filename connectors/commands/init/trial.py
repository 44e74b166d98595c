"""Asks a model one small question, and says in plain words what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec
import trio

from actors.errors import ModelError, ModelFault
from actors.messages.inbound import ModelRequest, ToolSpec, TranscriptLine
from connectors.app.models import make_plain_client
from connectors.commands.init.choices import KINDS, OLLAMA, ModelChoice
from runtime.clock import SystemClock
from runtime.errors import SettingsError

if TYPE_CHECKING:
    from actors.ports import Model
    from connectors.config.models import HttpModelConfig
    from runtime.secret import Secret

TIMEOUT = 60.0
"""Seconds; a model at home is read from the disk before its first word."""

QUESTION = "Answer with the one word: ready"

CLOCK = ToolSpec("clock", "Tells the time.", b'{"type":"object","properties":{}}')
"""Offered with the question, as an agent offers tools: some models refuse them."""

MAY_BE_THE_TOOLS: frozenset[ModelFault] = frozenset({"bad_request", "protocol"})


class TrialOutcome(msgspec.Struct, frozen=True):
    """The result of the trial."""

    is_well: bool
    text: str
    """What happened, in plain words."""

    cure: str = ""
    takes_tools: bool = True


def client_settings(
    choice: ModelChoice, secret: Secret | None, seconds: float
) -> HttpModelConfig:
    """Turn the choice into settings of a client."""
    kind = KINDS[choice.provider.kind]
    usual = {each.name: each.default for each in msgspec.structs.fields(kind)}
    return kind(
        model=choice.model,
        base_url=choice.base_url or choice.provider.base_url or str(usual["base_url"]),
        api_key=secret,
        total_timeout=seconds,
        first_byte_timeout=seconds,
    )


async def try_model(
    choice: ModelChoice, secret: Secret | None, seconds: float = TIMEOUT
) -> TrialOutcome:
    """Ask the model once, and once more without tools if it takes none."""
    config = client_settings(choice, secret, seconds)
    try:
        model = make_plain_client(config, SystemClock())
    except SettingsError as error:
        return TrialOutcome(is_well=False, text=str(error), cure=error.hint or "")
    try:
        first = await _asked(model, choice, (CLOCK,))
        if isinstance(first, TrialOutcome):
            return first
        if first.kind in MAY_BE_THE_TOOLS:
            second = await _asked(model, choice, ())
            if isinstance(second, TrialOutcome):
                text = f"{second.text}, but takes no tools"
                return msgspec.structs.replace(second, text=text, takes_tools=False)
        text, cure = explained(first.kind, choice, config.base_url)
        return TrialOutcome(is_well=False, text=f"{text} ({first})", cure=cure)
    finally:
        await model.aclose()


async def _asked(
    model: Model, choice: ModelChoice, tools: tuple[ToolSpec, ...]
) -> TrialOutcome | ModelError:
    request = ModelRequest(
        model=choice.model,
        agent="init",
        correlation_id="init",
        system="You are being tried out.",
        lines=(TranscriptLine("user", QUESTION),),
        tools=tools,
    )
    began = trio.current_time()
    try:
        answer = await model.answer(request, lambda _piece: None)
    except ModelError as error:
        return error
    seconds = trio.current_time() - began
    tokens = answer.usage.input_tokens + answer.usage.output_tokens
    text = f"{choice.model} answered in {seconds:.1f} s ({tokens} tokens)"
    return TrialOutcome(is_well=True, text=text)


def explained(kind: ModelFault, choice: ModelChoice, base_url: str) -> tuple[str, str]:
    """Say in plain words what a failure means, and what to do."""
    host = urlsplit(base_url).netloc or base_url
    key = "the key" if choice.key is None else f"the key in {choice.key.place}"
    texts: dict[ModelFault, tuple[str, str]] = {
        "auth": (
            f"{host} does not let us in: {key} is wrong, or may not use {choice.model}",
            "copy the key again from the provider's page",
        ),
        "quota": (
            "the account behind the key has no credit left",
            "add credit at the provider, or take another one",
        ),
        "rate": (
            f"{host} has had too many calls of this account just now",
            "wait a minute and try again",
        ),
        "overload": (f"{host} has too much to do", "try again in a minute"),
        "network": unreachable(host, choice),
        "timeout": (
            f"{host} did not answer in time",
            "try again; a model at home takes its time to load",
        ),
        "protocol": (
            f"what answers at {host} does not speak {choice.provider.kind}'s language",
            "check the address, and whether it begins with http:// or https://",
        ),
        "bad_request": wrong_model(host, choice),
    }
    return texts.get(kind, (f"{choice.model} would not answer", "try another model"))


def unreachable(host: str, choice: ModelChoice) -> tuple[str, str]:
    """Say that nobody answers."""
    cure = "check this machine's network, and that no firewall stands between"
    if choice.provider.name == OLLAMA:
        cure = "start it with: ollama serve"
    return f"nobody answers at {host}", cure


def wrong_model(host: str, choice: ModelChoice) -> tuple[str, str]:
    """Say that a request is none that the provider takes: mostly the model's name."""
    cure = "take a name from the provider's list of models"
    if choice.provider.name == OLLAMA:
        cure = f"get it with: ollama pull {choice.model}"
    return f"{host} does not take {choice.model!r}, or not this request", cure
