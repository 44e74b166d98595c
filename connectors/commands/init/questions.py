"""Asks the questions of `callboard init`: five at most, each answered by a flag too.

Also asks whether an Ollama server runs on this machine, and asks the model one small
question, to say in plain words what is wrong.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import click
import httpx
import msgspec
import trio

from actors.errors import ModelError, ModelFault
from actors.messages.inbound import ModelRequest, ToolSpec, TranscriptLine
from actors.ports import Model
from connectors.admin.display import make_safe
from connectors.app.models import make_plain_client
from connectors.commands.common.output import first_words, say
from connectors.commands.common.running import run_interruptible
from connectors.commands.init.choices import (
    EMBEDDED,
    HTTP,
    KINDS,
    MATRIX,
    OLLAMA,
    TEMPLATES,
    TERMINAL,
    ChoiceError,
    KeyPlace,
    ModelChoice,
    ProviderPreset,
    SettingsPlan,
    read_agents,
    read_matrix_id,
    read_model,
    read_one,
    read_people,
)
from connectors.config.checks import check_address
from connectors.config.models import HttpModelConfig
from runtime.clock import SystemClock
from runtime.errors import SettingsError
from runtime.secret import (
    Secret,
    SecretSourceError,
    checked,
    from_environment,
    from_file,
)

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


USUAL_ADDRESS = "http://127.0.0.1:11434"
PATH = "/api/tags"

LOOK_TIMEOUT = 1.0
"""Seconds for all of it: on this machine it answers at once, or is not there."""

MOST_BYTES = 1_048_576
MOST_MODELS = 100
MOST_NAME = 200

EMBEDDING = ("embed", "bge-", "minilm")
"""In names of models that make vectors and cannot chat."""


class OllamaDetails(msgspec.Struct, frozen=True):
    """What the server tells of a model."""

    family: str = ""


class OllamaModel(msgspec.Struct, frozen=True):
    """One model."""

    name: str
    details: OllamaDetails | None = None


class OllamaTags(msgspec.Struct, frozen=True):
    """The server's answer."""

    models: tuple[OllamaModel, ...] | None = None


async def find_models(
    base_url: str = USUAL_ADDRESS,
    timeout: float = LOOK_TIMEOUT,  # noqa: ASYNC109  a setting; callers need no scope
) -> tuple[str, ...] | None:
    """Name the models of a server that can chat.

    Returns:
        None: no Ollama server answers there.
    """
    body = b""
    with trio.move_on_after(timeout) as scope:
        try:
            body = await _read(base_url.rstrip("/") + PATH)
        except (httpx.HTTPError, httpx.InvalidURL, ValueError):
            return None
    return None if scope.cancelled_caught else read_tags(body)


async def _read(url: str) -> bytes:
    """Fetch an answer of reasonable length."""
    found = bytearray()
    # Why no proxy and no redirects: it is this machine that is asked.
    async with (
        httpx.AsyncClient(trust_env=False) as client,
        client.stream("GET", url) as response,
    ):
        async for piece in response.aiter_bytes():
            found += piece
            if len(found) > MOST_BYTES:
                raise ValueError("no list of models is so long")
    return bytes(found)


def read_tags(body: bytes) -> tuple[str, ...] | None:
    """Read the list of models; None if it is none.

    Names are another program's words: those with signs that nothing can show are left
    out.
    """
    try:
        listed = msgspec.json.decode(body, type=OllamaTags).models
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if listed is None:
        return None
    names = [each.name for each in listed if can_chat(each)]
    return tuple(dict.fromkeys(names))[:MOST_MODELS]


def can_chat(model: OllamaModel) -> bool:
    """Whether a model answers in words, as far as its name tells."""
    name = model.name
    is_name = 0 < len(name) <= MOST_NAME and name.isprintable() and name == name.strip()
    family = model.details.family if model.details else ""
    makes_vectors = any(word in name.lower() for word in EMBEDDING) or "bert" in family
    return is_name and not makes_vectors


T = TypeVar("T")

MOST_QUESTIONS = 5
SHOWN_MODELS = 8
EXAMPLE = "http://127.0.0.1:8000/v1"


