"""Proves that a chat platform is one folder and one line of registration.

A platform made only for this test is registered as docs/where-to-change-what.md says;
the rest of the program then has its settings, checks, limits, markup, metrics and
`callboard doctor`. That it keeps a transport's promises is proved by
`tests/contracts/test_transport*.py`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from actors.journal.attachments import LeftOut, fitted
from actors.journal.splitting import for_platform
from actors.messages.inbound import SentFile
from connectors.admin.probes import ask_all
from connectors.app.app import open_app
from connectors.chat import platforms
from connectors.chat.markup.render import rendered
from connectors.chat.platforms import serving
from connectors.commands.doctor.main import connector_probes
from connectors.config.app import AppConfig
from connectors.settings.checks.access import access_of
from connectors.settings.load import load_app
from connectors.settings.schema import settings_schema
from runtime.config.loader import Settings
from runtime.errors import SettingsError
from tests.house.test_house import statements
from tests.support.postcard.office import OFFICES, Office
from tests.support.readme import ROOT

PACKAGE = "tests.support.postcard"
SETTINGS = """\
[store]
path = "{folder}/callboard.db"
[models.scripted]
kind = "scripted"
script = "rules.toml"
[agents.anna]
prompt = "You are Anna."
[connectors.desk]
kind = "postcard"
office = "harbour"
agent = "{agent}"
[connectors.desk.access]
people = "anyone"
"""


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the platform: the one line."""
    monkeypatch.setattr(platforms, "PACKAGES", (*platforms.PACKAGES, PACKAGE))


@pytest.fixture
def office() -> Office:
    OFFICES["harbour"] = Office()
    return OFFICES["harbour"]


def load(folder: Path, agent: str = "anna", more: str = "") -> Settings[AppConfig]:
    (folder / "rules.toml").write_text('[default]\nreply = "**hi**"\n')
    path = folder / "callboard.toml"
    path.write_text(SETTINGS.format(folder=folder, agent=agent) + more)
    return load_app(path, {})


def test_its_settings_are_read_and_what_is_wrong_is_told_with_its_line(
    tmp_path: Path,
) -> None:
    config = load(tmp_path).value
    desk = config.connectors["desk"]
    assert platforms.platform_of(desk).kind == "postcard"
    assert access_of(desk) is not None
    with pytest.raises(SettingsError, match=r"callboard.toml:11:.*no agent 'bob'"):
        load(tmp_path, agent="bob")
    with pytest.raises(SettingsError, match=r"unknown key 'stamp' in connectors\.shop"):
        load(tmp_path, more='[connectors.shop]\nkind = "postcard"\nstamp = 1\n')
    with pytest.raises(SettingsError, match="postcard"):
        load(tmp_path, more='[connectors.shop]\nkind = "postcards"\n')


def test_whoever_may_write_is_asked_as_on_every_platform(tmp_path: Path) -> None:
    more = '[connectors.shop]\nkind = "postcard"\noffice = "shop"\nagent = "anna"\n'
    settings = load(tmp_path, more=more)
    (warning,) = settings.warnings
    assert "connectors.shop.access.people: nobody may write here" in str(warning)


def test_editors_are_told_of_its_settings() -> None:
    assert "Name of the office." in str(settings_schema()["$defs"])


async def test_doctor_asks_it(tmp_path: Path, office: Office) -> None:
    app = load(tmp_path).value
    (found,) = await ask_all(connector_probes(app))
    assert (found.state, found.text) == ("ok", "connectors.desk: harbour is open")
    office.is_open = False
    (found,) = await ask_all(connector_probes(app))
    assert (found.state, found.cure) == ("wrong", "come again tomorrow")


def test_its_limits_markup_and_name_count() -> None:
    platform = platforms.platform_in(PACKAGE)
    dialect = platform.markup()
    assert dialect is not None
    assert rendered("**so** it is", dialect) == "=so= it is"
    assert platforms.reply_styles()["postcard"].writing.startswith(
        "You write postcards"
    )
    assert platform.takes_files.max_caption == 95


async def test_people_are_answered_and_counted(tmp_path: Path, office: Office) -> None:
    config = load(tmp_path).value
    office.write("hello")
    async with open_app(config, serving(config)) as app:
        with trio.fail_after(20):
            while not office.sent:
                await office.wait_change()
        can = app.transports["desk"].abilities
        assert len(for_platform("= " * 200, can)) == 2
        file = SentFile("a" * 64, "a.pdf", "application/pdf", 2_000)
        (left_out,) = fitted([file], can)
        assert isinstance(left_out, LeftOut)
        assert "than the postcard office takes (1.0 kB)" in left_out.text
        await app.drain(10)
        figures = app.metrics.render().decode()
    assert list(office.sent.values()) == ["anna: =hi="]
    counted = 'callboard_postcard_events_total{account="anna",connector="desk"'
    assert f'{counted},outcome="taken"}} 1' in figures


INIT = "connectors/commands/init"
"""`callboard init` has an option of its own for an account on Matrix."""

REGISTRATION = "connectors/chat/platforms.py"


STRUCT = re.compile(r"=[a-zA-Z]+")
"""How bytes are laid out, as `struct` writes it: `=qq` is two numbers."""


def words_in(source: str) -> Iterator[str]:
    """Give the names and texts of a module, but no docstring and no comment."""
    tree = ast.parse(source)
    docstrings = {
        id(child.value)
        for node in ast.walk(tree)
        for child in ast.iter_child_nodes(node)
        if isinstance(child, ast.Expr)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in docstrings:
                yield text
            case ast.Name(id=text) | ast.Attribute(attr=text) | ast.alias(name=text):
                yield text
            case ast.ImportFrom(module=str(text)):
                yield text
            case ast.ClassDef(name=text) | ast.FunctionDef(name=text):
                yield text
            case ast.AsyncFunctionDef(name=text) | ast.arg(arg=text):
                yield text
            case _:
                pass


def test_nothing_outside_a_platforms_folder_names_it() -> None:
    public = [each for each in platforms.platforms() if each.is_public]
    assert len(public) == 7
    kinds = re.compile("|".join(each.kind for each in public), re.IGNORECASE)
    homes = {each.kind: each.package.replace(".", "/") for each in public}
    for floor in ("runtime", "actors", "connectors"):
        for path in (ROOT / floor).rglob("*.py"):
            name = path.relative_to(ROOT).as_posix()
            if name == REGISTRATION or name.startswith(INIT):
                continue
            source = path.read_text(encoding="utf-8")
            for word in words_in(source) if kinds.search(source) else ():
                if STRUCT.fullmatch(word):
                    continue
                for kind in kinds.findall(word):
                    assert name.startswith(homes[kind.casefold()]), (name, word)


@pytest.mark.parametrize("package", platforms.PACKAGES)
def test_a_platform_knows_no_other(package: str) -> None:
    others = {each for each in platforms.PACKAGES if each != package}
    for path in (ROOT / package.replace(".", "/")).rglob("*.py"):
        for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                home = ".".join(node.module.split(".")[:3])
                assert home not in others, (path, node.module)
