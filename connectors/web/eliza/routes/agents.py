"""Agents, their runs and their logs over HTTP, and the program itself.

Changes need the scope `operate`. An agent of the settings is changed in the settings
only; one that is created here gets what `[hiring]` grants. Log entries are derived from
messages and deleted with them, so none is deleted by itself.

Of the program there are health, version, settings, log, and its end. Settings are shown
with all secrets masked, and not changed here: the program reloads their file by itself.
The log covers all channels, so it needs the scope `operate`; lines that clients write
are marked as theirs.
"""

from __future__ import annotations

import os
import resource
import sys
from typing import TYPE_CHECKING, cast, get_args

from connectors.web.eliza.messages import Json, is_uuid, iso, wrong
from connectors.web.eliza.request import (
    ClientLogLines,
    ElizaCall,
    ElizaRoutes,
    LogQuery,
    both,
    gone,
    ok,
    raw,
    read_body_as,
    read_time,
)
from connectors.web.eliza.services.runs import (
    IGNORED_FIELDS,
    STATUSES,
    AgentRecord,
    RunQuery,
    RunStatus,
    character_in,
    events_of,
    logs_of,
    run_shown,
    wish_of,
)
from connectors.web.eliza.socketio.logs import LEVELS, LogFilter, level_of
from connectors.web.server import ApiError
from runtime import __version__
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from connectors.web.eliza.app import ElizaServices


class AgentRoutes:
    """Routes that list, create, change, enable and disable agents."""

    def __init__(self, services: ElizaServices) -> None:
        self._agents = services.agents

    def routes(self, desk: ElizaRoutes) -> list[BaseRoute]:
        """Give the routes; to be asked after `/api/agents/worlds`."""
        one = "/api/agents/{agent}"
        return [
            desk.route("GET", "/api/agents", "read", self.all),
            desk.route("POST", "/api/agents", "operate", self.make),
            desk.route("GET", one, "read", self.show),
            desk.route("PATCH", one, "operate", self.change),
            desk.route("DELETE", one, "operate", self.remove),
            desk.route("POST", f"{one}/start", "operate", self.start),
            desk.route("POST", f"{one}/stop", "operate", self.stop),
            desk.route("GET", f"{one}/panels", "read", self.panels),
        ]

    async def all(self, call: ElizaCall) -> Response:
        """List the agents: enabled ones first, then by name."""
        agents = await call.ask(self._agents.all)
        return ok({"agents": [agent_shown(each) for each in agents]})

    async def show(self, call: ElizaCall) -> Response:
        """Show one, by its id or its name."""
        return ok(agent_shown(await self._one(call)))

    async def make(self, call: ElizaCall) -> Response:
        """Create an agent from a character."""
        wish = wish_of(character_in(call.body))
        made = await call.ask(self._agents.make, call.caller, wish)
        left_out = {"leftOut": list(wish.left_out)}
        shown = agent_shown(made)
        return ok(shown | {"character": shown} | left_out, 201)

    async def change(self, call: ElizaCall) -> Response:
        """Change a created agent; fields that are missing stay."""
        wish = wish_of(call.body)
        if wish.left_out:
            what = ", ".join(wish.left_out)
            raise wrong(f"agents here have none: {what}", wish.left_out[0])
        if not any(
            value for key, value in call.body.items() if key not in IGNORED_FIELDS
        ):
            raise wrong("says nothing that is to change", "name")
        agent = await self._one(call)
        changed = await call.ask(self._agents.change, call.caller, agent, wish)
        return ok(agent_shown(changed))

    async def remove(self, call: ElizaCall) -> Response:
        """Delete a created agent; its conversations stay."""
        await call.ask(self._agents.remove, await self._one(call))
        return gone()

    async def start(self, call: ElizaCall) -> Response:
        """Enable an agent."""
        return await self._put_to(call, is_active=True)

    async def stop(self, call: ElizaCall) -> Response:
        """Disable an agent; it finishes its work."""
        return await self._put_to(call, is_active=False)

    async def panels(self, call: ElizaCall) -> Response:
        """List the panels of an agent: agents here have none."""
        await self._one(call)
        return ok([])

    async def _put_to(self, call: ElizaCall, *, is_active: bool) -> Response:
        agent = await self._one(call)

        async def put() -> AgentRecord:
            return await self._agents.put_to(agent, is_active=is_active)

        shown = agent_shown(await call.ask(put))
        text = f"{agent.name} is {shown['status']}"
        return ok(shown | {"message": text})

    async def _one(self, call: ElizaCall) -> AgentRecord:
        return await call.ask(self._agents.one, call.agent())