class CommandLine(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the command line; None: not given."""

    folder: Path
    model: str | None
    key_env: str | None
    key_file: Path | None
    base_url: str | None
    agent: str | None
    template: str | None
    people: str | None
    matrix_id: str | None
    ollama: str
    force: bool
    test: bool
    asks: bool


class FoundSetup(msgspec.Struct, frozen=True, kw_only=True):
    """Keys, models and connectors that were found."""

    known: Mapping[str, ProviderPreset]
    keys: Mapping[str, str]
    """Variables with usable keys, by provider."""

    useless: tuple[str, ...]
    """Why other variables hold none."""

    ollama: tuple[str, ...] | None
    """Its models; None: it does not run."""

    kinds: tuple[str, ...]
    """Connectors."""


class ChosenModel(msgspec.Struct, frozen=True):
    """A model, and its key."""

    choice: ModelChoice
    secret: Secret | None = None
    typed: bool = False
    """Whether somebody just typed the key, so that it stands nowhere yet."""


class Questions:
    """Asks, or takes what was given or is usual; counts what it asked."""

    def __init__(self, given: CommandLine, seen: FoundSetup) -> None:
        self._given = given
        self._seen = seen
        self._asked: set[str] = set()

    def plan(self) -> tuple[SettingsPlan, ChosenModel]:
        """Collect all answers.

        Raises:
            click.ClickException: an answer on the command line is wrong, or the model
                does not answer and nobody can be asked.
        """
        given = self._given
        self._check_given()
        chosen = self._model_that_answers()
        for name, each in TEMPLATES.items():
            self._tell(f"  {name:<10} {each.description}")
        template = self._ask(
            ("--template", given.template),
            "Which agent do you begin with",
            "assistant",
            lambda answer: read_one(answer, TEMPLATES),
        )
        agent, *others = self._ask(
            ("--agent", given.agent),
            "What is it called (further agents behind commas)",
            TEMPLATES[template].agent,
            read_agents,
        )
        people = self._ask(
            ("--people", given.people),
            f"Where do people write ({', '.join(self._seen.kinds)})",
            f"{TERMINAL}, {HTTP}",
            lambda answer: read_people(answer, self._seen.kinds),
        )
        plan = SettingsPlan(
            choice=chosen.choice,
            agent=agent,
            template=template,
            people=people,
            matrix_id=self._matrix_id(people),
            others=tuple(zip(others, further_templates(template), strict=False)),
        )
        return plan, chosen

    def _check_given(self) -> None:
        """Refuse a wrong command line before a model is asked, which costs money."""
        given = self._given
        checks: tuple[tuple[str, str | None, Callable[[str], object]], ...] = (
            ("--template", given.template, lambda answer: read_one(answer, TEMPLATES)),
            ("--agent", given.agent, read_agents),
            (
                "--people",
                given.people,
                lambda answer: read_people(answer, self._seen.kinds),
            ),
            ("--matrix-id", given.matrix_id, read_matrix_id),
        )
        for flag, value, read in checks:
            if value is not None:
                self._ask((flag, value), "", "", read)

    def _matrix_id(self, people: tuple[str, ...]) -> str:
        if MATRIX not in people or len(self._asked) >= MOST_QUESTIONS:
            return read_matrix_id(self._given.matrix_id or "")
        return self._ask(
            ("--matrix-id", self._given.matrix_id),
            "The agent's Matrix account, as @anna:example.org (empty: later)",
            "",
            read_matrix_id,
        )

    def _model_that_answers(self) -> ChosenModel:
        """Choose a model and try it; ask again if it fails."""
        chosen = self._model(self._given.model, self._usual_model())
        while True:
            outcome = self._trial(chosen)
            if outcome.is_well:
                choice = msgspec.structs.replace(
                    chosen.choice, takes_tools=outcome.takes_tools
                )
                return msgspec.structs.replace(chosen, choice=choice)
            text = make_safe(outcome.text)
            if outcome.cure:
                text += f"\n  to do: {outcome.cure}"
            if not self._given.asks:
                raise click.ClickException(
                    f"{text}\nNothing was written. Without a key and a network: "
                    f"callboard init --model {EMBEDDED}. To write it untried: --no-test"
                )
            say(f"That did not work: {text}")
            say(f"Take another one; {EMBEDDED} works without a key and a network.")
            chosen = self._model(None, EMBEDDED)

    def _trial(self, chosen: ChosenModel) -> TrialOutcome:
        """Ask the model once, if it is one and may be asked."""
        choice = chosen.choice
        if choice.provider.name == EMBEDDED or not self._given.test:
            return TrialOutcome(is_well=True, text="")
        say(f"Asking {make_safe(choice.model)} one small question …")
        outcome = run_interruptible(try_model, choice, chosen.secret)
        if outcome.is_well:
            say(f"{make_safe(outcome.text)}.")
        return outcome

    def _usual_model(self) -> str:
        if self._seen.keys:
            return next(iter(self._seen.keys))
        return OLLAMA if self._seen.ollama else EMBEDDED

    def _model(self, given: str | None, usual: str) -> ChosenModel:
        """Choose a model and its key."""
        for line in found_lines(self._seen):
            self._tell(line)
        provider, named = self._ask(
            ("--model", given),
            "Which model (provider, or provider/model)",
            usual,
            lambda answer: read_model(answer, self._seen.known),
        )
        if provider.name == EMBEDDED:
            if given is None and not self._given.asks:
                say("\n".join(no_model_lines(self._seen)))
            return ChosenModel(ModelChoice(provider=provider, model=""))
        model = named or provider.model
        if provider.name == OLLAMA and not named and self._seen.ollama:
            model = self._seen.ollama[0]
        base_url = self._base_url(provider)
        choice = ModelChoice(provider=provider, model=model, base_url=base_url)
        try:
            return self._with_key(choice)
        except SecretSourceError as error:
            raise click.UsageError(f"{error.text}: {error.hint}") from error

    def _base_url(self, provider: ProviderPreset) -> str:
        if self._given.base_url:
            return self._given.base_url
        ollama = self._given.ollama
        is_elsewhere = provider.name == OLLAMA and ollama != USUAL_ADDRESS
        return ollama if is_elsewhere else ""

    def _with_key(self, choice: ModelChoice) -> ChosenModel:
        """Find the key of a model."""
        given, provider = self._given, choice.provider
        variable = given.key_env or self._seen.keys.get(provider.name, "")
        key: KeyPlace | None = None
        secret: Secret | None = None
        typed = False
        # A server at home may ask for any word.
        is_given = bool(given.base_url)
        if given.key_file is not None:
            key = KeyPlace("file", place_of(given.key_file, given.folder))
            secret = from_file(given.key_file, is_given=is_given)
        elif variable and not (given.base_url and given.key_env is None):
            key = KeyPlace("env", variable)
            secret = from_environment(variable, os.environ, is_given=is_given)
        elif provider.variable and not given.base_url:
            secret, typed = self._typed_key(provider), True
            key = KeyPlace("file", new_secret(given.folder, provider.name))
        choice = msgspec.structs.replace(choice, key=key)
        check_reachable(choice)
        return ChosenModel(choice, secret, typed)

    def _typed_key(self, provider: ProviderPreset) -> Secret:
        """Ask for a key; nothing of it is shown."""
        if not self._given.asks:
            raise click.UsageError(
                f"{provider.name} asks for a key: set {provider.variable}, or give "
                "--key-env NAME or --key-file FILE"
            )
        self._asked.add("key")

        def read(answer: str) -> Secret:
            try:
                return checked(answer, "what you wrote")
            except SecretSourceError as error:
                raise click.UsageError(f"{error.text}; {error.hint}") from error

        text = f"Key of {provider.name} (not shown; kept in a file only you can read)"
        found: Secret = click.prompt(text, hide_input=True, value_proc=read)
        return found

    def _ask(
        self,
        given: tuple[str, str | None],
        text: str,
        usual: str,
        read: Callable[[str], T],
    ) -> T:
        """Take what was given, ask, or take what is usual."""
        flag, value = given

        def understood(answer: str) -> T:
            try:
                return read(answer)
            except ChoiceError as error:
                raise click.UsageError(str(error)) from error

        if value is not None:
            try:
                return read(value)
            except ChoiceError as error:
                raise click.BadParameter(str(error), param_hint=flag) from error
        if not self._given.asks:
            return understood(usual)
        self._asked.add(flag)
        answer: T = click.prompt(
            text, default=usual, value_proc=understood, show_default=bool(usual)
        )
        return answer

    def _tell(self, line: str) -> None:
        if self._given.asks:
            say(line)


def further_templates(first: str) -> Iterator[str]:
    """Give whose texts further agents begin with: each template in turn."""
    rest = [name for name in TEMPLATES if name != first]
    return itertools.cycle((*rest, first))


def found_lines(seen: FoundSetup) -> list[str]:
    """Say which models can be had here; names of variables, never their values."""
    lines = ["Found here:"]
    lines += [f"  {name:<10} key in {variable}" for name, variable in seen.keys.items()]
    if seen.ollama is not None:
        names = ", ".join(first_words(each) for each in seen.ollama[:SHOWN_MODELS])
        more = ", …" if len(seen.ollama) > SHOWN_MODELS else ""
        none = "runs, but has no model yet: ollama pull qwen3"
        lines.append(f"  {OLLAMA:<10} {f'{names}{more}' if names else none}")
    lines.append(f"  {EMBEDDED:<10} no key, no network: follows a small script")
    others = [
        name
        for name in seen.known
        if name not in {*seen.keys, EMBEDDED} and (name != OLLAMA or not seen.ollama)
    ]
    lines += [f"  (not usable: {reason})" for reason in seen.useless]
    return [*lines, f"Not found, but known: {', '.join(others)}"] if others else lines


def no_model_lines(seen: FoundSetup) -> list[str]:
    """Say that settings without a model are written, and how to have one."""
    return [
        "No model was found here: no key that can be used, and no Ollama server.",
        *(f"  (not usable: {reason})" for reason in seen.useless),
        "The agent follows a small script, which is no model.",
        "Once there is a key: callboard init --force",
    ]


def check_reachable(choice: ModelChoice) -> None:
    """Refuse an address that is none, or to which a key would go in the open.

    Raises:
        click.UsageError: it is.
    """
    if choice.base_url:
        has_key = choice.key is not None
        for complaint in check_address(
            ("base_url",), choice.base_url, has_key=has_key, example=EXAMPLE
        ):
            if not complaint.is_warning:
                raise click.UsageError(f"--base-url: {complaint.text}")
            say(f"warning: {complaint.text}; {complaint.hint}")


def place_of(file: Path, folder: Path) -> str:
    """Write a file's path as the settings are to have it."""
    whole, home = file.absolute(), folder.absolute()
    return str(whole.relative_to(home) if whole.is_relative_to(home) else whole)


def new_secret(folder: Path, provider: str) -> str:
    """Find a name for a file with a key; no other file is ever written over."""
    name = f"secrets/{provider}_api_key"
    number = 2
    while (folder / name).exists():
        name = f"secrets/{provider}_api_key_{number}"
        number += 1
    return name
