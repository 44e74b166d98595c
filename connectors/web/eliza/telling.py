"""What happens in channels, told to whoever has joined them; pure shapes."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from connectors.web.eliza.shapes import Json


class News(msgspec.Struct, frozen=True, kw_only=True):
    """One event for those who have joined a channel."""

    event: str
    """As the API names it: `messageBroadcast`, …"""

    channel: str
    payload: Json
    sender: str = ""
    """The socket of whoever caused it, who gets `sender_payload` instead."""

    sender_payload: Json = {}


Tell = Callable[[News], None]
"""Tells it; never waits, never fails."""
