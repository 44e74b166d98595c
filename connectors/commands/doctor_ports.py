"""Whether a port of the settings is free, or held by a Callboard that runs."""

from __future__ import annotations

import errno
import socket
from typing import TYPE_CHECKING

import httpx
import trio

from connectors.commands.doctor_checks import Finding

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    WhoHas = Callable[[httpx.AsyncClient], Awaitable[list[Finding]]]

ABOUT = "connector"

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


async def look_at_port(
    place: str, host: str, port: int, who_has: WhoHas
) -> list[Finding]:
    """See whether a port is free, or held by a Callboard that runs.

    Args:
        place: of the connector in the settings.
        host: where it listens.
        port: likewise; 0 is any.
        who_has: asks who holds it; nothing, if that is no Callboard.
    """
    door = f"{host}:{port}"
    if port == 0:
        return [Finding("ok", ABOUT, f"{place}: takes any free port of {host}")]
    try:
        await trio.to_thread.run_sync(bind, host, port, abandon_on_cancel=True)
    except socket.gaierror:
        number: int | None = errno.EADDRNOTAVAIL
    except OSError as error:
        number = error.errno
    else:
        return [Finding("ok", ABOUT, f"{place}: {door} is free")]
    if number == errno.EADDRINUSE:
        held = await asked(host, port, who_has)
        if held:
            return held
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


async def asked(host: str, port: int, who_has: WhoHas) -> list[Finding]:
    """Ask who has our port; nothing: no Callboard."""
    where = EVERYWHERE.get(host, host)
    shown = f"[{where}]" if ":" in where else where
    with trio.move_on_after(LOOK_FOR):
        try:
            base = f"http://{shown}:{port}"
            async with httpx.AsyncClient(base_url=base, trust_env=False) as client:
                return await who_has(client)
        except (httpx.HTTPError, UnicodeDecodeError):
            return []
    return []
