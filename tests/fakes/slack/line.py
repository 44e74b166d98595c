"""The way to a `FakeSlack` without a network: works in virtual time."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from connectors.chat.requests import BusyError, LostError, RefusedError, decode
from connectors.chat.slack.sdk import form, opened, read_error, response_error
from tests.fakes.slack.workspace import FakeSlack, Link

Json = dict[str, Any]


class FakeWire:
    """Opens ways to a workspace.

    Args:
        slack: the workspace.
    """

    def __init__(self, slack: FakeSlack) -> None:
        self._slack = slack
        self.trouble: Exception | None = None

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[FakeLine]:
        """Open one until the block ends."""
        await trio.lowlevel.checkpoint()
        if self.trouble is not None:
            raise self.trouble
        yield FakeLine(self._slack)


class FakeLine:
    """The way to a workspace."""

    def __init__(self, slack: FakeSlack) -> None:
        self._slack = slack

    async def ask(self, method: str, token: str, body: Json) -> Json:
        """Call a method."""
        await trio.lowlevel.checkpoint()
        reply = self._slack.answer(method, token, form(body))
        if reply.status != 200 or not reply.said.get("ok"):
            raise read_error(reply.status, reply.headers, reply.said)
        return reply.said

    async def fetch(self, url: str, token: str, most: int) -> tuple[bytes, str]:
        """Fetch a file."""
        await trio.lowlevel.checkpoint()
        self._slack.asked.append(("fetch", token, {"url": url}))
        if self._slack.faults and self._slack.faults[0][0] == "fetch":
            fault = self._slack.faults.popleft()[1]
            assert isinstance(fault, Exception)
            raise fault
        found = self._slack.files.get(url)
        if found is None:
            return b"<html>please log in</html>", "text/html"
        if len(found) > most:
            raise RefusedError(f"it is above {most} bytes", "too_much")
        return found, "application/octet-stream"

    async def put(self, url: str, path: Path, within: float) -> None:
        """Bring a file."""
        del within
        await trio.lowlevel.checkpoint()
        with opened(path) as body:
            status = self._slack.uploads.take(url.rpartition("/")[2], body.read())
        if status != 200:
            raise read_error(status, {}, {})

    async def respond(self, url: str, said: Json) -> None:
        """Answer a command."""
        await trio.lowlevel.checkpoint()
        status = self._slack.respond(url, said)
        if status != 200:
            raise response_error(status, {})

    async def connect(self, app_token: str) -> FakeConnection:
        """Open a connection of Socket Mode."""
        said = await self.ask("apps.connections.open", app_token, {})
        link = self._slack.connect(str(said["url"]).rpartition("/")[2])
        if link is None:
            raise BusyError("the ticket is used up")
        return FakeConnection(self._slack, link)


class FakeConnection:
    """A connection of Socket Mode."""

    def __init__(self, slack: FakeSlack, link: Link) -> None:
        self._slack = slack
        self._link = link
        self._news = trio.Event()
        link.on_news = self._note

    def _note(self) -> None:
        self._news.set()
        self._news = trio.Event()

    async def receive(self) -> Json:
        """Wait for what comes next."""
        while not self._link.queue:
            await self._news.wait()
        await trio.lowlevel.checkpoint()
        said = self._link.queue.popleft()
        if isinstance(said, Exception):
            raise LostError("the connection has ended") from said
        try:
            return decode(said.encode())
        except ValueError:
            return {}

    async def send(self, said: Json) -> None:
        """Say something."""
        await trio.lowlevel.checkpoint()
        if self._link.is_closed:
            raise LostError("the connection has ended")
        self._slack.take(self._link, trio_json(said))

    async def close(self) -> None:
        """End it."""
        await trio.lowlevel.checkpoint()
        self._link.is_closed = True
        if self._link in self._link.app.links:
            self._link.app.links.remove(self._link)


def trio_json(said: Json) -> str:
    """Write JSON."""
    return form({"said": said})["said"]
