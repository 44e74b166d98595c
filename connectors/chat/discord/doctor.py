"""What `callboard doctor` asks Discord about the agents' bots; changes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import TypeVar

import httpx
import msgspec
import trio

from connectors.admin.probes import ABOUT, Finding, Probe
from connectors.chat.discord.platform import DiscordAccountConfig, DiscordConfig

T = TypeVar("T")

PORTAL = "https://discord.com/developers/applications"

# Source: developers' reference, "Application Flags": the intent of a bot in many
# servers, and of one in few.
MESSAGE_CONTENT = 1 << 18 | 1 << 19

# Source: developers' reference, "Permissions": view channels, send messages, also in
# threads, attach files, read message history, add reactions.
RIGHTS = 1 << 10 | 1 << 11 | 1 << 38 | 1 << 15 | 1 << 16 | 1 << 6

ANSWERED_WITHIN = 10.0
"""Seconds."""

FEW_SESSIONS = 50
OK, UNAUTHORIZED = 200, 401


class Bot(msgspec.Struct, frozen=True):
    """What Discord says of a bot."""

    id: str
    username: str = ""


class Application(msgspec.Struct, frozen=True):
    """What Discord says of a bot's application."""

    id: str
    flags: int = 0


class Limit(msgspec.Struct, frozen=True):
    """How often a bot may begin a session today."""

    remaining: int = FEW_SESSIONS


class Gateway(msgspec.Struct, frozen=True):
    """Where and how often a bot may listen."""

    session_start_limit: Limit = Limit()


class NotAnsweredError(Exception):
    """Discord did not say what it was asked.

    Args:
        status: the HTTP status; 0: there was no answer.
    """

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


def probes(
    name: str, config: DiscordConfig, network: httpx.AsyncBaseTransport | None = None
) -> Iterator[Probe]:
    """Give a probe for each bot of a connector."""
    for agent, account in config.accounts.items():
        place = f"connectors.{name}.accounts.{agent}"
        yield Probe(ABOUT, place, partial(ask_discord, place, config, account, network))


async def ask_discord(
    place: str,
    config: DiscordConfig,
    account: DiscordAccountConfig,
    network: httpx.AsyncBaseTransport | None,
) -> list[Finding]:
    """Ask Discord about one bot."""
    async with httpx.AsyncClient(
        transport=network, trust_env=False, timeout=ANSWERED_WITHIN
    ) as client:
        return [
            msgspec.structs.replace(each, text=f"{place}: {each.text}")
            async for each in Asking(client, config, account).findings()
        ]


class Asking:
    """What is asked about one bot."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        config: DiscordConfig,
        account: DiscordAccountConfig,
    ) -> None:
        self._client = client
        self._config = config
        token = account.token
        self._token = token.reveal().strip() if token is not None else ""

    async def findings(self) -> AsyncIterator[Finding]:
        """Look at one thing after the other."""
        try:
            bot = await self._ask("/users/@me", Bot)
            yield Finding("ok", ABOUT, f"the token is that of {bot.username}")
            application = await self._ask("/applications/@me", Application)
            yield self._intent(application)
            yield await self._servers(application)
            gateway = await self._ask("/gateway/bot", Gateway)
            yield sessions(gateway.session_start_limit)
        except NotAnsweredError as error:
            if error.status == UNAUTHORIZED:
                cure = f"make a new one at {PORTAL} (Bot, Reset Token)"
                yield Finding("wrong", ABOUT, "the token is not taken", cure)
            else:
                cure = "look whether this machine reaches it"
                yield Finding("warning", ABOUT, str(error), cure)

    def _intent(self, application: Application) -> Finding:
        if not self._config.message_content:
            text = "reads only what is meant for it (message_content = false)"
            return Finding("ok", ABOUT, text)
        if application.flags & MESSAGE_CONTENT:
            return Finding("ok", ABOUT, "may read messages (Message Content Intent)")
        cure = (
            f"switch it on at {PORTAL}/{application.id}/bot, or set"
            " message_content = false"
        )
        text = "Message Content Intent is switched off, so the bot is sent away"
        return Finding("wrong", ABOUT, text, cure)

    async def _servers(self, application: Application) -> Finding:
        servers = await self._ask("/users/@me/guilds", list[Bot])
        if servers:
            number = len(servers)
            word = "server" if number == 1 else "servers"
            return Finding("ok", ABOUT, f"is in {number} {word}")
        address = (
            f"https://discord.com/oauth2/authorize?client_id={application.id}"
            f"&scope=bot+applications.commands&permissions={RIGHTS}"
        )
        text = "is in no server: only direct messages can reach it"
        return Finding("warning", ABOUT, text, f"open {address}")

    async def _ask(self, path: str, kind: type[T]) -> T:
        """Ask for one thing."""
        url = self._config.api.rstrip("/") + path
        headers = {"Authorization": f"Bot {self._token}"}
        try:
            with trio.fail_after(ANSWERED_WITHIN):
                answer = await self._client.get(url, headers=headers)
        except (httpx.HTTPError, httpx.InvalidURL, trio.TooSlowError) as error:
            text = f"{self._config.api} is not reached ({type(error).__name__})"
            raise NotAnsweredError(text) from error
        if answer.status_code != OK:
            text = f"{self._config.api}{path} says HTTP {answer.status_code}"
            raise NotAnsweredError(text, answer.status_code)
        try:
            return msgspec.json.decode(answer.content, type=kind)
        except msgspec.MsgspecError as error:
            text = f"{self._config.api}{path} does not answer as Discord does"
            raise NotAnsweredError(text) from error


def sessions(limit: Limit) -> Finding:
    """Say whether the bot may still begin to listen today."""
    if limit.remaining >= FEW_SESSIONS:
        text = f"may begin to listen {limit.remaining:,} times today"
        return Finding("ok", ABOUT, text)
    text = f"may begin to listen only {limit.remaining} times today"
    cure = "do not start it again and again: beyond that Discord resets the token"
    return Finding("warning", ABOUT, text, cure)
