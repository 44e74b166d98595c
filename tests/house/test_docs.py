"""Proves that what README and docs say is so: links, commands, settings, metrics."""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from functools import cache
from itertools import chain
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from connectors.cli import callboard
from connectors.settings.load import load_app
from connectors.tools.registry import TOOLS
from runtime.errors import SettingsError
from tests.house.test_stored_names import metrics
from tests.support import readme

ROOT = readme.ROOT
PAGES = sorted(
    chain(
        (ROOT / "docs").rglob("*.md"),
        (ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    )
)
RECIPES = ROOT / "docs" / "where-to-change-what.md"
"""Its blocks add what does not exist; tests/house/test_additions.py runs them."""

README_LINES = 180
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
METRIC = re.compile(r"\bcallboard_[a-z_]+[a-z]")
SUFFIX = re.compile(r"_(total|bucket|count|sum|created)$")
BLOCK = re.compile(r"^( *)```toml\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
SHELL = re.compile(r"^ *```sh\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
PROGRAMS = {
    *("callboard", "python", "python3", "pip", "poe"),
    *("cd", "chmod", "chown", "cp", "export", "install", "mkdir", "printf", "touch"),
    *("createdb", "createuser", "pg_dump", "pg_restore"),
    *("curl", "docker", "mail", "openssl", "systemctl"),
}
"""What shell lines of the docs may call, in whatever folder it lies."""

OURS = re.compile(r"(?:actors|benchmarks|config|connectors|docs|runtime|tests)/")
SHAPE = ("unknown key", "expected", "must be one of", "not a valid")
"""Words of complaints about a block itself, not about what it leaves out."""


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def anchor(heading: str) -> str:
    """Give the anchor that Markdown renderers make of a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    kept = re.sub(r"[^\w\- ]", "", text.lower()).strip()
    return kept.replace(" ", "-")


@cache
def known_metrics() -> frozenset[str]:
    return frozenset(line.removeprefix("metric ") for line in metrics())


def settings_blocks() -> list[tuple[str, str]]:
    """Give (page and number, text) of each block of settings in the docs."""
    return [
        (f"{named(page)}, block {number}", str(text))
        for page in PAGES
        if page != RECIPES
        for number, (_, text) in enumerate(BLOCK.findall(page.read_text()), 1)
        if not text.startswith("[project.")
    ]


def shell_lines(text: str) -> list[list[str]]:
    """Give the words of each line of the shell blocks of a page."""
    lines: list[list[str]] = []
    for block in SHELL.findall(text):
        rest = ""
        for line in str(block).replace("\\\n", " ").splitlines():
            words = shlex.shlex(f"{rest}{line}", posix=True, punctuation_chars=True)
            words.whitespace_split = True
            try:
                lines.append(list(words))
                rest = ""
            except ValueError:  # a text goes on in the next line
                rest += f"{line}\n"
        assert not rest, rest
    return lines


def called(words: list[str]) -> list[tuple[str, str]]:
    """Give each program that a line calls, without its folder, and its first word."""
    found: list[tuple[str, str]] = []
    is_next = True
    for number, word in enumerate(words):
        if word in {"|", "&&", "||", ";", "&", "(", ")"}:
            is_next = True
        elif is_next and word != "sudo" and not re.match(r"\w+=", word):
            is_next = False
            found.append((word.rpartition("/")[2], "".join(words[number + 1 :][:1])))
    return found


def wrong_in_shell(text: str) -> list[str]:
    """Name programs that are not known, and files and tasks that are not there."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        tasks = tomllib.load(file)["tool"]["poe"]["tasks"]
    wrong: list[str] = []
    for words in shell_lines(text):
        wrong += [x for x in words if OURS.match(x) and not (ROOT / x).exists()]
        for name, argument in called(words):
            if name not in PROGRAMS or (name == "poe" and argument not in tasks):
                wrong.append(f"{name} {argument}")
    return wrong


def test_the_readme_is_short() -> None:
    assert len(readme.read().splitlines()) <= README_LINES


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_link_leads_somewhere(page: Path) -> None:
    missing: list[str] = []
    for link in LINK.findall(readme.FENCE.sub("", page.read_text())):
        if link.startswith(("http:", "https:", "mailto:")):
            continue
        path, _, part = str(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            missing.append(link)
        elif part and part not in map(anchor, HEADING.findall(target.read_text())):
            missing.append(f"{link} (no such heading)")
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_subcommand_exists(page: Path) -> None:
    if page.parent.name == "reference":
        return  # written from the commands themselves
    for words in sorted(readme.subcommands(page.read_text())):
        run = CliRunner().invoke(callboard, [*words, "--help"])
        assert run.exit_code == 0, f"callboard {' '.join(words)}: {run.output}"


def options_of(words: tuple[str, ...]) -> set[str]:
    """Give the options of the command that a line begins with."""
    command: click.Command = callboard
    for word in words:
        context = click.Context(command)
        below = isinstance(command, click.Group) and command.get_command(context, word)
        if not below:
            break
        command = below
    return {each for option in command.params for each in option.opts} | {
        each for option in command.params for each in option.secondary_opts
    }


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_option_exists(page: Path) -> None:
    if page.parent.name == "reference":
        return  # written from the commands themselves
    for words in sorted(readme.command_lines(page.read_text())):
        given = {
            word.partition("=")[0].rstrip(".,:)]")
            for word in words
            if re.fullmatch(r"--?[a-z][a-z-]*\W*|--[a-z-]+=.*", word)
        }
        unknown = given - options_of(words) - {"--help", "--version"}
        assert not unknown, f"callboard {' '.join(words)}"


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_shell_line_names_programs_and_files_that_there_are(page: Path) -> None:
    assert wrong_in_shell(page.read_text()) == []


def test_a_wrong_shell_line_would_be_noticed() -> None:
    lines = "A=1 .venv/bin/callbord x && poe chek\ncp config/none.toml . | sort\n"
    found = wrong_in_shell(f"```sh\n{lines}curl -d 'a\n b' x\n```\n")
    assert found == ["callbord x", "poe chek", "config/none.toml", "sort "]


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_metric_exists(page: Path) -> None:
    known = known_metrics()
    told = set(METRIC.findall(page.read_text()))
    unknown = {x for x in told if not {x, SUFFIX.sub("", x)} & known}
    assert page == RECIPES or not unknown


def test_the_reference_has_every_metric_that_docs_dashboards_and_alerts_name() -> None:
    listed = set(METRIC.findall((ROOT / "docs/reference/metrics.md").read_text()))
    deploy = (ROOT / "config" / "deploy").glob("[gp]*/*.[jy]*")
    told = {x for page in (*PAGES, *deploy) for x in METRIC.findall(page.read_text())}
    told = {x for x in told if {x, SUFFIX.sub("", x)} & known_metrics()}
    assert len(told) > len(listed) / 2
    assert {x for x in told if not {x, SUFFIX.sub("", x)} & listed} == set()


@pytest.mark.parametrize(("place", "text"), settings_blocks(), ids=str)
def test_every_settings_block_is_understood(
    place: str, text: str, tmp_path: Path
) -> None:
    tomllib.loads(text)
    file = tmp_path / "callboard.toml"
    file.write_text(text.replace("connectors.NAME.", "connectors.discord."))
    try:
        settings = load_app(file, dict(os.environ), needs_secrets=False)
        assert "has no effect any more" not in str(settings.warnings), place
    except SettingsError as error:
        wrong = [x for x in map(str, error.problems) if any(y in x for y in SHAPE)]
        assert not wrong, place


def test_every_page_is_in_the_index_and_in_the_site() -> None:
    site = (ROOT / "mkdocs.yml").read_text()
    index = (ROOT / "docs" / "index.md").read_text()
    pages = [x.relative_to(ROOT / "docs") for x in (ROOT / "docs").rglob("*.md")]
    others = [str(page) for page in pages if str(page) != "index.md"]
    assert not [page for page in others if f"({page})" not in index]
    assert not [page for page in others if f" {page}\n" not in site]


def test_every_tool_is_in_the_docs_and_in_the_settings() -> None:
    text = (ROOT / "docs" / "agents" / "tools.md").read_text()
    table = text.partition("| tool | what it does | settings |")[2].partition("\n\n")[0]
    cells = "\n".join(line.split("|")[1] for line in table.strip().splitlines())
    settings = (ROOT / "config" / "default.toml").read_text()
    listed = settings.partition("# Tools it may call:")[2].partition("\ntools =")[0]
    assert sorted(re.findall(r"`(\w+)`", cells)) == sorted(TOOLS)
    assert sorted(re.findall(r'"(\w+)"', listed)) == sorted(TOOLS)


def test_the_second_agent_of_the_tutorial_fits_what_init_writes(
    tmp_path: Path,
) -> None:
    page = (ROOT / "docs" / "tutorial.md").read_text()
    second = next(line for line in page.splitlines() if "callboard agents add" in line)
    made = ["init", "--yes", "--model", "embedded", "--folder", str(tmp_path)]
    assert CliRunner().invoke(callboard, made).exit_code == 0
    file = str(tmp_path / "callboard.toml")
    for words in (shlex.split(second)[1:], ["config", "check"]):
        run = CliRunner().invoke(callboard, [*words, "--config", file])
        assert run.exit_code == 0, run.output


def test_an_option_that_does_not_exist_would_be_noticed() -> None:
    found = readme.command_lines("`callboard queue retry --none` and `callboard tree`")
    assert found == {("queue", "retry", "--none")}
    assert "--none" not in options_of(("queue", "retry", "--none"))
    assert "--all-failed" in options_of(("queue", "retry", "--none"))
