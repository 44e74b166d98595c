"""What must fit together about plain WebSockets; asked by `settings.py`."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from connectors.model_checks import is_loopback
from connectors.websocket_config import WebSocketConfig
from runtime.config import Complaint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from connectors.config import AppConfig
    from connectors.model_checks import Way

EXTRA = "wsproto"
"""What the extra brings along."""


def check_websockets(app: AppConfig) -> Iterator[Complaint]:
    """Check every connector of this kind."""
    for name, connector in app.connectors.items():
        if isinstance(connector, WebSocketConfig):
            way: Way = ("connectors", name)
            if importlib.util.find_spec(EXTRA) is None:
                text = "the extra 'websocket' is not installed"
                yield Complaint(way, text, "pip install 'callboard[websocket]'")
            yield from check_host(way, connector)
            yield from check_pages(way, connector)


def check_host(way: Way, config: WebSocketConfig) -> Iterator[Complaint]:
    """Refuse a server that others can reach and anybody may use."""
    if config.api_key is None and not is_loopback(config.host):
        text = (
            f"without api_key, everybody who reaches {config.host!r} may use the agents"
        )
        hint = 'add api_key = { env = "CALLBOARD_API_KEY" }, or host = "127.0.0.1"'
        yield Complaint((*way, "host"), text, hint)


def check_pages(way: Way, config: WebSocketConfig) -> Iterator[Complaint]:
    """Check which pages may connect."""
    for index, origin in enumerate(config.origins):
        place = (*way, "origins", index)
        if origin == "*" and config.api_key is None:
            text = "without a key, every web page could use the agents"
            yield Complaint(place, text, "set api_key, or list the pages")
        elif origin != "*" and not is_origin(origin):
            text = f"{origin!r} is no origin"
            hint = 'write it as "https://chat.example.org", without a path'
            yield Complaint(place, text, hint)


def is_origin(text: str) -> bool:
    """Whether a browser would call a page's server so; `null` is nobody's."""
    scheme, separator, rest = text.partition("://")
    has_host = bool(rest) and not set(rest) & set("/?#@ ")
    return scheme in {"http", "https"} and bool(separator) and has_host
