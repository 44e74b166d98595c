"""One request from its head to its answer: session, form, and errors as pages.

Runs on the edge's loop. What a route means is said in its own module; all that touches
what is kept is asked of the kernel (`Visit.ask`).
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeVar, TypeVarTuple
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from actors.ingress import RefusedAttempt
from connectors.web.errors import EXPECTED_ERRORS, ApiError, log_refusal, translate
from connectors.web.page.headers import cookie_value, is_our_page
from connectors.web.page.login_rows import csrf_of
from connectors.web.server import read_body

if TYPE_CHECKING:
    from connectors.bridge import Bridge
    from connectors.page_config import PageConfig
    from connectors.web.page.figures import PageFigures
    from connectors.web.page.login_rows import Session
    from connectors.web.page.logins import Logins
    from connectors.web.page.rendering import Pages
    from connectors.web.page.tries import Tries
    from connectors.web.server import HttpSettings
    from runtime.clock import Clock

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

FORM = "application/x-www-form-urlencoded"
MOST_FIELDS = 100
MOST_TOLD = 100
JSON = "application/json"

NOBODY = "log in first: run `callboard login` and open the link it prints"


class Told(msgspec.Struct, frozen=True):
    """What became of an action."""

    text: str
    is_refusal: bool = False


class CsrfField(msgspec.Struct, frozen=True):
    """What every form of a session has in it; templates write it as `{{ csrf }}`."""

    value: str
    """Letters and digits only."""

    def __html__(self) -> str:
        """Give it as HTML, which Jinja2 does not escape."""
        return f'<input type="hidden" name="csrf" value="{self.value}">'


@dataclass
class Front:
    """What every request needs."""

    config: PageConfig
    settings: HttpSettings
    logins: Logins
    bridge: Bridge
    pages: Pages
    clock: Clock
    figures: PageFigures
    tries: Tries
    """Logins that failed, by client."""

    refused: Callable[[RefusedAttempt], None]
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the server ends: what streams, ends."""

    told: dict[str, Told] = field(default_factory=dict[str, "Told"])
    """What is told above the next page of a session, by its cookie."""

    def tell_next(self, cookie: str, told: Told) -> None:
        """Have something told above the next page that a browser loads, once."""
        self.told.pop(cookie, None)
        self.told[cookie] = told
        if len(self.told) > MOST_TOLD:
            del self.told[next(iter(self.told))]


