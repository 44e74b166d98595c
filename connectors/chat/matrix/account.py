"""One agent's account: its login and its requests to the homeserver.

`HomeServer` keeps the deadlines and says what went wrong; who asks knows whether to ask
again.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import httpx
import msgspec
import trio

from connectors.chat import requests as faults
from connectors.chat.accounts import TYPING_TIMEOUT, AgentAccount, BackgroundTyping
from connectors.chat.matrix.platform import PLATFORM, MatrixAccountConfig
from connectors.chat.requests import (
    LONGEST_ASKED,
    LONGEST_QUOTE,
    OK,
    BusyError,
    HttpPool,
    Json,
    PlatformError,
    RefusedError,
    ShutOutError,
    decode,
    read_json,
    text,
    whole,
)
from runtime.telemetry.logs import EventLog

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


DEVICE_NAME = "Callboard"

# Chosen: short, so that it does not stand for long should this process be killed.
TYPING_FOR = PLATFORM.limits.typing_for
"""Seconds after which the server stops showing it by itself."""

T = TypeVar("T")


class MatrixAccount(AgentAccount):
    """The account of one agent.

    Args:
        connector: the name of the connector; tells our devices apart.
        timeout: seconds a request may take.
    """

    def __init__(
        self,
        agent: str,
        config: MatrixAccountConfig,
        homeserver: Homeserver,
        connector: str,
        timeout: float,
    ) -> None:
        super().__init__(agent, "its homeserver")
        self.user = config.user
        self.typing = BackgroundTyping(self.show_typing, EventLog("matrix"), self.user)
        self.timeout = timeout
        self._password = config.password
        token = config.access_token
        self._token = token.reveal().strip() if token is not None else ""
        self._homeserver = homeserver
        self._logging_in = trio.Lock()
        # Why always the same: the server knows a repeated request by device and id,
        # also after a restart; and a new login ends the one before it.
        seed = f"{connector}/{config.user}".encode()
        self._device = f"CALLBOARD{hashlib.sha256(seed).hexdigest()[:10].upper()}"

    @property
    def label(self) -> str:
        """What the log calls it."""
        return self.user

    async def open(self) -> None:
        """Log in, and check as whom.

        Raises:
            ShutOutError: it is not let in.
            BusyError: not now, or there is no homeserver at this address.
            LostError: no whole answer came.
        """
        path = path_of("account", "whoami")
        call = MatrixCall(method="GET", path=path, timeout=self.timeout)
        try:
            known = text((await self.ask(call)).get("user_id"))
        except RefusedError as error:
            raise BusyError(f"this is no Matrix homeserver: {error}") from error
        if known != self.user:
            raise ShutOutError(f"the token belongs to {known}, not to {self.user}")

    async def ask(self, call: MatrixCall) -> Json:
        """Ask the homeserver; raises as `Homeserver.ask`."""
        return await self._let_in(partial(self._homeserver.ask, call))

    async def show_typing(self, room_id: str, *, is_typing: bool) -> None:
        """Show in a room that it is writing, or no longer; raises as `ask`."""
        body: Json = {"typing": is_typing}
        if is_typing:
            body["timeout"] = int(TYPING_FOR * 1000)
        call = MatrixCall(
            method="PUT",
            path=path_of("rooms", room_id, "typing", self.user),
            body=body,
            timeout=TYPING_TIMEOUT,
        )
        await self.ask(call)

    async def fetch(self, call: MatrixCall) -> tuple[bytes, str]:
        """Ask for bytes; raises as `Homeserver.ask`."""
        return await self._let_in(partial(self._homeserver.fetch, call))

    async def _let_in(self, ask: Callable[[str], Awaitable[T]]) -> T:
        """Ask by the token; by a new one if that has ended and there is a password."""
        token = self._token or await self._log_in("")
        try:
            return await ask(token)
        except ShutOutError:
            if self._password is None:
                raise
            return await ask(await self._log_in(token))

    async def _log_in(self, stale: str) -> str:
        """Get a token by the password, unless somebody just did."""
        async with self._logging_in:
            if self._token != stale:
                return self._token
            if self._password is None:
                raise BusyError("it is not logged in")
            call = MatrixCall(
                method="POST",
                path=path_of("login"),
                body={
                    "type": "m.login.password",
                    "identifier": {"type": "m.id.user", "user": self.user},
                    "password": self._password.reveal(),
                    "device_id": self._device,
                    "initial_device_display_name": DEVICE_NAME,
                },
                timeout=self.timeout,
            )
            try:
                answer = await self._homeserver.ask(call)
            except RefusedError as error:
                if error.code in {"M_FORBIDDEN", "M_USER_DEACTIVATED", "M_UNKNOWN"}:
                    raise ShutOutError(str(error)) from error
                raise
            self._token = text(answer.get("access_token"))
            return self._token
