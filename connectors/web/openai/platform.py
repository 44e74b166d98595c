"""What the HTTP server is to the rest of the program: checks of its settings."""

from collections.abc import Iterator, Mapping

from actors.rules.prompt.texts import ReplyStyle
from connectors.chat.platforms import Platform
from connectors.config.app import AppConfig, HttpConfig
from connectors.config.checks import check_open_door, check_proxies
from runtime.config.loader import Complaint


def check(mine: Mapping[str, HttpConfig], _app: AppConfig) -> Iterator[Complaint]:
    """Refuse a server that anybody can reach and use, and a proxy with no address."""
    for name, config in mine.items():
        has_key = config.api_key is not None
        way = ("connectors", name)
        yield from check_open_door(way, config.host, has_key=has_key)
        yield from check_proxies(way, config.trusted_proxies)


PLATFORM = Platform(
    package="connectors.web.openai",
    config=HttpConfig,
    check=check,
    shares_chats=True,
    has_doctor=False,
    reply_style=ReplyStyle(
        "A program asks, for whoever uses it. Markdown is usually shown.",
        is_reachable_later=False,
    ),
)
