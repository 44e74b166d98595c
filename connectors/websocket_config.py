"""The settings of the plain WebSocket.

Only shapes, bounds and defaults; `websocket_checks.py` says what must fit together.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from actors.access_config import AccessConfig
from actors.config import Seconds
from runtime.secret import Secret


class WebSocketConfig(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="websocket"
):
    """A server for programs and pages that send JSON frames."""

    host: str = "127.0.0.1"
    """Address to listen on; another than this machine's own needs `api_key`."""

    port: Annotated[int, Meta(ge=0, le=65_535)] = 5070
    """TCP port; 0 takes any free one."""

    api_key: Secret | None = None
    """What clients send as a header or in their first frame; unset asks for none."""

    origins: tuple[str, ...] = ()
    """Web pages that may connect: `https://chat.example.org`; `*`: all. Programs, which
    are no pages, always may."""

    access: AccessConfig | None = None
    """Whose messages are taken in, by their client's name; unset: everybody's who is
    let in."""

    retry_failures: bool = True
    """Whether a turn that failed is begun again after a while, by `[retries]`."""

    max_frame_bytes: Annotated[int, Meta(ge=256, le=16_777_216)] = 65_536
    """Longest frame of a client, in bytes."""

    max_connections: Annotated[int, Meta(ge=1, le=100_000)] = 1_000
    """Connections held at once; further ones are told to try again."""

    max_per_client: Annotated[int, Meta(ge=1, le=100)] = 4
    """Of these, of one client; one more ends the oldest."""

    messages_per_minute: Annotated[int, Meta(ge=0)] = 60
    """Messages taken of one connection in a minute; 0: any."""

    hello_timeout: Seconds = 10.0
    """Seconds a client has to ask for a WebSocket, and where a key is needed to show
    it."""

    ping_interval: Seconds = 20.0
    """Seconds between the pings by which it is seen whether a client is there."""

    ping_timeout: Seconds = 20.0
    """Seconds a client has to answer one."""

    idle_timeout: Annotated[float, Meta(ge=0)] = 3_600.0
    """Seconds without a word from a client nor for it until it is let go; 0: never."""

    stall_timeout: Seconds = 30.0
    """Seconds a client may leave unread what is sent to it."""

    keep_messages: Annotated[int, Meta(ge=1, le=100_000)] = 500
    """Newest messages kept for each client, should it come back."""

    keep_days: Annotated[float, Meta(gt=0, le=36_500)] = 30.0
    """Days a client that stays away is remembered."""

    max_clients: Annotated[int, Meta(ge=1, le=1_000_000)] = 10_000
    """Clients remembered; beyond, one that has all that was said to it makes room, or
    no new one is let in."""
