"""Asks Slack whether tokens hold and which scopes are missing; changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from connectors.bridge import Bridge
from connectors.chat.faults import PlatformError
from connectors.chat.loose_json import text
from connectors.chat.slack.account import SlackAccount
from connectors.chat.slack.sdk import SdkWire

if TYPE_CHECKING:
    from connectors.chat.slack.wire import Line
    from connectors.slack_config import SlackAccountConfig, SlackConfig

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


class Found(msgspec.Struct, frozen=True):
    """One thing that was found out of an app."""

    state: Literal["ok", "warning", "wrong"]
    text: str
    cure: str = ""
    """What to do about it."""


async def probe(config: SlackConfig) -> dict[str, list[Found]]:
    """Ask about each app, by the agent's name."""
    bridge = Bridge()
    await bridge.start()
    found: dict[str, list[Found]] = {}
    try:
        wire = SdkWire(bridge, config.base_url, WITHIN, config.ping_every)
        async with wire.open() as line:
            for agent, account in config.accounts.items():
                found[agent] = await ask(agent, account, line)
    finally:
        await bridge.aclose()
    return found


async def ask(agent: str, config: SlackAccountConfig, line: Line) -> list[Found]:
    """Ask about one app."""
    account = SlackAccount(agent, config, WITHIN)
    account.use(line)
    try:
        who = await account.ask("auth.test")
    except PlatformError as error:
        cure = "install the app again and copy its Bot User OAuth Token"
        return [Found("wrong", f"bot_token: {error}", cure)]
    place = text(who.get("team")) or text(who.get("team_id"))
    name = text(who.get("user")) or text(who.get("user_id"))
    found = [Found("ok", f"it is {name} in {place}")]
    found += lacking(frozenset(text(who.get("oauth_scopes")).split(",")))
    if account.uses_socket:
        found.append(await socket_mode(account))
    return found


def lacking(granted: frozenset[str]) -> list[Found]:
    """Say what an app cannot do, for want of which scope."""
    return [
        Found(
            "wrong" if scope in VITAL else "warning",
            f"without the scope {scope} {lack}",
            f"add {scope} under OAuth & Permissions and install it again",
        )
        for scope, lack in NEEDED.items()
        if scope not in granted
    ]


async def socket_mode(account: SlackAccount) -> Found:
    """Ask whether a connection could be opened; opens none."""
    try:
        await account.ask_as_app("apps.connections.open")
    except PlatformError as error:
        cure = (
            "switch Socket Mode on, and make an App-Level Token with connections:write"
        )
        return Found("wrong", f"app_token: {error}", cure)
    return Found("ok", "Socket Mode is on")
