"""A whole company with a bot on QQ: over sockets, and again after a restart."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from connectors.app.app import open_app
from connectors.chat.platforms import serving
from connectors.config.app import AppConfig
from connectors.settings.load import load_app
from tests.fakes.qq.gateway import open_gateway
from tests.fakes.qq.server import LOGIN_PATH, FakeQQ
from tests.fakes.telegram.server import on_a_socket
from tests.support.chat.qq_bed import ANNA, ZOE

SETTINGS = """\
[store]
path = "{folder}/callboard.db"
[models.scripted]
kind = "scripted"
script = "rules.toml"
[agents.anna]
prompt = "You are Anna."
[connectors.qq]
kind = "qq"
api = "{url}"
token_url = "{url}{tokens}"
pace = 0.0
[connectors.qq.access]
people = "anyone"
[connectors.qq.accounts.anna]
app_id = "{bot}"
app_secret = {{ env = "SECRET" }}
"""


def settings(folder: Path, url: str, secret: str) -> AppConfig:
    (folder / "rules.toml").write_text('[default]\nreply = "**hi** {{turn}}"\n')
    path = folder / "callboard.toml"
    path.write_text(
        SETTINGS.format(folder=folder, url=url, tokens=LOGIN_PATH, bot=ANNA)
    )
    return load_app(path, {"SECRET": secret}).value


def has_said(server: FakeQQ, number: int) -> bool:
    return len(server.said) == number


async def test_somebody_is_answered_once_and_after_a_restart(tmp_path: Path) -> None:
    server = FakeQQ()
    secret = server.bot(ANNA)
    async with open_gateway(server) as gateway, on_a_socket(server) as url:
        config = settings(tmp_path, url, secret)
        for number in (1, 2):
            async with open_app(config, serving(config)) as app:
                await server.wait(lambda: bool(gateway.sessions), within=20)
                known = server.next_id("ROBOT1.0")
                server.answerable[known] = 5
                said = {"author": {"user_openid": ZOE}, "content": "hello"}
                for _ in range(2):
                    event = {**said, "id": known}
                    await gateway.sessions[ANNA].tell("C2C_MESSAGE_CREATE", event)
                await server.wait(partial(has_said, server, number), within=20)
                await app.drain(10)
                figures = app.metrics.render().decode()
                assert 'callboard_qq_up{account="anna"' in figures
                assert secret not in figures
        assert [each["content"][:2] for each in server.said] == ["hi", "hi"]
        assert gateway.identified == 1
