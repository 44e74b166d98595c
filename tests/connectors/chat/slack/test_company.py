"""A whole company with Slack: over real sockets, with slack_sdk, to the answer."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import trio

from connectors.app.app import App, open_app
from connectors.asyncio_bridge.bridge import Bridge
from connectors.chat.platforms import serving
from connectors.chat.slack.listener import signed
from connectors.chat.slack.transport import SlackTransport
from connectors.settings.load import load_app
from connectors.web.openai.transport import HttpTransport
from runtime.clock import SystemClock
from tests.fakes.slack.replies import event_body
from tests.fakes.slack.server import serving as serving_slack
from tests.fakes.slack.workspace import FakeSlack
from tests.support.chat.slack_bed import CREW, DIRECT, SIGNING, ZOE, SlackBed

SETTINGS = """\
[store]
path = "{folder}/callboard.db"
[models.scripted]
kind = "scripted"
script = "rules.toml"
[agents.anna]
prompt = "You are Anna."
[connectors.slack]
kind = "slack"
base_url = "{url}/api/"
[connectors.slack.access]
people = "anyone"
[connectors.slack.accounts.anna]
bot_token = {{ env = "BOT" }}
{hears}
"""
HTTP = '[connectors.http]\nkind = "http"\nport = 0\n'
TOKENS = {"BOT": "xoxb-anna", "APP": "xapp-anna", "SIGNING": SIGNING}


@asynccontextmanager
async def company(
    folder: Path, slack: FakeSlack, hears: str
) -> AsyncGenerator[tuple[App, Bridge]]:
    (folder / "rules.toml").write_text('[default]\nreply = "**Good** morning"\n')
    bridge = Bridge()
    await bridge.start()
    try:
        async with serving_slack(slack, bridge) as server:
            path = folder / "callboard.toml"
            text = SETTINGS.format(folder=folder, url=server.url, hears=hears)
            path.write_text(text + HTTP if "signing" in hears else text)
            config = load_app(path, TOKENS).value
            async with open_app(config, serving(config)) as app:
                slack_side = app.transports["slack"]
                assert isinstance(slack_side, SlackTransport)
                await until(lambda: not slack_side.trouble)
                yield app, bridge
    finally:
        await bridge.aclose()


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for what is true soon."""
    with trio.fail_after(20):
        while not is_so():  # noqa: ASYNC110  other loops tell nobody here
            await trio.sleep(0.01)


async def test_what_is_written_by_socket_mode_is_answered(tmp_path: Path) -> None:
    bed = SlackBed("anna")
    hears = 'app_token = { env = "APP" }'
    async with company(tmp_path, bed.slack, hears) as (app, bridge):
        bridge.post_edge(bed.slack.say, DIRECT, ZOE, "hello")
        await until(lambda: bed.shown(DIRECT)[-1:] == ["*Good* morning"])
        await app.drain(10)
    asked = [method for method, _, _ in bed.slack.asked]
    assert "reactions.add" in asked
    assert len(bed.shown(DIRECT)) == 1


async def test_what_slack_calls_us_with_is_answered(tmp_path: Path) -> None:
    bed = SlackBed("anna")
    hears = 'signing_secret = { env = "SIGNING" }'
    async with company(tmp_path, bed.slack, hears) as (app, _):
        http = app.transports["http"]
        assert isinstance(http, HttpTransport)
        host, port = await http.wait_listening()
        message = bed.slack.add(CREW, {"user": ZOE, "text": "<@UANNA> hello"})
        body = json.dumps(event_body({**message, "channel": CREW}, "E1")).encode()
        timestamp = str(int(SystemClock().wall()))
        headers = {
            "content-type": "application/json",
            "x-slack-request-timestamp": timestamp,
            "x-slack-signature": signed(SIGNING, timestamp, body),
        }
        url = f"http://{host}:{port}/platforms/slack/anna"
        async with httpx.AsyncClient() as client:
            for wrong in (b"{}", b"x" * 2_000_000, body + b" "):
                refused = await client.post(url, content=wrong, headers=headers)
                assert refused.status_code in {401, 413}
            for _ in range(2):
                taken = await client.post(url, content=body, headers=headers)
                assert taken.status_code == 200
            gone = await client.post(url + "x", content=body, headers=headers)
            assert gone.status_code == 401
        await until(lambda: bed.shown() == ["*Good* morning"])
