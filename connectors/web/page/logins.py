"""Logging in by a link, once, and out; the rows are in `login_rows.py`.

The kernel's side checks the session at every request, so that logging out works at
once. Opening a link does not use it up, as chats fetch links for previews: only the
button on that page does.

All routes of the page share checks and headers: host, origin, cookie, policies.
Sources: W3C Content Security Policy Level 3; Fetch (`Sec-Fetch-Site`, `Origin`); RFC
6265bis (cookies).
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from connectors.web.page.login_rows import (
    LINK,
    SESSION,
    TOKEN_BYTES,
    BrowserSession,
    LoginLink,
    login_entry,
    new_token,
    row_id,
    surplus,
)
from connectors.web.server import LOOPBACK_NAMES, ApiError, log_refusal
from runtime.errors import SequenceConflictError
from runtime.store.rows import Commit, Entry, decoded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from connectors.web.page.platform import PageConfig
    from connectors.web.page.request import PageRoutes, PageVisit
    from runtime.clock import Clock
    from runtime.store.port import Store


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
PORTS = {"http": 80, "https": 443}


def cookie_name(config: PageConfig) -> str:
    """Give the cookie's name; with TLS, its prefix keeps other sites from setting it.

    Why the port: cookies ignore ports, and another Callboard may run on this machine.
    """
    return "__Host-callboard" if is_secure(config) else f"callboard-{port_of(config)}"


def port_of(config: PageConfig) -> int:
    """Give the port at which browsers see the page: the proxy's, if there is one.

    The page may move to another node, which listens on another port.
    """
    seen = urlsplit(config.origin)
    return (seen.port or PORTS.get(seen.scheme, 0)) if config.origin else config.port


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
        f"callboard-look-{port_of(config)}={value}; Path=/; Max-Age={LOOK_FOR};"
        f" HttpOnly; SameSite=Strict{secure}"
    )


def look_value(config: PageConfig, header: str) -> str:
    """Find that in a `Cookie` header; empty: it is not there."""
    return cookie_named(f"callboard-look-{port_of(config)}", header)


def is_our_host(config: PageConfig, host: str) -> bool:
    """Whether a host name is this server's.

    Why: a foreign web page could point its own name at this machine (DNS rebinding),
    and would then count as ours.
    """
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    known = {*LOOPBACK_NAMES, config.host}
    if config.origin:
        known |= {urlsplit(config.origin).hostname or ""}
    return bool(name) and name.lower() in known


def is_our_page(config: PageConfig, headers: Mapping[str, str]) -> bool:
    """Whether a request was sent by a page of this server.

    Args:
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


PAGE = 1000


class LoggedIn(msgspec.Struct, frozen=True):
    """A browser that was just logged in."""

    person: str
    cookie: str
    seconds: int
    """How long the session lasts."""


