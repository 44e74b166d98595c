"""One agent's number, and what it asks the Graph API.

`GraphApi` keeps the deadlines and says what went wrong; who asks knows whether to ask
again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import msgspec
import trio

from actors.messages.inbound import SentFile
from connectors.chat.requests import (
    OK,
    BusyError,
    HttpPool,
    Json,
    LostError,
    RefusedError,
    ShutOutError,
    Upload,
    read_json,
    table,
    tables,
    text,
    whole,
)
from connectors.chat.whatsapp import markup
from connectors.chat.whatsapp.events import read_error
from connectors.chat.whatsapp.platform import WhatsAppAccountConfig
from connectors.files.blobs import seconds_for
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
        markup = None if call.body is None else msgspec.json.encode(call.body)
        if markup is not None:
            headers["Content-Type"] = "application/json"
        answer = await self.send(
            call.method,
            self._whole(call.url),
            within=call.timeout,
            silence=call.silence,
            most=call.most,
            upload=call.upload,
            params=call.query or None,
            content=markup,
            data=call.fields,
            headers=headers,
        )
        if answer.status != OK:
            raise read_error(answer.status, answer.headers, answer.body)
        return answer.body

    def _whole(self, url: str) -> str:
        """Return the whole address; refuse one where all could read the token."""
        if "://" not in url:
            return f"{self._url}/{url}"
        here, there = urlsplit(self._url), urlsplit(url)
        is_ours = (here.scheme, here.netloc) == (there.scheme, there.netloc)
        if there.scheme != "https" and not is_ours:
            raise RefusedError("its address is not encrypted")
        return url


NAMES = "display_phone_number,verified_name"
HOOKS = "webhook_configuration"


class WhatsAppAccount:
    """The number of one agent.

    Args:
        timeout: seconds a request may take.
    """

    def __init__(
        self, agent: str, config: WhatsAppAccountConfig, graph: GraphApi, timeout: float
    ) -> None:
        self.agent = agent
        self.id = config.phone_number_id
        self._token = config.access_token
        self._graph = graph
        self._timeout = timeout
        self._refused = ""
        """Why it was not let in the last time."""

        self.trouble = ""
        """Why its token was refused when it was looked at last; empty: it was not."""

        self._news = trio.Event()

    async def refusal(self) -> str:
        """Wait until it is not let in; gives why."""
        await self._news.wait()
        self._news, why = trio.Event(), self._refused
        return why

    async def _ask(self, call: GraphCall) -> Json:
        try:
            return await self._graph.ask(call, self._token)
        except ShutOutError as error:
            self._refused = str(error)
            self._news.set()
            raise

    async def send(self, body: Json) -> str:
        """Send something; gives its id.

        Raises:
            PlatformError: as `GraphApi.ask`.
        """
        answer = await self._post(body)
        found = [text(each.get("id")) for each in tables(answer.get("messages"))]
        if not (found and found[0]):
            raise LostError("its answer names no message")
        return found[0]

    async def upload(self, file: SentFile, path: Path) -> str:
        """Bring a file to Meta, where nobody sees it yet; gives its id.

        Raises:
            PlatformError: as `GraphApi.ask`, but never `LostError`: a repeated upload
                is harmless.
        """
        kind = markup.type_of(file)
        fields = {"messaging_product": "whatsapp", "type": kind}
        call = GraphCall(
            url=f"{self.id}/media",
            upload=Upload("file", path, file.name, kind),
            fields=fields,
            timeout=seconds_for(file.size, self._timeout),
            silence=self._timeout,
        )
        try:
            found = text((await self._ask(call)).get("id"))
        except LostError as error:
            raise BusyError(f"the file did not arrive: {error}") from error
        if not found:
            raise BusyError("the file did not arrive: the answer names none")
        return found

    async def read(self, message_id: str, *, is_typing: bool = False) -> None:
        """Show that a message was read, and perhaps that an answer is being written.

        Raises:
            PlatformError: as `GraphApi.ask`.
        """
        await self._post(markup.read(message_id, is_typing=is_typing))

    async def show(self) -> str:
        """Return the number as people know it: the token is taken.

        Raises:
            PlatformError: as `GraphApi.ask`.
        """
        return self._named(await self._get(NAMES))

    async def show_all(self) -> tuple[str, Json]:
        """Return the number as people know it, and the addresses that Meta calls.

        Raises:
            PlatformError: as `GraphApi.ask`.
        """
        said = await self._get(f"{NAMES},{HOOKS}")
        return self._named(said), table(said.get(HOOKS))

    def _named(self, said: Json) -> str:
        words = [text(said.get(name)) for name in NAMES.split(",")]
        return ", ".join(word for word in words if word) or self.id

    async def _get(self, fields: str) -> Json:
        query = {"fields": fields}
        call = GraphCall(method="GET", url=self.id, query=query, timeout=self._timeout)
        return await self._ask(call)

    async def media(self, media_id: str, most: int, within: float) -> bytes:
        """Fetch a file: its address is only good for 5 minutes, so at once.

        Args:
            most: bytes.
            within: seconds for each of its two requests.

        Raises:
            PlatformError: as `GraphApi.ask`; `RefusedError` if it is too large.
        """
        if not (media_id.isascii() and media_id.isalnum()):
            raise RefusedError("it has no id")
        call = GraphCall(
            method="GET",
            url=media_id,
            query={"phone_number_id": self.id},
            timeout=within,
        )
        said = table(await self._ask(call))
        if whole(said.get("file_size")) > most:
            raise RefusedError(f"it is larger than {most} bytes")
        url = text(said.get("url"))
        if "://" not in url:
            raise LostError("it has no address")
        get = GraphCall(method="GET", url=url, timeout=within, most=most)
        return await self._graph.fetch(get, self._token)

    async def _post(self, body: Json) -> Json:
        call = GraphCall(url=f"{self.id}/messages", body=body, timeout=self._timeout)
        return await self._ask(call)
