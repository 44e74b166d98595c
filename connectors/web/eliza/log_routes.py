"""The program's log over HTTP: its newest lines, for who operates it.

They tell of all channels, so no key that is kept from any of them sees one (scope
`operate`). What a client writes here stands in the log as its words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.web.eliza.asked import LogsAsked, LogsGiven, read
from connectors.web.eliza.desk import both, raw
from connectors.web.eliza.log_ring import LEVELS, Filter
from connectors.web.eliza.log_streams import level_of
from connectors.web.eliza.times import milliseconds
from runtime.logs import EventLog

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from connectors.web.eliza.channels import Channels
    from connectors.web.eliza.desk import Call, Desk
    from connectors.web.eliza.log_ring import LogRing
    from connectors.web.eliza.shapes import Json

LOG = EventLog("web.client")

USUAL = 100
MOST_GIVEN = 1_000
HOUR = 3_600_000


class LogRoutes:
    """What is asked about the log.

    Args:
        ring: has the lines.
        channels: knows the agents.
    """

    def __init__(self, ring: LogRing, channels: Channels) -> None:
        self._ring = ring
        self._channels = channels

    def routes(self, desk: Desk) -> list[BaseRoute]:
        """Give the routes."""
        path = "/api/server/logs"
        return [
            desk.route("GET", path, "operate", self.page),
            desk.route("POST", path, "operate", self.post),
            desk.route("DELETE", path, "operate", self.clear),
        ]

    async def page(self, call: Call) -> Response:
        """Give the newest lines that fit, the oldest first."""
        given: Json = {
            name: value for name, value in call.request.query_params.items() if value
        }
        if "limit" in given:
            given["limit"] = call.number("limit", USUAL, 1, MOST_GIVEN)
        return self._page(call, read(given, LogsAsked))

    async def post(self, call: Call) -> Response:
        """Do the same for what a body asks; or take a client's own lines in."""
        if "logs" not in call.body:
            return self._page(call, call.read(LogsAsked))
        given = call.read(LogsGiven).logs
        for each in given:
            write = {"debug": LOG.debug, "warn": LOG.warning, "error": LOG.error}
            told = write.get(each.level, LOG.info)
            told("client says", source=each.source, text=each.message)
        return both({"received": len(given)})

    async def clear(self, _call: Call) -> Response:
        """Forget the lines that are kept here; those that were written stay."""
        count = self._ring.clear()
        told: Json = {"status": "success", "message": f"{count} lines forgotten"}
        return raw(told | {"cleared": count})

    def _page(self, call: Call, asked: LogsAsked) -> Response:
        now = int(call.front.clock.wall() * 1000)
        since = milliseconds(str(asked.since or ""), "since") or now - HOUR
        name = "" if asked.agent_name == "all" else asked.agent_name
        if asked.agent_id not in {"", "all"}:
            name = self._channels.agents.name(asked.agent_id) or asked.agent_id
        wanted = Filter(level_of(asked.level), name, since)
        found = [each for each in self._ring.entries() if wanted.fits(each)]
        shown = [each.shown() for each in found[-asked.limit :]]
        told: Json = {
            "logs": shown,
            "count": len(shown),
            "total": len(found),
            "requestedLevel": asked.level,
            "level": asked.level,
            "agentName": asked.agent_name,
            "agentId": asked.agent_id or "all",
            "levels": list(LEVELS),
        }
        return raw(told)
