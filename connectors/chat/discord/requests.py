"""Requests of discord.py that go where the settings say; on the asyncio edge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discord.http import HTTPClient, Route

if TYPE_CHECKING:
    from typing import Any

GATEWAY = "wss://gateway.discord.gg"


class Requests(HTTPClient):
    """Requests that go where the settings say.

    Why a class of its own: discord.py keeps its addresses in variables of classes, for
    the whole process. `Route.BASE` stays as it is.
    """

    api = Route.BASE
    gateway = GATEWAY

    async def request(self, route: Route, **given: Any) -> Any:  # noqa: ANN401  as there
        """Ask Discord; see there."""
        route.url = self.api + route.url.removeprefix(Route.BASE)
        return await super().request(route, **given)

    async def ws_connect(self, url: str, *, compress: int = 0) -> Any:  # noqa: ANN401
        """Connect to the gateway, to whose own address wherever another is set."""
        if self.gateway != GATEWAY:
            url = f"{self.gateway}/?{url.partition('?')[2]}"
        return await super().ws_connect(url, compress=compress)
