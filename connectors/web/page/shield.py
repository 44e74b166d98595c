"""Stands before all routes: who may ask at all, and what every answer says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse

from connectors.web.errors import ApiError, log_refusal
from connectors.web.page.headers import PRIVATE, SECURITY, is_our_host

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from connectors.page_config import PageConfig


class Shield:
    """An application behind the checks that are the same for all of it.

    Args:
        app: what is asked then.
        config: settings of the page.
        refused: told of each request for another host.
    """

    def __init__(
        self, app: ASGIApp, config: PageConfig, refused: Callable[[str], None]
    ) -> None:
        self._app = app
        self._config = config
        self._refused = refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY.items():
                    headers.setdefault(name, value)  # a file's policy is stricter
                headers.setdefault("cache-control", PRIVATE)
            await send(message)

        app = self._app
        if scope["type"] == "http":
            host = Headers(scope=scope).get("host", "")
            if not is_our_host(self._config, host):
                app = self._turn_away(scope, host)
        await app(scope, receive, guarded)

    def _turn_away(self, scope: Scope, host: str) -> ASGIApp:
        text = f"host {host!r} is not this page's; a proxy's is set as `origin`"
        log_refusal(scope, ApiError(403, text, code="forbidden_host"))
        self._refused("forbidden_host")
        return PlainTextResponse(f"{text}\n", status_code=403)
