"""What may stand in an address that a person or a model gave.

Pure. Where readers of addresses differ from each other, there is a hole between
them; so whatever is read in two ways (backslashes, control characters, logins,
numbers as hosts, per cent signs in names) is refused instead of mended.
"""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import quote, urljoin, urlsplit

import idna
import msgspec

from connectors.fetch.messages import FetchRefusedError

MAX_URL = 8_000
"""Characters; longer ones are refused by most servers anyway."""

PORTS = {"http": 80, "https": 443}
UNREADABLE = re.compile(r"[\x00-\x20\x7f-\xa0\\\u2028\u2029]")
LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
SAFE = "/:?@!$&'()*+,;=-._~%[]"
"""What stays as it is in a path or query: RFC 3986's characters and escapes."""


class Target(msgspec.Struct, frozen=True):
    """An address that was read, in the one spelling that is used from then on."""

    scheme: str
    host: str
    """ASCII in small letters, without brackets and without a dot at the end."""

    port: int
    path: str
    """Path and query, ASCII; begins with a slash."""

    @property
    def authority(self) -> str:
        """Host and port as in a `Host` header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """What decides whether two addresses are the same site."""
        return f"{self.scheme}://{self.authority}"

    @property
    def url(self) -> str:
        """The whole address."""
        return self.origin + self.path


def read_url(url: str) -> Target:
    """Read an address.

    Raises:
        FetchRefusedError: it is no web address, or could be read in two ways.
    """
    text = url.strip(" \t\r\n")
    if len(text) > MAX_URL:
        raise FetchRefusedError(f"the address is above {MAX_URL} characters")
    if UNREADABLE.search(text):
        raise refused(text, "it holds spaces, backslashes or invisible characters")
    try:
        parts = urlsplit(text)
    except ValueError as error:
        # Its own words are not shown: they may repeat a password.
        raise refused(text, "its host cannot be read") from error
    if parts.scheme not in PORTS:
        raise refused(text, "only http:// and https:// are fetched")
    if "@" in parts.netloc:
        # Not shown: what stands there may be a password.
        raise FetchRefusedError("the address holds a name or password before an @")
    host, port = split_port(parts.netloc, text)
    path = quote(parts.path or "/", safe=SAFE)
    query = f"?{quote(parts.query, safe=SAFE)}" if parts.query else ""
    return Target(
        parts.scheme,
        read_host(host, text),
        PORTS[parts.scheme] if port is None else port,
        path + query,
    )


def follow(base: Target, location: str) -> Target:
    """Read where a redirect leads.

    Raises:
        FetchRefusedError: to no web address.
    """
    # Many servers forget to escape a space, which nobody reads in two ways.
    text = location.strip(" \t\r\n").replace(" ", "%20")
    if UNREADABLE.search(text):
        raise refused(text, "it holds spaces, backslashes or invisible characters")
    try:
        joined = urljoin(base.url, text)
    except ValueError as error:
        raise refused(text, "its host cannot be read") from error
    return read_url(joined)


def split_port(netloc: str, url: str) -> tuple[str, int | None]:
    """Part host and port; None where there is no port."""
    found = re.fullmatch(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::([0-9]{0,5}))?", netloc)
    if found is None or not found[1]:
        raise refused(url, "its host or port cannot be read")
    if not found[2]:
        return found[1], None
    port = int(found[2])
    if not 1 <= port <= 65_535:
        raise refused(url, f"there is no port {port}")
    return found[1], port


def read_host(host: str, url: str) -> str:
    """Give a host its one spelling."""
    if host.startswith("["):
        try:
            return str(ipaddress.IPv6Address(without_zone(host.strip("[]"))))
        except ValueError as error:
            raise refused(url, f"{host[:60]} is no IPv6 address") from error
    if "%" in host:
        raise refused(url, "there is a per cent sign in its host")
    name = ascii_name(host, url).lower().removesuffix(".")
    labels = name.split(".")
    if NUMBER.fullmatch(labels[-1]):
        return read_ipv4(name, url)
    if len(name) > 253 or not all(LABEL.fullmatch(label) for label in labels):
        raise refused(url, f"{name[:80]!r} is no host name")
    return name


def without_zone(host: str) -> str:
    """Refuse an IPv6 address that names a network card."""
    if "%" in host:
        raise ValueError("names a network card")
    return host


def ascii_name(host: str, url: str) -> str:
    """Write a name with other letters as DNS has it."""
    if host.isascii():
        return host
    try:
        # Maps wide digits and dots to ours, so what comes out is looked at again.
        return idna.encode(host, uts46=True).decode("ascii")
    except UnicodeError as error:
        raise refused(url, "its host is no name that DNS can have") from error


def read_ipv4(name: str, url: str) -> str:
    """Read an IPv4 address; only four plain decimal numbers are one.

    Why: `0177.1`, `0x7f.1` and `2130706433` are all 127.0.0.1 to some readers.
    """
    try:
        return str(ipaddress.IPv4Address(name))
    except ValueError as error:
        raise refused(url, "its host is a number, but no IPv4 address") from error


def refused(url: str, why: str) -> FetchRefusedError:
    """Make the error; of the address at most its beginning is shown."""
    shown = "".join(c if c.isprintable() else "?" for c in url.partition("?")[0])
    # What stands before an @ may be a password.
    shown = shown if "@" not in shown else shown.partition(":")[0] + ":..."
    return FetchRefusedError(f"{shown[:120]} is not fetched: {why}")
