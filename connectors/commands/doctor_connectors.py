"""Asks the platforms that people write on, without saying anything there.

A kind of connector gets its probe in `connector_probes`; one that has none is called
unknown, not well.
"""

from __future__ import annotations

import errno
import socket
from functools import partial
from typing import TYPE_CHECKING

import httpx
import msgspec
import trio

from connectors.chat.matrix.account import MatrixAccount
from connectors.chat.matrix.errors import MatrixError, TokenError
from connectors.chat.matrix.homeserver import Call, Homeserver, path_of
from connectors.chat.matrix.wire import tables, text
from connectors.commands.doctor_checks import Finding
from connectors.commands.doctor_discord import discord_probes
from connectors.commands.doctor_probes import Probe
from connectors.commands.doctor_slack import look_at_slack
from connectors.commands.doctor_telegram import bot_probes
from connectors.config import HttpConfig, TerminalConfig
from connectors.discord_config import DiscordConfig
from connectors.matrix_config import MatrixConfig
from connectors.slack_config import SlackConfig
from connectors.telegram_config import TelegramConfig

if TYPE_CHECKING:
    from collections.abc import Iterator

    from connectors.config import AppConfig
    from connectors.matrix_config import MatrixAccountConfig

ABOUT = "connector"
BY_PASSWORD = "m.login.password"  # noqa: S105  the name of a way to log in

EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104
"""Where to ask whoever listens on all addresses."""

LOOK_FOR = 2.0
"""Seconds in which whoever holds our own port must say who it is."""

WHY_NOT_BOUND = {
    errno.EADDRINUSE: ("another program has it", "stop that, or set another port"),
    errno.EACCES: (
        "only the administrator may take it",
        "set a port above 1023, behind a proxy that has the other",
    ),
    errno.EADDRNOTAVAIL: (
        "this machine has no such address",
        'set host = "127.0.0.1", or one of this machine\'s addresses',
    ),
}


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
        place = f"connectors.{name}"
        match config:
            case TerminalConfig():
                yield Probe(ABOUT, place, partial(at_terminal, place))
            case HttpConfig():
                yield Probe(ABOUT, place, partial(look_at_door, place, config))
            case DiscordConfig():
                yield from discord_probes(name, config, transport)
            case MatrixConfig():
                yield from matrix_probes(place, config, transport)
            case SlackConfig():
                yield Probe(ABOUT, place, partial(look_at_slack, place, config))
            case TelegramConfig():
                yield from bot_probes(name, config, transport)
            case _:  # pyright: ignore[reportUnnecessaryComparison]
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


async def look_at_door(place: str, config: HttpConfig) -> list[Finding]:
    """See whether our port is free, or held by a Callboard that runs."""
    door = f"{config.host}:{config.port}"
    if config.port == 0:
        return [Finding("ok", ABOUT, f"{place}: takes any free port of {config.host}")]
    try:
        await trio.to_thread.run_sync(
            bind, config.host, config.port, abandon_on_cancel=True
        )
    except socket.gaierror:
        number: int | None = errno.EADDRNOTAVAIL
    except OSError as error:
        number = error.errno
    else:
        return [Finding("ok", ABOUT, f"{place}: {door} is free")]
    if number == errno.EADDRINUSE:
        ready = await who_listens(config)
        if ready is not None and ready.ready:
            return [Finding("ok", ABOUT, f"{place}: a Callboard runs at {door}")]
        if ready is not None:
            text = f"{place}: the Callboard at {door} is not ready"
            return [Finding("wrong", ABOUT, text, "; ".join(ready.reasons))]
    usual = ("it cannot be taken", "set another host or port")
    why, cure = WHY_NOT_BOUND.get(number or 0, usual)
    return [Finding("wrong", ABOUT, f"{place}: {door}: {why}", cure)]


def bind(host: str, port: int) -> None:
    """Take a port for a moment; nothing listens on it.

    Raises:
        OSError: it cannot be taken.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    family, kind, proto, _, target = found[0]
    with socket.socket(family, kind, proto) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(target)


async def who_listens(config: HttpConfig) -> Ready | None:
    """Ask who has our port; None: no Callboard."""
    host = EVERYWHERE.get(config.host, config.host)
    shown = f"[{host}]" if ":" in host else host
    with trio.move_on_after(LOOK_FOR):
        try:
            async with httpx.AsyncClient(trust_env=False) as client:
                answer = await client.get(f"http://{shown}:{config.port}/readyz")
            return msgspec.json.decode(answer.content, type=Ready)
        except (httpx.HTTPError, msgspec.MsgspecError, UnicodeDecodeError):
            return None
    return None


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
    except TokenError as error:
        cure = f"log {account.user} in anew, and set its access_token"
        return [Finding("wrong", ABOUT, f"{place}: {error}", cure)]
    except MatrixError as error:
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
