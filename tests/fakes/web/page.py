"""A running web page on a free port, and a browser without a window."""

from __future__ import annotations

import math
import re
import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import trio
from msgspec import structs

from actors.messages.deliveries import Delivery
from actors.messages.inbound import Inbound
from connectors.asyncio_bridge.bridge import Bridge
from connectors.web.page.login_rows import (
    LINK,
    LoginLink,
    login_entry,
    new_token,
    row_id,
)
from connectors.web.page.platform import PageConfig
from connectors.web.page.request import FOLDER
from connectors.web.page.transport import PageTransport
from connectors.web.page.views.base import View
from runtime.clock import Clock, SystemClock
from runtime.store.port import Store
from runtime.store.rows import Commit
from runtime.telemetry.metrics import Metrics
from tests.fakes.chat.ingress import FakeIngress
from tests.fakes.store.in_memory import MemoryStore
from tests.fakes.tools.sent_files import SentFiles
from tests.fakes.web.backstage import FakeCompany
from tests.support.transport_parts import transport_parts

AGENTS = ("anna", "ben")
ANNA = "/chat/with/anna"
LOBBY = "/chat/room/lobby"
JSON = {"accept": "application/json"}
PIECE = re.compile(r"event: (?P<name>.*)\n(?P<data>(data: ?.*\n)*)(id: (?P<id>\d+)\n)?")


class Event:
    """One event of a stream."""

    def __init__(self, name: str, data: str, number: int) -> None:
        self.name = name
        self.data = data
        self.number = number


class PageBed:
    """What a test needs of a running page."""

    def __init__(self, transport: PageTransport, store: Store, clock: Clock) -> None:
        self.transport = transport
        self.store = store
        self.clock = clock
        self.metrics = Metrics()
        self.ingress = FakeIngress()
        self.port = 0
        self.serving = trio.CancelScope()
        self.ended = trio.Event()
        self.client: httpx.AsyncClient
        """A browser that is logged in."""

    @property
    def url(self) -> str:
        """Where browsers connect."""
        return f"http://127.0.0.1:{self.port}"

    async def link(self, person: str = "operator", seconds: float = 600.0) -> str:
        """Make a link for logging in; gives its token."""
        token = new_token(secrets.token_bytes(32))
        now = self.clock.wall()
        row = login_entry(
            LINK, row_id("page", token), LoginLink(person, now + seconds, now), 0
        )
        await self.store.commit(Commit(at=now, entries=(row,)))
        return token

    def browser(self) -> httpx.AsyncClient:
        """Give a browser that is not logged in."""
        return httpx.AsyncClient(base_url=self.url, timeout=10)

    async def log_in(
        self, client: httpx.AsyncClient, person: str = "operator"
    ) -> httpx.Response:
        """Log a browser in."""
        token = await self.link(person)
        return await client.post("/login", data={"token": token})

    async def say(
        self,
        text: str,
        path: str = ANNA,
        *,
        key: str = "",
        client: httpx.AsyncClient | None = None,
    ) -> httpx.Response:
        """Send the form of a chat, as the script does."""
        browser = client or self.client
        form = form_of((await browser.get(path)).text)
        form |= {"text": text} | ({"key": key} if key else {})
        return await browser.post(path, data=form, headers=JSON)

    async def answer(
        self,
        inbound: Inbound,
        text: str,
        agent: str = "anna",
        *,
        is_draft: bool = False,
    ) -> str:
        """Deliver an answer; gives the receipt."""
        return await self.transport.deliver(
            reply(inbound, text, agent, is_draft=is_draft)
        )


def reply(
    inbound: Inbound, text: str, agent: str = "anna", *, is_draft: bool = False
) -> Delivery:
    """Make an answer."""
    return Delivery(
        id=f"{inbound.id}/{agent}/{'draft' if is_draft else text}",
        correlation_id=inbound.correlation_id,
        reply_id=f"{inbound.id}/{agent}",
        address=inbound.address,
        agent=agent,
        text=text,
        is_draft=is_draft,
    )


def form_of(html: str, action: str = 'id="say"') -> dict[str, str]:
    """Give the hidden fields of a form."""
    form = html.partition(action)[2].partition("</form>")[0]
    found = re.findall(r'name="([^"]*)" value="([^"]*)"', form)
    return {name: unescape(value) for name, value in found}


