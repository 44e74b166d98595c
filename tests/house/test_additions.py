"""Proves that one of each kind of thing is added as the docs page says, and works."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.processes.running import PATIENCE, Finished, environment, served
from tests.support import readme
from tests.support.additions import PAGE, additions, copy_with_additions

FOLDERS = ("actors", "connectors", "runtime", "config", "tests")

SETTINGS = """
[people]
language = "de"

[commands]
shout_ending = "!!"

[models.echo]
kind = "echo"
prefix = "you said: "

[agents.carl]
prompt = "You are Carl."
model = "echo"

[agents.dora]
prompt = "You are Dora."
model = "scripted"
tools = ["shout"]
"""

SCRIPT = r"""
[default]
reply = "I see {0}"

[[rule]]
agent = "dora"
pattern = '\Aloud (?P<words>.+)'
tool = [{ name = "shout", arguments = { text = "{words}" } }]

[[rule]]
on_tool = "shout"
reply = "{0}"
"""


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a copy of the program to which one of each kind was added."""
    return copy_with_additions(tmp_path_factory.mktemp("added"))


@pytest.fixture(scope="module")
def company(code: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Talk to a company of that program; gives answers by what was said, and more."""
    folder = tmp_path_factory.mktemp("company")
    found: dict[str, str] = {}
    with (
        served(folder, more=SETTINGS, script=SCRIPT, PYTHONPATH=str(code)) as server,
        httpx.Client(base_url=server.url, timeout=PATIENCE) as client,
    ):
        for agent, words in (
            ("carl", "hello"),
            ("carl", "/help"),
            ("carl", "/shot"),
            ("carl", "/shout good morning"),
            ("dora", "loud tea"),
        ):
            message = {"role": "user", "content": words}
            body = {"model": agent, "messages": [message]}
            answer = client.post("/v1/chat/completions", json=body).json()
            found[words] = answer["choices"][0]["message"]["content"]
        found["metrics"] = client.get("/metrics").text
    found["audit"] = run(code, folder, "audit", "--json").out
    return found


def run(code: Path, folder: Path, *arguments: str) -> Finished:
    """Run one command of that program where the settings lie."""
    done = subprocess.run(
        [sys.executable, "-m", "connectors", *arguments, "-c", "callboard.toml"],
        cwd=folder,
        env=environment({"PYTHONPATH": str(code)}),
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    return Finished(done.returncode, done.stdout, done.stderr)


def settings(folder: Path, text: str) -> Path:
    """Write the settings of the tests, with something replaced."""
    (folder / "script.toml").write_text(SCRIPT, encoding="utf-8")
    (folder / "callboard.toml").write_text(text, encoding="utf-8")
    return folder


def test_the_page_adds_one_of_each_kind() -> None:
    found = [each.path for each in additions(PAGE.read_text(encoding="utf-8"))]
    assert found == [
        "actors/commands/shout.py",
        "actors/commands/registry.py",
        "connectors/tools/shout.py",
        "connectors/tools/registry.py",
        "connectors/models/echo.py",
        "connectors/config/models.py",
        "connectors/config/models.py",
        "actors/metrics.py",
        "actors/config/access.py",
        "config/default.toml",
    ]


@pytest.mark.parametrize(
    ("recipe", "files"),
    [
        (
            "add a tool",
            ["connectors/tools/registry.py", "connectors/tools/calculate.py"],
        ),
        (
            "add a model",
            ["connectors/config/models.py", "connectors/models/scripted.py"],
        ),
    ],
)
def test_the_recipe_of_the_readme_is_the_one_of_the_page(
    recipe: str, files: list[str]
) -> None:
    row = next(x for x in readme.read().splitlines() if x.startswith(f"| {recipe} |"))
    links = re.findall(r"\]\(([^)]+)\)", row)
    assert links[0].startswith("docs/where-to-change-what.md#")
    assert set(files) <= set(links)


def test_a_new_model_answers(company: dict[str, str]) -> None:
    assert company["hello"] == "you said: hello"


def test_a_new_command_is_listed_suggested_and_answered(
    company: dict[str, str],
) -> None:
    assert "/shout TEXT - repeat a text in capitals" in company["/help"]
    assert "/stop [all] - " in company["/help"]
    assert "stop what you asked here" not in company["/help"]  # that is translated
    assert "/shout" in company["/shot"]
    assert company["/shout good morning"] == "You said: GOOD MORNING!!"


def test_a_new_tool_is_offered_and_run(company: dict[str, str]) -> None:
    assert company["loud tea"] == "TEA"


def test_a_new_metric_is_scraped(company: dict[str, str]) -> None:
    assert 'callboard_shouts_total{agent="carl"} 1.0' in company["metrics"]
    assert 'command="shout",outcome="ok"' in company["metrics"]


def test_a_new_event_is_on_record(company: dict[str, str]) -> None:
    rows = [json.loads(line) for line in company["audit"].splitlines()]
    (row,) = [each for each in rows if each["status"] == "shouted"]
    assert (row["input"], row["channel"]) == ("good morning", "http")


def test_new_settings_are_checked_and_shown(code: Path, tmp_path: Path) -> None:
    base = '[connectors.terminal]\nkind = "terminal"\n' + SETTINGS
    base += '[models.scripted]\nkind = "scripted"\nscript = "script.toml"\n'
    good = run(code, settings(tmp_path, base), "config", "check")
    assert good.code == 0, good.said
    shown = run(code, tmp_path, "config", "show").out
    assert 'shout_ending = "!!"' in shown
    assert 'prefix = "you said: "' in shown
    wrong = base.replace('"!!"', '"!!!!"').replace("prefix", "prefx")
    wrong = wrong.replace('tools = ["shout"]', 'tools = ["shoot"]')
    refused = run(code, settings(tmp_path, wrong), "config", "check").said
    assert "commands.shout_ending" in refused
    assert "prefx" in refused


def test_every_path_of_the_page_is_there() -> None:
    page = PAGE.read_text(encoding="utf-8")
    made = {each.path for each in additions(page) if each.where == "new"}
    named = set(
        re.findall(r"`((?:actors|connectors|runtime|config|tests)/[\w./]+)`", page)
    )
    links = set(re.findall(r"\]\(\.\./([^)#]+)\)", page))
    assert not [x for x in (named - made) | links if not (readme.ROOT / x).exists()]


def test_each_word_of_the_glossary_has_one_sense() -> None:
    _, glossary = PAGE.read_text(encoding="utf-8").split("\n## Words\n")
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", glossary, re.MULTILINE)
    words = [word for row in rows for word in row.split(", ")]
    assert len(words) > 100
    again = {word for word in words if words.count(word) > 1}
    assert again <= {"word"}, "the heads of the tables apart"
