"""What is asked of Slack: methods, files, and a connection that events come by.

A port: `sdk.py` asks it through slack_sdk; tests have a workspace in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from connectors.chat.lenient_json import Json


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

        Args:
            method: as `chat.postMessage`.
            token: whose call it is.
            body: its arguments.

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
            said: the answer.

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
