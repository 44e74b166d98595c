"""What `callboard doctor` asks a homeserver; nothing is said there."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import httpx

from connectors.admin.probes import ABOUT, Finding, Probe
from connectors.chat.matrix.account import (
    Homeserver,
    MatrixAccount,
    MatrixCall,
    path_of,
)
from connectors.chat.matrix.platform import MatrixAccountConfig, MatrixConfig
from connectors.chat.requests import PlatformError, ShutOutError, tables, text

BY_PASSWORD = "m.login.password"  # noqa: S105  the name of a way to log in

WITHIN = 10.0
"""Seconds for each request."""


def probes(
    name: str, config: MatrixConfig, network: httpx.AsyncBaseTransport | None = None
) -> Iterator[Probe]:
    """Give a probe for each account."""
    for agent, account in config.accounts.items():
        place = f"connectors.{name}.accounts.{agent}"
        server = Homeserver(config.homeserver, network)
        yield Probe(ABOUT, place, partial(ask_matrix, place, account, server))


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
            whole = MatrixAccount("doctor", account, server, place, WITHIN)
            await whole.open()
    except ShutOutError as error:
        cure = f"log {account.user} in again, and set its access_token"
        return [Finding("wrong", ABOUT, f"{place}: {error}", cure)]
    except PlatformError as error:
        cure = "check homeserver: the address that clients are given, with https://"
        return [Finding("wrong", ABOUT, f"{place}: {error}", cure)]
    return [Finding("ok", ABOUT, f"{place}: let in as {account.user}")]


async def by_password(place: str, user: str, server: Homeserver) -> Finding:
    """Ask whether passwords are a way in; raises as `Homeserver.ask`."""
    call = MatrixCall(method="GET", path=path_of("login"), timeout=WITHIN)
    flows = tables((await server.ask(call)).get("flows"))
    if BY_PASSWORD in [text(each.get("type")) for each in flows]:
        words = f"{place}: {user} may log in by password, which was not tried"
        return Finding("ok", ABOUT, words)
    words = f"{place}: this homeserver lets nobody in by password"
    return Finding("wrong", ABOUT, words, "set access_token instead")
