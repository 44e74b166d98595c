"""Talks to the Graph API over one pool of connections.

Keeps the deadlines and says what went wrong; who asks knows whether to ask again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import ExitStack, aclosing
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self, cast
from urllib.parse import urlsplit

import httpx
import msgspec
import trio

from connectors.chat.faults import BusyError, LostError, RefusedError
from connectors.chat.loose_json import Json, decode
from connectors.chat.whatsapp.errors import read_error

if TYPE_CHECKING:
    from runtime.secret import Secret

OK = 200

CONNECT_TIMEOUT = 10.0
"""Seconds to connect, and again to wait for a free connection."""

MOST_ANSWER = 1024 * 1024
"""Bytes of any answer that is no file."""

# Chosen: Meta takes 80 messages a second of one number, each in some 0.2 s.
MOST_CONNECTIONS = 50

NOT_ASKED = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
"""Errors after which Meta surely knows of nothing."""


class Upload(msgspec.Struct, frozen=True):
    """A file that goes with a request, as a form."""

    path: Path
    name: str
    media_type: str
    fields: Mapping[str, str]
    """What else is in the form."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One request."""

    method: str = "POST"
    url: str
    """The path below the Graph API, or a whole address that it gave."""

    query: Mapping[str, str] = {}
    body: Json | None = None
    upload: Upload | None = None
    """Instead of a body."""

    timeout: float
    """Seconds for all of it."""

    silence: float | None = None
    """Seconds Meta may say and take nothing, if that is less."""

    most: int = MOST_ANSWER
    """Bytes."""


class Graph:
    """The Graph API, for all numbers.

    Args:
        url: its address, with the version.
        network: what carries the requests; None is the network.
    """

    def __init__(
        self, url: str, network: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._url = url.strip().rstrip("/")
        self._network = network
        self._client: httpx.AsyncClient | None = None

    @property
    def is_open(self) -> bool:
        """Whether anything can be asked."""
        return self._client is not None

    async def __aenter__(self) -> Self:
        """Open the connections."""
        self._client = httpx.AsyncClient(
            transport=self._network,
            headers={"Accept-Encoding": "identity", "User-Agent": "callboard"},
            limits=httpx.Limits(max_connections=MOST_CONNECTIONS),
            trust_env=False,
        )
        await trio.lowlevel.checkpoint_if_cancelled()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close them."""
        client, self._client = self._client, None
        if client is not None:
            # Cancelled half-way it would leave connections open.
            with trio.CancelScope(shield=True):
                await client.aclose()

    async def ask(self, call: Call, token: Secret) -> Json:
        """Ask for JSON.

        Raises:
            BusyError: it cannot be reached, or not now.
            LostError: it was asked, and no whole answer came.
            ShutOutError: the account cannot be used as it is.
            RefusedError: it will never do this.
        """
        body = await self.fetch(call, token)
        try:
            return decode(body)
        except (ValueError, RecursionError) as error:
            raise LostError(f"its answer is no JSON: {error}") from error

    async def fetch(self, call: Call, token: Secret) -> bytes:
        """Ask for bytes; raises as `ask`."""
        client = self._client
        if client is None:
            raise BusyError("nobody listens now", retry_after=1.0)
        url = self._whole(call.url)
        with trio.move_on_after(call.timeout):
            try:
                return await _fetch(client, url, call, token)
            except NOT_ASKED as error:
                raise BusyError(told(error)) from error
            except (httpx.HTTPError, httpx.InvalidURL, RuntimeError) as error:
                # httpx raises a RuntimeError where another task has closed it.
                raise LostError(told(error)) from error
            except OSError as error:  # a file of ours that cannot be read
                raise BusyError(f"not read: {error.strerror}") from error
        raise LostError(f"not done after {call.timeout:g} s")

    def _whole(self, url: str) -> str:
        """Give the whole address.

        Raises:
            RefusedError: the token would travel there in the open.
        """
        if "://" not in url:
            return f"{self._url}/{url}"
        here, there = urlsplit(self._url), urlsplit(url)
        is_ours = (here.scheme, here.netloc) == (there.scheme, there.netloc)
        if there.scheme != "https" and not is_ours:
            raise RefusedError("its address is not encrypted")
        return url


async def _fetch(
    client: httpx.AsyncClient, url: str, call: Call, token: Secret
) -> bytes:
    headers = {"Authorization": f"Bearer {token.reveal().strip()}"}
    content = None if call.body is None else msgspec.json.encode(call.body)
    if content is not None:
        headers["Content-Type"] = "application/json"
    silence = call.silence or call.timeout
    with ExitStack() as stack:
        async with client.stream(
            call.method,
            url,
            params=call.query or None,
            content=content,
            data=call.upload.fields if call.upload else None,
            files=opened(call.upload, stack) if call.upload else None,
            headers=headers,
            timeout=httpx.Timeout(silence, connect=CONNECT_TIMEOUT),
            follow_redirects=False,
        ) as response:
            is_done = response.status_code == OK
            body = await read(response, call.most if is_done else MOST_ANSWER)
    if not is_done:
        raise read_error(response.status_code, response.headers, body)
    return body


def opened(upload: Upload, stack: ExitStack) -> dict[str, tuple[str, IO[bytes], str]]:
    """Open the file of a form, until the stack is left."""
    file = stack.enter_context(upload.path.open("rb"))
    return {"file": (upload.name, file, upload.media_type)}


async def read(response: httpx.Response, most: int) -> bytes:
    """Read a body, but no more than so many bytes.

    Raises:
        LostError: there is more.
    """
    if response.headers.get("content-encoding", "identity") != "identity":
        # Not asked for, and a small compressed body can fill the memory.
        raise LostError("the answer is compressed")
    pieces: list[bytes] = []
    size = 0
    # Left half read, a generator is found by the collector, which complains.
    async with aclosing(cast("AsyncGenerator[bytes]", response.aiter_bytes())) as body:
        async for piece in body:
            size += len(piece)
            if size > most:
                raise LostError(f"it is larger than {most} bytes")
            pieces.append(piece)
    return b"".join(pieces)


def told(error: Exception) -> str:
    """Say what went wrong; some of httpx's errors have no words."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