@dataclass
class Visit:
    """One request; if its route wants that, of somebody who is logged in."""

    request: Request
    front: Front
    session: Session | None = None
    cookie: str = ""
    form: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def person(self) -> str:
        """Who asks; empty: nobody is logged in."""
        return "" if self.session is None else self.session.person

    @property
    def client(self) -> str:
        """The address it comes from."""
        return self.request.client.host if self.request.client else "?"

    @property
    def wants_json(self) -> bool:
        """Whether a script asks, and no browser's window."""
        return JSON in self.request.headers.get("accept", "")

    async def ask(self, fn: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
        """Have the kernel do something.

        Raises:
            ApiError: it could not, or would not.
        """
        try:
            return await self.front.bridge.ask_kernel(fn, *args)
        except EXPECTED_ERRORS as error:
            raise translate(error) from error

    def page(
        self, template: str, values: Mapping[str, object], status: int = 200
    ) -> Response:
        """Draw a page."""
        return HTMLResponse(
            self.front.pages.draw(template, self.filled(values)), status
        )

    def block(self, template: str, block: str, values: Mapping[str, object]) -> str:
        """Draw one block of a page."""
        return self.front.pages.draw_block(template, block, self.filled(values))

    def filled(self, values: Mapping[str, object]) -> Mapping[str, object]:
        """Give what a template is given: `values`, and what all of them have."""
        csrf = CsrfField(csrf_of(self.cookie) if self.session else "")
        path = self.request.url.path
        return {"person": self.person, "csrf": csrf, "path": path, **values}


Handle = Callable[[Visit], Awaitable[Response]]


class Routes:
    """Makes routes out of what answers them.

    Args:
        front: what every request needs.
    """

    def __init__(self, front: Front) -> None:
        self.front = front

    def open(self, method: str, path: str, handle: Handle) -> Route:
        """Make a route for anybody."""
        return self._route(method, path, handle, needs_session=False)

    def closed(self, method: str, path: str, handle: Handle) -> Route:
        """Make a route for who is logged in; a POST carries the session's token."""
        return self._route(method, path, handle, needs_session=True)

    def _route(
        self, method: str, path: str, handle: Handle, *, needs_session: bool
    ) -> Route:
        async def endpoint(request: Request) -> Response:
            visit = Visit(request, self.front)
            try:
                await self._let_in(visit, needs_session=needs_session)
                return await handle(visit)
            except ApiError as error:
                return self._refuse(visit, error)
            except ClientDisconnect:
                return Response(status_code=499)

        return Route(path, endpoint, methods=[method])

    async def _let_in(self, visit: Visit, *, needs_session: bool) -> None:
        front, headers = self.front, visit.request.headers
        is_change = visit.request.method == "POST"
        # Why not only changes: what another port of this machine serves counts as the
        # same site, and with the cookie would take the streams that a browser may have.
        is_visit = headers.get("sec-fetch-mode") == "navigate" and not is_change
        if not is_visit and not is_our_page(front.config, headers):
            text = "this was sent by a page of somebody else; nothing was done"
            raise ApiError(403, text, code="forbidden_origin")
        visit.cookie = cookie_value(front.config, headers.get("cookie", ""))
        if visit.cookie:
            visit.session = await visit.ask(front.logins.find, visit.cookie)
        if needs_session and visit.session is None:
            raise ApiError(401, NOBODY, code="not_logged_in")
        if is_change:
            visit.form = await read_form(visit.request, front.settings)
            if needs_session:
                check_csrf(visit)

    def _refuse(self, visit: Visit, error: ApiError) -> Response:
        log_refusal(visit.request.scope, error)
        if error.status in {401, 403, 429} and error.code != "not_logged_in":
            self.front.figures.refused(error.code)
            self.front.refused(RefusedAttempt(error.code, visit.client))
        is_look = visit.request.method == "GET" and not visit.wants_json
        if error.code == "not_logged_in" and is_look:
            return RedirectResponse("/login", status_code=303)
        return refusal(visit, error)


def refusal(visit: Visit, error: ApiError) -> Response:
    """Say what is wrong: as a page, or to a script."""
    headers: dict[str, str] = {}
    if error.retry_after is not None:
        headers["retry-after"] = str(max(1, round(error.retry_after)))
    if visit.wants_json:
        body = msgspec.json.encode({"error": error.text, "code": error.code})
        return Response(body, error.status, headers, JSON)
    title = HTTPStatus(error.status).phrase
    values = {"title": title, "text": error.text}
    response = visit.page("error.html", values, error.status)
    response.headers.update(headers)
    return response


def check_csrf(visit: Visit) -> None:
    """Refuse a form that no page of this session has sent.

    Raises:
        ApiError: 403.
    """
    given = visit.request.headers.get("x-csrf") or visit.form.get("csrf", "")
    if not hmac.compare_digest(given.encode(), csrf_of(visit.cookie).encode()):
        text = "this form is not of this session; load the page again, and repeat it"
        raise ApiError(403, text, code="bad_csrf")


async def read_form(request: Request, settings: HttpSettings) -> Mapping[str, str]:
    """Read what was posted; of equal names, the last.

    Raises:
        ApiError: 400 no form, 413 too long, 408 too slow.
        ClientDisconnect: the client has gone.
    """
    body = await read_body(request, settings, (FORM,))
    try:
        pairs = parse_qsl(
            body.decode(),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MOST_FIELDS,
        )
    except (UnicodeDecodeError, ValueError) as error:
        raise ApiError(400, f"this is no form: {error}", code="bad_form") from error
    return dict(pairs)
