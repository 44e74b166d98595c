"""What all visits of one connector share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.transport import Ingress
    from connectors.chat.websocket.figures import SocketFigures
    from connectors.chat.websocket.kept import Kept
    from connectors.websocket_config import WebSocketConfig
    from runtime.clock import Clock
    from runtime.ids import IdSource


@dataclass(frozen=True)
class House:
    """What all visits of one connector share."""

    connector: str
    config: WebSocketConfig
    clock: Clock
    ids: IdSource
    kept: Kept
    figures: SocketFigures
    agents: Callable[[], tuple[str, ...]]
    """Names those that people can speak to now."""

    make_client: Callable[[], str]
    """Makes an id for a client that brings none; nobody can guess it."""

    ingress: Ingress
    note: Callable[[str, str, str], None]
    """Remembers what a client called a message: the message's id, the chat, the
    client's id."""
