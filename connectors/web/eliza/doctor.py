"""What `callboard doctor` says of web channels."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import httpx
import msgspec

from connectors.admin.probes import (
    ABOUT,
    Finding,
    Probe,
    look_at_keys,
    look_at_pages,
    look_at_port,
)
from connectors.web.eliza.platform import WebConfig


class Health(msgspec.Struct, frozen=True):
    """What `/api/server/health` of a web channel says."""

    status: str
    agent_count: int = msgspec.field(name="agentCount", default=0)


def probes(
    name: str, config: WebConfig, _network: httpx.AsyncBaseTransport | None = None
) -> Iterator[Probe]:
    """Give the probe of one connector: its port, its keys and its web pages."""
    place = f"connectors.{name}"
    yield Probe(ABOUT, place, partial(look, place, config))


async def look(place: str, config: WebConfig) -> list[Finding]:
    """Look at the port, the keys and the pages.

    A server that others can reach without a key does not pass the settings' checks.
    """
    who = partial(who_has_web, place, f"{config.host}:{config.port}")
    found = await look_at_port(place, config.host, config.port, who)
    keys = {} if config.api_key is None else {"api_key": config.api_key}
    keys |= {f"keys.{each}.key": key.key for each, key in config.keys.items()}
    found += look_at_keys(place, config.host, keys)
    found += look_at_pages(place, config.origins)
    return found


async def who_has_web(
    place: str, door: str, client: httpx.AsyncClient
) -> list[Finding]:
    """Ask whether a web channel answers at its port, and anybody in it."""
    answer = await client.get("/api/server/health")
    try:
        health = msgspec.json.decode(answer.content, type=Health)
    except msgspec.MsgspecError:
        return []
    if answer.status_code == 200:
        text = f"{place}: a Callboard runs at {door}, agents: {health.agent_count}"
        return [Finding("ok", ABOUT, text)]
    text = f"{place}: the Callboard at {door} has nobody who answers"
    return [Finding("wrong", ABOUT, text, "see `callboard config check` and its log")]
