"""Which transports there are, and how each is made from its settings.

A new transport is registered here and nowhere else.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from connectors.config import AppConfig, HttpConfig, TerminalConfig
from connectors.discord_config import DiscordConfig
from connectors.gates import Gates
from connectors.matrix_config import MatrixConfig
from connectors.page_config import PageConfig
from connectors.slack_config import SlackConfig
from connectors.telegram_config import TelegramConfig
from connectors.web.openai_api import HttpTransport
from connectors.web.server import HttpSettings
from connectors.web_config import WebConfig
from connectors.websocket_config import WebSocketConfig
from connectors.whatsapp_config import WhatsAppConfig
from runtime.errors import SettingsError

if TYPE_CHECKING:
    from actors.transport import Transport
    from connectors.blobs import BlobFolder
    from connectors.bridge import Bridge
    from connectors.web.backstage import Backstage
    from connectors.web.operations import Operations
    from connectors.web.page.views import Inside
    from connectors.web.webhooks import Doors
    from runtime.clock import Clock
    from runtime.ids import IdSource
    from runtime.metrics import Metrics
    from runtime.store import Store

MATRIX = "connectors.chat.matrix.making"
"""Imported only for settings with such a connector: its libraries take their time."""

PlatformConfig = (
    DiscordConfig
    | PageConfig
    | SlackConfig
    | TelegramConfig
    | WebConfig
    | WebSocketConfig
    | WhatsAppConfig
)

PLATFORMS: dict[type[PlatformConfig], tuple[str, str]] = {
    DiscordConfig: ("connectors.chat.discord.making", "discord"),
    PageConfig: ("connectors.web.page.making", "web"),
    SlackConfig: ("connectors.chat.slack.making", "slack"),
    TelegramConfig: ("connectors.chat.telegram.making", ""),
    WebConfig: ("connectors.web.eliza.making", "web"),
    WebSocketConfig: ("connectors.chat.websocket.making", "websocket"),
    WhatsAppConfig: ("connectors.chat.whatsapp.making", ""),
}
"""Likewise: the module, and the extra that it needs."""

MakeTransport = Callable[["Parts"], "Transport"]
MakeMatrix = Callable[[str, MatrixConfig, tuple[str, ...], "Parts"], "Transport"]
MakePlatform = Callable[[str, PlatformConfig, "Parts"], "Transport"]


@dataclass(frozen=True)
class Parts:
    """What transports are made from."""

    clock: Clock
    ids: IdSource
    bridge: Bridge
    operations: Operations
    agents: Callable[[], tuple[str, ...]]
    """Names those that people can speak to now."""

    store: Store
    metrics: Metrics
    backstage: Backstage
    blobs: BlobFolder | None = None
    """Where files lie that agents send; None: they send none."""

    doors: Doors | None = None
    """The webhooks that come in; None: there are none."""

    gates: Gates = field(default_factory=Gates)
    """Who takes what platforms bring to the HTTP server."""

    inside: Callable[[], Inside] | None = None
    """What the views of a page look at, as soon as all of it is there."""

    kept: dict[str, object] = field(default_factory=dict[str, object])
    """What transports of one kind share, by kind: figures, for one."""


def http_transport(name: str, config: HttpConfig) -> MakeTransport:
    """Say how the HTTP server of an account is made."""
    settings = HttpSettings(
        name=name,
        host=config.host,
        port=config.port,
        api_key=config.api_key.reveal() if config.api_key is not None else "",
        max_body_bytes=config.max_body_bytes,
        body_timeout=config.body_timeout,
        max_connections=config.max_connections,
    )

    def make(parts: Parts) -> Transport:
        transport = HttpTransport(
            settings,
            parts.bridge,
            agents=parts.agents,
            operations=parts.operations,
            clock=parts.clock,
            doors=parts.doors,
        )
        transport.open_gates(parts.gates)
        transport.keep_files(parts.blobs)
        return transport

    return make


def matrix_transport(
    name: str, config: MatrixConfig, owners: tuple[str, ...]
) -> MakeTransport:
    """Say how the accounts on a Matrix homeserver are made."""

    def make(parts: Parts) -> Transport:
        made = cast("MakeMatrix", importlib.import_module(MATRIX).make_transport)
        return made(name, config, owners, parts)

    return make


def platform_transport(name: str, config: PlatformConfig) -> MakeTransport:
    """Say how the accounts on a platform are made."""
    place, extra = PLATFORMS[type(config)]

    def make(parts: Parts) -> Transport:
        try:
            module = importlib.import_module(place)
        except ModuleNotFoundError as error:
            if not extra:
                raise
            raise without_extra(name, extra, error) from error
        return cast("MakePlatform", module.make_transport)(name, config, parts)

    return make


def without_extra(name: str, extra: str, error: ModuleNotFoundError) -> SettingsError:
    """Say which optional packages a connector needs."""
    way = ("connectors", name)
    text = f"it needs the extra {extra!r}, as there is no module {error.name!r}"
    return SettingsError(f"{'.'.join(way)}: {text}: pip install 'callboard[{extra}]'")


def serving(config: AppConfig) -> dict[str, MakeTransport]:
    """Choose the accounts that `callboard serve` runs: all but terminals."""
    chosen: dict[str, MakeTransport] = {}
    for name, connector in config.connectors.items():
        match connector:
            case HttpConfig():
                chosen[name] = http_transport(name, connector)
            case MatrixConfig():
                chosen[name] = matrix_transport(name, connector, config.owners)
            case TerminalConfig():
                pass
            case _:
                chosen[name] = platform_transport(name, connector)
    return chosen
