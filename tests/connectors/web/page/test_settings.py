"""What does not go together in the settings of pages is told at its place."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

import pytest

from connectors.chat.platforms import serving
from connectors.config.app import AppConfig
from connectors.settings.checks.access import access_of, approvers, owners
from connectors.settings.load import load_app
from connectors.web.page.platform import DRAWS, check_package
from runtime.errors import SettingsError
from tests.support.panel_bed import form_of, open_panels, told

BASE = """\
owners = ["page/boss"]
[models.scripted]
kind = "scripted"
script = "rules.toml"
[agents.anna]
prompt = "You are Anna."
[connectors.page]
kind = "page"
"""


def load(folder: Path, text: str) -> AppConfig:
    (folder / "rules.toml").write_text("", encoding="utf-8")
    path = folder / "callboard.toml"
    path.write_text(text, encoding="utf-8")
    settings = load_app(path, {})
    assert settings.warnings == ()
    return settings.value


def test_few_words_are_enough(tmp_path: Path) -> None:
    app = load(tmp_path, BASE)
    assert [*serving(app)] == ["page"]
    assert access_of(app.connectors["page"]) is None


def test_whoever_may_log_in_is_an_owner(tmp_path: Path) -> None:
    app = load(tmp_path, BASE + 'people = ["sam", "zoe"]\n')
    assert owners(app) == {"page/boss", "page/sam", "page/zoe"}
    assert approvers(app) == owners(app)


def test_a_package_that_is_missing_is_named_with_what_to_do() -> None:
    [told] = check_package(("connectors", "page"), "no_such_package")
    assert "no_such_package" in told.text
    assert "pip install" in told.hint
    assert not [*check_package(("connectors", "page"), DRAWS)]


def test_behind_a_proxy_any_address_may_be_listened_on(tmp_path: Path) -> None:
    more = 'host = "0.0.0.0"\norigin = "https://board.example.org"\n'
    load(tmp_path, BASE + more)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ('host = "0.0.0.0"\n', "could use your session"),
        ('host = "0.0.0.0"\norigin = "http://board"\n', "could use your session"),
        ('origin = "https://board.example.org/x"\n', "no origin"),
        ('origin = "board.example.org"\n', "no origin"),
        ("people = []\n", "people"),
        ('people = ["Sam Smith"]\n', "people"),
        ('[connectors.page.rooms.desk]\nagents = ["eve"]\n', "eve"),
        ("[connectors.page.rooms.desk]\nagents = []\n", "nobody is in this room"),
        ("login_for = 5.0\n", "login_for"),
    ],
)
def test_what_does_not_go_together_is_told(
    more: str, told: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError, match=told):
        load(tmp_path, BASE + more)


async def test_a_setting_is_changed_on_the_page(tmp_path: Path) -> None:
    async with open_panels(tmp_path) as bed:
        file = bed.app.files[0]
        before = file.read_text(encoding="utf-8")
        place = "/settings?change=agents.ben.prompt&value=You+add+%3Cb%3E."
        shown = await bed.show(place)
        assert "You add &lt;b&gt;." in shown
        assert file.read_text(encoding="utf-8") == before
        shown = await bed.press(place, "/settings/save")
        assert told(shown) == (
            "agents.ben.prompt is written, and in force within some seconds"
        )
        after = before.replace('"You are Ben."', '"You add <b>."')
        assert file.read_text(encoding="utf-8") == after
        assert "settings agents.ben.prompt" in await bed.show("/audit")
        for name in ("connectors.page.port", "models.paid.api_key", "nothing"):
            refused = await bed.show(f"/settings?change={name}&value=1")
            assert 'action="/settings/save"' not in refused
            form = {"csrf": form_of(shown, "/look")["csrf"], "name": name, "value": "1"}
            await bed.client.post("/settings/save", data=form)
            assert name in told(await bed.show("/settings"))
        assert file.read_text(encoding="utf-8") == after


async def test_a_value_that_a_page_cannot_show_in_full_is_not_changed_there(
    tmp_path: Path,
) -> None:
    async with open_panels(tmp_path) as bed:
        file = bed.app.files[0]
        before = file.read_text(encoding="utf-8")
        for value in ("word " * 1_000, "a\x07b"):
            asked = urlencode({"change": "agents.ben.prompt", "value": value})
            refused = await bed.show(f"/settings?{asked}")
            assert 'action="/settings/save"' not in refused
            assert "change it in the file" in refused
        assert file.read_text(encoding="utf-8") == before


async def test_each_limit_of_a_budget_leads_to_its_change(tmp_path: Path) -> None:
    async with open_panels(tmp_path) as bed:
        link = "/settings?change=budgets%5B0%5D.hard_usd"
        assert f'href="{link}"' in await bed.show("/usage")
        place = f"{link}&value=2.5"
        await bed.press(place, "/settings/save")
        assert "hard_usd = 2.5" in bed.app.files[0].read_text(encoding="utf-8")
