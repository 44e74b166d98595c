"""The files that the page is made of, as they lie in `static/`; nothing else."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.responses import Response

from connectors.web.errors import ApiError

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from connectors.web.page.front import Routes, Visit

FOLDER = Path(__file__).parent / "static"

TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

FOR_EVER = "public, max-age=31536000, immutable"
"""Addresses of files carry what they say: one that changes has another address."""


class StaticRoutes:
    """The files, all read at once: they are few, and small."""

    def __init__(self) -> None:
        self._files = {
            each.name: (each.read_bytes(), TYPES[each.suffix])
            for each in FOLDER.iterdir()
            if each.suffix in TYPES
        }
        self._prints = {
            name: hashlib.sha256(content).hexdigest()[:12]
            for name, (content, _) in self._files.items()
        }

    @classmethod
    async def load(cls) -> StaticRoutes:
        """Read them in a thread."""
        return await asyncio.to_thread(cls)

    def address(self, name: str) -> str:
        """Give the address of a file; templates call it as `file(name)`.

        Raises:
            KeyError: there is none of that name.
        """
        return f"/static/{self._prints[name]}/{name}"

    def routes(self, routes: Routes) -> list[BaseRoute]:
        """Give the route."""
        return [routes.open("GET", "/static/{print}/{name}", self._give)]

    async def _give(self, visit: Visit) -> Response:
        name = str(visit.request.path_params["name"])
        found = self._files.get(name)
        if found is None or self._prints[name] != visit.request.path_params["print"]:
            raise ApiError(404, f"there is no file {name!r}", code="not_found")
        content, media_type = found
        headers = {"cache-control": FOR_EVER}
        return Response(content, headers=headers, media_type=media_type)