def agent_shown(agent: AgentRecord) -> Json:
    """Show an agent."""
    shown: Json = {
        "id": agent.id,
        "name": agent.shown or agent.name,
        "characterName": agent.shown or agent.name,
        "bio": agent.description,
        "status": "active" if agent.is_active else "inactive",
        "enabled": agent.is_active,
        "model": agent.model,
        "tools": list(agent.tools),
        "madeBy": agent.made_by,
    }
    if agent.prompt:
        shown["system"] = agent.prompt
    if agent.updated_at:
        shown["updatedAt"] = iso(int(agent.updated_at * 1000))
    return shown


MOST_RUNS = 100

MOST_ENTRIES = 1_000
"""Most log entries that one request skips."""


class RunRoutes:
    """Routes that list runs and logs of agents."""

    def __init__(self, services: ElizaServices) -> None:
        self._runs = services.runs

    def routes(self, desk: ElizaRoutes) -> list[BaseRoute]:
        """Give the routes."""
        one = "/api/agents/{agent}"
        return [
            desk.route("GET", f"{one}/runs", "read", self.all),
            desk.route("GET", f"{one}/runs/{{run}}", "read", self.show),
            desk.route("GET", f"{one}/logs", "read", self.logs),
            desk.route("DELETE", f"{one}/logs/{{log}}", "manage", self.forget_log),
        ]

    async def all(self, call: ElizaCall) -> Response:
        """List runs, the newest first."""
        limit = call.number("limit", 20, 1, MOST_RUNS)
        wanted = wanted_in(call, limit)
        runs, has_more = await call.ask(
            self._runs.listed, call.caller, call.agent(), room_in(call), wanted
        )
        shown = [run_shown(each) for each in runs]
        return ok({"runs": shown, "total": len(shown), "hasMore": has_more})

    async def show(self, call: ElizaCall) -> Response:
        """Show one run with its events."""
        run = await call.ask(
            self._runs.one, call.caller, call.agent(), call.id("run"), room_in(call)
        )
        events: list[Json] = [
            {"type": each.type, "timestamp": each.at, "data": each.data}
            for each in events_of(run)
        ]
        return ok({"summary": run_shown(run), "events": events})

    async def logs(self, call: ElizaCall) -> Response:
        """List the log entries of an agent, the newest first."""
        count = call.number("count", call.number("limit", 50, 1, 500), 1, 500)
        start = call.number("offset", 0, 0, MOST_ENTRIES)
        wanted = wanted_in(call, MOST_RUNS)
        runs, _ = await call.ask(
            self._runs.listed, call.caller, call.agent(), room_in(call), wanted
        )
        found = [each for run in runs for each in logs_of(run) if is_wanted(call, each)]
        return ok(found[start : start + count])

    async def forget_log(self, call: ElizaCall) -> Response:
        """Refuse: log entries are not deleted by themselves."""
        text = (
            f"entry {call.id('log')} follows from what happened to a message, and is"
            " forgotten with it, some days after that was settled"
        )
        raise ApiError(409, text, code="log_is_history", may_repeat=False)


def is_wanted(call: ElizaCall, entry: Json) -> bool:
    """Whether an entry has a wanted type and the searched words."""
    kind, text = str(entry["type"]), str(entry["message"])
    left_out = [each.strip() for each in call.query("excludeTypes").split(",")]
    is_kind = kind.startswith(call.query("type")) and kind not in left_out
    return is_kind and call.query("search").casefold() in text.casefold()


def wanted_in(call: ElizaCall, limit: int) -> RunQuery:
    """Read which runs are wanted.

    Raises:
        ApiError: 400: unknown status, or a wrong time.
    """
    status = call.query("status", "all")
    if status not in {"all", *STATUSES}:
        known = ", ".join(("all", *get_args(RunStatus)))
        raise wrong(f"{status!r} is none of {known}", "status")
    return RunQuery(
        status=cast("RunStatus", status),
        begin=read_time(call.query("from"), "from"),
        end=read_time(call.query("to"), "to"),
        limit=limit,
    )


def room_in(call: ElizaCall) -> str:
    """Give the id of the room in a query; empty: none.

    Raises:
        ApiError: 400: it is not a UUID.
    """
    room = call.query("roomId")
    if room and not is_uuid(room):
        raise wrong(f"{room!r} is no UUID", "roomId")
    return room.lower()


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
