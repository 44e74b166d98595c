"""Sessions and jobs: channels of one person and one agent, for a limited time.

On the kernel's side. Sessions are stored, so that clients can go on after a restart. A
session ends some minutes after its last use, if it renews itself, and at the latest
after its maximal duration.

A job is one question to one agent, whose answer the client asks for later. A job has a
channel of its own; the agent's first message there is its result. Jobs are stored, so
that an answer after a restart completes them, too.
"""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import uuid4

import msgspec
from msgspec import Meta, Struct, structs

from connectors.web.eliza.keys import ApiCaller
from connectors.web.eliza.messages import (
    ZERO,
    ElizaChannel,
    ElizaMessage,
    Json,
    Uuid,
    full,
    iso,
    missing,
)
from connectors.web.eliza.services.channels import Channels, StoredTable
from connectors.web.eliza.services.messages import ChannelMessages, NewMessage
from connectors.web.history import ConnectorStore
from connectors.web.server import ApiError

MINUTE = 60_000


class SessionTimeouts(Struct, frozen=True, rename="camel", kw_only=True):
    """The timeouts that a client chooses; defaults as in the official server."""

    timeout_minutes: Annotated[float, Meta(ge=5, le=1440)] = 30.0
    auto_renew: bool = True
    max_duration_minutes: Annotated[float, Meta(gt=0, le=10_080)] = 720.0
    warning_threshold_minutes: Annotated[float, Meta(ge=0, le=1440)] = 5.0


class SessionSpan(Struct, frozen=True, kw_only=True):
    """The lifetime of a session; times in milliseconds."""

    created_at: int
    used_at: int
    expires_at: int
    renewals: int = 0
    timeouts: SessionTimeouts = SessionTimeouts()

    def is_over(self, now: int) -> bool:
        """Whether it has ended."""
        return now >= self.expires_at

    def is_near_end(self, now: int) -> bool:
        """Whether it ends soon."""
        return self.expires_at - now <= self.timeouts.warning_threshold_minutes * MINUTE

    def used(self, now: int) -> SessionSpan:
        """Note a use; this renews it, if it renews itself."""
        noted = structs.replace(self, used_at=now)
        return noted.renewed(now) if self.timeouts.auto_renew else noted

    def renewed(self, now: int) -> SessionSpan:
        """Extend it as far as allowed; give the same object if it cannot be."""
        until = end_of(self.created_at, now, self.timeouts)
        if until <= self.expires_at:
            return self
        return structs.replace(self, expires_at=until, renewals=self.renewals + 1)

    def with_timeouts(self, timeouts: SessionTimeouts, now: int) -> SessionSpan:
        """Set other timeouts, from now on."""
        until = end_of(self.created_at, now, timeouts)
        return structs.replace(self, timeouts=timeouts, expires_at=until)


def span(now: int, timeouts: SessionTimeouts) -> SessionSpan:
    """Begin a lifetime."""
    return SessionSpan(
        created_at=now,
        used_at=now,
        expires_at=end_of(now, now, timeouts),
        timeouts=timeouts,
    )


def end_of(created_at: int, now: int, timeouts: SessionTimeouts) -> int:
    """Give the end of a session that is used now."""
    by_use = now + int(timeouts.timeout_minutes * MINUTE)
    at_most = created_at + int(timeouts.max_duration_minutes * MINUTE)
    return min(by_use, at_most)


AFTER_END = 3_600_000
"""Milliseconds that an ended session is kept, so that clients learn of its end."""


class SessionBody(msgspec.Struct, frozen=True):
    """`POST /sessions`."""

    agent_id: Uuid
    user_id: Uuid
    metadata: dict[str, object] = {}
    timeout_config: SessionTimeouts = SessionTimeouts()


class ElizaSession(msgspec.Struct, frozen=True, kw_only=True):
    """One session."""

    id: str
    channel: str
    agent: str
    user: str
    metadata: dict[str, object] = {}
    span: SessionSpan