class Logins:
    """The login links and sessions of one connector; on the kernel's side.

    Args:
        random_bytes: gives that many unguessable bytes.
    """

    def __init__(
        self,
        connector: str,
        config: PageConfig,
        store: Store,
        clock: Clock,
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self._connector = connector
        self._config = config
        self._store = store
        self._clock = clock
        self._random_bytes = random_bytes

    async def enter(self, token: str) -> LoggedIn | None:
        """Use a link up, and log a browser in; None: the link is not valid.

        If several browsers use it at the same moment, one gets in.

        Raises:
            StoreError: the disk fails; the link stays valid.
        """
        name, now = row_id(self._connector, token), self._clock.wall()
        found = await self._store.entry(LINK, name)
        link = None if found is None else decoded(found, LoginLink)
        if found is None or link is None or not self._holds(link, now):
            return None
        cookie = new_token(self._random_bytes(TOKEN_BYTES))
        seconds = self._config.session_hours * 3600
        session = BrowserSession(link.person, now + seconds, now)
        entries = (
            login_entry(LINK, name, None, found.version),
            login_entry(SESSION, row_id(self._connector, cookie), session, 0),
            *await self._too_many(now),
        )
        try:
            await self._store.commit(Commit(at=now, entries=entries))
        except SequenceConflictError:
            return None
        return LoggedIn(link.person, cookie, int(seconds))

    async def find(self, cookie: str) -> BrowserSession | None:
        """Find the session of a cookie; None: none, or expired.

        Raises:
            StoreError: the disk fails.
        """
        found = await self._store.entry(SESSION, row_id(self._connector, cookie))
        session = None if found is None else decoded(found, BrowserSession)
        if session is None or not self._holds(session, self._clock.wall()):
            return None
        return session

    async def leave(self, cookie: str) -> None:
        """Log a browser out.

        Raises:
            StoreError: the disk fails; the browser is still logged in.
        """
        gone = login_entry(SESSION, row_id(self._connector, cookie), None)
        await self._store.commit(Commit(at=self._clock.wall(), entries=(gone,)))

    async def count(self) -> int:
        """Count the logged-in browsers, and delete expired sessions.

        Raises:
            StoreError: the disk fails.
        """
        now = self._clock.wall()
        rows = await self._store.entries(SESSION, self._connector, "", PAGE)
        gone = surplus(rows, BrowserSession, now, self._config.max_sessions)
        if gone:
            await self._store.commit(Commit(at=now, entries=tuple(gone)))
        return len(rows) - len(gone)

    def _holds(self, row: LoginLink | BrowserSession, now: float) -> bool:
        # A person who is removed from the settings is logged out.
        return row.until > now and row.person in self._config.people

    async def _too_many(self, now: float) -> tuple[Entry, ...]:
        rows = await self._store.entries(SESSION, self._connector, "", PAGE)
        return tuple(surplus(rows, BrowserSession, now, self._config.max_sessions - 1))


MOST_CLIENTS = 1_000
"""Clients remembered; of more, the oldest is dropped."""


class Tries:
    """Counts failed logins, by client; pure.

    Args:
        limit: failures of one client before it is told to wait.
        seconds: how long failures count, from the first on.
    """

    def __init__(self, limit: int, seconds: float) -> None:
        self._limit = limit
        self._seconds = seconds
        self._clients: dict[str, tuple[float, int]] = {}
        """By client: the end of its window, and its failures."""

    def wait(self, client: str, now: float) -> float:
        """Give the seconds that a client must wait; 0: none.

        Args:
            now: seconds, on the caller's clock.
        """
        ends_at, count = self._clients.get(client, (now, 0))
        return max(0.0, ends_at - now) if count >= self._limit else 0.0

    def failed(self, client: str, now: float) -> None:
        """Count a failure."""
        ends_at, count = self._clients.pop(client, (0.0, 0))
        if ends_at <= now:
            ends_at, count = now + self._seconds, 0
        self._clients[client] = (ends_at, count + 1)
        if len(self._clients) > MOST_CLIENTS:
            del self._clients[next(iter(self._clients))]


MOST_TOKEN = 64

USED = (
    "this link does not hold: it was used, is too old, or was never made;"
    " run `callboard login` for another one"
)


class LoginRoutes:
    """The routes for logging in and out; on the edge's loop."""

    def routes(self, routes: PageRoutes) -> list[BaseRoute]:
        """Give them."""
        return [
            routes.open("GET", "/login", self._explain),
            routes.open("GET", "/login/{token}", self._offer),
            routes.open("POST", "/login", self._enter),
            routes.closed("POST", "/logout", self._leave),
        ]

    async def _explain(self, visit: PageVisit) -> Response:
        if visit.session is not None:
            return RedirectResponse("/", status_code=303)
        return visit.page("login.html", {"token": ""})

    async def _offer(self, visit: PageVisit) -> Response:
        token = str(visit.request.path_params["token"])
        return visit.page("login.html", {"token": token[:MOST_TOKEN]})

    async def _enter(self, visit: PageVisit) -> Response:
        front, token = visit.front, visit.form.get("token", "")
        entered = None
        if 0 < len(token) <= MOST_TOKEN:
            entered = await visit.ask(front.logins.enter, token)
        if entered is None:
            raise self._failed(visit)
        front.metrics.logged_in()
        front.metrics.sessions(await visit.ask(front.logins.count))
        response = RedirectResponse("/", status_code=303)
        header = cookie(front.config, entered.cookie, entered.seconds)
        response.headers["set-cookie"] = header
        return response

    def _failed(self, visit: PageVisit) -> ApiError:
        """Count a failed login, and make its error.

        A valid link logs in even while its client must wait: behind a proxy all
        browsers have the same address, and links cannot be guessed.
        """
        tries, now = visit.front.tries, visit.front.clock.monotonic()
        wait = tries.wait(visit.client, now)
        tries.failed(visit.client, now)
        if wait > 0:
            text = "too many links that do not hold; wait some minutes"
            return ApiError(429, text, code="too_many_logins", retry_after=wait)
        return ApiError(403, USED, code="bad_link")

    async def _leave(self, visit: PageVisit) -> Response:
        front = visit.front
        await visit.ask(front.logins.leave, visit.cookie)
        front.metrics.sessions(await visit.ask(front.logins.count))
        response = RedirectResponse("/login", status_code=303)
        response.headers["set-cookie"] = cookie(front.config, "", 0)
        return response