def said_in(html: str) -> list[str]:
    """Give what stands in a chat: who, and what, without tags."""
    articles = re.findall(r"<article .*?</article>", html, re.DOTALL)
    return [one_line(each) for each in articles]


def one_line(html: str) -> str:
    """Give the author and the words of one message."""
    author = re.search(r'class="author">(.*?)</span>', html)
    words = re.search(r'class="words[^"]*"[^>]*>(.*?)</div>\n', html, re.DOTALL)
    if author is None or words is None:
        return ""
    text = re.sub(r"<[^>]*>", "", words[1])
    return f"{unescape(author[1])}: {unescape(text)}"


class Reading:
    """The events of a stream, as they come."""

    def __init__(self, *, is_slow: bool) -> None:
        most = 0 if is_slow else math.inf
        self._put, self._chunks = trio.open_memory_channel[str](most)
        self._text = ""

    async def pump(self, response: httpx.Response) -> None:
        """Read what comes, if slow only when somebody asks for it; until cancelled."""
        async with self._put:
            async for chunk in response.aiter_text():
                # Why not `send` alone: who is cancelled there leaves httpx's generators
                # to the garbage collector, which complains in whichever test it runs.
                try:
                    self._put.send_nowait(chunk)
                except trio.WouldBlock:
                    await self._put.send(chunk)

    async def next(self, name: str = "message") -> Event:
        """Give the next event of a name; others are passed over."""
        with trio.fail_after(5):
            while True:
                event = await self._next()
                if event.name == name:
                    return event

    async def next_ever(self) -> Event:
        """Give the next event, however long that takes; waits for ever at the end."""
        try:
            return await self._next()
        except trio.EndOfChannel:
            await trio.sleep_forever()

    async def _next(self) -> Event:
        while True:
            piece, end, rest = self._text.partition("\n\n")
            if not end:
                self._text += await self._chunks.receive()
                continue
            self._text = rest
            found = PIECE.fullmatch(piece + "\n")
            if found is not None:
                lines = found["data"].removesuffix("\n").split("\n")
                data = "\n".join(each.removeprefix("data: ") for each in lines)
                return Event(found["name"], data, int(found["id"] or 0))


@asynccontextmanager
async def reading(
    client: httpx.AsyncClient,
    path: str = ANNA,
    *,
    after: int = 0,
    headers: Mapping[str, str] | None = None,
    is_slow: bool = False,
) -> AsyncGenerator[Reading]:
    """Open the stream of a chat, or of a view."""
    asked = client.stream(
        "GET", f"{path}/events", params={"after": after}, headers=headers
    )
    async with asked as response, trio.open_nursery() as nursery:
        assert response.status_code == 200, response.status_code
        stream = Reading(is_slow=is_slow)
        nursery.start_soon(stream.pump, response)
        yield stream
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def open_page(
    config: PageConfig | None = None,
    store: Store | None = None,
    views: tuple[View, ...] = (),
    templates: Path = FOLDER,
    heartbeat: float = 15.0,
    blobs: SentFiles | None = None,
    **company: Any,
) -> AsyncGenerator[PageBed]:
    """Run a page over a fake ingress, on a free port of this machine.

    `company` is what is behind it; see `FakeCompany`.
    """
    bridge, clock = Bridge(shutdown_timeout=3), SystemClock()
    config, store = config or PageConfig(port=0), store or MemoryStore()
    metrics = Metrics()
    parts = transport_parts(
        bridge=bridge,
        store=store,
        clock=clock,
        metrics=metrics,
        blobs=blobs or SentFiles(),
        backstage=FakeCompany(MemoryStore(), **company).backstage(),
    )
    transport = PageTransport("page", config, parts, lambda: views, templates)
    bed = PageBed(transport, store, clock)
    settings = bed.transport._settings
    bed.transport._settings = structs.replace(settings, heartbeat=heartbeat)
    bed.metrics = metrics
    await bridge.start()
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve, bed)
            _, bed.port = await bed.transport.wait_listening()
            async with bed.browser() as bed.client:
                await bed.log_in(bed.client, config.people[0])
                yield bed
            nursery.cancel_scope.cancel()
    finally:
        await bridge.aclose()


async def serve(bed: PageBed) -> None:
    """Listen until the bed's scope is cancelled."""
    with bed.serving:
        await bed.transport.listen(bed.ingress)
    bed.ended.set()
