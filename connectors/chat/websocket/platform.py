"""What plain WebSockets are to the rest of the program: settings and checks."""

import importlib.util
from collections.abc import Iterator, Mapping
from typing import Annotated

from msgspec import Meta

from actors.config.access import AccessConfig
from actors.rules.prompt.texts import ReplyStyle
from connectors.chat.platforms import Platform
from connectors.config.app import AppConfig, ConnectorConfig
from connectors.config.checks import Way, check_open_door, check_origins
from runtime.config.loader import Complaint
from runtime.secret import Secret


class WebSocketConfig(ConnectorConfig, frozen=True, tag="websocket"):
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

    idle_timeout: Annotated[float, Meta(ge=0)] = 3_600.0
    """Seconds without a word from a client nor for it until it is let go; 0: never."""

    keep_messages: Annotated[int, Meta(ge=1, le=100_000)] = 500
    """Newest messages kept for each client, should it come back."""

    keep_days: Annotated[float, Meta(gt=0, le=36_500)] = 30.0
    """Days a client that stays away is remembered."""

    max_clients: Annotated[int, Meta(ge=1, le=1_000_000)] = 10_000
    """Clients remembered; beyond, one that has all that was said to it makes room, or
    no new one is let in."""


EXTRA = "wsproto"
"""What the extra brings along."""


def check(mine: Mapping[str, WebSocketConfig], _app: AppConfig) -> Iterator[Complaint]:
    """Check every connector of this kind."""
    for name, connector in mine.items():
        way: Way = ("connectors", name)
        if importlib.util.find_spec(EXTRA) is None:
            text = "the extra 'websocket' is not installed"
            yield Complaint(way, text, "pip install 'callboard[websocket]'")
        has_key = connector.api_key is not None
        yield from check_open_door(way, connector.host, has_key=has_key)
        yield from check_origins(way, connector.origins, has_key=has_key)


PLATFORM = Platform(
    package="connectors.chat.websocket",
    config=WebSocketConfig,
    retired={
        "hello_timeout": "a client has 10 seconds to ask for a WebSocket",
        "ping_interval": "clients are pinged every 20 seconds",
        "ping_timeout": "a client has 20 seconds to answer a ping",
        "stall_timeout": "a client that reads nothing for 30 seconds is let go",
    },
    check=check,
    shares_chats=True,
    extra="websocket",
    reply_style=ReplyStyle(
        "A page or a program shows what you write, and may show Markdown as it is: use"
        " little of it, and no tables."
    ),
    names_agent=False,
)
