"""One request of the page: session, form, templates, and errors as pages.

Runs on the edge's loop. Handlers get a `PageVisit`, and ask the kernel's side by its
`ask`. Jinja2 renders the templates and escapes all values; it is imported when the
first page is rendered, to save memory and start time.
"""

from __future__ import annotations

import asyncio
import hmac
import importlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, TypeVarTuple, cast
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from actors.schedule.recurrence import repeat_shown
from actors.transport import RefusedAttempt
from connectors.web.page.login_rows import BrowserSession, csrf_of
from connectors.web.page.logins import (
    Logins,
    Tries,
    cookie_value,
    is_our_page,
    look_value,
)
from connectors.web.page.words import (
    PageLook,
    Words,
    beginning,
    iso,
    read_words,
    tone,
    wanted,
    with_code,
)
from connectors.web.request import RequestContext, client_host, read_body
from connectors.web.server import ApiError, HttpSettings, log_refusal

if TYPE_CHECKING:
    from jinja2 import Environment, Template

    from connectors.web.page.event_stream import PageMetrics
    from connectors.web.page.platform import PageConfig


FOLDER = Path(__file__).parent / "templates"


class PageRenderer:
    """Renders templates, with values that all of them share, in any language.

    Args:
        words: texts, times and numbers, by language; read at the first page.
    """

    def __init__(
        self,
        folder: Path = FOLDER,
        words: Callable[[], Mapping[str, Words]] = read_words,
    ) -> None:
        self._folder = folder
        self._given: Mapping[str, object] = {}
        self._read_words = words
        self._environments: dict[str, Environment] = {}

    @cached_property
    def words(self) -> Mapping[str, Words]:
        """Texts, times and numbers, by language."""
        return self._read_words()

    def give(self, values: Mapping[str, object]) -> None:
        """Set the values that all templates share."""
        self._given = values

    def draw(self, name: str, values: Mapping[str, object], language: str) -> str:
        """Render a whole page."""
        return self._template(name, language).render({**self._given, **values})

    def draw_block(
        self, name: str, block: str, values: Mapping[str, object], language: str
    ) -> str:
        """Render one block of a page."""
        template = self._template(name, language)
        context = template.new_context({**self._given, **values})
        return "".join(template.blocks[block](context))

    def _template(self, name: str, language: str) -> Template:
        environment = self._environments.get(language)
        if environment is None:
            words = self.words[language]
            environment = make_environment(self._folder, words)
            self._environments[language] = environment
        return environment.get_template(name)