class ElizaSessions:
    """The sessions of one connector.

    Methods that read or write rows raise `StoreError` if the disk fails.
    """

    def __init__(self, place: ConnectorStore, limit: int, channels: Channels) -> None:
        self._shelf = StoredTable(place, "web_session", ElizaSession, limit)
        self._channels = channels

    async def load(self) -> None:
        """Read all sessions."""
        await self._shelf.load()

    async def make(self, caller: ApiCaller, asked: SessionBody) -> ElizaSession:
        """Begin a session.

        Raises:
            ApiError: no such agent; 403; too many exist.
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
        channel = ElizaChannel(
            id="",
            server=ZERO,
            name=f"session-{name}",
            type="DM",
            metadata={**asked.metadata, **session_metadata},
            participants=(user, agent),
        )
        made = await self._channels.make(caller, channel)
        session = ElizaSession(
            id=name,
            channel=made.id,
            agent=agent,
            user=user,
            metadata=asked.metadata,
            span=span(now, asked.timeout_config),
        )
        await self._shelf.put(session)
        return session

    def get(self, caller: ApiCaller, name: str) -> ElizaSession:
        """Give a session that has not ended.

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

    async def use(self, caller: ApiCaller, name: str) -> tuple[ElizaSession, bool]:
        """Note a use of a session; the flag says whether that renewed it.

        Raises:
            ApiError: see `get`.
        """
        found = self.get(caller, name)
        used = structs.replace(found, span=found.span.used(self._channels.now()))
        await self._shelf.put(used)
        return used, used.span.renewals > found.span.renewals

    async def renew(self, caller: ApiCaller, name: str) -> ElizaSession:
        """Extend a session.

        Raises:
            ApiError: see `get`; 400: it has reached its maximal duration.
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
        self, caller: ApiCaller, name: str, timeouts: SessionTimeouts
    ) -> ElizaSession:
        """Set other timeouts of a session.

        Raises:
            ApiError: see `get`.
        """
        found = self.get(caller, name)
        changed = found.span.with_timeouts(timeouts, self._channels.now())
        session = structs.replace(found, span=changed)
        await self._shelf.put(session)
        return session

    async def drop(self, caller: ApiCaller, name: str) -> None:
        """End a session; the messages in its channel stay.

        Raises:
            ApiError: 404, 403.
        """
        found = self._shelf.get(name)
        if found is None:
            raise missing("session", name)
        self._channels.channel(caller, found.channel)
        await self._shelf.drop(name)

    def all(self, caller: ApiCaller) -> tuple[ElizaSession, ...]:
        """Give the sessions that the caller may see, ended ones too."""
        return tuple(
            each
            for each in self._shelf.all()
            if (channel := self._channels.find(each.channel)) is not None
            and caller.may_enter(channel)
        )

    async def forget_ended(self) -> None:
        """Delete sessions that ended a while ago."""
        before = self._channels.now() - AFTER_END
        for each in self._shelf.all():
            is_lost = self._channels.find(each.channel) is None
            if is_lost or each.span.is_over(before):
                await self._shelf.drop(each.id)

    async def _make_way(self) -> None:
        """Make room for one more session: delete ended ones."""
        if not self._shelf.is_full:
            return
        now = self._channels.now()
        for each in self._shelf.all():
            if each.span.is_over(now):
                await self._shelf.drop(each.id)
        if self._shelf.is_full:
            raise full(f"there are {self._shelf.limit} sessions; end some")


def session_shown(session: ElizaSession, now: int) -> Json:
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


def status_shown(session: ElizaSession, now: int, *, was_renewed: bool) -> Json:
    """Show the remaining lifetime of a session."""
    return {
        "expiresAt": iso(session.span.expires_at),
        "renewalCount": session.span.renewals,
        "wasRenewed": was_renewed,
        "isNearExpiration": session.span.is_near_end(now),
    }


Status = Literal["pending", "processing", "completed", "failed", "timeout"]

STATUSES: tuple[Status, ...] = (
    "pending",
    "processing",
    "completed",
    "failed",
    "timeout",
)

IN_BETWEEN = "Executing action:"
"""The beginning of messages that agents of ElizaOS send before their answer."""


class JobBody(msgspec.Struct, frozen=True):
    """`POST /jobs`."""

    user_id: Uuid
    content: Annotated[str, Meta(min_length=1, max_length=50_000)]
    agent_id: Uuid | None = None
    metadata: dict[str, object] = {}
    timeout_ms: Annotated[int, Meta(ge=1_000, le=300_000)] = 30_000


class ElizaJob(msgspec.Struct, frozen=True, kw_only=True):
    """One job."""

    id: str
    channel: str
    inbound: str
    """The id of its question, as it is handed in."""

    agent: str
    user: str
    prompt: str
    metadata: dict[str, object] = {}
    created_at: int
    expires_at: int
    result: ElizaMessage | None = None
    error: str = ""
    ended_at: int = 0

    def status(self, now: int) -> Status:
        """Give its status at a time (ms)."""
        if self.result is not None:
            return "completed"
        if self.error:
            return "failed"
        return "timeout" if now >= self.expires_at else "processing"


class ElizaJobs:
    """The jobs of one connector.

    Methods that read or write rows raise `StoreError` if the disk fails.
    """

    def __init__(
        self,
        place: ConnectorStore,
        limit: int,
        channels: Channels,
        speech: ChannelMessages,
    ) -> None:
        self._shelf = StoredTable(place, "web_job", ElizaJob, limit)
        self._channels = channels
        self._speech = speech
        self._by_channel: dict[str, str] = {}
        self._by_inbound: dict[str, str] = {}

    @property
    def limit(self) -> int:
        """Most jobs."""
        return self._shelf.limit

    async def load(self) -> None:
        """Read all jobs."""
        await self._shelf.load()
        self._by_channel = {each.channel: each.id for each in self._shelf.all()}
        self._by_inbound = {each.inbound: each.id for each in self._shelf.all()}

    async def make(self, caller: ApiCaller, asked: JobBody, inbound: str) -> ElizaJob:
        """Create a job and ask its agent.

        Raises:
            ApiError: there is no such agent; too many jobs are running.
            ChatError: the question was not accepted.
        """
        agents = self._channels.agents.all()
        agent = (asked.agent_id or next(iter(agents), "")).lower()
        self._channels.need_agent(agent)
        await self._make_way()
        name, now = str(uuid4()), self._channels.now()
        user = caller.speaker(asked.user_id.lower())
        channel = ElizaChannel(
            id="",
            server=ZERO,
            name=f"job-{name}",
            type="DM",
            metadata={**asked.metadata, "jobId": name},
            participants=(user, agent),
        )
        made = await self._channels.make(caller, channel)
        job = ElizaJob(
            id=name,
            channel=made.id,
            inbound=inbound,
            agent=agent,
            user=user,
            prompt=asked.content,
            metadata=asked.metadata,
            created_at=now,
            expires_at=now + asked.timeout_ms,
        )
        await self._keep(job)
        question = ElizaMessage(
            id=str(uuid4()),
            channel=made.id,
            server=ZERO,
            author=user,
            content=asked.content,
            source_type="job",
            source_id=name,
            metadata={**asked.metadata, "jobId": name},
            at=0,
        )
        said = NewMessage(message=question, inbound_id=inbound, wants_drafts=False)
        try:
            await self._speech.post(caller, said)
        except BaseException:  # cancelled, too: the client never learns the job's id
            await self._drop(job)
            raise
        return self._shelf.get(name) or job

    def get(self, caller: ApiCaller, name: str) -> ElizaJob:
        """Give one.

        Raises:
            ApiError: 404, 403.
        """
        found = self._shelf.get(name)
        if found is None:
            raise missing("job", name)
        self._channels.channel(caller, found.channel)
        return found

    def all(self, caller: ApiCaller) -> tuple[ElizaJob, ...]:
        """Give the jobs that the caller may see, the newest first."""
        found = [
            each
            for each in self._shelf.all()
            if (channel := self._channels.find(each.channel)) is not None
            and caller.may_enter(channel)
        ]
        return tuple(sorted(found, key=lambda each: -each.created_at))

    async def answered(self, message: ElizaMessage) -> None:
        """Complete the job of a channel in which an agent has answered.

        Raises:
            StoreError: the disk fails; call it again.
        """
        job = self._shelf.get(self._by_channel.get(message.channel, ""))
        if job is None or job.result is not None or message.author == job.user:
            return
        trouble = message.metadata.get("trouble")
        if trouble == "waiting" or message.metadata.get("aside"):
            return
        if message.content.startswith(IN_BETWEEN):
            return
        now = self._channels.now()
        if trouble:
            ended = structs.replace(job, error=message.content, ended_at=now)
        else:
            ended = structs.replace(job, result=message, error="", ended_at=now)
        await self._keep(ended)

    async def settled(self, correlation_id: str, reason: str) -> None:
        """End the job of a message without further answers."""
        job = self._shelf.get(self._by_inbound.get(correlation_id, ""))
        if job is None or job.result is not None or job.error:
            return
        now = self._channels.now()
        error = f"the agent gave no answer ({reason})"
        await self._keep(structs.replace(job, error=error, ended_at=now))

    async def forget_ended(self) -> None:
        """Delete jobs that ended a while ago, and their channels."""
        before = self._channels.now() - AFTER_END
        for each in self._shelf.all():
            if each.expires_at < before:
                await self._drop(each)

    async def _keep(self, job: ElizaJob) -> None:
        await self._shelf.put(job)
        self._by_channel[job.channel] = job.id
        self._by_inbound[job.inbound] = job.id

    async def _drop(self, job: ElizaJob) -> None:
        await self._shelf.drop(job.id)
        self._by_channel.pop(job.channel, None)
        self._by_inbound.pop(job.inbound, None)
        await self._channels.forget(job.channel)

    async def _make_way(self) -> None:
        """Make room for one more job: delete the oldest that has ended."""
        if not self._shelf.is_full:
            return
        now = self._channels.now()
        over = [each for each in self._shelf.all() if each.status(now) != "processing"]
        if not over:
            raise full(f"{self._shelf.limit} jobs are under way; ask again later")
        await self._drop(min(over, key=lambda each: each.created_at))


def job_shown(job: ElizaJob, now: int) -> Json:
    """Show a job."""
    shown: Json = {
        "jobId": job.id,
        "status": job.status(now),
        "agentId": job.agent,
        "userId": job.user,
        "prompt": job.prompt,
        "createdAt": job.created_at,
        "expiresAt": job.expires_at,
        "metadata": job.metadata,
    }
    if job.result is not None:
        shown["result"] = {
            "message": {
                "id": job.result.id,
                "content": job.result.content,
                "authorId": job.result.author,
                "createdAt": job.result.at,
                "metadata": job.result.metadata,
            },
            "processingTimeMs": max(0, job.ended_at - job.created_at),
        }
    if job.error:
        shown["error"] = job.error
    return shown


def health_shown(jobs: tuple[ElizaJob, ...], now: int, limit: int) -> Json:
    """Show statistics of all jobs."""
    counts = dict.fromkeys(STATUSES, 0)
    for each in jobs:
        counts[each.status(now)] += 1
    took = [each.ended_at - each.created_at for each in jobs if each.result]
    ended = counts["completed"] + counts["failed"] + counts["timeout"]
    share = max(1, ended)
    return {
        "healthy": True,
        "timestamp": now,
        "totalJobs": len(jobs),
        "statusCounts": counts,
        "metrics": {
            "averageProcessingTimeMs": sum(took) / len(took) if took else 0,
            "successRate": counts["completed"] / share,
            "failureRate": counts["failed"] / share,
            "timeoutRate": counts["timeout"] / share,
        },
        "maxJobs": limit,
    }
