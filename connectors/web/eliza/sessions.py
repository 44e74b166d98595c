"""Sessions: one person and one agent in a channel of their own, for a while.

On the kernel's side. They are kept, so that a client goes on with its own after a
restart of this program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec
from msgspec import structs

from connectors.web.eliza.errors import full, missing
from connectors.web.eliza.ids import ZERO, Uuid
from connectors.web.eliza.session_time import Span, Timeouts, span
from connectors.web.eliza.shapes import Channel, iso
from connectors.web.eliza.shelf import Shelf
from connectors.web.errors import ApiError

if TYPE_CHECKING:
    from connectors.web.eliza.channels import Channels
    from connectors.web.eliza.keys import Caller
    from connectors.web.eliza.shapes import Json
    from connectors.web.eliza.shelf import Room

AFTER_END = 3_600_000
"""Milliseconds that an ended session is remembered, so that who asks is told."""


class SessionAsked(msgspec.Struct, frozen=True):
    """`POST /sessions`."""

    agent_id: Uuid
    user_id: Uuid
    metadata: dict[str, object] = {}
    timeout_config: Timeouts = Timeouts()


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """One session."""

    id: str
    channel: str
    agent: str
    user: str
    metadata: dict[str, object] = {}
    span: Span


class Sessions:
    """The sessions of one connector.

    Args:
        room: where they are kept.
        limit: most of them.
        channels: where their channels are.
    """

    def __init__(self, room: Room, limit: int, channels: Channels) -> None:
        self._shelf = Shelf(room, "web_session", Session, limit)
        self._channels = channels

    async def load(self) -> None:
        """Read what there is.

        Raises:
            StoreError: the disk fails.
        """
        await self._shelf.load()

    async def make(self, caller: Caller, asked: SessionAsked) -> Session:
        """Begin a session.

        Raises:
            ApiError: there is no such agent; 403; there are too many.
            StoreError: the disk fails.
        """
        agent, user = asked.agent_id.lower(), caller.speaker(asked.user_id.lower())
        self._channels.need_agent(agent)
        await self._make_way()
        name, now = str(uuid4()), self._channels.now()
        session_metadata = {
            "sessionId": name,
            "agentId": agent,
            "userId": user,
            "timeoutConfig": msgspec.to_builtins(asked.timeout_config),
        }
        channel = Channel(
            id="",
            server=ZERO,
            name=f"session-{name}",
            type="DM",
            metadata={**asked.metadata, **session_metadata},
            participants=(user, agent),
        )
        made = await self._channels.make(caller, channel)
        session = Session(
            id=name,
            channel=made.id,
            agent=agent,
            user=user,
            metadata=asked.metadata,
            span=span(now, asked.timeout_config),
        )
        await self._shelf.put(session)
        return session

    def get(self, caller: Caller, name: str) -> Session:
        """Give one that has not ended.

        Raises:
            ApiError: 404; 410: it has ended; 403.
        """
        found = self._shelf.get(name)
        if found is None:
            raise missing("session", name)
        self._channels.channel(caller, found.channel)
        if found.span.is_over(self._channels.now()):
            text = f"session {name} ended at {iso(found.span.expires_at)}"
            raise ApiError(410, text, code="session_expired", may_repeat=False)
        return found

    async def use(self, caller: Caller, name: str) -> tuple[Session, bool]:
        """Note that one is used; tell whether that has renewed it.

        Raises:
            ApiError: see `get`.
            StoreError: the disk fails.
        """
        found = self.get(caller, name)
        used = structs.replace(found, span=found.span.used(self._channels.now()))
        await self._shelf.put(used)
        return used, used.span.renewals > found.span.renewals

    async def renew(self, caller: Caller, name: str) -> Session:
        """Make one last anew.

        Raises:
            ApiError: see `get`; 400: it has lasted as long as it may.
            StoreError: the disk fails.
        """
        found = self.get(caller, name)
        again = found.span.renewed(self._channels.now())
        if again is found.span:
            text = f"session {name} cannot last longer than it does"
            raise ApiError(400, text, code="session_renewal_failed", may_repeat=False)
        renewed = structs.replace(found, span=again)
        await self._shelf.put(renewed)
        return renewed

    async def set_timeouts(
        self, caller: Caller, name: str, timeouts: Timeouts
    ) -> Session:
        """Make one last as other timeouts say.

        Raises:
            ApiError: see `get`.
            StoreError: the disk fails.
        """
        found = self.get(caller, name)
        changed = found.span.with_timeouts(timeouts, self._channels.now())
        session = structs.replace(found, span=changed)
        await self._shelf.put(session)
        return session

    async def drop(self, caller: Caller, name: str) -> None:
        """End one; what was said in its channel stays.

        Raises:
            ApiError: 404, 403.
            StoreError: the disk fails.
        """
        found = self._shelf.get(name)
        if found is None:
            raise missing("session", name)
        self._channels.channel(caller, found.channel)
        await self._shelf.drop(name)

    def all(self, caller: Caller) -> tuple[Session, ...]:
        """Give those that a caller may see, ended ones too."""
        return tuple(
            each
            for each in self._shelf.all()
            if (channel := self._channels.find(each.channel)) is not None
            and caller.may_enter(channel)
        )

    async def forget_ended(self) -> None:
        """Forget those that ended a while ago.

        Raises:
            StoreError: the disk fails.
        """
        before = self._channels.now() - AFTER_END
        for each in self._shelf.all():
            is_lost = self._channels.find(each.channel) is None
            if is_lost or each.span.is_over(before):
                await self._shelf.drop(each.id)

    async def _make_way(self) -> None:
        """Make room for one more.

        Raises:
            ApiError: all there are go on still.
        """
        if not self._shelf.is_full:
            return
        now = self._channels.now()
        for each in self._shelf.all():
            if each.span.is_over(now):
                await self._shelf.drop(each.id)
        if self._shelf.is_full:
            raise full(f"there are {self._shelf.limit} sessions; end some")


def session_shown(session: Session, now: int) -> Json:
    """Show a session."""
    lasts = session.span
    return {
        "sessionId": session.id,
        "channelId": session.channel,
        "agentId": session.agent,
        "userId": session.user,
        "createdAt": iso(lasts.created_at),
        "lastActivity": iso(lasts.used_at),
        "metadata": session.metadata,
        "expiresAt": iso(lasts.expires_at),
        "timeoutConfig": msgspec.to_builtins(lasts.timeouts),
        "renewalCount": lasts.renewals,
        "timeRemaining": max(0, lasts.expires_at - now),
        "isNearExpiration": lasts.is_near_end(now),
    }


def status_shown(session: Session, now: int, *, was_renewed: bool) -> Json:
    """Show how long a session lasts still."""
    return {
        "expiresAt": iso(session.span.expires_at),
        "renewalCount": session.span.renewals,
        "wasRenewed": was_renewed,
        "isNearExpiration": session.span.is_near_end(now),
    }
