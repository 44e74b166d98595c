"""What the checks of several subjects share: names, addresses, time zones."""

from __future__ import annotations

import ipaddress
import zoneinfo
from collections.abc import Iterable, Iterator
from datetime import UTC, tzinfo
from urllib.parse import urlsplit

from runtime.config.loader import Complaint, close_to

Way = tuple[str | int, ...]
"""Where a setting stands: keys of tables and, from 0, places in lists."""


def unknown(
    way: Way, noun: str, name: str, known: Iterable[str]
) -> Iterator[Complaint]:
    """Complain of a name that nothing has."""
    names = list(known)
    if name not in names:
        yield Complaint(way, f"there is no {noun} {name!r}", close_to(name, names))


def slash_hint(written: str, connectors: Iterable[str], otherwise: str) -> str:
    """Say how an account or chat is written, for one that has no slash.

    Args:
        written: what stands there; `telegram:1` is meant as `telegram/1`.
        connectors: those that there are.
        otherwise: the hint for anything else.
    """
    connector, _, rest = written.partition(":")
    is_meant = bool(rest) and connector in connectors
    return f'write "{connector}/{rest}"' if is_meant else otherwise


def check_address(
    way: Way, url: str, *, has_key: bool, example: str = "https://api.openai.com/v1"
) -> Iterator[Complaint]:
    """Check an address that requests, and perhaps a key, are sent to."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
        has_login = bool(parts.username or parts.password)
    except ValueError:
        parts, host, has_login = urlsplit(""), None, False
    if parts.scheme not in {"http", "https"} or not host:
        hint = f'for example: {way[-1]} = "{example}"'
        yield Complaint(way, "is no http or https address", hint)
    elif has_login:
        text = "holds a name or password, in the open"
        yield Complaint(way, text, 'use api_key = { env = "NAME" }')
    elif parts.scheme == "http" and has_key and not is_loopback(host):
        text = f"the key travels to {host} unencrypted"
        yield Complaint(way, text, "use https", is_warning=True)


def is_loopback(host: str) -> bool:
    """Tell whether an address can be reached from this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_open_door(way: Way, host: str, *, has_key: bool) -> Iterator[Complaint]:
    """Refuse a server that others can reach and anybody may use.

    Args:
        way: the connector.
        host: the address on which it listens.
        has_key: whether clients need a key.
    """
    if not has_key and not is_loopback(host):
        text = f"without api_key, everybody who reaches {host!r} may use the agents"
        hint = 'add api_key = { env = "CALLBOARD_API_KEY" }, or host = "127.0.0.1"'
        yield Complaint((*way, "host"), text, hint)


def check_proxies(way: Way, proxies: Iterable[str]) -> Iterator[Complaint]:
    """Refuse proxies that are no addresses: a trusted one may claim any sender."""
    for index, each in enumerate(proxies):
        try:
            ipaddress.ip_network(each)
        except ValueError:
            text = f"{each!r} is neither an address nor a network"
            hint = 'for example "127.0.0.1" or "10.0.0.0/8"'
            yield Complaint((*way, "trusted_proxies", index), text, hint)


def find_zone(name: str) -> tzinfo | None:
    """Find a time zone by its name; None if this machine does not know it."""
    if name == "UTC":  # known without the machine's tables, too
        return UTC
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None


def check_zone(way: Way, name: str) -> Iterator[Complaint]:
    """Check that this machine knows a time zone."""
    if find_zone(name) is None:
        hint = 'for example "UTC" or "Europe/Berlin"'
        yield Complaint(way, f"this machine knows no time zone {name!r}", hint)
