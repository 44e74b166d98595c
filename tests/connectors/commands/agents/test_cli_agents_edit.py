"""Proves that `callboard agents` changes settings, keeps comments, and no mistakes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import example, given, strategies as st

from connectors.chat.terminal.transport import listen_at, socket_beside
from connectors.cli import run
from connectors.settings.editing import read_value
from connectors.settings.load import load_app

TEXT = """\
# Ours.
default_agent = "anna" # answers
[models.main] # one of many
kind = "scripted"
script = "script.toml"
[connectors.terminal]
kind = "terminal"
[agents.anna]
model = "main"
prompt = "You are Anna." # for now
"""

Shown = pytest.CaptureFixture[str]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.toml").write_text('[default]\nreply = "yes"\n')
    path = tmp_path / "callboard.toml"
    path.write_text(TEXT)
    path.chmod(0o640)
    return path


def test_an_agent_is_added_beside_comments_and_can_be_asked(
    file: Path, capsys: Shown
) -> None:
    values = ("description=Does sums", 'tools=["clock"]')
    assert run(["agents", "add", "ben", *values, "--colleague-of", "anna"]) == 0
    agents = load_app(file, {}).value.agents
    assert agents["anna"].delegates == ("ben",)
    ben = agents["ben"]
    assert (ben.model, ben.description, ben.tools) == ("main", "Does sums", ("clock",))
    assert ben.persona == file.parent / "agents" / "ben"
    assert file.read_text().startswith(TEXT)
    assert file.stat().st_mode & 0o777 == 0o640
    assert capsys.readouterr().out.endswith("Next: callboard chat --agent ben\n")


def test_what_is_set_and_removed_again_leaves_the_file_as_it_was(file: Path) -> None:
    assert run(["agents", "add", "ben", "prompt=You add.", "model=main"]) == 0
    assert (
        run(["agents", "edit", "ben", "heartbeat.every=3600", "prompt=You add!"]) == 0
    )
    ben = load_app(file, {}).value.agents["ben"]
    assert (ben.heartbeat.every, ben.prompt) == (3600.0, "You add!")
    assert run(["agents", "remove", "ben"]) == 0
    assert file.read_text().strip() == TEXT.strip()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("add", "anna"), "there is an agent 'anna' already"),
        (("add", "An na"), "a name is a letter"),
        (("add", "ben", "model=gpt"), "there is no model 'gpt'"),
        (("add", "ben", "colour=red"), "colour"),
        (("add", "ben", "--colleague-of", "zoe"), "there is no agent 'zoe'"),
        (("add", "ben", "--template", "pirate"), "pirate"),
        (("edit", "anna", "temperature=9"), "temperature"),
        (("edit", "zoe", "model=main"), "there is no agent 'zoe'; known: anna"),
        (("edit", "anna", "model"), "'model' is not KEY=VALUE"),
        (("remove", "anna"), "there is no agent"),
    ],
)
def test_a_mistake_is_told_and_nothing_is_written(
    file: Path, capsys: Shown, words: tuple[str, ...], why: str
) -> None:
    before = sorted(file.parent.iterdir())
    assert run(["agents", *words]) != 0
    assert why in capsys.readouterr().err
    assert file.read_text() == TEXT
    assert sorted(file.parent.iterdir()) == before


def test_an_agent_of_an_included_file_is_changed_there(
    file: Path, capsys: Shown
) -> None:
    head, table, rest = TEXT.partition("[agents.anna]")
    (file.parent / "more.toml").write_text(table + rest)
    file.write_text(f'include = ["more.toml"]\n{head}')
    assert run(["agents", "edit", "anna", "model=main"]) == 2
    assert (
        "anna stands in a file that callboard.toml includes" in capsys.readouterr().err
    )


def test_a_running_company_is_said_to_take_it_over(file: Path, capsys: Shown) -> None:
    database = file.parent / "var" / "callboard.db"
    database.parent.mkdir()
    with listen_at(socket_beside(database)):
        assert run(["agents", "edit", "anna", "prompt=You are Ada."]) == 0
    assert "takes it over within three seconds" in capsys.readouterr().out


INLINE = """
[agents]
anna = { model = "main", prompt = "x" }
ben.model = "main"
ben.prompt = "x"
"""


@pytest.mark.parametrize("name", ["anna", "ben"])
def test_tables_may_be_written_in_any_way(file: Path, name: str) -> None:
    file.write_text(TEXT.partition("[agents.anna]")[0] + INLINE)
    assert run(["agents", "edit", name, "busy.mode=", "heartbeat.every=90"]) == 0
    assert load_app(file, {}).value.agents[name].heartbeat.every == 90.0
    assert "busy" not in file.read_text()
    assert run(["agents", "edit", name, "heartbeat.every=60", "prompt=new"]) == 0
    agent = load_app(file, {}).value.agents[name]
    assert (agent.heartbeat.every, agent.prompt) == (60.0, "new")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
def test_what_root_changes_stays_its_owners(file: Path) -> None:
    os.chown(file, 4711, 4712)
    assert run(["agents", "edit", "anna", "prompt=new"]) == 0
    found = file.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (4711, 4712, 0o640)


@example("{a=1,a=2}")
@given(st.text())
def test_a_value_is_what_toml_says_or_the_text_itself(text: str) -> None:
    found = read_value(text)
    assert (found is None) == (not text)


def test_values_of_the_command_line() -> None:
    given = ("3", '["a", "b"]', "true", "plain words", '"quoted"', "")
    assert [*map(read_value, given)] == [
        *(3, ["a", "b"], True, "plain words", "quoted", None),
    ]
