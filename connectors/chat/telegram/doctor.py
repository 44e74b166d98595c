"""Asks Telegram about each bot of the settings; says and changes nothing there."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import httpx
import trio

from connectors.admin.probes import ABOUT, Finding, Probe
from connectors.chat.requests import PlatformError, ShutOutError
from connectors.chat.telegram.account import TelegramAccount
from connectors.chat.telegram.events import User, WebhookState
from connectors.chat.telegram.listener import address_of, known_webhook
from connectors.chat.telegram.platform import TelegramConfig

WITHIN = 10.0
"""Seconds for each bot."""


def probes(
    name: str, config: TelegramConfig, network: httpx.AsyncBaseTransport | None = None
) -> Iterator[Probe]:
    """Give a probe for each bot of a connector."""
    for agent, account in config.accounts.items():
        place = f"connectors.{name}.accounts.{agent}"
        bot = TelegramAccount(agent, account, config, network)
        yield Probe(ABOUT, place, partial(look_at_bot, name, bot, config))


async def look_at_bot(
    name: str, bot: TelegramAccount, config: TelegramConfig
) -> list[Finding]:
    """Ask about one bot."""
    place = f"connectors.{name}.accounts.{bot.agent}"
    with trio.move_on_after(WITHIN):
        try:
            async with bot.api:
                await bot.open()
                webhook = await known_webhook(bot)
        except ShutOutError as error:
            cure = "ask @BotFather for a new token (/token), and set it"
            return [Finding("wrong", ABOUT, f"{place}: {error}", cure)]
        except PlatformError as error:
            cure = "check the network, and api_url if you set it"
            return [Finding("wrong", ABOUT, f"{place}: {error}", cure)]
        url = address_of(config, name, bot.agent) if config.mode == "webhook" else ""
        return [
            Finding("ok", ABOUT, f"{place}: let in as @{bot.user.username}"),
            *of_groups(place, bot.user),
            *of_webhook(place, webhook, url),
        ]
    text = f"{place}: no answer within {WITHIN:g} s"
    return [Finding("wrong", ABOUT, text, "check the network, and api_url")]


def of_groups(place: str, user: User) -> Iterator[Finding]:
    """Say what a bot hears in groups."""
    if not user.can_join_groups:
        text = f"{place}: cannot be added to groups"
        yield Finding("ok", ABOUT, text, "/setjoingroups at @BotFather, if you want it")
    elif user.can_read_all_group_messages:
        yield Finding("ok", ABOUT, f"{place}: hears all that is said in groups")
    else:
        text = f"{place}: hears in groups commands, mentions and replies to it only"
        cure = (
            "if it is to hear all: /setprivacy at @BotFather, Disable, and add it to"
            " the group again"
        )
        yield Finding("ok", ABOUT, text, cure)


def of_webhook(place: str, webhook: WebhookState, url: str) -> Iterator[Finding]:
    """Say whether a bot's webhook is as it is to be.

    Args:
        place: the bot, as settings call it.
        url: where it is to be; empty: there is to be none.
    """
    if webhook.url and not url:
        text = f"{place}: another program has set a webhook"
        cure = "end that program; the webhook is taken away at the next start"
        yield Finding("warning", ABOUT, text, cure)
    elif url and webhook.url != url:
        text = f"{place}: the webhook is not set to {url}"
        yield Finding("ok", ABOUT, text, "it is set when `callboard serve` starts")
    elif url and webhook.pending_update_count and webhook.last_error_message:
        text = f"{place}: Telegram cannot reach {url}: {webhook.last_error_message}"
        cure = "see that it leads to the HTTP server, from outside and over https"
        yield Finding("wrong", ABOUT, text, cure)
    elif url:
        yield Finding("ok", ABOUT, f"{place}: Telegram brings messages to {url}")
