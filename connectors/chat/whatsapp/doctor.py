"""What `callboard doctor` asks Meta: each agent's number, and where Meta calls."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from urllib.parse import urlsplit

import httpx

from connectors.admin.probes import ABOUT, Finding, Probe
from connectors.chat.requests import (
    Json,
    PlatformError,
    RefusedError,
    ShutOutError,
    table,
    text,
)
from connectors.chat.whatsapp.account import GraphApi, WhatsAppAccount
from connectors.chat.whatsapp.platform import WhatsAppConfig

WITHIN = 8.0
"""Seconds for each number; the probe itself ends a little later."""

# Source: Meta, "Webhook overrides": a number's address counts before its account's, and
# that before the app's.
BY_RANK = ("phone_number", "whatsapp_business_account", "application")


def probes(
    name: str, config: WhatsAppConfig, network: httpx.AsyncBaseTransport | None = None
) -> Iterator[Probe]:
    """Give a probe for each number of a connector; nothing is sent to anybody."""
    for agent in config.accounts:
        place = f"connectors.{name}.accounts.{agent}"
        ask = partial(look_at_number, name, agent, config, network)
        yield Probe(ABOUT, place, ask)


async def look_at_number(
    name: str,
    agent: str,
    config: WhatsAppConfig,
    network: httpx.AsyncBaseTransport | None,
) -> list[Finding]:
    """Say whether one number can be used, and whether Meta calls us for it."""
    place = f"connectors.{name}.accounts.{agent}"
    graph = GraphApi(config.graph_url, network)
    number = WhatsAppAccount(agent, config.accounts[agent], graph, WITHIN)
    try:
        async with graph:
            shown, hooks = await number.show_all()
    except ShutOutError as error:
        cure = "business.facebook.com > Settings > Users > System users: a new token"
        return [Finding("wrong", ABOUT, f"{place}: {error}", cure)]
    except RefusedError as error:
        cure = "compare phone_number_id with WhatsApp > API Setup, and give the"
        cure += " token's system user the WhatsApp account"
        return [Finding("wrong", ABOUT, f"{place}: {error}", cure)]
    except PlatformError as error:
        cure = "try again; is graph_url right, and may this machine reach it?"
        return [Finding("wrong", ABOUT, f"{place}: {error}", cure)]
    return [
        Finding("ok", ABOUT, f"{place}: the number {shown} can be used"),
        of_webhook(place, hooks, f"/platforms/{name}"),
    ]


def of_webhook(place: str, hooks: Json, here: str) -> Finding:
    """Say whether Meta calls the right address.

    Args:
        place: the number, as settings call it.
        hooks: the addresses that Meta has, by what they are for.
        here: the path at which it is taken.
    """
    hooks = table(hooks)
    url = next((text(hooks.get(rank)) for rank in BY_RANK if hooks.get(rank)), "")
    cure = f"WhatsApp > Configuration > Callback URL: https://<your address>{here},"
    cure += ' with your verify token; subscribe to "messages"'
    if not url:
        words = f"{place}: Meta does not say that it calls anybody for it"
        return Finding("warning", ABOUT, words, cure)
    parts = urlsplit(url)
    shown = f"{parts.scheme}://{parts.netloc}{parts.path}"
    if parts.path.rstrip("/").endswith(here):
        return Finding("ok", ABOUT, f"{place}: Meta calls {shown}")
    return Finding("wrong", ABOUT, f"{place}: Meta calls {shown}, not us", cure)
