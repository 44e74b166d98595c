"""Jobs over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.web.eliza.desk import raw
from connectors.web.eliza.errors import wrong
from connectors.web.eliza.jobs import (
    STATUSES,
    JobAsked,
    health_shown,
    job_shown,
)
from connectors.web.eliza.server_routes import API

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from connectors.web.eliza.awaiting import Awaiting
    from connectors.web.eliza.desk import Call, Desk
    from connectors.web.eliza.jobs import Jobs

JOBS = f"{API}/jobs"
MOST_LISTED = 500


class JobRoutes:
    """What is asked about jobs.

    Args:
        jobs: asked on the kernel's side only.
        awaiting: makes the ids of messages.
    """

    def __init__(self, jobs: Jobs, awaiting: Awaiting) -> None:
        self._jobs = jobs
        self._awaiting = awaiting

    def routes(self, desk: Desk) -> list[BaseRoute]:
        """Give the routes."""
        return [
            desk.route("GET", f"{JOBS}/health", "read", self.health),
            desk.route("GET", JOBS, "read", self.all),
            desk.route("POST", JOBS, "write", self.make),
            desk.route("GET", f"{JOBS}/{{job}}", "read", self.show),
        ]

    async def make(self, call: Call) -> Response:
        """Begin a job."""
        asked = call.read(JobAsked)
        inbound = self._awaiting.new_id()
        made = await call.ask(self._jobs.make, call.caller, asked, inbound)
        shown = job_shown(made, self._now(call))
        named = ("jobId", "status", "createdAt", "expiresAt")
        return raw({name: shown[name] for name in named}, 201)

    async def show(self, call: Call) -> Response:
        """Show a job, with its result when it has one."""
        name = call.id("job")
        found = await call.look(self._jobs.get, call.caller, name)
        return raw(job_shown(found, self._now(call)))

    async def all(self, call: Call) -> Response:
        """List jobs, the newest first."""
        limit = call.number("limit", 50, 1, MOST_LISTED)
        status = call.query("status")
        if status and status not in STATUSES:
            raise wrong(f"{status!r} is none of {', '.join(STATUSES)}", "status")
        now = self._now(call)
        every = await call.look(self._jobs.all, call.caller)
        found = [each for each in every if status in {"", each.status(now)}]
        shown = [job_shown(each, now) for each in found[:limit]]
        return raw({"jobs": shown, "total": len(every), "filtered": len(found)})

    async def health(self, call: Call) -> Response:
        """Say how jobs go."""
        every = await call.look(self._jobs.all, call.caller)
        return raw(health_shown(every, self._now(call), self._jobs.limit))

    def _now(self, call: Call) -> int:
        return int(call.front.clock.wall() * 1000)
