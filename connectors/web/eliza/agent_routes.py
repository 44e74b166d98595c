"""Agents and the server itself over HTTP: who can be spoken to, and whether it runs.

Agents are made and changed in the settings, and on the way of a message; not here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.web.eliza.desk import both, ok, raw
from connectors.web.eliza.errors import missing
from connectors.web.eliza.ids import to_uuid
from connectors.web.eliza.shapes import iso
from connectors.web.errors import ApiError

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from connectors.web.eliza.channels import Channels
    from connectors.web.eliza.desk import Call, Desk
    from connectors.web.eliza.shapes import Json


class AgentRoutes:
    """What is asked about agents and about the server.

    Args:
        channels: knows the agents.
        version: of this program.
        started: Unix milliseconds.
    """

    def __init__(self, channels: Channels, version: str, started: int) -> None:
        self._channels = channels
        self._version = version
        self._started = started

    def routes(self, desk: Desk) -> list[BaseRoute]:
        """Give the routes; `worlds` stands before what would take it for an agent."""
        one = "/api/agents/{agent}"
        return [
            desk.route("GET", "/api/agents", "read", self.all),
            desk.route("GET", one, "read", self.show),
            desk.route("GET", f"{one}/panels", "read", self.panels),
            desk.route("GET", "/api/server/ping", None, self.ping),
            desk.route("GET", "/api/server/hello", None, self.hello),
            desk.route("GET", "/api/server/status", "read", self.status),
            desk.route("GET", "/api/server/health", None, self.health),
            desk.route("GET", "/api/server/debug/servers", "read", self.servers),
            desk.route("GET", "/api/system/version", "read", self.version),
            desk.route("GET", "/api/system/config", None, self.config),
            desk.route("GET", "/healthz", None, self.healthz),
            desk.route("GET", "/health", None, self.health),
        ]

    async def all(self, _call: Call) -> Response:
        """List the agents by name."""
        agents = sorted(self._channels.agents.all().items(), key=lambda each: each[1])
        return ok({"agents": [shown(*each) for each in agents]})

    async def show(self, call: Call) -> Response:
        """Show one, by its id or its name."""
        agent_id = to_uuid(call.request.path_params["agent"])
        name = self._channels.agents.name(agent_id)
        if not name:
            raise missing("agent", call.request.path_params["agent"])
        return ok(shown(agent_id, name))

    async def panels(self, _call: Call) -> Response:
        """List the pages of an agent's own, of which there are none."""
        return ok([])

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
            "version": self._version,
            "uptime": self._uptime(call),
            "timestamp": self._now(call),
        }
        return raw(told)

    async def health(self, call: Call) -> Response:
        """Say whether anybody can answer; 503: there are no agents."""
        agents = len(self._channels.agents.all())
        told: Json = {
            "status": "OK" if agents else "DEGRADED",
            "version": self._version,
            "timestamp": self._now(call),
            "dependencies": {"agents": "healthy" if agents else "no_agents"},
            "agentCount": agents,
        }
        return raw(told, 200 if agents else 503)

    async def healthz(self, call: Call) -> Response:
        """Say that the loop runs."""
        return raw({"status": "ok", "timestamp": self._now(call)})

    async def servers(self, call: Call) -> Response:
        """List the servers, for people who look for a mistake."""
        found = await call.look(self._channels.servers)
        names = [{"id": each.id, "name": each.name} for each in found]
        return both({"servers": names, "count": len(names)})

    async def version(self, call: Call) -> Response:
        """Say which release this is."""
        told: Json = {
            "version": self._version,
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


async def not_served(call: Call) -> Response:
    """Refuse what is no part of this server, in the shape of all refusals."""
    path = call.request.url.path
    raise ApiError(404, f"{path}: API endpoint not found", code="not_found")


def shown(agent_id: str, name: str) -> Json:
    """Show an agent."""
    return {
        "id": agent_id,
        "name": name,
        "characterName": name,
        "bio": "",
        "status": "active",
        "enabled": True,
    }
