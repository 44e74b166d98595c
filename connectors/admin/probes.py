"""Asks everything that settings speak of at the same time, each with a deadline.

And what servers of ours have in common to look at: port, keys, web pages.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Literal

import httpx
import msgspec
import trio

from connectors.admin.display import make_safe
from connectors.config.checks import is_loopback
from runtime.errors import SettingsError
from runtime.secret import Secret

State = Literal["ok", "unknown", "warning", "wrong"]
"""`unknown`: nobody could look, or has looked."""

ABOUT = "connector"
"""First word of the lines about connectors."""

TIMEOUT = 10.0
"""Seconds for each; a provider that takes longer for a list of models is not well."""

MOST_AT_ONCE = 16


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at."""

    state: State
    about: str
    """`settings`, `database`, ...: the first word of its line."""

    text: str
    cure: str = ""
    """What to do about it."""


def told(finding: Finding) -> str:
    """Write a finding for people."""
    line = f"{finding.state:<8} {finding.about:<10} {finding.text}"
    return f"{line}\n{'':<20}to do: {finding.cure}" if finding.cure else line


class Probe(msgspec.Struct, frozen=True):
    """One thing to ask."""

    about: str
    """First word of its line: `model`, `connector`, ..."""

    name: str
    """As settings call it: `accounts.main`."""

    ask: Callable[[], Awaitable[list[Finding]]]
    """Raises nothing that is expected to happen."""


def not_asked(about: str, name: str, error: SettingsError) -> Finding:
    """Say that a secret is not there without which nobody can be asked."""
    return Finding("warning", about, f"{name}: not asked: {error.text}", error.hint)


async def ask_all(probes: Iterable[Probe], seconds: float = TIMEOUT) -> list[Finding]:
    """Ask all of them; give what was found in their order.

    Args:
        seconds: that each may take.
    """
    asked = list(probes)
    found: list[list[Finding]] = [[] for _ in asked]
    limit = trio.CapacityLimiter(MOST_AT_ONCE)

    async def ask(number: int, probe: Probe) -> None:
        async with limit:
            with trio.move_on_after(seconds) as scope:
                try:
                    found[number] = await probe.ask()
                except SettingsError as error:
                    found[number] = [not_asked(probe.about, probe.name, error)]
        if scope.cancelled_caught:
            text = f"{probe.name}: no answer within {seconds:g} s"
            cure = "check the network and the address, or give it longer: --timeout"
            found[number] = [Finding("wrong", probe.about, text, cure)]

    async with trio.open_nursery() as nursery:
        for number, probe in enumerate(asked):
            nursery.start_soon(ask, number, probe)
    # What others said must not move a terminal's cursor.
    return [
        msgspec.structs.replace(
            each, text=make_safe(each.text), cure=make_safe(each.cure)
        )
        for findings in found
        for each in findings
    ]


WhoHas = Callable[[httpx.AsyncClient], Awaitable[list[Finding]]]

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

# Chosen: 16 letters of openssl's base64 are 96 bits, which nobody tries.
LEAST_KEY, LEAST_LETTERS = 16, 6
MAKE_KEY = "make one by `openssl rand -base64 32`"


async def look_at_port(
    place: str, host: str, port: int, who_has: WhoHas
) -> list[Finding]:
    """See whether a port is free, or held by a Callboard that runs.

    Args:
        place: of the connector in the settings.
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


class Ready(msgspec.Struct, frozen=True):
    """What `/readyz` of a Callboard says."""

    ready: bool
    reasons: tuple[str, ...]
    warnings: tuple[str, ...] = ()


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


def look_at_keys(
    place: str, host: str, keys: Mapping[str, Secret]
) -> Iterator[Finding]:
    """Warn of keys that can be guessed, and say where none is needed."""
    for name, key in keys.items():
        if not key.is_set:
            continue
        text = key.reveal()
        if len(text) < LEAST_KEY or len(set(text)) < LEAST_LETTERS:
            told = f"{place}.{name}: this key of {len(text)} characters can be guessed"
            yield Finding("warning", ABOUT, told, MAKE_KEY)
    if not keys:
        told = f"{place}: every program on this machine may use the agents"
        yield Finding("ok", ABOUT, told)
    elif not is_loopback(host):
        told = f"{place}: keys cross the network as they are, unless a proxy has TLS"
        cure = 'put a proxy with a certificate before it, and set host = "127.0.0.1"'
        yield Finding("warning", ABOUT, told, cure)


def look_at_pages(place: str, origins: Iterable[str]) -> Iterator[Finding]:
    """Warn of web pages that may ask and that anybody on their way can change."""
    for origin in origins:
        host = origin.removeprefix("http://").partition(":")[0]
        if origin == "*":
            told = f"{place}: every web page may ask, for whoever has given it a key"
            cure = "list the pages in origins"
            yield Finding("warning", ABOUT, told, cure)
        elif origin.startswith("http://") and not is_loopback(host):
            told = f"{place}: {origin} comes without TLS: others may change that page"
            yield Finding("warning", ABOUT, told, "serve it by https")
