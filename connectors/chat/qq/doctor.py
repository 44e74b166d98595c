"""What `callboard doctor` asks QQ about the agents' bots; nobody is sent anything."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import httpx

from connectors.admin.probes import ABOUT, Finding, Probe
from connectors.chat.qq.api import QQAccount
from connectors.chat.qq.platform import QQConfig
from connectors.chat.requests import PlatformError, ShutOutError, table, text, whole

WITHIN = 8.0
"""Seconds for each question; the probe itself ends a little later."""

FEW_SESSIONS = 50


def probes(
    name: str, config: QQConfig, network: httpx.AsyncBaseTransport | None = None
) -> Iterator[Probe]:
    """Give a probe for each bot of a connector."""
    for agent in config.accounts:
        place = f"connectors.{name}.accounts.{agent}"
        yield Probe(ABOUT, place, partial(look_at_bot, place, agent, config, network))


async def look_at_bot(
    place: str,
    agent: str,
    config: QQConfig,
    network: httpx.AsyncBaseTransport | None,
) -> list[Finding]:
    """Say whether one bot is let in, and may still begin to listen today."""
    bot = QQAccount(agent, config.accounts[agent], config, network)
    try:
        async with bot.pool:
            user = await bot.ask("GET", "/users/@me", within=WITHIN)
            gateway = await bot.ask("GET", "/gateway/bot", within=WITHIN)
    except ShutOutError as error:
        cure = "copy AppID and AppSecret from q.qq.com > the bot > 开发 > 开发设置"
        return [Finding("wrong", ABOUT, f"{place}: {error}", cure)]
    except PlatformError as error:
        cure = "try again; is this machine's address on the bot's list (IP白名单), and"
        cure += " may it reach QQ?"
        return [Finding("wrong", ABOUT, f"{place}: {error}", cure)]
    name = text(user.get("username")) or bot.id
    limit = table(gateway.get("session_start_limit"))
    return [
        Finding("ok", ABOUT, f"{place}: the bot {name} is let in"),
        sessions(place, whole(limit.get("remaining")), is_told=bool(limit)),
    ]


def sessions(place: str, remaining: int, *, is_told: bool) -> Finding:
    """Say whether the bot may still begin to listen today."""
    if not is_told or remaining >= FEW_SESSIONS:
        return Finding("ok", ABOUT, f"{place}: it may begin to listen")
    told = f"{place}: it may begin to listen only {remaining} times today"
    return Finding("warning", ABOUT, told, "do not start it again and again")
