"""Requests to one homeserver.

Keeps the deadlines and says what went wrong; who asks knows whether to ask again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec
import trio

from connectors.chat.errors import RefusedError
from connectors.chat.lenient_json import Json
from connectors.chat.matrix.errors import read_error
from connectors.chat.requests import OK, HttpPool, read_json

if TYPE_CHECKING:
    import httpx

CLIENT = "/_matrix/client/v3"

# Chosen: a sync of ten thousand rooms; an event is 64 KiB at most.
MOST_ANSWER = 64 * 1024 * 1024
"""Bytes of any answer that is not media."""

# Chosen: each account holds one for its sync; the rest is for what is said.
MOST_CONNECTIONS = 100

PIECE = 64 * 1024
"""Bytes of a file that are read at once."""


class MatrixBody(msgspec.Struct, frozen=True):
    """A file that is sent as it is."""

    path: Path
    media_type: str
    size: int


class MatrixCall(msgspec.Struct, frozen=True, kw_only=True):
    """One request."""

    method: str
    path: str
    """Quoted already; see `path_of`."""

    query: Mapping[str, str] = {}
    body: Json | None = None
    file: MatrixBody | None = None
    """Sent instead of `body`."""

    timeout: float
    """Seconds for all of it."""

    silence: float | None = None
    """Seconds the server may say nothing, if that is less."""

    most: int = MOST_ANSWER
    """Bytes."""


class Homeserver(HttpPool):
    """One server, for all accounts there.

    Args:
        url: its address.
        network: carries the requests; None: the network does.
    """

    def __init__(
        self, url: str, network: httpx.AsyncBaseTransport | None = None
    ) -> None:
        super().__init__(network, MOST_CONNECTIONS, RefusedError)
        self._url = url.strip().rstrip("/")

    async def ask(self, call: MatrixCall, token: str = "") -> Json:
        """Ask for JSON.

        Raises:
            BusyError: it cannot be reached, or not now.
            LostError: it was asked, and no whole answer came.
            RefusedError: it will never do this.
            ShutOutError: the token is not taken.
        """
        body, _ = await self.fetch(call, token)
        return read_json(body)

    async def fetch(self, call: MatrixCall, token: str = "") -> tuple[bytes, str]:
        """Ask for bytes, and their type; raises as `ask`."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        content: bytes | AsyncIterator[bytes] | None = None
        if call.body is not None:
            content = msgspec.json.encode(call.body)
            headers["Content-Type"] = "application/json"
        elif call.file is not None:
            content = pieces_of(call.file.path)
            headers["Content-Type"] = call.file.media_type
            headers["Content-Length"] = str(call.file.size)
        answer = await self.send(
            call.method,
            self._url + call.path,
            within=call.timeout,
            silence=call.silence,
            most=call.most,
            params=call.query or None,
            content=content,
            headers=headers,
        )
        if answer.status != OK:
            raise read_error(answer.status, answer.headers, answer.body)
        return answer.body, answer.headers.get("content-type", "")


async def pieces_of(path: Path) -> AsyncGenerator[bytes]:
    """Return a file piece by piece."""
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece
            await trio.lowlevel.checkpoint()


def path_of(*parts: str) -> str:
    """Put a path together from parts that may hold anything."""
    return "/".join([CLIENT, *(quote(part, safe="") for part in parts)])
