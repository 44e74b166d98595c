"""One agent's app: how it is let in, and what it asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from connectors.blobs import seconds_for
from connectors.chat.faults import BusyError, LostError, ShutOutError
from connectors.chat.loose_json import Json, text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from connectors.chat.slack.wire import Connection, Line
    from connectors.slack_config import SlackAccountConfig

STARTING = "it has not heard from Slack yet"


class SlackAccount:
    """The app of one agent.

    Args:
        agent: whose it is.
        config: its tokens.
        timeout: seconds a request may take.
    """

    def __init__(self, agent: str, config: SlackAccountConfig, timeout: float) -> None:
        self.agent = agent
        self.user = ""
        """The id of the app's user; empty until it was let in once."""

        self.bot = ""
        """The id that marks what the app says."""

        self.team = ""
        """The id of the workspace."""

        self.is_open = False
        """Whether it listens, so that it may speak."""

        self.refused = ""
        """Why it is not let in; empty: nobody said that it is not."""

        self.trouble = STARTING
        """Why it hears nothing now; empty: it does."""

        self.introduced = trio.Event()
        """Set when it has asked who it is, however that went."""

        app_token, secret = config.app_token, config.signing_secret
        self.signing_secret = secret.reveal().strip() if secret is not None else ""
        self.uses_socket = app_token is not None
        self._app_token = app_token.reveal().strip() if app_token is not None else ""
        self._token = config.bot_token.reveal().strip()
        self._timeout = timeout
        self._line: Line | None = None

    def use(self, line: Line | None) -> None:
        """Take the way to Slack that is open now; None: there is none."""
        self._line = line

    async def open(self) -> None:
        """Be let in, and learn as whom.

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
            PlatformError: see `wire.Line.ask`.
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

    async def connect(self) -> Connection:
        """Open a connection of Socket Mode; raises as `ask`."""
        line = self._way()
        with trio.move_on_after(self._timeout):
            return await line.connect(self._app_token)
        raise LostError(f"no connection after {self._timeout:g} s")

    def _way(self) -> Line:
        if self._line is None:
            raise BusyError("no app listens now")
        return self._line
