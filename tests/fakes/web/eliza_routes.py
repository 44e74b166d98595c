"""All routes of the ElizaOS API, as a test can go through them."""

from __future__ import annotations

from typing import Any, cast

from starlette.routing import Route

from connectors.web.eliza.app import routes_of
from connectors.web.eliza.platform import Scope
from connectors.web.eliza.request import ElizaRoutes
from tests.fakes.web.eliza import WebBed

Listed = tuple[str, str, Scope | None]
"""Method, path, and the scope that a key needs; None: nobody needs a key."""


class ListingDesk:
    """Notes down the routes that are made."""

    def __init__(self) -> None:
        self.listed: list[Listed] = []

    def route(
        self, method: str, path: str, scope: Scope | None, handle: Any, **_: bool
    ) -> Route:
        """Note one down."""
        self.listed.append((method, path, scope))
        return Route(path, handle, methods=[method])


def all_routes(bed: WebBed) -> list[Listed]:
    """Give every route of a running web channel."""
    desk = ListingDesk()
    routes_of(bed.transport.services, cast("ElizaRoutes", desk))
    return desk.listed
