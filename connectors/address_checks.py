"""Checks that no two connectors listen on one port; asked by `settings.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.config import HttpConfig
from connectors.page_config import PageConfig
from connectors.web_config import WebConfig
from connectors.websocket_config import WebSocketConfig
from runtime.config import Complaint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from connectors.config import AppConfig

SERVERS = (HttpConfig, PageConfig, WebConfig, WebSocketConfig)

EVERYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104  compared with, not listened on


def check_addresses(app: AppConfig) -> Iterator[Complaint]:
    """Complain of each connector whose port another one has already."""
    taken: dict[int, list[tuple[str, str]]] = {}
    for name, connector in app.connectors.items():
        if not (isinstance(connector, SERVERS) and connector.port):
            continue
        there = taken.setdefault(connector.port, [])
        for other, host in there:
            if host == connector.host or EVERYWHERE & {host, connector.host}:
                way = ("connectors", name, "port")
                text = f"connectors.{other} listens on port {connector.port}, too"
                yield Complaint(way, text, "give one of the two another port")
                break
        there.append((name, connector.host))
