"""The web page as a transport; the kernel's side.

Messages and logins belong to this side; requests run on the edge's loop and ask for
them. The routes and Jinja2 are imported at the first request.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import socket
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from secrets import token_bytes
from typing import cast

import msgspec
import trio
from starlette.types import ASGIApp, Receive, Scope, Send

from actors.errors import DeliveryBusyError, DeliveryRefusedError
from actors.messages.deliveries import Abilities, Delivery, Edit, Reaction, Typing
from actors.messages.inbound import Inbound
from actors.transport import Ingress
from connectors.asyncio_bridge.bridge import BridgeError
from connectors.chat.platforms import TransportParts
from connectors.chat.server_transport import ServerTransport
from connectors.files.blobs import bytes_of
from connectors.web.history import ConnectorStore, tidy_for_ever
from connectors.web.operations import requests_counter
from connectors.web.page.chat.chats import all_chats, find_chat
from connectors.web.page.chat.hub import AgentAbout, ChatParts, TabHub
from connectors.web.page.chat.messages import page_history
from connectors.web.page.chat.service import MessageChanged, PageChats, WritingChanged
from connectors.web.page.event_stream import PageCounters, PageMetrics
from connectors.web.page.logins import Logins, Tries
from connectors.web.page.platform import PLATFORM, PageConfig
from connectors.web.page.request import FOLDER, PageContext, PageRenderer
from connectors.web.page.views import all_views
from connectors.web.page.views.base import View, ViewSources
from connectors.web.server import HttpSettings, http_settings, open_socket, serve
from runtime.errors import CorruptError, StoreError
from runtime.telemetry.logs import EventLog

LOG = EventLog("page")

SITE = "connectors.web.page.site"

MOST_CHARS = 12_000
TYPING_FOR = 10.0
DRAFT_PACE = 0.3

TIDY_EVERY = 600.0
"""Seconds between two rounds that delete old messages."""

OVERVIEW = "connectors.web.page.views.overview"

SAMPLE_EVERY = 10.0
"""Seconds between two samples of the metrics."""

MOST_TRIES = 10
TRIES_FOR = 600.0
"""Seconds in which a client may try `MOST_TRIES` invalid links."""


class PageTransport(ServerTransport):
    """The page; see the port.

    Args:
        views: gives the operators' views; called at the first request.
    """

    advice = "log in by a link of: callboard login"

    def __init__(
        self,
        name: str,
        config: PageConfig,
        parts: TransportParts,
        views: Callable[[], tuple[View, ...]] = all_views,
        templates: Path = FOLDER,
    ) -> None:
        self._config = config
        self._parts = parts
        self._views = views
        self._templates = templates
        self._metrics = PageMetrics(parts.once(PageCounters), name)
        self._logins = Logins(name, config, parts.store, parts.clock, token_bytes)
        self._settings = settings_of(name, config)
        super().__init__(partial(open_socket, self._settings))
        history = page_history(ConnectorStore(parts.store, parts.clock, name))
        ids = parts.ids.branch()
        board = parts.backstage.services.board
        self.talk = PageChats(
            name, history, parts.clock, ids, self._tell, parts.blobs, board.asked_by
        )
        self._inside = cache(parts.inside)
        self._presence = PagePresence(self.talk)
        self._hub: TabHub | None = None
        """Only touched on the edge's thread."""

    @property
    def abilities(self) -> Abilities:
        """An answer is stored once under one id; its drafts are shown by edits.

        Parts are short, as each edit renders the whole part again.
        """
        return Abilities(
            is_idempotent=True,
            max_part_chars=MOST_CHARS,
            shows_typing=True,
            typing_for=TYPING_FOR,
            ends_typing=True,
            draft_pace=DRAFT_PACE,
            has_free_drafts=True,
            takes_back=True,
            files=PLATFORM.takes_files,
        )

    @property
    def presence(self) -> PagePresence:
        """Edits messages and sets reactions."""
        return self._presence

    async def listen(self, ingress: Ingress) -> None:
        """Serve until cancelled; then end all streams and close the port.

        Raises:
            ListenError: the address cannot be listened on.
            BridgeClosedError: the edge's loop is not running or died.
            StoreError: the sessions cannot be read.
        """
        with self.listening() as sock:
            self._metrics.sessions(await self._logins.count())
            self.talk.ingress = ingress
            self.announce(sock)
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(tidy_for_ever, self.tidy, TIDY_EVERY, LOG)
                    nursery.start_soon(self._watch)
                    await self._parts.bridge.call(self._serve, ingress, sock)
                    nursery.cancel_scope.cancel()
            finally:
                self.talk.ingress = None

    async def _watch(self) -> None:
        """Sample the metrics for the page's lines, and count what waits."""
        while True:
            await trio.sleep(SAMPLE_EVERY)
            module = await trio.to_thread.run_sync(importlib.import_module, OVERVIEW)
            await cast("Watch", module.watch)(self._inside())

    async def tidy(self) -> int:
        """Delete messages that are older, or more, than the settings keep; count them.

        Raises:
            StoreError: the disk fails; the next time goes on.
        """
        config = self._config
        self._metrics.sessions(await self._logins.count())
        chats = all_chats(config, self._parts.agents())
        history = self.talk.history
        return await history.tidy(chats, config.keep_days, config.keep_messages)

    async def deliver(self, delivery: Delivery) -> str:
        """Store an answer in its chat and announce it; see the port."""
        with told_as_busy(self.talk):
            chat = delivery.address.chat
            if find_chat(chat, self._config) is None:
                raise DeliveryRefusedError(f"there is no chat {chat!r} on the page")
            if delivery.file is not None:
                bytes_of(self._parts.blobs, delivery.file)
            return await self.talk.deliver(delivery)

    def show_typing(self, typing: Typing) -> None:
        """Show that an agent is typing, or has stopped."""
        self.talk.typing(typing)

    async def settle(self, inbound: Inbound, reason: str) -> None:
        """Show the answers to a message as complete."""
        del reason
        try:
            await self.talk.settle(inbound.correlation_id)
        except StoreError as error:
            LOG.warning("answer goes on being shown as unfinished", why=str(error))

    def _tell(self, news: MessageChanged | WritingChanged) -> None:
        """Send a change to the tabs; on the kernel's side."""
        # A change that cannot cross is not lost: the next one makes tabs read it.
        with contextlib.suppress(BridgeError):
            self._parts.bridge.post_edge(self._tell_edge, news)

    def _tell_edge(self, news: MessageChanged | WritingChanged) -> None:
        if self._hub is not None:
            self._hub.tell(news)

    async def _serve(self, ingress: Ingress, sock: socket.socket) -> None:
        parts = self._parts
        hub = self._hub = TabHub()
        board = parts.backstage.services.board
        chat = ChatParts(
            self.talk,
            parts.agents,
            parts.shown,
            hub,
            parts.blobs,
            about=partial(about_agent, parts),
            is_open=board.ids.__contains__,
        )
        front = PageContext(
            config=self._config,
            settings=self._settings,
            logins=self._logins,
            bridge=parts.bridge,
            pages=PageRenderer(self._templates),
            clock=parts.clock,
            metrics=self._metrics,
            tries=Tries(MOST_TRIES, TRIES_FOR),
            record_attempt=ingress.refuse,
            badges=lambda: self._inside().trends.badges,
        )

        async def make() -> ASGIApp:
            module = await asyncio.to_thread(importlib.import_module, SITE)
            make_site = cast("MakeSite", module.make_site)
            parts = replace(self._parts, inside=self._inside)
            return await make_site(front, chat, parts, self._views)

        try:
            stop, requests = front.stopping.set, parts.once(requests_counter)
            await serve(Lazy(make), sock, self._settings, stop, requests)
        finally:
            self._hub = None


