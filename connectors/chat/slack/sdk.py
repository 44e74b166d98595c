"""The way to Slack through slack_sdk, on the edge's loop.

Web API by `AsyncWebClient`, over one pool of connections for each app. It never repeats
a request by itself: who asks knows whether that is safe, and how long to wait.

Not used: slack_sdk's `SocketModeClient`. A connection that fails is asked for again by
the same address, which Slack takes only once; its queue has no limit, and what goes
wrong in it is only logged. Here the kernel follows the connection (`listener.py`), and
waits, gives up and reports as for every other platform.

`read_error` says what a refusal of Slack's means, in the kinds of
`connectors/chat/requests.py`.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Protocol, TypeVar, TypeVarTuple, cast
from urllib.parse import urlsplit

import aiohttp
import msgspec
import trio
from slack_sdk.errors import SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from connectors.asyncio_bridge.bridge import Bridge, BridgeError
from connectors.chat.requests import (
    BusyError,
    GoneError,
    Json,
    LostError,
    PlatformError,
    RefusedError,
    ShutOutError,
    decode,
    table,
    text,
    wait_asked,
)

LONGEST_CODE = 100
"""Characters of Slack's own word that are told."""

TOO_MANY, SERVER_FAULT = 429, 500

NOT_LET_IN = frozenset(
    {
        "access_denied",
        "account_inactive",
        "app_uninstalled",
        "invalid_auth",
        "not_allowed_token_type",
        "not_authed",
        "org_login_required",
        "token_expired",
        "token_revoked",
    }
)

BUSY = frozenset(
    {
        "accesslimited",
        "rate_limited",
        "ratelimited",
        "service_unavailable",
        "team_added_to_org",
    }
)

# Source: "It's possible some aspect of the operation succeeded before the error was
# raised" (chat.postMessage, of both).
LOST = frozenset({"fatal_error", "internal_error", "request_timeout"})

CURES = {
    "channel_not_found": "the channel is gone, or private and the app is not in it",
    "is_archived": "the channel is archived",
    "not_in_channel": "/invite the app to that channel",
    "restricted_action": "the workspace lets the app write nothing there",
}
"""What an operator can do about a refusal, or why nobody can."""


def read_error(status: int, headers: Mapping[str, str], said: Json) -> PlatformError:
    """Say what an answer that is not `ok` means.

    Args:
        status: of HTTP; Slack says most of its errors with 200.
    """
    code = text(said.get("error"))[:LONGEST_CODE]
    told = f"Slack says {code}" if code else f"Slack answers with HTTP {status}"
    if status == TOO_MANY or code in BUSY:
        return BusyError(told, wait_asked(headers))
    if code in NOT_LET_IN:
        return ShutOutError(told)
    if status >= SERVER_FAULT or code in LOST or not code:
        return LostError(told)
    if code == "missing_scope":
        needed = text(said.get("needed"))[:LONGEST_CODE]
        told = f"{told}: give the app the scope {needed} and install it again"
    elif code in CURES:
        told = f"{told}: {CURES[code]}"
    return RefusedError(told, code)


def response_error(status: int, headers: Mapping[str, str]) -> PlatformError:
    """Say what it means that an answer to a command is not taken.

    Source: docs.slack.dev, "Handling user interaction": such an address takes five
    answers within half an hour.
    """
    if status < SERVER_FAULT and status != TOO_MANY:
        return RefusedError(f"Slack answers with HTTP {status}")
    return read_error(status, headers, {})


T = TypeVar("T")
Ts = TypeVarTuple("Ts")

MOST_MESSAGE = 4 * 1024 * 1024
"""Bytes of one message of a connection."""

PING_EVERY = 15.0
"""Seconds between two looks whether the connection of Socket Mode is alive."""

CONNECT_TIMEOUT = 10.0

NOT_ASKED = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
"""Errors after which Slack surely knows of nothing."""

CHUNK = 65_536

TOO_LARGE = 413

QUIET = logging.getLogger("callboard.slack_sdk")
"""Given to slack_sdk, so that no token and no message stands in the log."""
QUIET.setLevel(logging.CRITICAL)
QUIET.propagate = False


