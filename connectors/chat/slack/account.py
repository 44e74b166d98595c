"""One agent's app: its login and its requests.

What is asked of Slack (methods, files, and a connection that events come by) is a port,
`SlackWire`: `sdk.py` asks it through slack_sdk; tests have a workspace in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

import trio

from connectors.chat.accounts import AgentAccount, BackgroundTyping
from connectors.chat.requests import (
    BusyError,
    Json,
    LostError,
    RefusedError,
    ShutOutError,
    text,
)
from connectors.chat.slack.platform import SlackAccountConfig
from connectors.files.blobs import seconds_for
from runtime.telemetry.logs import EventLog

LOG = EventLog("slack")

STATUS = "is writing…"

REST = 600.0
"""Seconds for which no typing is shown after Slack refused it."""


class SlackAccount(AgentAccount):
    """The app of one agent.

    Args:
        timeout: seconds a request may take.
    """

    kind = "app"

    def __init__(self, agent: str, config: SlackAccountConfig, timeout: float) -> None:
        super().__init__(agent, "Slack")
        self.typing = BackgroundTyping(self.show_typing, LOG, agent)
        self.user = ""
        """The id of the app's user; empty until it was let in once."""

        self.bot = ""
        """The id that marks what the app says."""

        self.team = ""
        """The id of the workspace."""

        self.introduced = trio.Event()
        """Set when it has asked who it is, however that went."""

        self.placed = trio.Event()
        """Set when it has asked in which channels it is, however that went."""

        app_token, secret = config.app_token, config.signing_secret
        self.signing_secret = secret.reveal().strip() if secret is not None else ""
        self.uses_socket = app_token is not None
        self._app_token = app_token.reveal().strip() if app_token is not None else ""
        self._token = config.bot_token.reveal().strip()
        self._timeout = timeout
        self._line: SlackLine | None = None
        self._rests_until = 0.0

    async def show_typing(self, place: tuple[str, str], *, is_typing: bool) -> None:
        """Show in an assistant's thread that it is writing; raises as `ask`.

        Source: docs.slack.dev, "assistant.threads.setStatus": only in the threads of an
        app that is an assistant; it ends with the answer, or after two minutes.
        """
        if trio.current_time() < self._rests_until:
            return
        channel, thread = place
        status = STATUS if is_typing else ""
        body = {"channel_id": channel, "thread_ts": thread, "status": status}
        try:
            await self.ask("assistant.threads.setStatus", body)
        except RefusedError as error:
            LOG.debug("typing not shown", account=self.agent, why=str(error))
            self._rests_until = trio.current_time() + REST

    def use(self, line: SlackLine | None) -> None:
        """Take the way to Slack that is open now; None: there is none."""
        self._line = line

    async def open(self) -> None:
        """Log in, and learn as whom.

        Raises:
            PlatformError: it is not, or not now.
        """
        who = await self.ask("auth.test")
        user, bot = text(who.get("user_id")), text(who.get("bot_id"))
        if not user:
            raise LostError("Slack does not say whose token it is")
        if not bot:
            raise ShutOutError("the token is a person's: bot_token begins with xoxb-")
        self.user, self.bot, self.team = user, bot, text(who.get("team_id"))

    async def ask(self, method: str, body: Mapping[str, object] | None = None) -> Json:
        """Call a method of the Web API by the app's token.

        Raises:
            PlatformError: see `api.SlackLine.ask`.
        """
        line = self._way()
        with trio.move_on_after(self._timeout):
            return await line.ask(method, self._token, dict(body or {}))
        raise LostError(f"{method} was not done after {self._timeout:g} s")

    async def ask_as_app(self, method: str) -> Json:
        """Call a method by the app-level token; raises as `ask`."""
        line = self._way()
        with trio.move_on_after(self._timeout):
            return await line.ask(method, self._app_token, {})
        raise LostError(f"{method} was not done after {self._timeout:g} s")

    async def fetch(self, url: str, most: int) -> tuple[bytes, str]:
        """Fetch a file by the app's token; raises as `ask`."""
        line = self._way()
        with trio.move_on_after(self._timeout):
            return await line.fetch(url, self._token, most)
        raise LostError(f"it did not come within {self._timeout:g} s")

    async def put(self, url: str, path: Path, size: int) -> None:
        """Bring a file of so many bytes to an address of Slack's; raises as `ask`."""
        line = self._way()
        within = seconds_for(size, self._timeout)
        with trio.move_on_after(within):
            return await line.put(url, path, within)
        raise LostError(f"the file was not there after {within:g} s")

    async def respond(self, url: str, said: Json) -> None:
        """Answer a command at its address; raises as `ask`."""
        line = self._way()
        with trio.move_on_after(self._timeout):
            return await line.respond(url, said)
        raise LostError(f"the command was not answered after {self._timeout:g} s")

    async def connect(self) -> SlackConnection:
        """Open a connection of Socket Mode; raises as `ask`."""
        line = self._way()
        with trio.move_on_after(self._timeout):
            return await line.connect(self._app_token)
        raise LostError(f"no connection after {self._timeout:g} s")

    def _way(self) -> SlackLine:
        if self._line is None:
            raise BusyError("no app listens now")
        return self._line


class SlackConnection(Protocol):
    """One connection of Socket Mode."""

    async def receive(self) -> Json:
        """Wait for what comes next.

        Raises:
            LostError: the connection has ended, or the other side is silent.
        """
        ...

    async def send(self, said: Json) -> None:
        """Say something, as that an envelope was taken.

        Raises:
            LostError: the connection has ended.
        """
        ...

    async def close(self) -> None:
        """End it; never fails."""
        ...


class SlackLine(Protocol):
    """An open way to Slack."""

    async def ask(self, method: str, token: str, body: Json) -> Json:
        """Call a method of the Web API.

        Raises:
            PlatformError: as `errors.read_error` says.
        """
        ...

    async def fetch(self, url: str, token: str, most: int) -> tuple[bytes, str]:
        """Fetch a file and its type.

        Raises:
            PlatformError: it cannot be had; a `RefusedError` of code `too_much` if
                it has more bytes than `most`.
        """
        ...

    async def put(self, url: str, path: Path, within: float) -> None:
        """Bring a file's bytes to an address that Slack gave for them.

        Args:
            url: the address; it is a secret.
            path: where the bytes lie.
            within: seconds it may take.

        Raises:
            PlatformError: they are not there, or nobody knows; `RefusedError` with the
                code `too_much` if they are too many.
        """
        ...

    async def respond(self, url: str, said: Json) -> None:
        """Answer a command at the address that came with it.

        Args:
            url: the address; it is a secret, and needs no token.

        Raises:
            PlatformError: it is not said, or nobody knows; `RefusedError` if nothing is
                taken there any more.
        """
        ...

    async def connect(self, app_token: str) -> SlackConnection:
        """Open a connection of Socket Mode.

        Raises:
            PlatformError: it cannot be opened.
        """
        ...


class SlackWire(Protocol):
    """Opens ways to Slack."""

    def open(self) -> AbstractAsyncContextManager[SlackLine]:
        """Open one until the block ends.

        Raises:
            PlatformError: it cannot be opened now.
        """
        ...
