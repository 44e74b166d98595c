"""Talks to one homeserver over one pool of connections.

Keeps the deadlines and says what went wrong; who asks knows whether to ask again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Self, cast
from urllib.parse import quote

import httpx
import msgspec
import trio

from connectors.chat.faults import BusyError, LostError, RefusedError
from connectors.chat.loose_json import Json, decode
from connectors.chat.matrix.errors import read_error

CLIENT = "/_matrix/client/v3"

OK = 200

CONNECT_TIMEOUT = 10.0
"""Seconds to connect, and again to wait for a free connection."""

# Chosen: a sync of ten thousand rooms; an event is 64 KiB at most.
MOST_ANSWER = 64 * 1024 * 1024
"""Bytes of any answer that is not media."""

MOST_REFUSAL = 64 * 1024
"""Bytes of an answer that says no."""

# Chosen: each account holds one for its sync; the rest is for what is said.
MOST_CONNECTIONS = 100

PIECE = 64 * 1024
"""Bytes of a file that are read at once."""

NOT_ASKED = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
"""Errors after which the server surely knows of nothing."""


class Body(msgspec.Struct, frozen=True):
    """A file that is sent as it is."""

    path: Path
    media_type: str
    size: int


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One request."""

    method: str
    path: str
    """Quoted already; see `path_of`."""

    query: Mapping[str, str] = {}
    body: Json | None = None
    file: Body | None = None
    """Sent instead of `body`."""

    timeout: float
    """Seconds for all of it."""

    silence: float | None = None
    """Seconds the server may say nothing, if that is less."""

    most: int = MOST_ANSWER
    """Bytes."""


class Homeserver:
    """One server, for all accounts there.

    Args:
        url: its address.
        transport: what carries the requests; None is the network.
    """

    def __init__(
        self, url: str, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._url = url.strip().rstrip("/")
        self._transport = transport
        self._client: httpx.AsyncClient | None = None
        self._users = 0

    async def __aenter__(self) -> Self:
        """Open the connections, with the first who needs them."""
        if self._client is None:
            self._client = httpx.AsyncClient(
                transport=self._transport,
                headers={"Accept-Encoding": "identity", "User-Agent": "callboard"},
                limits=httpx.Limits(max_connections=MOST_CONNECTIONS),
                trust_env=False,
            )
        self._users += 1
        await trio.lowlevel.checkpoint_if_cancelled()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close them, with the last."""
        self._users -= 1
        client = self._client
        if self._users == 0 and client is not None:
            self._client = None
            # Cancelled half-way it would leave connections open.
            with trio.CancelScope(shield=True):
                await client.aclose()

    async def ask(self, call: Call, token: str = "") -> Json:
        """Ask for JSON.

        Raises:
            BusyError: it cannot be reached, or not now.
            LostError: it was asked, and no whole answer came.
            RefusedError: it will never do this.
            ShutOutError: the token is not taken.
        """
        body, _ = await self.fetch(call, token)
        try:
            return decode(body)
        except (ValueError, RecursionError) as error:
            raise LostError(f"its answer is no JSON: {error}") from error

    async def fetch(self, call: Call, token: str = "") -> tuple[bytes, str]:
        """Ask for bytes, and their type; raises as `ask`."""
        client = self._client
        if client is None:
            raise BusyError("no account listens now")
        with trio.move_on_after(call.timeout):
            try:
                return await self._fetch(client, call, token)
            except NOT_ASKED as error:
                raise BusyError(told(error)) from error
            except (httpx.HTTPError, httpx.InvalidURL, RuntimeError) as error:
                # httpx raises a RuntimeError where another task has closed it.
                raise LostError(told(error)) from error
            except OSError as error:  # httpx has its own for the network's
                text = f"the file cannot be read now: {error.strerror}"
                raise BusyError(text) from error
        raise LostError(f"not done after {call.timeout:g} s")

    async def _fetch(
        self, client: httpx.AsyncClient, call: Call, token: str
    ) -> tuple[bytes, str]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        content: bytes | AsyncIterator[bytes] | None = None
        if call.body is not None:
            content = msgspec.json.encode(call.body)
            headers["Content-Type"] = "application/json"
        elif call.file is not None:
            content = pieces_of(call.file.path)
            headers["Content-Type"] = call.file.media_type
            headers["Content-Length"] = str(call.file.size)
        timeout = httpx.Timeout(call.silence or call.timeout, connect=CONNECT_TIMEOUT)
        async with client.stream(
            call.method,
            self._url + call.path,
            params=call.query or None,
            content=content,
            headers=headers,
            timeout=timeout,
            follow_redirects=False,
        ) as response:
            is_done = response.status_code == OK
            body = await read(response, call.most if is_done else MOST_REFUSAL)
        if not is_done:
            raise read_error(response.status_code, response.headers, body)
        return body, response.headers.get("content-type", "")


async def pieces_of(path: Path) -> AsyncGenerator[bytes]:
    """Give a file piece by piece."""
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece
            await trio.lowlevel.checkpoint()


async def read(response: httpx.Response, most: int) -> bytes:
    """Read a body, but no more than so many bytes.

    Raises:
        RefusedError: there is more.
    """
    if response.headers.get("content-encoding", "identity") != "identity":
        # Not asked for, and a small compressed body can fill the memory.
        raise RefusedError("the answer is compressed")
    pieces: list[bytes] = []
    size = 0
    # Left half read, a generator is found by the collector, which complains.
    async with aclosing(cast("AsyncGenerator[bytes]", response.aiter_bytes())) as body:
        async for piece in body:
            size += len(piece)
            if size > most:
                raise RefusedError(f"the answer has more than {most} bytes", "TOO_MUCH")
            pieces.append(piece)
    return b"".join(pieces)


def told(error: Exception) -> str:
    """Say what went wrong; some of httpx's errors have no words."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def path_of(*parts: str) -> str:
    """Put a path together from parts that may hold anything."""
    return "/".join([CLIENT, *(quote(part, safe="") for part in parts)])
