"""Proves that the whole program speaks on Slack, once and not twice, through kills."""

from __future__ import annotations

import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from connectors.asyncio_bridge.bridge import Bridge
from tests.fakes.slack.server import serving
from tests.fakes.slack.workspace import FakeSlack
from tests.processes.running import PATIENCE, rows, run, served
from tests.support.chat.slack_bed import ANNA, ZOE

MORE = """
[presence]
drafts = {drafts}
draft_after = 0.0
draft_chars = 1
reactions = false

[connectors.slack]
kind = "slack"
base_url = "{url}/api/"
pace = 0.0
draft_pace = 0.0

[connectors.slack.access]
people = "anyone"

[connectors.slack.accounts.anna]
bot_token = {{ env = "BOT" }}
app_token = {{ env = "APP" }}
"""
BOT, APP = "xoxb-anna", "xapp-anna"

KILLS = 2
"""Below `retries.attempts`: what three starts did not end is given up, and said so."""

CHATS = tuple(f"D{number}" for number in range(1, 7))


class Workspace:
    """A workspace on a socket."""

    def __init__(self, slack: FakeSlack, bridge: Bridge, url: str) -> None:
        self.slack = slack
        self.url = url
        self._bridge = bridge

    async def say(self, channel: str, text: str) -> None:
        """Have somebody write."""

        async def say() -> None:
            self.slack.say(channel, ZOE, text)

        await self._bridge.call(say)

    def texts(self, channel: str) -> list[str]:
        """Give what was said in a channel."""
        return [each["text"] for each in [*self.slack.said(channel)]]

    async def wait_asked(self, method: str, more: int) -> None:
        """Wait for so many further calls of a method."""
        before = self.count(method)
        await until(lambda: self.count(method) >= before + more)

    def count(self, method: str) -> int:
        """Count the calls of a method."""
        return sum(each == method for each, _, _ in [*self.slack.asked])


@asynccontextmanager
async def workspace() -> AsyncGenerator[Workspace]:
    """Run a workspace, with an app that has a chat with somebody in each channel."""
    slack = FakeSlack()
    slack.app("anna")
    slack.person(ZOE, "Zoe")
    for each in CHATS:
        slack.channel(each, ZOE, ANNA)
    bridge = Bridge()
    await bridge.start()
    try:
        async with serving(slack, bridge) as server:
            with trio.fail_after(2 * PATIENCE):
                yield Workspace(slack, bridge, server.url)
    finally:
        await bridge.aclose()


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for what is true soon."""
    while not is_so():  # noqa: ASYNC110  another loop tells nobody here
        await trio.sleep(0.01)


async def test_somebody_writes_and_is_answered_while_it_is_written(
    tmp_path: Path,
) -> None:
    async with workspace() as there:
        more = MORE.format(url=there.url, drafts="true")
        with served(tmp_path, more=more, BOT=BOT, APP=APP) as program:
            await there.say("D1", "slowly one two three four five")
            answer = ["one two three four five"]
            await until(lambda: there.texts("D1") == answer)
            assert await program.end() == 0
            for token in (BOT, APP):
                assert token not in program.log
        assert there.count("chat.update") >= 1
        said = await trio.to_thread.run_sync(
            lambda: run("doctor", "--all", folder=tmp_path, BOT=BOT, APP=APP)
        )
    assert "accounts.anna: it is" in said.out
    for token in (BOT, APP):
        assert token not in said.said


@pytest.mark.deep
async def test_what_people_wrote_outlives_kills_and_is_answered_once(
    tmp_path: Path,
) -> None:
    wanted = sorted(f"you said {k}.{n}" for k in range(KILLS) for n in range(5))
    async with workspace() as there:
        more = MORE.format(url=there.url, drafts="false")
        for kill in range(KILLS):
            with served(tmp_path, more=more, BOT=BOT, APP=APP) as program:
                for chat in CHATS:
                    for number in range(5):
                        await there.say(chat, f"{kill}.{number}")
                await there.wait_asked("chat.postMessage", 4)
                await program.end(signal.SIGKILL)
        with served(tmp_path, more=more, BOT=BOT, APP=APP) as program:
            await until(lambda: all(len(there.texts(c)) >= len(wanted) for c in CHATS))
            await until(lambda: not there.slack.apps[ANNA].waiting)
            assert await program.end() == 0
        # One in the moment of a kill is looked for in its channel, not said again.
        assert [sorted(there.texts(chat)) for chat in CHATS] == [wanted] * len(CHATS)
    told = len(wanted) * len(CHATS)
    assert rows(tmp_path, "SELECT count(*) FROM inbox") == [(told,)]
