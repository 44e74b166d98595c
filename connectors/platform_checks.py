"""What must fit together about people's platforms; asked by `settings.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from connectors.config import TerminalConfig
from connectors.discord_checks import check_discord
from connectors.discord_config import DiscordConfig
from connectors.matrix_checks import check_matrix
from connectors.matrix_config import MatrixConfig
from connectors.slack_checks import check_slack
from connectors.slack_config import SlackConfig
from connectors.telegram_checks import check_telegram
from connectors.telegram_config import TelegramConfig
from connectors.whatsapp_checks import check_whatsapp
from connectors.whatsapp_config import WhatsAppConfig

if TYPE_CHECKING:
    from collections.abc import Iterator

    from connectors.config import AppConfig, ConnectorConfig
    from runtime.config import Complaint

PLATFORMS = (DiscordConfig, MatrixConfig, SlackConfig, TelegramConfig, WhatsAppConfig)
"""Settings of platforms on which each account is an agent's."""


def on_unknown_of(connector: ConnectorConfig) -> Literal["resend", "hold"]:
    """Say what is done about an answer that may have been said already."""
    match connector:
        case TerminalConfig() | TelegramConfig() | WhatsAppConfig():
            return connector.on_unknown
        case _:
            return "resend"


def check_platforms(app: AppConfig) -> Iterator[Complaint]:
    """Check every connector of these kinds."""
    yield from check_discord(app)
    yield from check_matrix(app)
    yield from check_slack(app)
    yield from check_telegram(app)
    yield from check_whatsapp(app)
