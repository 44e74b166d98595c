"""Proves how answers of `callboard init` are read, and that its files are right."""

from __future__ import annotations

import contextlib
import tomllib
from collections.abc import Mapping
from typing import cast, get_args

import click
import msgspec
import pytest
from hypothesis import given, strategies as st

from actors.errors import ModelFault
from connectors.commands import shipped_settings
from connectors.commands.init.choices import (
    EMBEDDED,
    HTTP,
    TEMPLATES,
    TERMINAL,
    ChoiceError,
    KeyPlace,
    ModelChoice,
    ProviderPreset,
    SettingsPlan,
    connector_kinds,
    example_block,
    lacking,
    providers,
    read_agent,
    read_matrix_id,
    read_model,
    read_people,
    settings_text,
    tables_of,
    usable_keys,
)
from connectors.commands.init.questions import (
    MOST_MODELS,
    check_reachable,
    explained,
    read_tags,
)
from connectors.config.app import AppConfig
from connectors.files.personas import FILES
from connectors.models.scripted import load_script

SHIPPED = shipped_settings()
KNOWN = providers(SHIPPED)
KINDS = connector_kinds(SHIPPED)
AGENTS = st.from_regex(r"[a-z][a-z0-9_-]{0,31}", fullmatch=True)
PRINTABLE = st.text(st.characters(codec="utf-8")).filter(str.isprintable)


@given(st.text())
def test_any_answer_is_read_or_refused_in_words(answer: str) -> None:
    for read in (
        lambda: read_model(answer, KNOWN),
        lambda: read_agent(answer),
        lambda: read_people(answer, KINDS),
        lambda: read_matrix_id(answer),
    ):
        with contextlib.suppress(ChoiceError):
            read()


@given(PRINTABLE.map(str.strip).filter(lambda text: len(text) <= 200))
def test_a_model_name_may_hold_anything_that_can_be_shown(name: str) -> None:
    assert read_model(f" OpenRouter/{name}", KNOWN) == (KNOWN["openrouter"], name)


@given(st.lists(st.sampled_from(KINDS), min_size=1))
def test_people_are_each_named_once_in_their_order(kinds: list[str]) -> None:
    found = read_people(" , ".join(kinds).upper(), KINDS)
    assert found == tuple(dict.fromkeys(kinds))


@given(
    provider=st.sampled_from([*KNOWN.values()]),
    model=PRINTABLE,
    place=PRINTABLE,
    agent=AGENTS,
    people=st.lists(st.sampled_from([TERMINAL, HTTP]), min_size=1, unique=True),
)
def test_whatever_is_answered_the_file_says_it(
    provider: ProviderPreset, model: str, place: str, agent: str, people: list[str]
) -> None:
    key = None if provider.name == EMBEDDED else KeyPlace("file", place)
    choice = ModelChoice(provider=provider, model=model, key=key)
    plan = SettingsPlan(
        choice=choice, agent=agent, template="host", people=tuple(people), matrix_id=""
    )
    table = cast("Mapping[str, object]", tomllib.loads(settings_text(plan, {}, {})))
    main = cast("dict[str, dict[str, object]]", table["models"])["main"]
    assert table["default_agent"] == agent
    assert set(cast("dict[str, object]", table["connectors"])) == set(people)
    assert main["kind"] == provider.kind
    if key is not None:
        assert main["model"] == model
        assert main["api_key"] == {"file": place}
    assert set(table) <= {each.name for each in msgspec.structs.fields(AppConfig)}


@given(agent=AGENTS)
def test_each_platform_has_an_example_that_becomes_tables_or_comments(
    agent: str,
) -> None:
    for kind in KINDS:
        if kind in {TERMINAL, HTTP}:
            continue
        plan = SettingsPlan(
            choice=ModelChoice(provider=KNOWN[EMBEDDED], model=""),
            agent=agent,
            template="host",
            people=(TERMINAL, kind),
        )
        example = (SHIPPED / f"{kind}.toml").read_text(encoding="utf-8")
        block = example_block(example, kind, plan)
        live = tomllib.loads(settings_text(plan, {kind: block}, {}))
        assert live["connectors"][kind]["kind"] == kind
        left_out = tomllib.loads(settings_text(plan, {kind: block}, {kind: "no."}))
        assert set(left_out["connectors"]) == {TERMINAL}


