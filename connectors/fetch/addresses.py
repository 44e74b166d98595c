"""Which URLs, IP addresses and ports may be connected to.

Pure. Whoever writes an address into a chat must not reach what only this machine can
reach: the local network, other programs of this machine, a cloud's metadata. Only
public unicast addresses pass, and what `[fetch] allow` names. Where readers of URLs
differ from each other, there is a hole between them; so whatever is read in two ways
(backslashes, control characters, logins, numbers as hosts, per cent signs in names) is
refused instead of mended.

Sources: the IANA special-purpose registries (RFC 6890 and its updates), the cloud
vendors' documentation for metadata, the Fetch standard for ports. Python's own
`is_global` is not enough: it passes addresses that carry a private one inside.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from urllib.parse import quote, urljoin, urlsplit

import idna
import msgspec

from connectors.fetch.messages import FetchRefusedError

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

BLOCKED: tuple[tuple[Network, str], ...] = tuple(
    (ipaddress.ip_network(network), why)
    for network, why in (
        ("0.0.0.0/8", "means this machine"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared by a provider's customers"),
        ("127.0.0.0/8", "this machine"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved for protocols"),
        ("192.0.2.0/24", "for documentation"),
        ("192.88.99.0/24", "a relay that is no more"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "for benchmarks"),
        ("198.51.100.0/24", "for documentation"),
        ("203.0.113.0/24", "for documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
        # Only a fifth of IPv6 is given out; the rest is refused below as a whole,
        # and stands here where a better reason can be given.
        ("::/128", "means this machine"),
        ("::1/128", "this machine"),
        ("::/96", "an old spelling of an IPv4 address"),
        ("::ffff:0:0:0/96", "translated, on its own network only"),
        ("64:ff9b:1::/48", "translated, on its own network only"),
        ("100::/64", "leads nowhere"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),
        ("ff00::/8", "multicast"),
        ("2001::/32", "a Teredo tunnel"),
        ("2001::/23", "reserved for protocols"),
        ("2001:db8::/32", "for documentation"),
        ("2002::/16", "a 6to4 tunnel"),
        ("3fff::/20", "for documentation"),
        ("5f00::/16", "for routing inside one network"),
    )
)

METADATA = frozenset(
    ipaddress.ip_address(address)
    for address in (
        "169.254.169.254",  # AWS, Azure, Google, DigitalOcean, Oracle, OpenStack
        "169.254.169.253",  # AWS's resolver
        "169.254.170.2",  # AWS, containers' credentials
        "169.254.170.23",  # AWS, pods' credentials
        "169.254.0.23",  # Tencent
        "100.100.100.200",  # Alibaba
        "168.63.129.16",  # Azure's agent: a public address
        "192.0.0.192",  # Oracle, formerly
        "fd00:ec2::254",  # AWS
        "fd00:ec2::253",
        "fd00:ec2::23",
        "fd20:ce::254",  # Google
        "fd00:42::42",  # Scaleway
    )
)

PUBLIC6 = ipaddress.IPv6Network("2000::/3")
"""All of IPv6 that IANA gives out as public unicast."""

NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
"""How hosts without IPv4 reach IPv4: the last 32 bits are the address (RFC 6052)."""

ISATAP = frozenset({0x0000_5EFE, 0x0200_5EFE})
"""The third quarter of an ISATAP address; its last is an IPv4 address (RFC 5214)."""

COMMON_PORTS = frozenset({80, 443})

# Source: the Fetch standard's "bad ports" from 1024 on; then what answers to lines of
# text, so that a request sent there could be taken for commands.
BAD_PORTS = frozenset(
    {1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566}
    | {6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080}
    | {2375, 2376, 3306, 3389, 5432, 5900, 6379, 11211, 27017}
)

# Chosen: 10.0.0.0/8 and fc00::/7 are the widest networks that somebody owns.
WIDEST = {4: 8, 6: 7}
HOST_AND_PORT = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})")


def embedded_ipv4(address: IPAddress) -> ipaddress.IPv4Address | None:
    """Find the IPv4 address that an IPv6 address carries and leads to, if any.

    Knows IPv4-mapped, NAT64's well-known prefix and ISATAP. Tunnels and further
    spellings are blocked whatever they carry.
    """
    if isinstance(address, ipaddress.IPv4Address):
        return None
    number = int(address)
    is_isatap = (number >> 32) & 0xFFFF_FFFF in ISATAP
    if address.ipv4_mapped is not None or address in NAT64 or is_isatap:
        return ipaddress.IPv4Address(number & 0xFFFF_FFFF)
    return None


def plain(address: IPAddress) -> IPAddress:
    """Write an IPv4-mapped address as what it is: the system connects by IPv4."""
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def why_blocked(address: IPAddress) -> str:
    """Say what kind of address must not be reached it is; empty: it is public."""
    address = plain(address)
    if address in METADATA:
        return "a cloud's metadata"
    inner = embedded_ipv4(address)
    if inner is not None:
        why = why_blocked(inner)
        if why or address in NAT64:
            return why and f"carries {inner}: {why}"
    for network, why in BLOCKED:
        if address in network:
            return why
    if isinstance(address, ipaddress.IPv6Address) and address not in PUBLIC6:
        return "not public"
    return ""


def why_bad_port(port: int) -> str:
    """Say why a port is not for the web; empty: it may be."""
    if port in COMMON_PORTS or (1024 <= port <= 65_535 and port not in BAD_PORTS):
        return ""
    return f"port {port} is not for web pages"


class Allowed(msgspec.Struct, frozen=True):
    """One exception that the operator made: a network, or a host with a port."""

    network: Network | None = None
    host: str = ""
    """Small letters, no brackets, no dot at the end."""

    port: int = 0


def read_allowed(entry: str) -> Allowed:
    """Read one entry of `[fetch] allow`.

    Args:
        entry: a network (`10.1.0.0/16`), an address (`10.1.2.3`), or a host or
            address with a port (`search.lan:8080`, `[fd00::1]:8080`).

    Raises:
        ValueError: it is none of these, or a network that opens too much.
    """
    text = entry.strip()
    try:
        network = ipaddress.ip_network(text)
    except ValueError as error:
        found = HOST_AND_PORT.fullmatch(text)
        port = int(found[2]) if found else 0
        if found is None or not 1 <= port <= 65_535:
            raise ValueError(
                f"{entry!r} is no network and no host:port"
                + (f": {error}" if "/" in text else "")
            ) from error
        return Allowed(host=one_spelling(found[1].strip("[]")), port=port)
    if network.prefixlen < WIDEST[network.version]:
        raise ValueError(f"{entry!r} opens too much: name a smaller network")
    return Allowed(network=network)


def one_spelling(host: str) -> str:
    """Write a host as it is written everywhere here."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return host.lower().removesuffix(".")


class AddressRules:
    """Who may be connected to.

    Args:
        allow: exceptions, as `read_allowed` takes them.

    Raises:
        ValueError: an entry is wrong.
    """

    def __init__(self, allow: Iterable[str] = ()) -> None:
        entries = [read_allowed(entry) for entry in allow]
        self._networks = [e.network for e in entries if e.network is not None]
        self._doors = frozenset((e.host, e.port) for e in entries if e.host)

    def is_door(self, host: str, port: int) -> bool:
        """Tell whether the operator named this very host and port."""
        return (one_spelling(host), port) in self._doors

    def why_refused(self, host: str, port: int, address: IPAddress) -> str:
        """Say why a host must not be reached at an address; empty: it may.

        Args:
            host: as it was written: a name, or the address itself.
        """
        if self.is_door(host, port):
            return ""
        return why_bad_port(port) or self._why_address(plain(address))

    def _why_address(self, address: IPAddress) -> str:
        why = why_blocked(address)
        if not why:
            return ""
        # A network never opens the metadata inside it: that one is named by itself.
        is_opened = any(
            address in network
            and (address not in METADATA or network.num_addresses == 1)
            for network in self._networks
        )
        return "" if is_opened else f"{address} is not public ({why})"


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