class SdkWire:
    """Opens ways to Slack; see `SlackWire`.

    Args:
        timeout: seconds a request may take.
        ping_every: seconds between two looks whether a connection is alive.
    """

    def __init__(
        self,
        bridge: Bridge,
        base_url: str,
        timeout: float,
        ping_every: float = PING_EVERY,
    ) -> None:
        self._bridge = bridge
        self._base_url = base_url.strip().rstrip("/") + "/"
        self._timeout = timeout
        self._ping_every = ping_every

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[SdkLine]:
        """Open one pool of connections until the block ends."""
        try:
            session = await self._bridge.call(self._session)
        except BridgeError as error:
            raise BusyError(f"the loop of slack_sdk does not run: {error}") from error
        try:
            yield SdkLine(self._bridge, session, self._base_url, self._ping_every)
        finally:
            with trio.CancelScope(shield=True):
                await self._close(session)

    async def _close(self, session: aiohttp.ClientSession) -> None:
        try:
            await self._bridge.call(session.close)
        except BridgeError:
            session.detach()  # its loop has ended, and its connections with it

    async def _session(self) -> aiohttp.ClientSession:
        timeout = aiohttp.ClientTimeout(
            total=self._timeout, sock_connect=CONNECT_TIMEOUT
        )
        return aiohttp.ClientSession(timeout=timeout, trust_env=False)


class SdkAnswer(Protocol):
    """An answer of slack_sdk."""

    @property
    def data(self) -> object:
        """The body."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Found by names of any size."""
        ...


class SdkClient(Protocol):
    """The methods of slack_sdk's client that we use, with their types."""

    async def api_call(
        self, api_method: str, *, data: dict[str, str], headers: dict[str, str]
    ) -> SdkAnswer:
        """Call a method."""
        ...


