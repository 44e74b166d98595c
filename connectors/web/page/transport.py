"""The web page as a place where people write; see the port.

The kernel's side: what was said is kept here, requests live on the edge's loop and ask
for it. What draws pages is imported when somebody asks for the first one.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import trio

from actors.deliveries import Abilities
from actors.errors import DeliveryBusyError, DeliveryRefusedError
from connectors.web.page.front import Front
from connectors.web.page.rendering import Pages
from connectors.web.page.tries import Tries
from connectors.web.server import HttpSettings, open_socket, serve

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable

    from starlette.types import ASGIApp, Receive, Scope, Send

    from actors.deliveries import Delivery, Draft, Typing
    from actors.transport import Ingress
    from connectors.bridge import Bridge
    from connectors.page_config import PageConfig
    from connectors.web.page.figures import PageFigures
    from connectors.web.page.logins import Logins
    from connectors.web.page.views import Inside
    from runtime.clock import Clock
    from runtime.store import Store

SITE = "connectors.web.page.site"

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
    inside: Callable[[], Inside]


class PageTransport:
    """The page; see the port.

    Args:
        name: of the connector, as in the settings.
        config: its settings.
        given: what the company gives.
    """

    presence = None

    def __init__(self, name: str, config: PageConfig, given: Surroundings) -> None:
        self._config = config
        self._given = given
        self._settings = settings_of(name, config)
        self._reserved: socket.socket | None = None
        self._bound = trio.Event()
        self._address = ("", 0)

    @property
    def abilities(self) -> Abilities:
        """What it can do: an answer is kept once under one id."""
        return Abilities(is_idempotent=True)

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
            host, port = sock.getsockname()[:2]
            self._address = (str(host), int(port))
            self._bound.set()
            await given.bridge.call(self._serve, ingress, sock)
        finally:
            sock.close()
            self._bound = trio.Event()

    async def deliver(self, delivery: Delivery) -> str:
        """Say an answer in its chat; see the port."""
        raise DeliveryRefusedError(delivery.id)

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
        """Show that somebody writes."""

    async def settle(self, correlation_id: str, reason: str) -> None:
        """Do nothing: whoever waits sees what was said; see the port."""

    async def _serve(self, ingress: Ingress, sock: socket.socket) -> None:
        given = self._given
        front = Front(
            config=self._config,
            settings=self._settings,
            logins=given.logins,
            bridge=given.bridge,
            pages=Pages(),
            clock=given.clock,
            figures=given.figures,
            tries=Tries(MOST_TRIES, TRIES_FOR),
            refused=ingress.refuse,
        )

        async def make() -> ASGIApp:
            module = await asyncio.to_thread(importlib.import_module, SITE)
            make_site = cast("MakeSite", module.make_site)
            return await make_site(front, given.inside())

        await serve(Lazy(make), sock, self._settings, front.stopping.set)


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


MakeSite = Callable[[Front, "Inside"], "Awaitable[ASGIApp]"]


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
