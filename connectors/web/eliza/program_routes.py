"""The program itself over HTTP: does it run, which release, its settings, its end.

Settings are shown with every secret masked, and are not changed here: they are a file
of whoever runs the program, which takes changes of it over by itself.
"""

from __future__ import annotations

import os
import resource
import sys
from typing import TYPE_CHECKING

from connectors.web.eliza.desk import both, ok, raw
from connectors.web.eliza.shapes import iso
from connectors.web.errors import ApiError
from runtime import __version__

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from connectors.web.backstage import Backstage
    from connectors.web.eliza.channels import Channels
    from connectors.web.eliza.desk import Call, Desk
    from connectors.web.eliza.shapes import Json


class ProgramRoutes:
    """What is asked about the program.

    Args:
        channels: knows the agents.
        backstage: the settings, and the program's end.
        started: Unix milliseconds.
    """

    def __init__(self, channels: Channels, backstage: Backstage, started: int) -> None:
        self._channels = channels
        self._backstage = backstage
        self._started = started

    def routes(self, desk: Desk) -> list[BaseRoute]:
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

    async def ping(self, call: Call) -> Response:
        """Say that it is there."""
        return raw({"pong": True, "timestamp": self._now(call)})

    async def hello(self, _call: Call) -> Response:
        """Say hello."""
        return raw({"message": "Hello World!"})

    async def status(self, call: Call) -> Response:
        """Say how it is, with all that the client's types speak of."""
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

    async def health(self, call: Call) -> Response:
        """Say whether anybody can answer; 503: there are no agents."""
        agents = len(self._channels.agents.all())
        told: Json = {
            "status": "OK" if agents else "DEGRADED",
            "version": __version__,
            "timestamp": self._now(call),
            "uptime": self._uptime(call),
            "dependencies": {"agents": "healthy" if agents else "no_agents"},
            "checks": {"agents": {"status": "pass" if agents else "fail"}},
            "agentCount": agents,
        }
        return raw(told, 200 if agents else 503)

    async def healthz(self, call: Call) -> Response:
        """Say that the loop runs."""
        return raw({"status": "ok", "timestamp": self._now(call)})

    async def stop(self, call: Call) -> Response:
        """Have the program end in order: what it has taken in is answered before."""
        await call.look(self._backstage.end)
        return both({"message": "Server is stopping"})

    async def servers(self, call: Call) -> Response:
        """List the servers, for people who look for a mistake."""
        found = await call.look(self._channels.servers)
        names = [{"id": each.id, "name": each.name} for each in found]
        agents = [
            {"id": agent_id, "name": name, "status": "active"}
            for agent_id, name in self._channels.agents.all().items()
        ]
        runtime: Json = {"agents": agents, "memory": memory_shown()}
        return both({"servers": names, "count": len(names), "runtime": runtime})

    async def environment(self, call: Call) -> Response:
        """Give all settings, each by its whole name; secrets are masked."""
        return ok(dict(await call.look(self._backstage.settings)))

    async def change_environment(self, _call: Call) -> Response:
        """Refuse: settings are a file, whose changes are taken over by themselves."""
        text = (
            "settings are changed in their file, and taken over while this runs:"
            " callboard config show, README 'Settings'"
        )
        raise ApiError(403, text, code="read_only_settings", may_repeat=False)

    async def version(self, call: Call) -> Response:
        """Say which release this is."""
        told: Json = {
            "version": __version__,
            "source": "callboard",
            "timestamp": self._now(call),
            "environment": "production",
            "uptime": self._uptime(call),
        }
        return raw(told)

    async def config(self, call: Call) -> Response:
        """Say whether a key is needed."""
        return raw({"requiresAuth": call.front.keys.are_needed})

    def _now(self, call: Call) -> str:
        return iso(int(call.front.clock.wall() * 1000))

    def _uptime(self, call: Call) -> float:
        return call.front.clock.wall() - self._started / 1000


def memory_shown() -> Json:
    """Say how much memory it has used at most, and how much this machine has; bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"used": used, "total": total, "percentage": round(100 * used / total, 2)}
