"""What must fit together about bots on Telegram; asked by `settings.py`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from connectors.config import HttpConfig
from connectors.model_checks import check_address, unknown
from connectors.telegram_config import TelegramConfig
from runtime.config import Complaint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from connectors.config import AppConfig
    from connectors.model_checks import Way
    from connectors.telegram_config import TelegramAccountConfig

# Source: "Authorizing your bot"; the second part is 35 letters today.
TOKEN = re.compile(r"[1-9]\d{0,15}:[A-Za-z0-9_-]{20,128}", re.ASCII)

# Source: "setWebhook", `secret_token`; the least is ours.
WEBHOOK_SECRET = re.compile(r"[A-Za-z0-9_-]{16,256}", re.ASCII)

EXAMPLE = "https://api.telegram.org"
TOKEN_HINT = "give it as @BotFather wrote it, with the number and the colon"  # noqa: S105
SECRET_HINT = "add webhook_secret: 16 letters or more of A-Z a-z 0-9 _ -"  # noqa: S105
URL_HINT = 'for example: webhook_url = "https://bots.example.org"'


def check_telegram(app: AppConfig) -> Iterator[Complaint]:
    """Check every connector of this kind."""
    bots: dict[str, Way] = {}
    for name, connector in app.connectors.items():
        if isinstance(connector, TelegramConfig):
            way: Way = ("connectors", name)
            place = (*way, "api_url")
            url = connector.api_url
            yield from check_address(place, url, has_key=True, example=EXAMPLE)
            for agent, account in connector.accounts.items():
                here = (*way, "accounts", agent)
                yield from unknown(here, "agent", agent, app.agents)
                yield from check_token(here, account, bots)
            if connector.mode == "webhook":
                yield from check_webhook(way, connector, app)


def check_token(
    way: Way, account: TelegramAccountConfig, bots: dict[str, Way]
) -> Iterator[Complaint]:
    """Check that a token is one, and no other account's."""
    token = account.token.reveal().strip()
    place = (*way, "token")
    if not TOKEN.fullmatch(token):
        yield Complaint(place, "this is no bot token", TOKEN_HINT)
        return
    bot = token.partition(":")[0]
    first = bots.setdefault(bot, way)
    if first != way:
        text = f"bot {bot} is that of {'.'.join(map(str, first))} already"
        yield Complaint(place, text, "make a bot for each agent, with @BotFather")


def check_webhook(
    way: Way, config: TelegramConfig, app: AppConfig
) -> Iterator[Complaint]:
    """Check that Telegram can reach us, and nobody else passes for it."""
    url = urlsplit(config.webhook_url.strip())
    place = (*way, "webhook_url")
    if url.scheme != "https" or not url.hostname:
        text = "Telegram brings messages to https addresses only"
        yield Complaint(place, text, URL_HINT)
    if not any(isinstance(each, HttpConfig) for each in app.connectors.values()):
        text = "nobody is there to take what Telegram brings"
        yield Complaint((*way, "mode"), text, "add an HTTP server: [connectors.http]")
    for agent, account in config.accounts.items():
        here = (*way, "accounts", agent)
        secret = account.webhook_secret
        if secret is None:
            text = "without webhook_secret anybody could pass for Telegram"
            yield Complaint(here, text, SECRET_HINT)
        elif not WEBHOOK_SECRET.fullmatch(secret.reveal().strip()):
            text = "Telegram takes no such secret, or it is too short"
            yield Complaint((*here, "webhook_secret"), text, SECRET_HINT)
