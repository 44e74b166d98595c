"""One agent's account: its login and its requests."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

import trio

from connectors.chat.accounts import TYPING_TIMEOUT, AgentAccount
from connectors.chat.errors import BusyError, RefusedError, ShutOutError
from connectors.chat.lenient_json import Json, text
from connectors.chat.matrix.api import Homeserver, MatrixCall, path_of
from connectors.chat.matrix.platform import PLATFORM, MatrixAccountConfig

DEVICE_NAME = "Callboard"

# Chosen: short, so that it does not stand for long should this process be killed.
TYPING_FOR = PLATFORM.limits.typing_for
"""Seconds after which the server stops showing it by itself."""

T = TypeVar("T")


class MatrixAccount(AgentAccount):
    """The account of one agent.

    Args:
        agent: whose it is.
        config: its id, and how it is let in.
        homeserver: where.
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
