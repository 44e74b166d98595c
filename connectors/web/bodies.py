"""Reads the bodies of requests, and breaks that off when the server stops.

Lives on the edge's loop only. A client may take its time with the rest of a body; the
end of the server does not wait for it, and tells it so.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from connectors.web.errors import RETRY_LATER, ApiError
from connectors.web.server import JSON, read_body

if TYPE_CHECKING:
    from starlette.requests import Request

    from connectors.web.server import HttpSettings


class Bodies:
    """The bodies that are being read."""

    def __init__(self) -> None:
        self._readers: set[asyncio.Task[Any]] = set()
        self._is_stopping = False

    def __len__(self) -> int:
        """Count them."""
        return len(self._readers)

    def stop(self) -> None:
        """Refuse those whose rest has not come."""
        self._is_stopping = True
        for reader in self._readers:
            reader.cancel()

    async def read(
        self, request: Request, settings: HttpSettings, media: tuple[str, ...] = JSON
    ) -> bytes:
        """Read one, of one of these media types.

        Raises:
            ApiError: see `read_body`; 503 if the server stops meanwhile.
            ClientDisconnect: the client has gone.
        """
        reader = asyncio.current_task()
        if reader is None:
            raise RuntimeError("a body is read by the task of its request")
        self._readers.add(reader)
        try:
            return await read_body(request, settings, media)
        except asyncio.CancelledError:
            if not self._is_stopping:
                raise
            reader.uncancel()  # it was `stop`: the request ends, and the task goes on
            text = "the server is stopping; nothing was taken"
            wait = RETRY_LATER
            raise ApiError(503, text, code="stopping", retry_after=wait) from None
        finally:
            self._readers.discard(reader)
