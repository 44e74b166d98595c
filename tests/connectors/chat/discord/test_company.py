"""A whole company on Discord: asked, answered with drafts and signs, started again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

import pytest
import trio

from connectors.app.app import open_app
from connectors.chat.platforms import serving
from connectors.config.app import AppConfig
from connectors.settings.load import load_app
from tests.fakes.discord.world import CHANNEL, ZOE
from tests.support.chat.discord_bed import DiscordBed, open_bed

SETTINGS = """\
owners = ["discord/{zoe}"]
[store]
path = "{folder}/callboard.db"
[models.scripted]
kind = "scripted"
script = "rules.toml"
[agents.anna]
prompt = "You are Anna."
[connectors.discord]
kind = "discord"
api = "{url}/api/v10"
gateway = "{gateway}"
[connectors.discord.accounts.anna]
token = {{ env = "TOKEN" }}
"""


def settings_of(bed: DiscordBed, folder: Path) -> AppConfig:
    (folder / "rules.toml").write_text('[default]\nreply = "good day"\n')
    path = folder / "callboard.toml"
    where = {"url": bed.server.url, "gateway": bed.server.gateway.url}
    path.write_text(SETTINGS.format(folder=folder, zoe=ZOE, **where))
    return load_app(path, {"TOKEN": "token.of.anna"}).value


@pytest.mark.deep
async def test_an_owner_is_answered_and_what_was_missed_is_too(tmp_path: Path) -> None:
    async with open_bed("anna") as bed:
        config, anna = settings_of(bed, tmp_path), bed.bots["anna"]
        async with open_app(config, serving(config)) as app:
            await ready(app.readiness)
            asked = await bed.say(f"<@{anna}> hello")
            await bed.wait(lambda: bed.said() == ["anna: good day"])
            await bed.wait(lambda: bed.world.signs.get(asked) == [(anna, "✅")])
            choose = partial(bed.server.choose, anna, CHANNEL, ZOE, {"name": "help"})
            token = await bed.bridge.call(choose)
            await bed.wait(lambda: "/stop" in answer(bed, token))
        await bed.say(f"<@{anna}> are you there?")
        async with open_app(config, serving(config)):
            await bed.wait(lambda: bed.said() == ["anna: good day"] * 2)


async def ready(ask: Callable[[], Awaitable[Sequence[str]]]) -> None:
    """Wait until nothing keeps the company from hearing people."""
    with trio.fail_after(20):
        while await ask():  # noqa: ASYNC110  it changes on another thread
            await trio.sleep(0.01)


def answer(bed: DiscordBed, token: str) -> str:
    shown = bed.world.answers.get(token, {}).get("data", {})
    return str(shown.get("content", ""))
