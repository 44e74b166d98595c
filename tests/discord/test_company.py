"""A whole company with Discord and nothing else, to the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.app import open_app
from connectors.chat.discord.transport import DiscordTransport
from connectors.settings import load_app
from connectors.transports import serving
from tests.discord_bed import open_bed, token_of

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = """\
[store]
path = "{folder}/callboard.db"
[models.scripted]
kind = "scripted"
script = "rules.toml"
[agents.anna]
prompt = "You are Anna."
[connectors.discord]
kind = "discord"
api = "{api}/api/v10"
gateway = "{gateway}"
[connectors.discord.access]
people = "anyone"
[connectors.discord.accounts.anna]
token = {{ env = "BOT" }}
"""


async def test_a_company_with_no_server_of_its_own_answers(tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text('[default]\nreply = "**Good** morning"\n')
    path = tmp_path / "callboard.toml"
    async with open_bed("anna") as bed:
        places = {"api": bed.server.url, "gateway": bed.server.gateway.url}
        path.write_text(SETTINGS.format(folder=tmp_path, **places))
        config = load_app(path, {"BOT": token_of("anna")}).value
        async with open_app(config, serving(config)) as app:
            transport = app.transports["discord"]
            assert isinstance(transport, DiscordTransport)
            await bed.wait(lambda: not transport.trouble)
            chat = bed.world.direct(bed.bots["anna"])
            await bed.say("hello", channel=chat)
            await bed.wait(lambda: bed.said(chat) == ["anna: **Good** morning"])
            await app.drain(10)