class Lazy:
    """An application that is made at its first request."""

    def __init__(self, make: Callable[[], Awaitable[ASGIApp]]) -> None:
        self._make = make
        self._making = asyncio.Lock()
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        async with self._making:
            app = self._app = self._app or await self._make()
        await app(scope, receive, send)


Watch = Callable[["ViewSources"], Awaitable[None]]

MakeSite = Callable[
    [PageContext, ChatParts, "TransportParts", "Callable[[], tuple[View, ...]]"],
    "Awaitable[ASGIApp]",
]


def about_agent(parts: TransportParts, name: str) -> AgentAbout:
    """Say who an agent is; any thread may call it."""
    persona = parts.backstage.roster().team.personas.get(name)
    if persona is None:
        return AgentAbout(name)
    config = persona.config
    return AgentAbout(name, config.description, config.model, tuple(config.tools))


def settings_of(name: str, config: PageConfig) -> HttpSettings:
    """Say how the server listens."""
    is_guarded = bool(config.origin)
    return msgspec.structs.replace(http_settings(name, config), is_guarded=is_guarded)


make_transport = PageTransport


@contextmanager
def told_as_busy(talk: PageChats) -> Generator[None]:
    """Translate errors of the store into those of deliveries.

    Raises:
        DeliveryBusyError: the page is not listening, or the disk fails.
        DeliveryRefusedError: the row is damaged.
    """
    if talk.ingress is None:
        raise DeliveryBusyError("the page is not listening")
    try:
        yield
    except CorruptError as error:
        raise DeliveryRefusedError(str(error)) from error
    except StoreError as error:
        raise DeliveryBusyError(str(error)) from error


class PagePresence:
    """Edits and reactions on one page; see the port."""

    def __init__(self, talk: PageChats) -> None:
        self._talk = talk

    async def edit(self, edit: Edit) -> None:
        """Change the text of a message; see the port."""
        with told_as_busy(self._talk):
            if not await self._talk.edit(edit):
                raise DeliveryRefusedError(f"there is no message {edit.receipt}")

    async def react(self, reaction: Reaction) -> None:
        """Set a reaction at a message; see the port."""
        with told_as_busy(self._talk):
            if not await self._talk.react(reaction):
                raise DeliveryRefusedError(f"there is no message {reaction.message}")
