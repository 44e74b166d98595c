"""The program itself over HTTP: health, version, settings, log, and its end.

Settings are shown with all secrets masked, and not changed here: the program reloads
their file by itself. The log covers all channels, so it needs the scope `operate`;
lines that clients write are marked as theirs.
"""

from __future__ import annotations

import os
import resource
import sys
from typing import TYPE_CHECKING

from connectors.web.eliza.bodies import (
    ClientLogLines,
    LogQuery,
    read_body_as,
    read_time,
)
from connectors.web.eliza.messages import Json, iso
from connectors.web.eliza.request import ElizaCall, ElizaRoutes, both, ok, raw
from connectors.web.eliza.socketio.logs import LEVELS, LogFilter, level_of
from connectors.web.errors import ApiError
from runtime import __version__
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from connectors.web.eliza.app import ElizaServices


class ProgramRoutes:
    """Routes of the program."""

    def __init__(self, services: ElizaServices) -> None:
        self._channels = services.channels
        self._backstage = services.backstage
        self._started = services.started

    def routes(self, desk: ElizaRoutes) -> list[BaseRoute]:
        """Give the routes."""
        env = "/api/system/env/local"
        return [
            desk.route("GET", "/api/server/ping", None, self.ping),
            desk.route("GET", "/api/server/hello", None, self.hello),
            desk.route("GET", "/api/server/status", "read", self.status),
            desk.route("GET", "/api/server/health", None, self.health),
            desk.route("POST", "/api/server/stop", "operate", self.stop),
            desk.route("GET", "/api/server/debug/servers", "read", self.servers),
            desk.route("GET", env, "operate", self.environment),
            desk.route("POST", env, "operate", self.change_environment),
            desk.route("GET", "/api/system/version", "read", self.version),
            desk.route("GET", "/api/system/config", None, self.config),
            desk.route("GET", "/healthz", None, self.healthz),
            desk.route("GET", "/health", None, self.health),
        ]

    async def ping(self, call: ElizaCall) -> Response:
        """Answer a ping."""
        return raw({"pong": True, "timestamp": self._now(call)})

    async def hello(self, _call: ElizaCall) -> Response:
        """Say hello."""
        return raw({"message": "Hello World!"})

    async def status(self, call: ElizaCall) -> Response:
        """Show the status, with all fields of the client's types."""
        agents = len(self._channels.agents.all())
        told: Json = {
            "status": "ok",
            "agentCount": agents,
            "agents": {"total": agents, "active": agents, "inactive": 0},
            "memory": memory_shown(),
            "version": __version__,
            "uptime": self._uptime(call),
            "timestamp": self._now(call),
        }
        return raw(told)

    async def health(self, call: ElizaCall) -> Response:
        """Show whether agents can answer; 503: there are none."""
        agents = len(self._channels.agents.all())
        told: Json = {
            "status": "OK" if agents else "DEGRADED",
            "timestamp": self._now(call),
            "dependencies": {"agents": "healthy" if agents else "no_agents"},
            "checks": {"agents": {"status": "pass" if agents else "fail"}},
            "agentCount": agents,
        }
        if "read" in call.caller.scopes:  # strangers could look for known faults
            told |= {"version": __version__, "uptime": self._uptime(call)}
        return raw(told, 200 if agents else 503)

    async def healthz(self, call: ElizaCall) -> Response:
        """Show that the loop runs."""
        return raw({"status": "ok", "timestamp": self._now(call)})

    async def stop(self, call: ElizaCall) -> Response:
        """Stop the program in order: accepted messages are answered before."""
        await call.look(self._backstage.end)
        return both({"message": "Server is stopping"})

    async def servers(self, call: ElizaCall) -> Response:
        """List the servers, for debugging."""
        found = await call.look(self._channels.servers)
        names = [{"id": each.id, "name": each.name} for each in found]
        known = self._channels.agents
        agents = [
            {"id": agent_id, "name": known.shown(name), "status": "active"}
            for agent_id, name in known.all().items()
        ]
        runtime: Json = {"agents": agents, "memory": memory_shown()}
        return both({"servers": names, "count": len(names), "runtime": runtime})

    async def environment(self, call: ElizaCall) -> Response:
        """List all settings by their full names; secrets are masked."""
        return ok(dict(await call.look(self._backstage.settings)))

    async def change_environment(self, _call: ElizaCall) -> Response:
        """Refuse: settings are changed in their file."""
        text = (
            "settings are changed in their file, and taken over while this runs:"
            " callboard config show, docs/operate/settings.md"
        )
        raise ApiError(403, text, code="read_only_settings", may_repeat=False)

    async def version(self, call: ElizaCall) -> Response:
        """Show the version."""
        told: Json = {
            "version": __version__,
            "source": "callboard",
            "timestamp": self._now(call),
            "environment": "production",
            "uptime": self._uptime(call),
        }
        return raw(told)

    async def config(self, call: ElizaCall) -> Response:
        """Show whether requests need a key."""
        return raw({"requiresAuth": call.front.keys.are_needed})

    def _now(self, call: ElizaCall) -> str:
        return iso(int(call.front.clock.wall() * 1000))

    def _uptime(self, call: ElizaCall) -> float:
        return call.front.clock.wall() - self._started / 1000


def memory_shown() -> Json:
    """Show the peak memory of the program and the memory of this machine, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"used": used, "total": total, "percentage": round(100 * used / total, 2)}


LOG = EventLog("web.client")

USUAL = 100
MOST_GIVEN = 1_000
HOUR = 3_600_000


class LogRoutes:
    """Routes of the log."""

    def __init__(self, services: ElizaServices) -> None:
        self._ring = services.logs
        self._channels = services.channels

    def routes(self, desk: ElizaRoutes) -> list[BaseRoute]:
        """Give the routes."""
        path = "/api/server/logs"
        return [
            desk.route("GET", path, "operate", self.page),
            desk.route("POST", path, "operate", self.post),
            desk.route("DELETE", path, "operate", self.clear),
        ]

    async def page(self, call: ElizaCall) -> Response:
        """List the newest matching lines, the oldest first."""
        given: Json = {
            name: value for name, value in call.request.query_params.items() if value
        }
        if "limit" in given:
            given["limit"] = call.number("limit", USUAL, 1, MOST_GIVEN)
        return self._page(call, read_body_as(given, LogQuery))

    async def post(self, call: ElizaCall) -> Response:
        """List lines as a body asks, or write a client's lines to the log."""
        if "logs" not in call.body:
            return self._page(call, call.read(LogQuery))
        given = call.read(ClientLogLines).logs
        for each in given:
            write = {"debug": LOG.debug, "warn": LOG.warning, "error": LOG.error}
            told = write.get(each.level, LOG.info)
            # A line of a program's log, which nobody would read here without its words.
            told("client says", source=each.source, text=each.message)
        return both({"received": len(given)})

    async def clear(self, _call: ElizaCall) -> Response:
        """Drop the lines in memory; the log itself stays."""
        count = self._ring.clear()
        told: Json = {"status": "success", "message": f"{count} lines forgotten"}
        return raw(told | {"cleared": count})

    def _page(self, call: ElizaCall, asked: LogQuery) -> Response:
        now = int(call.front.clock.wall() * 1000)
        since = read_time(str(asked.since or ""), "since") or now - HOUR
        name = "" if asked.agent_name == "all" else asked.agent_name
        if asked.agent_id not in {"", "all"}:
            name = self._channels.agents.name(asked.agent_id) or asked.agent_id
        wanted = LogFilter(level_of(asked.level), name, since)
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
