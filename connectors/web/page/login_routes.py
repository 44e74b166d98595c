"""Logging in by a link, once, and out.

To open a link uses nothing up: chats fetch what is written in them to show a preview.
Only the button on that page does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse

from connectors.web.errors import ApiError
from connectors.web.page.headers import cookie

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from connectors.web.page.front import Routes, Visit

MOST_TOKEN = 64

USED = (
    "this link does not hold: it was used, is too old, or was never made;"
    " run `callboard login` for another one"
)


class LoginRoutes:
    """The routes by which browsers are logged in and out."""

    def routes(self, routes: Routes) -> list[BaseRoute]:
        """Give them."""
        return [
            routes.open("GET", "/login", self._explain),
            routes.open("GET", "/login/{token}", self._offer),
            routes.open("POST", "/login", self._enter),
            routes.closed("POST", "/logout", self._leave),
        ]

    async def _explain(self, visit: Visit) -> Response:
        if visit.session is not None:
            return RedirectResponse("/", status_code=303)
        return visit.page("login.html", {"token": ""})

    async def _offer(self, visit: Visit) -> Response:
        token = str(visit.request.path_params["token"])
        return visit.page("login.html", {"token": token[:MOST_TOKEN]})

    async def _enter(self, visit: Visit) -> Response:
        front, token = visit.front, visit.form.get("token", "")
        entered = None
        if 0 < len(token) <= MOST_TOKEN:
            entered = await visit.ask(front.logins.enter, token)
        if entered is None:
            raise self._failed(visit)
        front.figures.logged_in()
        front.figures.sessions(await visit.ask(front.logins.count))
        response = RedirectResponse("/", status_code=303)
        header = cookie(front.config, entered.cookie, entered.seconds)
        response.headers["set-cookie"] = header
        return response

    def _failed(self, visit: Visit) -> ApiError:
        """Count a login that failed, and say whether to wait.

        A link that holds lets in all the same: behind a proxy all browsers have one
        address, and nobody can guess a link.
        """
        tries, now = visit.front.tries, visit.front.clock.monotonic()
        wait = tries.wait(visit.client, now)
        tries.failed(visit.client, now)
        if wait > 0:
            text = "too many links that do not hold; wait some minutes"
            return ApiError(429, text, code="too_many_logins", retry_after=wait)
        return ApiError(403, USED, code="bad_link")

    async def _leave(self, visit: Visit) -> Response:
        front = visit.front
        await visit.ask(front.logins.leave, visit.cookie)
        front.figures.sessions(await visit.ask(front.logins.count))
        response = RedirectResponse("/login", status_code=303)
        response.headers["set-cookie"] = cookie(front.config, "", 0)
        return response
