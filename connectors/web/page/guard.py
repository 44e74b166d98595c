"""Checks and headers that all routes of the page share: host, origin, cookie, policies.

Sources: W3C Content Security Policy Level 3; Fetch (`Sec-Fetch-Site`, `Origin`);
RFC 6265bis (cookies).
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse

from connectors.web.errors import ApiError, log_refusal
from connectors.web.server import LOOPBACK_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from connectors.web.page.platform import PageConfig


POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " media-src 'self'; connect-src 'self'; form-action 'self';"
    " frame-ancestors 'none'; base-uri 'none'"
)

FILE_POLICY = "default-src 'none'; sandbox"
"""For files that agents send: they can neither run nor fetch anything."""

# Why not "no-referrer": browsers then send our own forms with `Origin: null`. Other
# sites get no referrer either way.
SECURITY = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
"""Headers of every response, errors and files included."""

PRIVATE = "no-store"
"""`cache-control` of every response but static files: browsers keep no copy."""

MOST_COOKIE = 128


def cookie_name(config: PageConfig) -> str:
    """Give the cookie's name; with TLS, its prefix keeps other sites from setting it.

    Why the port: cookies ignore ports, and another Callboard may run on this machine.
    """
    return "__Host-callboard" if is_secure(config) else f"callboard-{config.port}"


def is_secure(config: PageConfig) -> bool:
    """Whether browsers use TLS."""
    return config.origin.startswith("https:")


def cookie(config: PageConfig, value: str, seconds: int) -> str:
    """Write the header that sets the cookie; with 0 seconds, deletes it."""
    secure = "; Secure" if is_secure(config) else ""
    return (
        f"{cookie_name(config)}={value}; Path=/; Max-Age={seconds}; HttpOnly;"
        f" SameSite=Strict{secure}"
    )


def cookie_value(config: PageConfig, header: str) -> str:
    """Find our cookie in a `Cookie` header; empty: it is not there."""
    return cookie_named(cookie_name(config), header)


def cookie_named(wanted: str, header: str) -> str:
    """Find a cookie in a `Cookie` header; empty: it is not there, or too long."""
    for part in header.split(";"):
        name, _, value = part.strip().partition("=")
        if name == wanted and len(value) <= MOST_COOKIE:
            return value
    return ""


LOOK_FOR = 31_536_000
"""Seconds for which a browser keeps what the page is to look like: a year."""


def look_cookie(config: PageConfig, value: str) -> str:
    """Write the header that sets what the page is to look like; no secret."""
    secure = "; Secure" if is_secure(config) else ""
    return (
        f"callboard-look-{config.port}={value}; Path=/; Max-Age={LOOK_FOR};"
        f" HttpOnly; SameSite=Strict{secure}"
    )


def look_value(config: PageConfig, header: str) -> str:
    """Find that in a `Cookie` header; empty: it is not there."""
    return cookie_named(f"callboard-look-{config.port}", header)


def is_our_host(config: PageConfig, host: str) -> bool:
    """Whether a host name is this server's.

    Why: a foreign web page could point its own name at this machine (DNS rebinding),
    and would then count as ours.

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
    """Whether a request was sent by a page of this server.

    Args:
        config: settings of the page.
        headers: of the request, by names in lower case.
    """
    site = headers.get("sec-fetch-site", "same-origin")
    origin = headers.get("origin")
    own = {f"http://{headers.get('host', '')}", config.origin}
    return site in {"same-origin", "none"} and (origin is None or origin in own)


class Shield:
    """Checks the host of each request, and adds the headers of each response."""

    def __init__(
        self, app: ASGIApp, config: PageConfig, refused: Callable[[str], None]
    ) -> None:
        self._app = app
        self._config = config
        self._refused = refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY.items():
                    headers.setdefault(name, value)  # the policy of files is stricter
                headers.setdefault("cache-control", PRIVATE)
            await send(message)

        app = self._app
        if scope["type"] == "http":
            host = Headers(scope=scope).get("host", "")
            if not is_our_host(self._config, host):
                app = self._turn_away(scope, host)
        await app(scope, receive, guarded)

    def _turn_away(self, scope: Scope, host: str) -> ASGIApp:
        text = f"host {host!r} is not this page's; a proxy's is set as `origin`"
        log_refusal(scope, ApiError(403, text, code="forbidden_host"))
        self._refused("forbidden_host")
        return PlainTextResponse(f"{text}\n", status_code=403)
