"""What does not go together in the settings of Telegram is told at its place."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from connectors.admin.probes import ask_all
from connectors.chat.platforms import serving
from connectors.commands.doctor.main import connector_probes
from connectors.config.app import AppConfig
from connectors.settings.load import load_app
from runtime.errors import SettingsError
from tests.support.chat.telegram_bed import BotBed

BASE = """\
[models.scripted]
kind = "scripted"
script = "rules.toml"
[agents.anna]
prompt = "You are Anna."
[connectors.telegram]
kind = "telegram"
[connectors.telegram.access]
people = "anyone"
[connectors.telegram.accounts.anna]
token = { env = "TOKEN" }
"""
HOOKED = BASE.replace(
    'kind = "telegram"',
    'kind = "telegram"\nmode = "webhook"\nwebhook_url = "https://bots.test"',
)
HTTP = '[connectors.http]\nkind = "http"\n'
GOOD = "0123456789-abcdef"
TOKEN = f"7:{'A' * 30}00007"


def load(folder: Path, text: str, token: str = TOKEN, secret: str = GOOD) -> AppConfig:
    """Load settings."""
    (folder / "rules.toml").write_text("", encoding="utf-8")
    path = folder / "callboard.toml"
    path.write_text(text, encoding="utf-8")
    settings = load_app(path, {"TOKEN": token, "SECRET": secret})
    assert "telegram" in serving(settings.value)
    assert token not in repr(settings.value)
    return settings.value


def test_the_base_of_these_tests_is_right(tmp_path: Path) -> None:
    load(tmp_path, BASE)
    text = HOOKED + 'webhook_secret = { env = "SECRET" }\n' + HTTP
    load(tmp_path, text)


@pytest.mark.parametrize(
    "token", ["12345678", "a:0123456789012345678901", "7:short-one"]
)
def test_what_is_no_token_is_refused(tmp_path: Path, token: str) -> None:
    with pytest.raises(SettingsError, match="no bot token"):
        load(tmp_path, BASE, token)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (BASE.replace("accounts.anna", "accounts.bob"), "there is no agent 'bob'"),
        (BASE.replace('{ env = "TOKEN" }', '"x"'), "secret"),
        (BASE.replace('"telegram"', '"telegram"\napi_url = "x"', 1), "no http"),
        (BASE.replace('"telegram"', '"telegram"\nmode = "push"', 1), "push"),
        (BASE.replace('"telegram"', '"telegram"\npoll_timeout = 0', 1), "poll_timeout"),
        (
            BASE
            + BASE[BASE.index("[connectors.telegram]") :].replace(
                "connectors.telegram", "connectors.more"
            ),
            "is that of connectors.telegram.accounts.anna already",
        ),
    ],
)
def test_a_mistake_is_told(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        load(tmp_path, text)


@pytest.mark.parametrize("secret", ["01234567", "with blanks in it here", "a1" * 150])
def test_a_webhook_without_a_good_secret_is_refused(
    tmp_path: Path, secret: str
) -> None:
    text = HOOKED + 'webhook_secret = { env = "SECRET" }\n' + HTTP
    with pytest.raises(SettingsError, match="too short"):
        load(tmp_path, text, secret=secret)
    with pytest.raises(SettingsError, match="anybody could pass for Telegram"):
        load(tmp_path, HOOKED + HTTP)
    plain = text.replace("https://bots", "http://bots")
    with pytest.raises(SettingsError, match="https addresses only"):
        load(tmp_path, plain)
    alone = text.replace(HTTP, "")
    with pytest.raises(SettingsError, match="nobody is there"):
        load(tmp_path, alone)


async def test_the_doctor_says_how_a_bot_stands(tmp_path: Path) -> None:
    await trio.lowlevel.checkpoint()
    app = load(tmp_path, BASE)
    bed = BotBed()
    network = bed.server.network
    fine = await ask_all(connector_probes(app, network))
    assert [each.state for each in fine] == ["ok", "ok"]
    assert "let in as @anna_bot" in fine[0].text
    assert "mentions and replies to it only" in fine[1].text
    bed.bot().webhook["url"] = "https://elsewhere.test"
    assert [each.state for each in await ask_all(connector_probes(app, network))][
        -1
    ] == "warning"
    bed.server.is_down = True
    (away,) = await ask_all(connector_probes(app, network))
    assert (away.state, "ConnectError" in away.text) == ("wrong", True)
    bed.server.is_down = False
    bed.server.bots.clear()
    (revoked,) = await ask_all(connector_probes(app, network))
    assert "/token" in revoked.cure
    assert bed.server.count("setMyCommands") == 0
    assert all(TOKEN not in repr(each) for each in (*fine, away, revoked))
