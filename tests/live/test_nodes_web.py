"""Proves that any node serves the page and the ElizaOS channel, whatever is killed.

And that the page shows and reaches what runs at another node than its own.
"""

from __future__ import annotations

import itertools
import signal
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
import trio
import trio.testing

from actors import names
from tests.fakes.web.eliza import ANNA, API, ZOE
from tests.fakes.web.page import ANNA as ANNAS_CHAT, said_in
from tests.live.test_nodes import NAMES, SLOWLY, TwoNodes, free_port
from tests.live.test_postgresql_faults import PAUSE
from tests.processes.channels.test_page import speak, wait_answered
from tests.processes.running import PATIENCE, run
from tests.support.panel_bed import form_of

MORE = """
[connectors.page]
kind = "page"
origin = "http://127.0.0.1:8000"

[connectors.web]
kind = "web"
"""
CONNECTOR = f"{names.CONNECTORS}/http/connector"
RUNNING = "SELECT id FROM inbox WHERE state = 'running'"
ENGINE = "/socket.io/?EIO=4&transport=polling"
JOIN = 1


class NodesWithPages(TwoNodes):
    """Two nodes with a page and an ElizaOS channel, each at ports of its own."""

    more = MORE

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.pages = {name: free_port() for name in NAMES}
        self.channels = {name: free_port() for name in NAMES}

    def variables(self, name: str) -> dict[str, Any]:
        """Give what a node's settings differ by."""
        ports = {
            "CALLBOARD_CONNECTORS__PAGE__PORT": str(self.pages[name]),
            "CALLBOARD_CONNECTORS__WEB__PORT": str(self.channels[name]),
        }
        return super().variables(name) | ports

    async def begin_with(self, owner: str) -> None:
        """Start both, the one that is to run the company first."""
        for name in sorted(NAMES[:2], key=lambda name: name != owner):
            await trio.to_thread.run_sync(self.begin, name)
            assert await self.wait_owner() == owner
        await self.wait_shared()

    async def log_in(self, page: httpx.AsyncClient, name: str) -> None:
        """Log a browser in by a command that asks a node's database."""

        def login() -> str:
            return run("login", folder=self.folder, **self.variables(name)).out

        token = (await trio.to_thread.run_sync(login)).strip().rpartition("/")[2]
        entered = await page.post("/login", data={"token": token})
        assert entered.status_code == 303, entered.text

    async def check_reach(self, page: httpx.AsyncClient) -> None:
        """See the node `b` on the page that `a` serves, and act there."""
        shown = (await page.get("/overview")).text
        assert all(f'id="node-{name}"' in shown for name in NAMES[:2])
        kill = {"kill": CONNECTOR, "node": "b"}
        asked = (await page.get("/actors", params=kill)).text
        await page.post("/actors/kill", data=form_of(asked, "/actors/kill"))
        assert f"{CONNECTOR} is killed" in (await page.get("/actors")).text
        (chat,) = self.chats_of("b", 1, "stopped")
        async with trio.open_nursery() as nursery:
            words = " ".join(map(str, range(10_000)))  # for a quarter of an hour
            nursery.start_soon(self.ask, chat, f"slowly {words}", "slow")
            while not (found := self.rows(RUNNING)):
                await trio.testing.wait_all_tasks_blocked(PAUSE)
            asked = (await page.get("/actors")).text
            form = form_of(asked, "/queue/stop", found[0][0])
            await page.post("/queue/stop", data=form)
        assert not self.rows(RUNNING)

    async def check_missing(self) -> None:
        """See at `b` that `a` is named, which is gone."""
        tree = partial(run, "tree", "router", folder=self.folder)
        told = await trio.to_thread.run_sync(partial(tree, **self.variables("b")))
        assert told.code == 1
        assert "node a  is gone: no actors run there" in told.out
        assert "node b  runs the company" in told.out