def make_environment(folder: Path, words: Words) -> Environment:
    """Load Jinja2; a missing value is an error, not an empty text.

    Why one environment for each language: macros that templates import see its globals
    and filters, and no values of a page.
    """
    jinja = importlib.import_module("jinja2")
    environment = jinja.Environment(
        loader=jinja.FileSystemLoader(folder),
        autoescape=True,
        auto_reload=False,
        undefined=jinja.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["_"] = words.say
    environment.filters.update(
        {
            "when": words.when,
            "iso": iso,
            "lasting": words.lasting,
            "brief": words.brief,
            "number": words.number,
            "decimal": words.decimal,
            "money": words.money,
            "state": words.state,
            "reason": words.reason,
            "part": words.part,
            "tone": tone,
            "beginning": beginning,
            "repeat": repeat_shown,
            "color": color_of,
            "code": with_code,
        }
    )
    return cast("Environment", environment)


COLORS = 8


def color_of(name: str) -> int:
    """Give one of `COLORS` numbers for a name, always the same one."""
    return sum(name.encode()) % COLORS


T = TypeVar("T")
Ts = TypeVarTuple("Ts")

FORM = "application/x-www-form-urlencoded"
MOST_FIELDS = 100
MOST_TOLD = 100
JSON = "application/json"

NOBODY = "log in first: run `callboard login` and open the link it prints"


class ActionResult(msgspec.Struct, frozen=True):
    """The outcome of an action, shown once above the next page."""

    text: str
    is_refusal: bool = False


class CsrfField(msgspec.Struct, frozen=True):
    """The hidden field of every form; templates write it as `{{ csrf }}`."""

    value: str
    """Letters and digits only."""

    def __html__(self) -> str:
        """Give the field as HTML, which Jinja2 does not escape."""
        return f'<input type="hidden" name="csrf" value="{self.value}">'


@dataclass(kw_only=True)
class PageContext(RequestContext):
    """What every request of the page needs, beside the usual."""

    config: PageConfig
    logins: Logins
    pages: PageRenderer
    metrics: PageMetrics
    tries: Tries
    """Counts failed logins, by client."""

    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the server stops: event streams end."""

    badges: Callable[[], Mapping[str, int]] = dict
    """Gives how many things wait for a person, by view; any thread may call it."""

    told: dict[str, ActionResult] = field(default_factory=dict[str, "ActionResult"])
    """The outcome to show above a session's next page, by its cookie."""

    def tell_next(self, cookie: str, told: ActionResult) -> None:
        """Show an outcome above the next page that a browser loads, once."""
        self.told.pop(cookie, None)
        self.told[cookie] = told
        if len(self.told) > MOST_TOLD:
            del self.told[next(iter(self.told))]


@dataclass
class PageVisit:
    """One request; on closed routes, of a person who is logged in."""

    request: Request
    front: PageContext
    session: BrowserSession | None = None
    cookie: str = ""
    form: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def person(self) -> str:
        """Who is logged in; empty: nobody."""
        return "" if self.session is None else self.session.person

    @property
    def client(self) -> str:
        """The address of the browser."""
        return client_host(self.request.scope, unknown="?")

    @property
    def wants_json(self) -> bool:
        """Whether a script of the page sent it, and not the browser itself."""
        return JSON in self.request.headers.get("accept", "")

    async def ask(self, fn: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
        """Call a function on the kernel's side, and give its result.

        Raises:
            ApiError: it refuses, or fails.
        """
        return await self.front.ask(fn, *args)

    def page(
        self, template: str, values: Mapping[str, object], status: int = 200
    ) -> Response:
        """Render a page."""
        html = self.front.pages.draw(template, self.filled(values), self.language)
        return HTMLResponse(html, status)

    def block(self, template: str, block: str, values: Mapping[str, object]) -> str:
        """Render one block of a page."""
        filled = self.filled(values)
        return self.front.pages.draw_block(template, block, filled, self.language)

    def filled(self, values: Mapping[str, object]) -> Mapping[str, object]:
        """Give the values of a template: `values`, and those that all have."""
        csrf = CsrfField(csrf_of(self.cookie) if self.session else "")
        path = self.request.url.path
        own = {"person": self.person, "csrf": csrf, "path": path, "look": self.look}
        own |= {"language": self.language, "badges": self.front.badges()}
        return {**own, "languages": self.front.pages.words, **values}

    @cached_property
    def look(self) -> PageLook:
        """What this browser wants the page to look like.

        A time zone in the address (`zone=utc`) counts more, so that whoever is given
        the address reads the same times.
        """
        header = self.request.headers.get("cookie", "")
        look = PageLook.read(look_value(self.front.config, header))
        return look.in_zone(self.request.query_params.get("zone", ""))

    @property
    def words(self) -> Words:
        """Texts, times and numbers in the language of its pages."""
        return self.front.pages.words[self.language]

    @cached_property
    def language(self) -> str:
        """The language of its pages."""
        known, chosen = self.front.pages.words, self.look.language
        accept = self.request.headers.get("accept-language", "")
        return chosen if chosen in known else wanted(accept, known)


PageHandler = Callable[[PageVisit], Awaitable[Response]]


class PageRoutes:
    """Makes routes out of handlers."""

    def __init__(self, front: PageContext) -> None:
        self.front = front

    def open(self, method: str, path: str, handle: PageHandler) -> Route:
        """Make a route that needs no login."""
        return self._route(method, path, handle, needs_session=False)

    def closed(self, method: str, path: str, handle: PageHandler) -> Route:
        """Make a route that needs a login; a POST must carry the CSRF token."""
        return self._route(method, path, handle, needs_session=True)

    def upload(self, path: str, handle: PageHandler) -> Route:
        """Make a route for a POST that is no form; its token is in a header."""
        return self._route("POST", path, handle, needs_session=True, is_form=False)

    def _route(
        self,
        method: str,
        path: str,
        handle: PageHandler,
        *,
        needs_session: bool,
        is_form: bool = True,
    ) -> Route:
        async def endpoint(request: Request) -> Response:
            visit = PageVisit(request, self.front)
            try:
                await self._let_in(visit, needs_session=needs_session, is_form=is_form)
                return await handle(visit)
            except ApiError as error:
                return self._refuse(visit, error)
            except ClientDisconnect:
                return Response(status_code=499)

        return Route(path, endpoint, methods=[method])

    async def _let_in(
        self, visit: PageVisit, *, needs_session: bool, is_form: bool
    ) -> None:
        front, headers = self.front, visit.request.headers
        is_change = visit.request.method == "POST"
        # Why reads too: pages of another port of this machine count as the same site,
        # and could use up the streams that a browser may have.
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
            if is_form:
                visit.form = await read_form(visit.request, front.settings)
            if needs_session:
                check_csrf(visit)

    def _refuse(self, visit: PageVisit, error: ApiError) -> Response:
        log_refusal(visit.request.scope, error)
        if error.status in {401, 403, 429} and error.code != "not_logged_in":
            self.front.metrics.refused(error.code)
            self.front.record_attempt(RefusedAttempt(error.code, visit.client))
        is_look = visit.request.method == "GET" and not visit.wants_json
        if error.code == "not_logged_in" and is_look:
            return RedirectResponse("/login", status_code=303)
        return refusal(visit, error)


def refusal(visit: PageVisit, error: ApiError) -> Response:
    """Write an error, as a page or as JSON for scripts."""
    headers: dict[str, str] = {}
    if error.retry_after is not None:
        headers["retry-after"] = str(max(1, round(error.retry_after)))
    if visit.wants_json:
        text = visit.words.say(error.text)
        body = msgspec.json.encode({"error": text, "code": error.code})
        return Response(body, error.status, headers, JSON)
    values = {"title": HTTPStatus(error.status).phrase, "text": error.text}
    response = visit.page("error.html", values, error.status)
    response.headers.update(headers)
    return response


def check_csrf(visit: PageVisit) -> None:
    """Refuse a form without the session's CSRF token.

    Raises:
        ApiError: 403.
    """
    given = visit.request.headers.get("x-csrf") or visit.form.get("csrf", "")
    if not hmac.compare_digest(given.encode(), csrf_of(visit.cookie).encode()):
        text = "this form is not of this session; load the page again, and repeat it"
        raise ApiError(403, text, code="bad_csrf")


async def read_form(request: Request, settings: HttpSettings) -> Mapping[str, str]:
    """Read a posted form; of equal names, the last counts.

    Raises:
        ApiError: 400 not a form, 413 too long, 408 too slow.
        ClientDisconnect: the client has closed the connection.
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
