"""What does not go together in the settings of QQ, and what doctor finds, is told."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from connectors.admin.probes import Finding
from connectors.chat.platforms import serving
from connectors.commands.doctor.main import connector_probes
from connectors.config.app import AppConfig
from connectors.settings.load import load_app
from runtime.errors import SettingsError
from tests.support.chat.qq_bed import ANNA, QQBed, open_qq

BASE = """\
owners = ["qq/E4F4AEA33253A2797FB897C50B81D7ED"]
[models.scripted]
kind = "scripted"
script = "rules.toml"
[agents.anna]
prompt = "You are Anna."
[connectors.qq]
kind = "qq"
[connectors.qq.access]
people = "anyone"
[connectors.qq.accounts.anna]
app_id = "102012345"
app_secret = { env = "SECRET" }
"""
SECRET = "a-secret-of-nobody"  # noqa: S105


def load(folder: Path, text: str) -> tuple[str, ...]:
    """Load settings; gives the warnings."""
    (folder / "rules.toml").write_text("", encoding="utf-8")
    path = folder / "callboard.toml"
    path.write_text(text, encoding="utf-8")
    settings = load_app(path, {"SECRET": SECRET})
    assert [*serving(settings.value)] == ["qq"]
    assert SECRET not in repr(settings.value)
    return tuple(map(str, settings.warnings))


def test_the_base_of_these_tests_is_right(tmp_path: Path) -> None:
    assert load(tmp_path, BASE) == ()


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("accounts.anna", "accounts.bob", "there is no agent 'bob'"),
        ('"102012345"', '"anna"', "it has digits only"),
        ('app_secret = { env = "SECRET" }', "", "app_secret"),
        ('kind = "qq"', 'kind = "qq"\napi = "x"', "no http or https"),
        ('kind = "qq"', 'kind = "qq"\ntoken_url = "x"', "token_url"),
        ('kind = "qq"', 'kind = "qq"\nfiles = ["x"]', "files"),
        ('kind = "qq"', 'kind = "qq"\nrequest_timeout = 2', "request_timeout"),
        ('kind = "qq"', 'kind = "qq"\noutside_window = "shout"', "outside_window"),
    ],
)
def test_a_mistake_is_told(tmp_path: Path, before: str, after: str, told: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, BASE.replace(before, after))
    assert told in str(caught.value)


def test_one_bot_is_one_agents(tmp_path: Path) -> None:
    more = BASE.replace(
        "[connectors.qq]", '[agents.ben]\nprompt = "x"\n[connectors.qq]'
    )
    more += '[connectors.qq.accounts.ben]\napp_id = "102012345"\n'
    more += 'app_secret = { env = "SECRET" }\n'
    with pytest.raises(SettingsError, match=r"that of connectors\.qq\.accounts\.anna"):
        load(tmp_path, more)


async def look(bed: QQBed) -> list[Finding]:
    """Ask as doctor does."""
    app = AppConfig(connectors={"qq": bed.config})
    found: list[Finding] = []
    for probe in connector_probes(app, bed.server.network):
        found += await probe.ask()
    assert "secret-of" not in repr(found)
    assert bed.server.said == []
    return found


async def test_a_bot_that_is_let_in_is_told() -> None:
    async with open_qq() as bed:
        first, second = await look(bed)
    assert (first.state, second.state) == ("ok", "ok")
    assert "the bot anna is let in" in first.text


@pytest.mark.parametrize(
    ("fault", "told", "cure"),
    [
        (None, "invalid appid or secret", "AppSecret"),
        (("/users/@me", httpx.Response(503)), "503", "try again"),
    ],
)
async def test_a_bot_that_is_not_let_in_is_told(
    fault: tuple[str, httpx.Response] | None, told: str, cure: str
) -> None:
    async with open_qq() as bed:
        if fault is None:
            bed.server.bots[ANNA] = "another"
        else:
            bed.server.faults.append(fault)
        (found,) = await look(bed)
    assert (found.state, told in found.text) == ("wrong", True)
    assert cure in found.cure
