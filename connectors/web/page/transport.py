"""The web page as a place where people write; see the port.

The kernel's side: what was said is kept here, requests live on the edge's loop and ask
for it. What draws pages is imported when somebody asks for the first one.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import trio

from actors.deliveries import Abilities
from actors.errors import DeliveryBusyError, DeliveryRefusedError
from connectors.blobs import bytes_of
from connectors.chat.limits import takes_files
from connectors.crossing import BridgeError
from connectors.web.page.chat import Chat
from connectors.web.page.chat_log import ChatLog
from connectors.web.page.front import Front
from connectors.web.page.hub import Hub
from connectors.web.page.places import place_of
from connectors.web.page.presence import PagePresence
from connectors.web.page.rendering import FOLDER, Pages
from connectors.web.page.shelf import all_views
from connectors.web.page.talk import Talk
from connectors.web.page.tidying import forget_old, tidy
from connectors.web.page.tries import Tries
from connectors.web.page.troubles import told_as_busy
from connectors.web.server import HttpSettings, open_socket, serve
from runtime.errors import StoreError
from runtime.ids import IdSource
from runtime.logs import EventLog

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable
    from pathlib import Path

    from starlette.types import ASGIApp, Receive, Scope, Send

    from actors.deliveries import Delivery, Draft, Typing
    from actors.transport import Ingress
    from connectors.blobs import BlobFolder
    from connectors.bridge import Bridge
    from connectors.page_config import PageConfig
    from connectors.web.operations import Operations
    from connectors.web.page.figures import PageFigures
    from connectors.web.page.logins import Logins
    from connectors.web.page.talk import News, Writes
    from connectors.web.page.views import Inside, View
    from runtime.clock import Clock
    from runtime.store import Store

LOG = EventLog("page")

SITE = "connectors.web.page.site"

MOST_CHARS = 12_000
TYPING_FOR = 10.0
DRAFT_PACE = 0.3

MOST_TRIES = 10
TRIES_FOR = 600.0
"""Links of one client that may not hold, in so many seconds."""


@dataclass(frozen=True)
class Surroundings:
    """What the transport is given by the company."""

    bridge: Bridge
    store: Store
    clock: Clock
    agents: Callable[[], tuple[str, ...]]
    """Names those that people can speak to now; called from both sides."""

    figures: PageFigures
    logins: Logins
    operations: Operations
    inside: Callable[[], Inside]
    views: Callable[[], tuple[View, ...]] = all_views
    """Called at the first request."""

    templates: Path = FOLDER
    blobs: BlobFolder | None = None
    """Has the bytes of files that agents send."""


class PageTransport:
    """The page; see the port.

    Args:
        name: of the connector, as in the settings.
        config: its settings.
        given: what the company gives.
    """

    def __init__(self, name: str, config: PageConfig, given: Surroundings) -> None:
        self._config = config
        self._given = given
        self._settings = settings_of(name, config)
        log = ChatLog(given.store, given.clock, name)
        ids = IdSource(given.clock)
        self.talk = Talk(name, log, given.clock, ids, self._tell)
        self._presence = PagePresence(self.talk)
        self._hub: Hub | None = None
        """Only touched on the edge's thread."""

        self._reserved: socket.socket | None = None
        self._bound = trio.Event()
        self._address = ("", 0)

    @property
    def abilities(self) -> Abilities:
        """What it can do: an answer is kept once under one id, and grows in its place.

        Parts of so many characters, so that one that grows is not drawn at length
        again and again.
        """
        return Abilities(
            is_idempotent=True,
            max_part_chars=MOST_CHARS,
            shows_typing=True,
            typing_for=TYPING_FOR,
            ends_typing=True,
            draft_pace=DRAFT_PACE,
            takes_back=True,
            files=takes_files("web"),
        )

    @property
    def presence(self) -> PagePresence:
        """How it edits and reacts."""
        return self._presence

    @property
    def advice(self) -> str:
        """What whoever starts the server should know of it."""
        return "log in by a link of: callboard login"

    def reserve(self) -> None:
        """Take the address now, so that one that is taken stops the program's start.

        Raises:
            ListenError: the address cannot be listened on.
        """
        self._reserved = open_socket(self._settings)

    def release(self) -> None:
        """Give back what `reserve` took, if `listen` has not used it."""
        if self._reserved is not None:
            self._reserved.close()
            self._reserved = None

    @property
    def is_reserved(self) -> bool:
        """Whether its address is taken, and waits for `listen`."""
        return self._reserved is not None

    async def wait_listening(self) -> tuple[str, int]:
        """Wait until browsers can connect; gives host and port."""
        await self._bound.wait()
        return self._address

    async def listen(self, ingress: Ingress) -> None:
        """Serve until cancelled; then end what is open and close the port.

        Raises:
            ListenError: the address cannot be listened on.
            BridgeClosedError: the edge's loop is not running or died.
            StoreError: what there is cannot be read.
        """
        sock = self._reserved or open_socket(self._settings)
        self._reserved = None
        try:
            given = self._given
            given.figures.sessions(await given.logins.count())
            self.talk.ingress = ingress
            host, port = sock.getsockname()[:2]
            self._address = (str(host), int(port))
            self._bound.set()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(tidy, self.tidy)
                await given.bridge.call(self._serve, ingress, sock)
                nursery.cancel_scope.cancel()
        finally:
            self.talk.ingress = None
            sock.close()
            self._bound = trio.Event()

    async def tidy(self) -> int:
        """Forget what is older, or more, than the settings keep; count the messages.

        Raises:
            StoreError: the disk fails; the next time goes on.
        """
        given = self._given
        given.figures.sessions(await given.logins.count())
        return await forget_old(self.talk, self._config, given.agents())

    async def deliver(self, delivery: Delivery) -> str:
        """Say an answer in its chat; see the port."""
        with told_as_busy(self.talk):
            chat = delivery.address.chat
            if place_of(chat, self._config) is None:
                raise DeliveryRefusedError(f"there is no chat {chat!r} on the page")
            if delivery.file is not None:
                bytes_of(self._given.blobs, delivery.file)
            return await self.talk.deliver(delivery)

    async def look_up(self, delivery: Delivery) -> str | None:
        """Refuse: there is no need to ask; see the port.

        Raises:
            DeliveryBusyError: always; `abilities` says that it is not to be asked.
        """
        await trio.lowlevel.checkpoint()
        raise DeliveryBusyError(f"{delivery.id} is simply said again")

    def show_draft(self, draft: Draft) -> None:
        """Do nothing: drafts are shown by edits; see the port."""

    def show_typing(self, typing: Typing) -> None:
        """Show that somebody writes, or has stopped."""
        self.talk.typing(typing)

    async def settle(self, correlation_id: str, reason: str) -> None:
        """Show nothing as being written any more that answers a message."""
        del reason
        try:
            await self.talk.settle(correlation_id)
        except StoreError as error:
            LOG.warning("answer goes on being shown as unfinished", why=str(error))

    def _tell(self, news: News | Writes) -> None:
        """Tell the tabs; on the kernel's side."""
        # What cannot cross is not lost: the next that can shows tabs what they missed.
        with contextlib.suppress(BridgeError):
            self._given.bridge.post_edge(self._tell_edge, news)

    def _tell_edge(self, news: News | Writes) -> None:
        if self._hub is not None:
            self._hub.tell(news)

    async def _serve(self, ingress: Ingress, sock: socket.socket) -> None:
        given = self._given
        hub = self._hub = Hub()
        chat = Chat(self.talk, given.agents, hub, given.blobs)
        front = Front(
            config=self._config,
            settings=self._settings,
            logins=given.logins,
            bridge=given.bridge,
            pages=Pages(given.templates),
            clock=given.clock,
            figures=given.figures,
            tries=Tries(MOST_TRIES, TRIES_FOR),
            refused=ingress.refuse,
        )

        async def make() -> ASGIApp:
            module = await asyncio.to_thread(importlib.import_module, SITE)
            make_site = cast("MakeSite", module.make_site)
            return await make_site(front, chat, given)

        try:
            await serve(Lazy(make), sock, self._settings, front.stopping.set)
        finally:
            self._hub = None


class Lazy:
    """An application that is made when it is asked for the first time.

    Args:
        make: makes it.
    """

    def __init__(self, make: Callable[[], Awaitable[ASGIApp]]) -> None:
        self._make = make
        self._making = asyncio.Lock()
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        async with self._making:
            app = self._app = self._app or await self._make()
        await app(scope, receive, send)


MakeSite = Callable[[Front, Chat, Surroundings], "Awaitable[ASGIApp]"]


def settings_of(name: str, config: PageConfig) -> HttpSettings:
    """Say how the server listens."""
    return HttpSettings(
        name=name,
        host=config.host,
        port=config.port,
        is_guarded=bool(config.origin),
        max_body_bytes=config.max_body_bytes,
        body_timeout=config.body_timeout,
        max_connections=config.max_connections,
    )
