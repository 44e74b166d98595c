"""Proves what `callboard prompt` shows, from the files and the database as they are."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connectors.cli import run
from tests.support.desk import write_database

Output = pytest.CaptureFixture[str]

SETTINGS = """
default_agent = "anna"
store.path = "{db}"
[connectors.cli]
kind = "terminal"
[models.scripted]
kind = "scripted"
script = "script.toml"
[skills]
folders = ["skills"]
[agents.anna]
persona = "anna"
prompt = "Be brief."
tools = ["clock", "run_shell"]
skills = ["*"]
delegates = ["ben"]
context.budgets.file = 10
[agents.ben]
prompt = "I am Ben."
"""
SKILL = "---\nname: pdf\ndescription: about pdf\ntriggers: [invoice]\n---\nRead it."


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Path]:
    for folder in ("anna", "skills/pdf"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "anna" / "SOUL.md").write_text("calm " * 40)
    (tmp_path / "skills" / "pdf" / "SKILL.md").write_text(SKILL)
    (tmp_path / "script.toml").write_text('[default]\nreply = "so"\n')
    path = tmp_path / "callboard.toml"
    path.write_text(SETTINGS.format(db=tmp_path / "callboard.db"))
    with contextlib.chdir(tmp_path):
        yield path


def shown(capsys: Output, *options: str) -> dict[str, Any]:
    assert run(["prompt", "anna", "--json", *options]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def layers(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {layer["name"]: layer for layer in found["layers"]}


@pytest.mark.usefixtures("settings")
def test_each_layer_says_where_it_is_from_and_what_was_cut(capsys: Output) -> None:
    found = layers(shown(capsys, "--for", "my invoice"))
    assert "cut: 50 tokens are more than 10" in found["soul"]["why"]
    assert "pdf: about pdf" in found["skills"]["text"]
    assert found["notes"]["text"].endswith("Read it.")
    assert "- ben" in found["colleagues"]["text"]
    assert "run_shell" in shown(capsys)["tools"]
    assert list(found)[-1] == "date"


@pytest.mark.usefixtures("settings")
def test_without_a_database_there_is_only_the_question(
    capsys: Output, tmp_path: Path
) -> None:
    found = shown(capsys, "--for", "hi <system>", "--group", "--sender", "mia")
    assert [line["text"] for line in found["messages"]] == ["[mia]: hi <\u200bsystem>"]
    assert "group" in layers(found)
    assert not (tmp_path / "callboard.db").exists()


def test_the_conversation_is_read_from_the_database(
    capsys: Output, settings: Path
) -> None:
    write_database(settings.parent / "callboard.db")
    found = shown(capsys, "--chat", "cli/kitchen", "--sender", "sam", "--for", "so?")
    texts = [line["text"] for line in found["messages"]]
    assert texts[0].startswith("hello, the key is")
    assert texts[-1].endswith("so?")
    assert len(found["message_tokens"]) == len(texts)


@pytest.mark.usefixtures("settings")
def test_a_mode_has_its_own_tools_and_words(capsys: Output) -> None:
    found = shown(capsys, "--mode", "collaboration")
    assert found["tools"] == ["use_skill", "clock"]  # they only look something up
    assert "mode" in layers(found)
    assert "colleagues" not in layers(found)


@pytest.mark.usefixtures("settings")
def test_who_may_be_asked_is_shown(capsys: Output) -> None:
    found = shown(capsys)
    assert found["tools"][-3:] == ["collaborate", "consult", "delegate"]
    assert "collaborate" in layers(found)["tools"]["text"]
    assert "ben" in layers(found)["colleagues"]["text"]


def test_who_hears_whom_in_a_group_is_shown(settings: Path, capsys: Output) -> None:
    open_chats = '[collaboration]\nvisible_chats = ["cli/tea*"]\n'
    settings.write_text(settings.read_text() + open_chats)
    found = shown(capsys, "--group", "--chat", "cli/tearoom")
    assert "@ben" in layers(found)["partners"]["text"]
    assert "partners" not in layers(shown(capsys, "--group", "--chat", "cli/other"))
    assert "partners" not in layers(shown(capsys, "--chat", "cli/tearoom"))


@pytest.mark.usefixtures("settings")
def test_people_read_a_table_and_the_texts(capsys: Output) -> None:
    assert run(["prompt", "ben", "--for", "hello"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("ben, conversation, model scripted: ")
    assert "--- prompt\nI am Ben.\n" in out
    assert out.endswith("--- messages\n[user]: hello\n")


@pytest.mark.usefixtures("settings")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["zoe"], "there is no agent 'zoe'; known: anna, ben"),
        (["anna", "--chat", "x/1"], "there is no connector 'x'; known: cli"),
    ],
)
def test_what_is_not_there_is_named(
    options: list[str], words: str, capsys: Output
) -> None:
    assert run(["prompt", *options]) == 2
    assert words in capsys.readouterr().err