class Polling:
    """A client of Socket.IO by long-polling; each request goes to the next node."""

    def __init__(self, *nodes: httpx.AsyncClient) -> None:
        self._nodes = itertools.cycle(nodes)
        self._sid = ""

    async def connect(self) -> None:
        """Open a session, as Zoe."""
        (opened,) = await self.get()
        self._sid = msgspec.json.decode(opened[1:])["sid"]
        await self.put("40", {"entityId": ZOE})

    async def put(self, kind: str, body: object) -> None:
        """Send a packet."""
        packet = kind + msgspec.json.encode(body).decode()
        sent = await next(self._nodes).post(self._path, content=packet)
        assert sent.text == "OK", sent.text

    async def get(self) -> list[str]:
        """Wait for packets."""
        got = await next(self._nodes).get(self._path)
        assert got.status_code == 200, got.text
        return got.text.split("\x1e")

    async def wait(self, event: str) -> str:
        """Wait for an event."""
        while True:
            for packet in await self.get():
                if packet.startswith(f'42["{event}"'):
                    return packet
                if packet == "2":
                    sent = await next(self._nodes).post(self._path, content="3")
                    assert sent.text == "OK"

    @property
    def _path(self) -> str:
        return f"{ENGINE}&sid={self._sid}" if self._sid else ENGINE


async def wait_said(channel: httpx.AsyncClient, path: str) -> list[str]:
    """Wait until an answer stands in a session; gives all that does."""
    while True:
        with suppress(httpx.HTTPError):
            found = (await channel.get(path)).json()["messages"]
            if len(found) > 1:
                return sorted(each["content"] for each in found)
        await trio.testing.wait_all_tasks_blocked(PAUSE)


async def check_both(nodes: NodesWithPages, number: signal.Signals) -> None:
    """Talk at the node `b`, and lose `a`, which runs the company."""
    async with AsyncExitStack() as stack:
        page, channel, other = [
            await stack.enter_async_context(
                httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30)
            )
            for port in (nodes.pages["b"], nodes.channels["b"], nodes.channels["a"])
        ]
        await nodes.log_in(page, "b")
        await nodes.check_reach(page)
        made = await channel.post(
            f"{API}/sessions", json={"agentId": ANNA, "userId": ZOE}
        )
        session = made.json()
        path = f"{API}/sessions/{session['sessionId']}/messages"
        polling = Polling(channel, other)
        await polling.connect()
        await polling.put("42", ["message", {"type": JOIN, "payload": room(session)}])
        await polling.wait("room_joined")
        asked = f"slowly {SLOWLY}"
        assert (await channel.post(path, json={"content": asked})).is_success
        await polling.wait("messageStreamChunk")
        await speak(page, [SLOWLY])
        nodes.running["a"].process.send_signal(number)
        await nodes.wait_without("a")
        await nodes.check_missing()
        assert await wait_said(channel, path) == sorted([asked, SLOWLY])
        await wait_answered(page, {SLOWLY})
        said = said_in((await page.get(ANNAS_CHAT)).text)
        assert said == [f"operator: {asked}", f"anna: {SLOWLY}"]
        listed = (await channel.get(f"{API}/sessions")).json()["sessions"]
        assert [x["sessionId"] for x in listed] == [session["sessionId"]]


def room(session: dict[str, Any]) -> dict[str, str]:
    """Say which channel is joined."""
    return {"channelId": session["channelId"], "entityId": ZOE}


@pytest.mark.live
@pytest.mark.timeout(0)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
async def test_the_page_and_the_channel_go_on_at_another_node(
    tmp_path: Path, number: signal.Signals
) -> None:
    nodes = NodesWithPages(tmp_path)
    try:
        with trio.fail_after(6 * PATIENCE):
            await nodes.begin_with("a")
            await check_both(nodes, number)
        query = "SELECT state, count(*) FROM inbox GROUP BY state ORDER BY state"
        assert nodes.rows(query) == [("cancelled", 1), ("replied", 2)]
        assert "Traceback" not in (tmp_path / "b.log").read_text()
    finally:
        nodes.end()
