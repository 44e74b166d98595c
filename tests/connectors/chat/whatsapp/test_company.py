"""A whole company with a number: Meta calls over a socket, and is answered once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import trio

from connectors.app.app import open_app
from connectors.chat.platforms import serving
from connectors.settings.load import load_app
from connectors.web.openai.transport import HttpTransport
from runtime.clock import SystemClock
from tests.fakes.whatsapp.graph import SECRET, FakeGraph, sign
from tests.fakes.whatsapp.server import open_graph
from tests.support.chat.whatsapp_bed import ANNA, TOKEN, ZOE

if TYPE_CHECKING:
    from pathlib import Path

    from connectors.app.app import App

SETTINGS = """\
[store]
path = "{folder}/callboard.db"
[models.scripted]
kind = "scripted"
script = "rules.toml"
[agents.anna]
prompt = "You are Anna."
[connectors.http]
kind = "http"
port = 0
[connectors.whatsapp]
kind = "whatsapp"
app_secret = {{ env = "APP" }}
verify_token = {{ env = "VERIFY" }}
graph_url = "{url}"
pace = 0.0
[connectors.whatsapp.access]
people = "anyone"
[connectors.whatsapp.accounts.anna]
phone_number_id = "{number}"
access_token = {{ env = "TOKEN" }}
"""


async def call(app: App, body: bytes) -> int:
    """Call as Meta does; gives the status."""
    http = app.transports["http"]
    assert isinstance(http, HttpTransport)
    with trio.fail_after(10):
        _, port = await http.wait_listening()
    headers = {"x-hub-signature-256": sign(body), "content-type": "application/json"}
    url = f"http://127.0.0.1:{port}/platforms/whatsapp"
    async with httpx.AsyncClient(timeout=10) as client:
        return (await client.post(url, content=body, headers=headers)).status_code


def now() -> int:
    return int(SystemClock().wall())


async def test_two_people_are_answered_once_each(tmp_path: Path) -> None:
    graph = FakeGraph()
    token = graph.number(ANNA)
    (tmp_path / "rules.toml").write_text('[default]\nreply = "**hi**"\n')
    path = tmp_path / "callboard.toml"
    async with open_graph(graph) as url:
        text = SETTINGS.format(folder=tmp_path, url=url, number=ANNA)
        path.write_text(text)
        secrets = {"APP": SECRET, "VERIFY": TOKEN, "TOKEN": token}
        config = load_app(path, secrets).value
        async with open_app(config, serving(config)) as app:
            people = (ZOE, "491702")
            messages = [graph.message("hello", each, at=now()) for each in people]
            body = graph.webhook(ANNA, *messages)
            assert await call(app, body) == 200
            assert await call(app, body) == 200
            await graph.wait(lambda: len(graph.texts()) == 2, within=20)
            await graph.wait(lambda: len(graph.read) >= 2, within=20)
            await app.drain(10)
            assert 'callboard_whatsapp_up{account="anna"' in figures(app)
            assert token not in figures(app)
    assert graph.texts(ZOE) == graph.texts("491702") == ["*hi*"]


def figures(app: App) -> str:
    return app.metrics.render().decode()