def test_the_example_of_matrix_lacks_what_only_people_know() -> None:
    plan = SettingsPlan(
        choice=ModelChoice(provider=KNOWN[EMBEDDED], model=""),
        agent="zoe",
        template="host",
        people=("matrix",),
    )
    example = (SHIPPED / "matrix.toml").read_text(encoding="utf-8")
    assert lacking(example_block(example, "matrix", plan))
    mine = msgspec.structs.replace(plan, matrix_id="@desk:hub.test")
    block = example_block(example, "matrix", mine)
    assert not lacking(block)
    assert "[connectors.matrix.accounts.zoe]" in block
    assert "# Synapse lets an account send ten events" in block


def test_a_file_is_cut_and_nothing_is_lost() -> None:
    for path in SHIPPED.glob("*.toml"):
        text = path.read_text(encoding="utf-8")
        assert "\n".join(tables_of(text)).strip("\n") == text.strip("\n")


def test_providers_are_those_of_the_example_files() -> None:
    assert list(KNOWN)[:4] == ["anthropic", "openai", "google", "openrouter"]
    assert list(KNOWN)[-1] == EMBEDDED
    assert "claude_code" not in KNOWN
    assert KNOWN["openrouter"].base_url == "https://openrouter.ai/api/v1"
    assert not KNOWN["ollama"].variable


def test_keys_are_found_by_name_and_placeholders_are_none() -> None:
    environment = {
        "OPENAI_API_KEY": "sk-for-this-test",
        "GEMINI_API_KEY": "changeme",
        "ANTHROPIC_API_KEY": "",
    }
    usable, useless = usable_keys(KNOWN, environment)
    assert usable == {"openai": "OPENAI_API_KEY"}
    assert len(useless) == 2
    assert "sk-for-this-test" not in str((usable, useless))


def test_templates_are_folders_with_the_texts_of_an_agent() -> None:
    folders = {each.name for each in (SHIPPED / "templates").iterdir() if each.is_dir()}
    assert folders == set(TEMPLATES)
    for name, template in TEMPLATES.items():
        files = {each.name for each in (SHIPPED / "templates" / name).iterdir()}
        assert files <= set(FILES.values())
        assert read_agent(template.agent) == template.agent


def test_the_embedded_models_rules_are_right() -> None:
    load_script(SHIPPED / "templates" / "embedded_script.toml")


@pytest.mark.parametrize("kind", get_args(ModelFault))
def test_each_failure_is_said_in_words(kind: ModelFault) -> None:
    for provider in KNOWN.values():
        choice = ModelChoice(provider=provider, model="m1")
        text, cure = explained(kind, choice, "https://models.test/v1")
        assert text
        assert cure
        assert "models.test" in text or "m1" in text or "account" in text


@given(st.binary(max_size=200))
def test_whatever_answers_at_the_port_is_read_or_ignored(body: bytes) -> None:
    found = read_tags(body)
    assert found is None or all(name.isprintable() for name in found)


def test_models_that_only_make_vectors_are_left_out() -> None:
    names = ["bge-m3", "all-minilm", "x\x1b[2J", "", " pad ", "tiny", "tiny"]
    listed: list[dict[str, object]] = [{"name": name} for name in names]
    listed.append({"name": "roots", "details": {"family": "nomic-bert"}})
    assert read_tags(msgspec.json.encode({"models": listed})) == ("tiny",)
    many = [{"name": f"m{number}"} for number in range(MOST_MODELS + 5)]
    assert len(read_tags(msgspec.json.encode({"models": many})) or ()) == MOST_MODELS
    assert read_tags(b'{"models": null}') is None


@pytest.mark.parametrize(
    ("url", "has_key", "told"),
    [
        (
            "http://10.0.0.9/v1",
            True,
            "warning: the key travels to 10.0.0.9 unencrypted",
        ),
        ("http://10.0.0.9/v1", False, ""),
        ("http://127.0.0.1/v1", True, ""),
        ("https://10.0.0.9/v1", True, ""),
        ("", True, ""),
    ],
)
def test_an_address_to_which_a_key_goes_in_the_open_is_warned_of(
    *, url: str, has_key: bool, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    key = KeyPlace("env", "KEY") if has_key else None
    choice = ModelChoice(provider=KNOWN["openai"], model="m", key=key, base_url=url)
    check_reachable(choice)
    assert capsys.readouterr().out == (f"{told}; use https\n" if told else "")
    wrong = msgspec.structs.replace(choice, base_url="https://me:word@x.test/v1")
    with pytest.raises(click.UsageError, match="--base-url: holds a name or password"):
        check_reachable(wrong)
