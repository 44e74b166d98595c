"""What every answer says to the browser, and who may ask at all; pure.

Sources: W3C Content Security Policy Level 3; Fetch (`Sec-Fetch-Site`, `Origin`);
RFC 6265bis (cookies).
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from connectors.web.server import LOOPBACK_NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from connectors.page_config import PageConfig

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)

FILE_POLICY = "default-src 'none'; sandbox"
"""Of files that agents send: whatever is in them runs nothing, and fetches nothing."""

# Why not "no-referrer" for `referrer-policy`: browsers then say of our own forms, too,
# that they come from nowhere (`Origin: null`). Other sites are told nothing either way.
SECURITY = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
"""Of every answer, errors and files included."""

PRIVATE = "no-store"
"""Of every answer but files: nothing of it is left in the browser's caches."""

MOST_COOKIE = 128


def cookie_name(config: PageConfig) -> str:
    """Name the cookie; where it goes over TLS alone, browsers keep others off it.

    Why the port: cookies do not know of ports, and another Callboard of this machine
    has its own.
    """
    return "__Host-callboard" if is_secure(config) else f"callboard-{config.port}"


def is_secure(config: PageConfig) -> bool:
    """Whether browsers come over TLS."""
    return config.origin.startswith("https:")


def cookie(config: PageConfig, value: str, seconds: int) -> str:
    """Write the header that sets the cookie; 0 seconds: that takes it away."""
    secure = "; Secure" if is_secure(config) else ""
    return (
        f"{cookie_name(config)}={value}; Path=/; Max-Age={seconds}; HttpOnly;"
        f" SameSite=Strict{secure}"
    )


def cookie_value(config: PageConfig, header: str) -> str:
    """Find our cookie among those that a browser sent; empty: there is none."""
    for part in header.split(";"):
        name, _, value = part.strip().partition("=")
        if name == cookie_name(config) and len(value) <= MOST_COOKIE:
            return value
    return ""


def is_our_host(config: PageConfig, host: str) -> bool:
    """Whether a browser meant this server.

    Why: a page of somebody else could point its own name at this machine (DNS
    rebinding), and would then be taken for ours.

    Args:
        config: settings of the page.
        host: the header `Host`.
    """
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    known = {*LOOPBACK_NAMES, config.host}
    if config.origin:
        known |= {urlsplit(config.origin).hostname or ""}
    return bool(name) and name.lower() in known


def is_our_page(config: PageConfig, headers: Mapping[str, str]) -> bool:
    """Whether a form, or a script, was sent by a page of ours.

    Args:
        config: settings of the page.
        headers: of the request, by names in small letters.
    """
    site = headers.get("sec-fetch-site", "same-origin")
    origin = headers.get("origin")
    own = {f"http://{headers.get('host', '')}", config.origin}
    return site in {"same-origin", "none"} and (origin is None or origin in own)
