"""Agents, their runs and their logs over HTTP.

Changes need the scope `operate`. An agent of the settings is changed in the settings
only; one that is created here gets what `[hiring]` grants. Log entries are derived from
messages and deleted with them, so none is deleted by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast, get_args

from connectors.web.eliza.bodies import read_time
from connectors.web.eliza.errors import wrong
from connectors.web.eliza.ids import is_uuid
from connectors.web.eliza.messages import Json, iso
from connectors.web.eliza.request import ElizaCall, ElizaRoutes, gone, ok
from connectors.web.eliza.services.agents import IGNORED_FIELDS, character_in, wish_of
from connectors.web.eliza.services.runs import (
    STATUSES,
    RunQuery,
    RunStatus,
    events_of,
    logs_of,
    run_shown,
)
from connectors.web.errors import ApiError

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from connectors.web.eliza.app import ElizaServices
    from connectors.web.eliza.services.agents import AgentRecord


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
