"""What `callboard doctor` says of plain WebSockets."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import httpx

from connectors.admin.probes import (
    ABOUT,
    Finding,
    Probe,
    look_at_keys,
    look_at_pages,
    look_at_port,
)
from connectors.chat.websocket.platform import WebSocketConfig

UPGRADE_REQUIRED = 426


def probes(
    name: str, config: WebSocketConfig, _network: httpx.AsyncBaseTransport | None = None
) -> Iterator[Probe]:
    """Give the probe of one connector: its port, its keys and its web pages."""
    place = f"connectors.{name}"
    yield Probe(ABOUT, place, partial(look, place, config))


async def look(place: str, config: WebSocketConfig) -> list[Finding]:
    """Look at the port, the keys and the pages.

    A server that others can reach without a key does not pass the settings' checks.
    """
    who = partial(who_has_socket, place, f"{config.host}:{config.port}")
    found = await look_at_port(place, config.host, config.port, who)
    keys = {} if config.api_key is None else {"api_key": config.api_key}
    found += look_at_keys(place, config.host, keys)
    found += look_at_pages(place, config.origins)
    return found


async def who_has_socket(
    place: str, door: str, client: httpx.AsyncClient
) -> list[Finding]:
    """Ask whether our plain WebSocket answers at its port."""
    answer = await client.get("/")
    is_ours = answer.headers.get("server") == "callboard"
    if is_ours and answer.status_code == UPGRADE_REQUIRED:
        return [Finding("ok", ABOUT, f"{place}: a Callboard runs at {door}")]
    return []
