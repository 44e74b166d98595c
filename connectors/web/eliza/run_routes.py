"""Runs of agents over HTTP, and the agents' logs, which tell the same in entries.

An entry of a log is no row of its own: it follows from a message, and goes with it.
So none is deleted by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast, get_args

from connectors.web.eliza.desk import ok
from connectors.web.eliza.errors import wrong
from connectors.web.eliza.ids import is_uuid
from connectors.web.eliza.memory_routes import agent_in
from connectors.web.eliza.run_shapes import (
    STATUSES,
    RunStatus,
    events_of,
    logs_of,
    run_shown,
)
from connectors.web.eliza.runs import Wanted
from connectors.web.eliza.times import milliseconds
from connectors.web.errors import ApiError

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from connectors.web.eliza.desk import Call, Desk
    from connectors.web.eliza.parts import Parts
    from connectors.web.eliza.shapes import Json

MOST_RUNS = 100

MOST_ENTRIES = 1_000
"""Entries of a log that are passed over, and given, for one question."""


class RunRoutes:
    """What is asked about runs.

    Args:
        parts: as of all routes.
    """

    def __init__(self, parts: Parts) -> None:
        self._runs = parts.runs

    def routes(self, desk: Desk) -> list[BaseRoute]:
        """Give the routes."""
        one = "/api/agents/{agent}"
        return [
            desk.route("GET", f"{one}/runs", "read", self.all),
            desk.route("GET", f"{one}/runs/{{run}}", "read", self.show),
            desk.route("GET", f"{one}/logs", "read", self.logs),
            desk.route("DELETE", f"{one}/logs/{{log}}", "manage", self.forget_log),
        ]

    async def all(self, call: Call) -> Response:
        """List runs, the newest first."""
        limit = call.number("limit", 20, 1, MOST_RUNS)
        wanted = wanted_in(call, limit)
        runs, has_more = await call.ask(
            self._runs.listed, call.caller, agent_in(call), room_in(call), wanted
        )
        shown = [run_shown(each) for each in runs]
        return ok({"runs": shown, "total": len(shown), "hasMore": has_more})

    async def show(self, call: Call) -> Response:
        """Show one run with its events."""
        run = await call.ask(
            self._runs.one, call.caller, agent_in(call), call.id("run"), room_in(call)
        )
        events: list[Json] = [
            {"type": each.type, "timestamp": each.at, "data": each.data}
            for each in events_of(run)
        ]
        return ok({"summary": run_shown(run), "events": events})

    async def logs(self, call: Call) -> Response:
        """List what an agent did, entry by entry, the newest first."""
        count = call.number("count", call.number("limit", 50, 1, 500), 1, 500)
        start = call.number("offset", 0, 0, MOST_ENTRIES)
        wanted = wanted_in(call, MOST_RUNS)
        runs, _ = await call.ask(
            self._runs.listed, call.caller, agent_in(call), room_in(call), wanted
        )
        found = [each for run in runs for each in logs_of(run) if is_wanted(call, each)]
        return ok(found[start : start + count])

    async def forget_log(self, call: Call) -> Response:
        """Refuse: an entry is no row of its own."""
        text = (
            f"entry {call.id('log')} follows from what happened to a message, and is"
            " forgotten with it, some days after that was settled"
        )
        raise ApiError(409, text, code="log_is_history", may_repeat=False)


def is_wanted(call: Call, entry: Json) -> bool:
    """Whether an entry is of a kind that is asked for, and has the words."""
    kind, text = str(entry["type"]), str(entry["message"])
    left_out = [each.strip() for each in call.query("excludeTypes").split(",")]
    is_kind = kind.startswith(call.query("type")) and kind not in left_out
    return is_kind and call.query("search").casefold() in text.casefold()


def wanted_in(call: Call, limit: int) -> Wanted:
    """Say which runs are wanted.

    Raises:
        ApiError: 400: there is no such status, or a time is none.
    """
    status = call.query("status", "all")
    if status not in {"all", *STATUSES}:
        known = ", ".join(("all", *get_args(RunStatus)))
        raise wrong(f"{status!r} is none of {known}", "status")
    return Wanted(
        status=cast("RunStatus", status),
        begin=milliseconds(call.query("from"), "from"),
        end=milliseconds(call.query("to"), "to"),
        limit=limit,
    )


def room_in(call: Call) -> str:
    """Give the id of the room that a query names; empty: it names none.

    Raises:
        ApiError: 400: it is no UUID.
    """
    room = call.query("roomId")
    if room and not is_uuid(room):
        raise wrong(f"{room!r} is no UUID", "roomId")
    return room.lower()
