"""Sessions over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from uuid import uuid4

import msgspec
from msgspec import Meta

from connectors.web.eliza.asked import Wait
from connectors.web.eliza.desk import both, raw
from connectors.web.eliza.server_routes import API
from connectors.web.eliza.session_time import Timeouts
from connectors.web.eliza.sessions import (
    Session,
    SessionAsked,
    session_shown,
    status_shown,
)
from connectors.web.eliza.shapes import AGENT_SOURCE, Message, iso
from connectors.web.eliza.times import milliseconds

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from connectors.web.eliza.channels import Channels
    from connectors.web.eliza.desk import Call, Desk
    from connectors.web.eliza.history import History
    from connectors.web.eliza.saying_routes import SayingRoutes
    from connectors.web.eliza.sessions import Sessions
    from connectors.web.eliza.shapes import Json

SESSIONS = f"{API}/sessions"


class SaidAsked(msgspec.Struct, frozen=True):
    """`POST /sessions/:id/messages`."""

    content: Annotated[str, Meta(min_length=1, max_length=4_000)]
    attachments: list[dict[str, object]] | None = None
    metadata: dict[str, object] | None = None
    transport: Wait = "websocket"


class TimeoutsAsked(msgspec.Struct, frozen=True):
    """`PATCH /sessions/:id/timeout`, wrapped or not."""

    timeout_config: Timeouts | None = None


class SessionRoutes:
    """What is asked about sessions.

    Args:
        sessions: asked on the kernel's side only, as `channels` and `history`.
        channels: where their channels are.
        history: what was said in them.
        saying: says something in them.
        started: Unix milliseconds.
    """

    def __init__(
        self,
        sessions: Sessions,
        channels: Channels,
        history: History,
        saying: SayingRoutes,
        started: int,
    ) -> None:
        self._sessions = sessions
        self._channels = channels
        self._history = history
        self._saying = saying
        self._started = started

    def routes(self, desk: Desk) -> list[BaseRoute]:
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

    async def make(self, call: Call) -> Response:
        """Begin a session."""
        asked = call.read(SessionAsked)
        made = await call.ask(self._sessions.make, call.caller, asked)
        return raw(session_shown(made, self._now(call)), 201)

    async def show(self, call: Call) -> Response:
        """Show a session."""
        return raw(session_shown(await self._session(call), self._now(call)))

    async def renew(self, call: Call) -> Response:
        """Make a session last anew."""
        found = await call.ask(self._sessions.renew, call.caller, name_in(call))
        return raw(session_shown(found, self._now(call)))

    async def heartbeat(self, call: Call) -> Response:
        """Note that somebody is there still."""
        found, _ = await call.ask(self._sessions.use, call.caller, name_in(call))
        return raw(session_shown(found, self._now(call)))

    async def set_timeouts(self, call: Call) -> Response:
        """Make a session last as other timeouts say."""
        asked = call.read(TimeoutsAsked).timeout_config
        if asked is None:
            wrapped: Json = {"timeoutConfig": call.body}
            call.body = wrapped
            asked = call.read(TimeoutsAsked).timeout_config or Timeouts()
        name = name_in(call)
        found = await call.ask(self._sessions.set_timeouts, call.caller, name, asked)
        return raw(session_shown(found, self._now(call)))

    async def drop(self, call: Call) -> Response:
        """End a session."""
        name = name_in(call)
        await call.ask(self._sessions.drop, call.caller, name)
        return both({"message": f"Session {name} deleted successfully"})

    async def all(self, call: Call) -> Response:
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

    async def health(self, call: Call) -> Response:
        """Say how many there are."""
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

    async def say(self, call: Call) -> Response:
        """Say something in a session."""
        asked = call.read(SaidAsked)
        name = name_in(call)
        session, renewed = await call.ask(self._sessions.use, call.caller, name)
        metadata: Json = {**(asked.metadata or {}), "sessionId": session.id}
        if asked.attachments:
            metadata["attachments"] = asked.attachments
        message = Message(
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

    async def page(self, call: Call) -> Response:
        """Give messages of a session, the newest first."""
        limit = call.number("limit", 50, 1, 100)
        before = milliseconds(call.query("before"), "before")
        after = milliseconds(call.query("after"), "after")
        session = await self._session(call)

        async def read() -> tuple[Message, ...]:
            return await self._history.page(
                session.channel, before=before, after=after, limit=limit + 1
            )

        found = await call.ask(read)
        shown = found[:limit]
        body: Json = {
            "messages": [said_shown(each) for each in shown],
            "hasMore": len(found) > limit,
        }
        if shown:
            body["cursors"] = {"before": shown[-1].at, "after": shown[0].at}
        return raw(body)

    async def _session(self, call: Call) -> Session:
        return await call.look(self._sessions.get, call.caller, name_in(call))

    def _now(self, call: Call) -> int:
        return int(call.front.clock.wall() * 1000)


def name_in(call: Call) -> str:
    """Give the id of the session that is meant."""
    name: str = call.request.path_params["session"]
    return name.lower()


def said_shown(message: Message) -> Json:
    """Show a message as sessions do."""
    return {
        "id": message.id,
        "content": message.content,
        "authorId": message.author,
        "isAgent": message.source_type == AGENT_SOURCE,
        "createdAt": iso(message.at),
        "metadata": message.metadata | {"rawMessage": message.raw},
    }