class SdkLine:
    """An open way to Slack; see `SlackLine`."""

    def __init__(
        self,
        bridge: Bridge,
        session: aiohttp.ClientSession,
        base_url: str,
        ping_every: float,
    ) -> None:
        self._bridge = bridge
        self._session = session
        self._base_url = base_url
        self._ping_every = ping_every
        client = AsyncWebClient(
            base_url=base_url, session=session, logger=QUIET, retry_handlers=[]
        )
        # Why: it would take the machine's settings for a proxy, as nothing else does.
        client.proxy = None
        self._client = cast("SdkClient", client)

    async def ask(self, method: str, token: str, body: Json) -> Json:
        """Call a method; see the port."""
        return await self._cross(self._ask, method, token, body)

    async def fetch(self, url: str, token: str, most: int) -> tuple[bytes, str]:
        """Fetch a file; see the port."""
        if not self._is_slacks(url):
            raise RefusedError("it does not lie at Slack")
        return await self._cross(self._fetch, url, token, most)

    async def put(self, url: str, path: Path, within: float) -> None:
        """Bring a file's bytes to an address; see the port."""
        self._check_encrypted(url)
        await self._cross(self._put, url, path, within)

    async def respond(self, url: str, said: Json) -> None:
        """Answer a command; see the port."""
        self._check_encrypted(url)
        await self._cross(self._respond, url, said)

    async def connect(self, app_token: str) -> SdkConnection:
        """Open a connection; see the port."""
        url = text((await self.ask("apps.connections.open", app_token, {})).get("url"))
        if not url.startswith(("wss://", "ws://")):
            raise LostError("Slack gave no address for the connection")
        ws = await self._cross(self._connect, url)
        return SdkConnection(self._bridge, ws)

    async def _cross(self, fn: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
        """Run something on the loop; translates errors."""
        try:
            return await self._bridge.call(fn, *args)
        except BridgeError as error:
            raise GoneError(f"the loop of slack_sdk ended: {error}") from error
        except NOT_ASKED as error:
            raise BusyError(told(error)) from error
        except (OSError, TimeoutError, aiohttp.ClientError) as error:
            raise LostError(told(error)) from error
        except (ValueError, RuntimeError) as error:
            # A body that is no text; a pool that another task has closed.
            raise LostError(f"its answer cannot be read: {told(error)}") from error

    async def _ask(self, method: str, token: str, body: Json) -> Json:
        try:
            answer = await self._client.api_call(
                method, data=form(body), headers={"Authorization": f"Bearer {token}"}
            )
        except SlackClientError as error:
            raise refusal(error) from error
        said = table(answer.data)
        scopes = answer.headers.get("x-oauth-scopes", "")
        return {**said, "oauth_scopes": scopes} if scopes else said

    async def _fetch(self, url: str, token: str, most: int) -> tuple[bytes, str]:
        headers = {"Authorization": f"Bearer {token}", "Accept-Encoding": "identity"}
        async with self._session.get(url, headers=headers) as response:
            lowered = {name.lower(): each for name, each in response.headers.items()}
            if response.status != 200:
                raise read_error(response.status, lowered, {})
            body = bytearray()
            async for chunk in response.content.iter_chunked(CHUNK):
                body += chunk
                if len(body) > most:
                    raise RefusedError(f"it is above {most} bytes", "too_much")
            return bytes(body), response.content_type

    async def _put(self, url: str, path: Path, within: float) -> None:
        timeout = aiohttp.ClientTimeout(total=within, sock_connect=CONNECT_TIMEOUT)
        with opened(path) as body:
            async with self._session.post(
                url, data=body, timeout=timeout, allow_redirects=False
            ) as response:
                status, headers = response.status, response.headers
                lowered = {name.lower(): each for name, each in headers.items()}
        if status == TOO_LARGE:
            raise RefusedError("Slack takes no file of that size", "too_much")
        if status != 200:
            raise read_error(status, lowered, {})

    async def _respond(self, url: str, said: Json) -> None:
        async with self._session.post(
            url, json=said, allow_redirects=False
        ) as response:
            status, headers = response.status, response.headers
        if status != 200:
            lowered = {name.lower(): each for name, each in headers.items()}
            raise response_error(status, lowered)

    async def _connect(self, url: str) -> aiohttp.ClientWebSocketResponse:
        return await self._session.ws_connect(
            url, heartbeat=self._ping_every, max_msg_size=MOST_MESSAGE
        )

    def _check_encrypted(self, url: str) -> None:
        """Check an address to which something goes without a token.

        Why wherever Slack says: whoever answers for the Web API (it may be a proxy)
        could as well have taken the bytes itself.
        """
        if urlsplit(url).scheme not in {"https", urlsplit(self._base_url).scheme}:
            raise RefusedError("the address that Slack gave is not encrypted")

    def _is_slacks(self, url: str) -> bool:
        """Return whether a token may be shown to whoever has this address."""
        there, ours = urlsplit(url), urlsplit(self._base_url)
        host = there.hostname or ""
        is_same = (there.scheme, there.netloc) == (ours.scheme, ours.netloc)
        return is_same or (there.scheme == "https" and host.endswith(".slack.com"))


class SdkConnection:
    """A connection of Socket Mode; see `SlackConnection`."""

    def __init__(self, bridge: Bridge, ws: aiohttp.ClientWebSocketResponse) -> None:
        self._bridge = bridge
        self._ws = ws

    async def receive(self) -> Json:
        """Wait for what comes next; see the port. Empty: it was no JSON."""
        try:
            message = await self._bridge.call(self._ws.receive)
        except BridgeError as error:
            raise GoneError(f"the loop of slack_sdk ended: {error}") from error
        except (OSError, RuntimeError, aiohttp.ClientError) as error:
            raise LostError(told(error)) from error
        if message.type is aiohttp.WSMsgType.TEXT:
            try:
                return decode(cast("str", message.data).encode(errors="replace"))
            except (ValueError, RecursionError):
                return {}
        if message.type is aiohttp.WSMsgType.BINARY:
            return {}
        raise LostError(f"the connection has ended ({message.type.name.lower()})")

    async def send(self, said: Json) -> None:
        """Say something; see the port."""
        words = msgspec.json.encode(said).decode()
        try:
            await self._bridge.call(self._ws.send_str, words)
        except (BridgeError, OSError, RuntimeError, aiohttp.ClientError) as error:
            raise LostError(told(error)) from error

    async def close(self) -> None:
        """End it; see the port."""
        with suppress(BridgeError, OSError, RuntimeError, aiohttp.ClientError):
            await self._bridge.call(self._ws.close)


def opened(path: Path) -> BinaryIO:
    """Open a file, which is read beside the loop as it goes out."""
    return path.open("rb")


def form(body: Json) -> dict[str, str]:
    """Write arguments as a form, which every method takes; not all take JSON."""
    return {
        name: each if isinstance(each, str) else msgspec.json.encode(each).decode()
        for name, each in body.items()
    }


def refusal(
    error: SlackClientError,
) -> BusyError | LostError | RefusedError | ShutOutError:
    """Say what an error of slack_sdk means."""
    answer = cast("object", getattr(error, "response", None))
    # Which of the two it is depends on how far slack_sdk came with reading it.
    status = getattr(answer, "status_code", None) or getattr(answer, "status", 0)
    code = status if isinstance(status, int) else 0
    headers = cast("Mapping[str, str]", getattr(answer, "headers", {}))
    lowered = {name.lower(): str(each) for name, each in headers.items()}
    said = table(cast("object", getattr(answer, "data", None)))
    found = read_error(code, lowered, said)
    return cast("BusyError | LostError | RefusedError | ShutOutError", found)


def told(error: Exception) -> str:
    """Describe an error; no address, as those of connections are secret."""
    return f"{type(error).__name__}: {errno_text(error)}".rstrip(": ")


def errno_text(error: Exception) -> str:
    """Return the system's own words for an error, if it has some."""
    return (error.strerror or "") if isinstance(error, OSError) else ""
