"""Requests to Meta's Graph API.

Keeps the deadlines and says what went wrong; who asks knows whether to ask again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from connectors.chat.errors import LostError, RefusedError
from connectors.chat.lenient_json import Json
from connectors.chat.requests import OK, HttpPool, Upload, read_json
from connectors.chat.whatsapp.errors import read_error

if TYPE_CHECKING:
    import httpx

    from runtime.secret import Secret

MOST_ANSWER = 1024 * 1024
"""Bytes of any answer that is no file."""

# Chosen: Meta takes 80 messages a second of one number, each in some 0.2 s.
MOST_CONNECTIONS = 50


class GraphCall(msgspec.Struct, frozen=True, kw_only=True):
    """One request."""

    method: str = "POST"
    url: str
    """The path below the Graph API, or a whole address that it gave."""

    query: Mapping[str, str] = {}
    body: Json | None = None
    upload: Upload | None = None
    """Instead of a body."""

    fields: Mapping[str, str] | None = None
    """What else is in the upload's form."""

    timeout: float
    """Seconds for all of it."""

    silence: float | None = None
    """Seconds Meta may say and take nothing, if that is less."""

    most: int = MOST_ANSWER
    """Bytes."""


class GraphApi(HttpPool):
    """The Graph API, for all numbers."""

    def __init__(
        self, url: str, network: httpx.AsyncBaseTransport | None = None
    ) -> None:
        super().__init__(network, MOST_CONNECTIONS, LostError)
        self._url = url.strip().rstrip("/")

    async def ask(self, call: GraphCall, token: Secret) -> Json:
        """Ask for JSON.

        Raises:
            BusyError: it cannot be reached, or not now.
            LostError: it was asked, and no whole answer came.
            ShutOutError: the account cannot be used as it is.
            RefusedError: it will never do this.
        """
        return read_json(await self.fetch(call, token))

    async def fetch(self, call: GraphCall, token: Secret) -> bytes:
        """Ask for bytes; raises as `ask`."""
        headers = {"Authorization": f"Bearer {token.reveal().strip()}"}
        content = None if call.body is None else msgspec.json.encode(call.body)
        if content is not None:
            headers["Content-Type"] = "application/json"
        answer = await self.send(
            call.method,
            self._whole(call.url),
            within=call.timeout,
            silence=call.silence,
            most=call.most,
            upload=call.upload,
            params=call.query or None,
            content=content,
            data=call.fields,
            headers=headers,
        )
        if answer.status != OK:
            raise read_error(answer.status, answer.headers, answer.body)
        return answer.body

    def _whole(self, url: str) -> str:
        """Return the whole address.

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
