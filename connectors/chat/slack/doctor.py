"""Asks Slack whether tokens hold and which scopes are missing; changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import httpx
import msgspec

from connectors.admin.probes import ABOUT, Finding, Probe
from connectors.asyncio_bridge.bridge import Bridge
from connectors.chat.requests import PlatformError, text
from connectors.chat.slack.account import SlackAccount, SlackLine
from connectors.chat.slack.platform import SlackAccountConfig, SlackConfig
from connectors.chat.slack.sdk import SdkWire

WITHIN = 10.0
"""Seconds that one app is asked for."""

NEEDED: dict[str, str] = {
    "chat:write": "it cannot say anything",
    "channels:history": "it does not hear public channels",
    "im:history": "it does not hear direct chats",
    "users:read": "people are shown by their ids",
    "channels:read": "what was missed in channels is not fetched",
    "groups:history": "it does not hear private channels",
    "groups:read": "what was missed in private channels is not fetched",
    "im:read": "what was missed in direct chats is not fetched",
    "mpim:history": "it does not hear chats of several",
    "mpim:read": "what was missed in chats of several is not fetched",
    "reactions:write": "it puts no signs at messages",
    "files:read": "it reads no files",
    "files:write": "it sends no files",
}
"""What is missing without each scope."""

VITAL = frozenset({"chat:write"})


def probes(
    name: str, config: SlackConfig, _network: httpx.AsyncBaseTransport | None = None
) -> Iterator[Probe]:
    """Give the probe of one workspace, which asks about each app in turn."""
    place = f"connectors.{name}"
    yield Probe(ABOUT, place, partial(look, place, config))


async def look(place: str, config: SlackConfig) -> list[Finding]:
    """Say what was found of each app."""
    return [
        msgspec.structs.replace(each, text=f"{place}.accounts.{agent}: {each.text}")
        for agent, found in (await probe(config)).items()
        for each in found
    ]


async def probe(config: SlackConfig) -> dict[str, list[Finding]]:
    """Ask about each app, by the agent's name."""
    bridge = Bridge()
    await bridge.start()
    found: dict[str, list[Finding]] = {}
    try:
        wire = SdkWire(bridge, config.base_url, WITHIN)
        async with wire.open() as line:
            for agent, account in config.accounts.items():
                found[agent] = await ask(agent, account, line)
    finally:
        await bridge.aclose()
    return found


async def ask(agent: str, config: SlackAccountConfig, line: SlackLine) -> list[Finding]:
    """Ask about one app."""
    account = SlackAccount(agent, config, WITHIN)
    account.use(line)
    try:
        who = await account.ask("auth.test")
    except PlatformError as error:
        cure = "install the app again and copy its Bot User OAuth Token"
        return [Finding("wrong", ABOUT, f"bot_token: {error}", cure)]
    place = text(who.get("team")) or text(who.get("team_id"))
    name = text(who.get("user")) or text(who.get("user_id"))
    found = [Finding("ok", ABOUT, f"it is {name} in {place}")]
    found += lacking(text(who.get("oauth_scopes")))
    if account.uses_socket:
        found.append(await socket_mode(account))
    return found


def lacking(scopes: str) -> list[Finding]:
    """Say what an app cannot do, for want of which scope.

    Args:
        scopes: that it has, with commas; empty: Slack, or a proxy before it, does not
            tell.
    """
    if not scopes:
        words = "its scopes are not known: the answer has no header X-OAuth-Scopes"
        return [
            Finding("unknown", ABOUT, words, f"see that it has {', '.join(NEEDED)}")
        ]
    granted = frozenset(each.strip() for each in scopes.split(","))
    return [
        Finding(
            "wrong" if scope in VITAL else "warning",
            ABOUT,
            f"without the scope {scope} {lack}",
            f"add {scope} under OAuth & Permissions and install it again",
        )
        for scope, lack in NEEDED.items()
        if scope not in granted
    ]


async def socket_mode(account: SlackAccount) -> Finding:
    """Ask whether a connection could be opened; opens none."""
    try:
        await account.ask_as_app("apps.connections.open")
    except PlatformError as error:
        cure = (
            "switch Socket Mode on, and make an App-Level Token with connections:write"
        )
        return Finding("wrong", ABOUT, f"app_token: {error}", cure)
    return Finding("ok", ABOUT, "Socket Mode is on")
