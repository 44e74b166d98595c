"""Asks the platforms that people write on, without saying anything there.

A kind of connector gets its probe in `connector_probes`; one that has none is called
unknown, not well.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from connectors.chat.faults import PlatformError, ShutOutError
from connectors.chat.loose_json import tables, text
from connectors.chat.matrix.account import MatrixAccount
from connectors.chat.matrix.homeserver import Call, Homeserver, path_of
from connectors.commands.doctor_checks import Finding
from connectors.commands.doctor_discord import discord_probes
from connectors.commands.doctor_ports import ABOUT, LOOK_FOR, look_at_port
from connectors.commands.doctor_probes import Probe
from connectors.commands.doctor_slack import look_at_slack
from connectors.commands.doctor_telegram import bot_probes
from connectors.commands.doctor_web import web_probe
from connectors.commands.doctor_whatsapp import number_probes
from connectors.config import HttpConfig, TerminalConfig
from connectors.discord_config import DiscordConfig
from connectors.matrix_config import MatrixConfig
from connectors.page_config import PageConfig
from connectors.slack_config import SlackConfig
from connectors.telegram_config import TelegramConfig
from connectors.web_config import WebConfig
from connectors.websocket_config import WebSocketConfig
from connectors.whatsapp_config import WhatsAppConfig

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from connectors.config import AppConfig, ConnectorConfig
    from connectors.matrix_config import MatrixAccountConfig

BY_PASSWORD = "m.login.password"  # noqa: S105  the name of a way to log in


class Ready(msgspec.Struct, frozen=True):
    """What `/readyz` of a Callboard says."""

    ready: bool
    reasons: tuple[str, ...]


def connector_probes(
    app: AppConfig, transport: httpx.AsyncBaseTransport | None = None
) -> Iterator[Probe]:
    """Give a probe for each connector, and for each account on a homeserver.

    Args:
        app: the settings.
        transport: what carries the requests to homeservers; None is the network.
    """
    for name, config in app.connectors.items():
        yield from probes_of(name, config, transport)


def probes_of(
    name: str, config: ConnectorConfig, transport: httpx.AsyncBaseTransport | None
) -> Iterator[Probe]:
    """Give the probes of one connector."""
    place = f"connectors.{name}"
    match config:
        case TerminalConfig():
            yield Probe(ABOUT, place, partial(at_terminal, place))
        case HttpConfig() | PageConfig():
            yield Probe(ABOUT, place, partial(look_at_door, place, config))
        case WebConfig() | WebSocketConfig():
            yield web_probe(name, config)
        case _:
            yield from platform_probes(name, config, transport)


def platform_probes(
    name: str, config: ConnectorConfig, transport: httpx.AsyncBaseTransport | None
) -> Iterator[Probe]:
    """Give the probes of one connector to a platform, mostly one for each account."""
    place = f"connectors.{name}"
    match config:
        case DiscordConfig():
            yield from discord_probes(name, config, transport)
        case MatrixConfig():
            yield from matrix_probes(place, config, transport)
        case SlackConfig():
            yield Probe(ABOUT, place, partial(look_at_slack, place, config))
        case TelegramConfig():
            yield from bot_probes(name, config, transport)
        case WhatsAppConfig():
            yield from number_probes(name, config, transport)
        case _:
            yield Probe(ABOUT, place, partial(unknown_kind, place))


def matrix_probes(
    place: str, config: MatrixConfig, transport: httpx.AsyncBaseTransport | None
) -> Iterator[Probe]:
    """Give a probe for each account."""
    for agent, account in config.accounts.items():
        whose = f"{place}.accounts.{agent}"
        server = Homeserver(config.homeserver, transport)
        yield Probe(ABOUT, whose, partial(ask_matrix, whose, account, server))


async def unknown_kind(place: str) -> list[Finding]:
    """Say that nobody looked."""
    return [Finding("unknown", ABOUT, f"{place}: there is no probe for its platform")]


async def at_terminal(place: str) -> list[Finding]:
    """Say what a terminal is for."""
    return [Finding("ok", ABOUT, f"{place}: used by `callboard chat`")]


async def look_at_door(place: str, config: HttpConfig | PageConfig) -> list[Finding]:
    """See whether our port is free, or held by a Callboard that runs."""
    who = partial(who_listens, place, f"{config.host}:{config.port}")
    return await look_at_port(place, config.host, config.port, who)


async def who_listens(
    place: str, door: str, client: httpx.AsyncClient
) -> list[Finding]:
    """Ask whether a Callboard has our port, and whether it is ready."""
    answer = await client.get("/readyz")
    try:
        ready = msgspec.json.decode(answer.content, type=Ready)
    except msgspec.MsgspecError:
        return []
    if ready.ready:
        return [Finding("ok", ABOUT, f"{place}: a Callboard runs at {door}")]
    text = f"{place}: the Callboard at {door} is not ready"
    return [Finding("wrong", ABOUT, text, "; ".join(ready.reasons))]


async def ask_matrix(
    place: str, account: MatrixAccountConfig, server: Homeserver
) -> list[Finding]:
    """Ask a homeserver as whom an account is let in.

    With a password it is only asked whether that is a way in: a login would end the
    one that a running Callboard has.
    """
    try:
        async with server:
            if account.access_token is None:
                return [await by_password(place, account.user, server)]
            whole = MatrixAccount("doctor", account, server, place, LOOK_FOR * 5)
            await whole.open()
    except ShutOutError as error:
        cure = f"log {account.user} in anew, and set its access_token"
        return [Finding("wrong", ABOUT, f"{place}: {error}", cure)]
    except PlatformError as error:
        cure = "check homeserver: the address that clients are given, with https://"
        return [Finding("wrong", ABOUT, f"{place}: {error}", cure)]
    return [Finding("ok", ABOUT, f"{place}: let in as {account.user}")]


async def by_password(place: str, user: str, server: Homeserver) -> Finding:
    """Ask whether passwords are a way in; raises as `Homeserver.ask`."""
    call = Call(method="GET", path=path_of("login"), timeout=LOOK_FOR * 5)
    flows = tables((await server.ask(call)).get("flows"))
    if BY_PASSWORD in [text(each.get("type")) for each in flows]:
        words = f"{place}: {user} may log in by password, which was not tried"
        return Finding("ok", ABOUT, words)
    words = f"{place}: this homeserver lets nobody in by password"
    return Finding("wrong", ABOUT, words, "set access_token instead")
