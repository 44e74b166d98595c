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

from connectors.chat import errors as faults
from connectors.chat.errors import (
    LONGEST_ASKED,
    LONGEST_QUOTE,
    BusyError,
    PlatformError,
    RefusedError,
    ShutOutError,
)
from connectors.chat.lenient_json import Json, decode, text, whole
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
    """One server, for all accounts there."""

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


UNAUTHORIZED, TOO_MANY, SERVER_FAULT = 401, 429, 500

NOT_LET_IN = frozenset({"M_UNKNOWN_TOKEN", "M_MISSING_TOKEN", "M_USER_DEACTIVATED"})


def read_error(status: int, headers: Mapping[str, str], body: bytes) -> PlatformError:
    """Return the error that an answer other than 200 means."""
    try:
        said = decode(body)
    except ValueError:
        said = Json()
    code = text(said.get("errcode"))
    words = " ".join(text(said.get("error")).split())[:LONGEST_QUOTE]
    told = ": ".join(part for part in (f"HTTP {status}", code, words) if part)
    if status == TOO_MANY or code == "M_LIMIT_EXCEEDED":
        return BusyError(told, wait_asked(said, headers))
    if status == UNAUTHORIZED or code in NOT_LET_IN:
        return ShutOutError(told)
    if status >= SERVER_FAULT:
        # Why busy: what carries an id is seen once however often it is asked, and all
        # else only reads; so an outage behind a proxy may last.
        return BusyError(told, wait_asked(said, headers))
    return RefusedError(told, code, status)


def wait_asked(said: Json, headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait; None if it does not say.

    No more than `LONGEST_ASKED`.

    Source: `retry_after_ms` is the older and finer one; `Retry-After` is rounded up.
    """
    milliseconds = whole(said.get("retry_after_ms"))
    if milliseconds > 0:
        return min(milliseconds / 1000, LONGEST_ASKED)
    return faults.wait_asked(headers)
