"""A whole company with a number: Meta calls over a socket, and is answered once."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import trio

from connectors.app.app import App, open_app
from connectors.chat.platforms import serving
from connectors.settings.load import load_app
from connectors.web.openai.transport import HttpTransport
from runtime.clock import SystemClock
from tests.fakes.media import PNG
from tests.fakes.whatsapp.graph import SECRET, FakeGraph, sign
from tests.fakes.whatsapp.server import open_graph
from tests.support.chat.whatsapp_bed import ANNA, TOKEN, ZOE

RULES = r"""
[default]
reply = "**hi**"

[[rule]]
pattern = '\[Image: '
reply = "A picture."
"""

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


@asynccontextmanager
async def company(folder: Path, graph: FakeGraph) -> AsyncGenerator[App]:
    """Run a company that reaches the Graph API by a socket."""
    secrets = {"APP": SECRET, "VERIFY": TOKEN, "TOKEN": graph.number(ANNA)}
    (folder / "rules.toml").write_text(RULES)
    path = folder / "callboard.toml"
    async with open_graph(graph) as url:
        path.write_text(SETTINGS.format(folder=folder, url=url, number=ANNA))
        config = load_app(path, secrets).value
        async with open_app(config, serving(config)) as app:
            yield app


async def test_two_people_are_answered_once_each(tmp_path: Path) -> None:
    graph = FakeGraph()
    async with company(tmp_path, graph) as app:
        people = (ZOE, "491702")
        messages = [graph.message("hello", each, at=now()) for each in people]
        body = graph.webhook(ANNA, *messages)
        assert await call(app, body) == 200
        assert await call(app, body) == 200
        await graph.wait(lambda: len(graph.texts()) == 2, within=20)
        await graph.wait(lambda: len(graph.read) >= 2, within=20)
        await app.drain(10)
        assert 'callboard_whatsapp_up{account="anna"' in figures(app)
        assert graph.numbers[ANNA] not in figures(app)
    assert graph.texts(ZOE) == graph.texts("491702") == ["*hi*"]


async def test_a_picture_is_brought_from_where_meta_keeps_it(tmp_path: Path) -> None:
    graph = FakeGraph()
    graph.put_media("cat", "image/png", PNG)
    image = {"id": "cat", "mime_type": "image/png", "caption": "look"}
    message = graph.message("", ZOE, at=now(), type="image", image=image)
    async with company(tmp_path, graph) as app:
        assert await call(app, graph.webhook(ANNA, message)) == 200
        await graph.wait(lambda: len(graph.texts()) == 1, within=20)
    assert graph.texts() == ["A picture."]


def figures(app: App) -> str:
    return app.metrics.render().decode()
