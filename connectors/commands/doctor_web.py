"""Looks at the servers of the web channel and of plain WebSockets.

Their port, whether their keys can be guessed, and which web pages they let in. A server
that others can reach without a key does not pass the settings' own checks.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from connectors.commands.doctor_checks import Finding
from connectors.commands.doctor_ports import ABOUT, look_at_port
from connectors.commands.doctor_probes import Probe
from connectors.model_checks import is_loopback
from connectors.web_config import WebConfig
from connectors.websocket_config import WebSocketConfig

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import httpx

    from runtime.secret import Secret

# Chosen: 16 letters of openssl's base64 are 96 bits, which nobody tries.
LEAST_KEY, LEAST_LETTERS = 16, 6
MAKE_KEY = "make one by `openssl rand -base64 32`"
UPGRADE_REQUIRED = 426


class Health(msgspec.Struct, frozen=True):
    """What `/api/server/health` of a web channel says."""

    status: str
    agent_count: int = msgspec.field(name="agentCount", default=0)


def web_probe(name: str, config: WebConfig | WebSocketConfig) -> Probe:
    """Give the probe of a web channel, or of a plain WebSocket."""
    place = f"connectors.{name}"
    return Probe(ABOUT, place, partial(look_at_web, place, config))


async def look_at_web(place: str, config: WebConfig | WebSocketConfig) -> list[Finding]:
    """Look at the port, the keys and the pages."""
    door = f"{config.host}:{config.port}"
    is_plain = isinstance(config, WebSocketConfig)
    who = partial(who_has_socket if is_plain else who_has_web, place, door)
    found = await look_at_port(place, config.host, config.port, who)
    return [*found, *look_at_keys(place, config), *look_at_pages(place, config)]


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


async def who_has_socket(
    place: str, door: str, client: httpx.AsyncClient
) -> list[Finding]:
    """Ask whether our plain WebSocket answers at its port."""
    answer = await client.get("/")
    is_ours = answer.headers.get("server") == "callboard"
    if is_ours and answer.status_code == UPGRADE_REQUIRED:
        return [Finding("ok", ABOUT, f"{place}: a Callboard runs at {door}")]
    return []


def look_at_keys(place: str, config: WebConfig | WebSocketConfig) -> Iterator[Finding]:
    """Warn of keys that can be guessed, and say where none is needed."""
    keys = keys_of(config)
    for name, key in keys.items():
        text = key.reveal()
        if len(text) < LEAST_KEY or len(set(text)) < LEAST_LETTERS:
            told = f"{place}.{name}: this key of {len(text)} characters can be guessed"
            yield Finding("warning", ABOUT, told, MAKE_KEY)
    if not keys:
        told = f"{place}: every program on this machine may use the agents"
        yield Finding("ok", ABOUT, told)
    elif not is_loopback(config.host):
        told = f"{place}: keys cross the network as they are, unless a proxy has TLS"
        cure = 'put a proxy with a certificate before it, and set host = "127.0.0.1"'
        yield Finding("warning", ABOUT, told, cure)


def keys_of(config: WebConfig | WebSocketConfig) -> Mapping[str, Secret]:
    """Give the keys, by where they stand."""
    found = {} if config.api_key is None else {"api_key": config.api_key}
    if isinstance(config, WebConfig):
        found |= {f"keys.{name}.key": each.key for name, each in config.keys.items()}
    return found


def look_at_pages(place: str, config: WebConfig | WebSocketConfig) -> Iterator[Finding]:
    """Warn of pages that anybody on their way can change."""
    for origin in config.origins:
        host = origin.removeprefix("http://").partition(":")[0]
        if origin == "*":
            told = f"{place}: every web page may ask, for whoever has given it a key"
            cure = "list the pages in origins"
            yield Finding("warning", ABOUT, told, cure)
        elif origin.startswith("http://") and not is_loopback(host):
            told = f"{place}: {origin} comes without TLS: others may change that page"
            yield Finding("warning", ABOUT, told, "serve it by https")
