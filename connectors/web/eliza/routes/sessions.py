"""Sessions and jobs over HTTP: ways to talk to one agent in a channel of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from uuid import uuid4

import msgspec
from msgspec import Meta

from connectors.web.eliza.messages import AGENT_SOURCE, ElizaMessage, Json, iso, wrong
from connectors.web.eliza.request import (
    ElizaCall,
    ElizaRoutes,
    Wait,
    both,
    raw,
    read_time,
)
from connectors.web.eliza.routes.channels import API
from connectors.web.eliza.routes.messages import SayingRoutes
from connectors.web.eliza.services.sessions import (
    STATUSES,
    ElizaSession,
    JobBody,
    SessionBody,
    SessionTimeouts,
    health_shown,
    job_shown,
    session_shown,
    status_shown,
)

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from connectors.web.eliza.app import ElizaServices


SESSIONS = f"{API}/sessions"


class SessionMessageBody(msgspec.Struct, frozen=True):
    """`POST /sessions/:id/messages`."""

    content: Annotated[str, Meta(min_length=1, max_length=4_000)]
    attachments: list[dict[str, object]] | None = None
    metadata: dict[str, object] | None = None
    transport: Wait = "websocket"


class TimeoutsBody(msgspec.Struct, frozen=True):
    """`PATCH /sessions/:id/timeout`, wrapped or not."""

    timeout_config: SessionTimeouts | None = None


class SessionRoutes:
    """Routes of sessions."""

    def __init__(self, services: ElizaServices) -> None:
        self._sessions = services.sessions
        self._history = services.history
        self._saying = SayingRoutes(services)
        self._started = services.started

    def routes(self, desk: ElizaRoutes) -> list[BaseRoute]:
        """Give the routes."""
        one = f"{SESSIONS}/{{session}}"
        return [
            desk.route("GET", f"{SESSIONS}/health", "read", self.health),
            desk.route("GET", SESSIONS, "read", self.all),
            desk.route("POST", SESSIONS, "write", self.make),
            desk.route("GET", one, "read", self.show),
            desk.route("DELETE", one, "write", self.drop),
            desk.route("POST", f"{one}/messages", "write", self.say),
            desk.route("GET", f"{one}/messages", "read", self.page),
            desk.route("POST", f"{one}/renew", "write", self.renew),
            desk.route("POST", f"{one}/heartbeat", "write", self.heartbeat),
            desk.route("PATCH", f"{one}/timeout", "write", self.set_timeouts),
        ]

    async def make(self, call: ElizaCall) -> Response:
        """Begin a session."""
        asked = call.read(SessionBody)
        made = await call.ask(self._sessions.make, call.caller, asked)
        return raw(session_shown(made, self._now(call)), 201)

    async def show(self, call: ElizaCall) -> Response:
        """Show a session."""
        return raw(session_shown(await self._session(call), self._now(call)))

    async def renew(self, call: ElizaCall) -> Response:
        """Extend a session."""
        found = await call.ask(self._sessions.renew, call.caller, session_name(call))
        return raw(session_shown(found, self._now(call)))

    async def heartbeat(self, call: ElizaCall) -> Response:
        """Note that the client is still there."""
        found, _ = await call.ask(self._sessions.use, call.caller, session_name(call))
        return raw(session_shown(found, self._now(call)))

    async def set_timeouts(self, call: ElizaCall) -> Response:
        """Set other timeouts of a session."""
        asked = call.read(TimeoutsBody).timeout_config
        if asked is None:
            wrapped: Json = {"timeoutConfig": call.body}
            call.body = wrapped
            asked = call.read(TimeoutsBody).timeout_config or SessionTimeouts()
        name = session_name(call)
        found = await call.ask(self._sessions.set_timeouts, call.caller, name, asked)
        return raw(session_shown(found, self._now(call)))

    async def drop(self, call: ElizaCall) -> Response:
        """End a session."""
        name = session_name(call)
        await call.ask(self._sessions.drop, call.caller, name)
        return both({"message": f"ElizaSession {name} deleted successfully"})

    async def all(self, call: ElizaCall) -> Response:
        """List sessions."""
        found = await call.look(self._sessions.all, call.caller)
        now = self._now(call)
        active = [each for each in found if not each.span.is_over(now)]
        shown = [session_shown(each, now) for each in active]
        stats = {
            "totalSessions": len(found),
            "activeSessions": len(active),
            "expiredSessions": len(found) - len(active),
        }
        return raw({"sessions": shown, "total": len(shown), "stats": stats})

    async def health(self, call: ElizaCall) -> Response:
        """Show numbers of sessions."""
        found = await call.look(self._sessions.all, call.caller)
        now = self._now(call)
        active = [each for each in found if not each.span.is_over(now)]
        told: Json = {
            "status": "healthy",
            "activeSessions": len(active),
            "expiringSoon": sum(each.span.is_near_end(now) for each in active),
            "timestamp": iso(now),
            "uptime": (now - self._started) / 1000,
        }
        return raw(told)

    async def say(self, call: ElizaCall) -> Response:
        """Send a message in a session."""
        asked = call.read(SessionMessageBody)
        name = session_name(call)
        session, renewed = await call.ask(self._sessions.use, call.caller, name)
        metadata: Json = {**(asked.metadata or {}), "sessionId": session.id}
        if asked.attachments:
            metadata["attachments"] = asked.attachments
        message = ElizaMessage(
            id=str(uuid4()),
            channel=session.channel,
            server="",
            author=session.user,
            author_name=str(session.metadata.get("userName") or "user"),
            content=asked.content,
            source_type="session",
            source_id=session.id,
            metadata=metadata,
            at=0,
        )
        status = status_shown(session, self._now(call), was_renewed=renewed)
        beside: Json = {"sessionStatus": status}
        return await self._saying.say(call, message, asked.transport, beside)

    async def page(self, call: ElizaCall) -> Response:
        """List messages of a session, the newest first."""
        limit = call.number("limit", 50, 1, 100)
        before = read_time(call.query("before"), "before")
        after = read_time(call.query("after"), "after")
        session = await self._session(call)

        async def read() -> tuple[ElizaMessage, ...]:
            return await self._history.page(
                session.channel, before=before, after=after, limit=limit + 1
            )

        found = await call.ask(read)
        shown = found[:limit]
        body: Json = {
            "messages": [session_message_shown(each) for each in shown],
            "hasMore": len(found) > limit,
        }
        if shown:
            body["cursors"] = {"before": shown[-1].at, "after": shown[0].at}
        return raw(body)

    async def _session(self, call: ElizaCall) -> ElizaSession:
        return await call.look(self._sessions.get, call.caller, session_name(call))

    def _now(self, call: ElizaCall) -> int:
        return int(call.front.clock.wall() * 1000)


def session_name(call: ElizaCall) -> str:
    """Give the id of the session in a path."""
    name: str = call.request.path_params["session"]
    return name.lower()


def session_message_shown(message: ElizaMessage) -> Json:
    """Show a message in the shape of sessions."""
    return {
        "id": message.id,
        "content": message.content,
        "authorId": message.author,
        "isAgent": message.source_type == AGENT_SOURCE,
        "createdAt": iso(message.at),
        "metadata": message.metadata | {"rawMessage": message.raw},
    }


JOBS = f"{API}/jobs"
MOST_JOBS = 500


class JobRoutes:
    """Routes of jobs."""

    def __init__(self, services: ElizaServices) -> None:
        self._jobs = services.jobs
        self._answers = services.answers

    def routes(self, desk: ElizaRoutes) -> list[BaseRoute]:
        """Give the routes."""
        return [
            desk.route("GET", f"{JOBS}/health", "read", self.health),
            desk.route("GET", JOBS, "read", self.all),
            desk.route("POST", JOBS, "write", self.make),
            desk.route("GET", f"{JOBS}/{{job}}", "read", self.show),
        ]

    async def make(self, call: ElizaCall) -> Response:
        """Create a job."""
        asked = call.read(JobBody)
        inbound = self._answers.new_id()
        made = await call.ask(self._jobs.make, call.caller, asked, inbound)
        shown = job_shown(made, self._now(call))
        named = ("jobId", "status", "createdAt", "expiresAt")
        return raw({name: shown[name] for name in named}, 201)

    async def show(self, call: ElizaCall) -> Response:
        """Show a job, with its result if it has one."""
        name = call.id("job")
        found = await call.look(self._jobs.get, call.caller, name)
        return raw(job_shown(found, self._now(call)))

    async def all(self, call: ElizaCall) -> Response:
        """List jobs, the newest first."""
        limit = call.number("limit", 50, 1, MOST_JOBS)
        status = call.query("status")
        if status and status not in STATUSES:
            raise wrong(f"{status!r} is none of {', '.join(STATUSES)}", "status")
        now = self._now(call)
        every = await call.look(self._jobs.all, call.caller)
        found = [each for each in every if status in {"", each.status(now)}]
        shown = [job_shown(each, now) for each in found[:limit]]
        return raw({"jobs": shown, "total": len(every), "filtered": len(found)})

    async def health(self, call: ElizaCall) -> Response:
        """Show statistics of jobs."""
        every = await call.look(self._jobs.all, call.caller)
        return raw(health_shown(every, self._now(call), self._jobs.limit))

    def _now(self, call: ElizaCall) -> int:
        return int(call.front.clock.wall() * 1000)
