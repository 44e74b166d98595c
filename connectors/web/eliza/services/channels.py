"""Servers and channels: created, changed, read and deleted; on the kernel's side.

One change at a time; events are sent after the change is on the disk.

Servers, channels, sessions and jobs are kept in a small table in memory, written
through to the database (`Table`). There is one writer, the transport, and `limit`
bounds the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, Protocol, TypeVar
from uuid import uuid4

import msgspec
import trio
from msgspec import structs

from actors.people.rows import part_of
from connectors.web.eliza.keys import ApiCaller
from connectors.web.eliza.messages import (
    ZERO,
    AgentIds,
    ChannelEvent,
    ElizaChannel,
    ElizaHistory,
    ElizaServer,
    Json,
    TellChannel,
    forbidden,
    full,
    missing,
    wrong,
)
from connectors.web.eliza.platform import WebConfig
from connectors.web.history import ConnectorStore
from connectors.web.server import ApiError
from runtime.store.rows import Entry
from runtime.telemetry.logs import EventLog

LOG = EventLog("web")

PAGE = 1000


class HasId(Protocol):
    """An object with an id."""

    @property
    def id(self) -> str:
        """Unique in its kind."""
        ...


T = TypeVar("T", bound=HasId)


class StoredTable(Generic[T]):
    """The things of one kind, by id.

    Args:
        kind: the kind of their rows.
        limit: most objects.
    """

    def __init__(
        self, place: ConnectorStore, kind: str, shape: type[T], limit: int
    ) -> None:
        self._place = place
        self._kind = kind
        self._shape = shape
        self._things: dict[str, T] = {}
        self.limit = limit

    async def load(self) -> None:
        """Read all rows; unreadable ones are logged and left out.

        Raises:
            StoreError: the disk fails.
        """
        found: dict[str, T] = {}
        after = ""
        while True:
            rows = await self._place.store.entries(
                self._kind, self._place.connector, after, PAGE
            )
            for row in rows:
                after = row.id
                try:
                    thing = msgspec.json.decode(row.body, type=self._shape)
                except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                    LOG.fault("row cannot be read", error, kind=row.kind, id=row.id)
                else:
                    found[thing.id] = thing
            if len(rows) < PAGE:
                break
        self._things = found

    def get(self, name: str) -> T | None:
        """Give one object; None: it does not exist."""
        return self._things.get(name)

    def all(self) -> tuple[T, ...]:
        """Give all objects."""
        return tuple(self._things.values())

    @property
    def is_full(self) -> bool:
        """Whether the limit is reached."""
        return len(self._things) >= self.limit

    async def put(self, thing: T) -> None:
        """Write an object, on the disk first.

        Raises:
            StoreError: the disk fails; nothing has changed.
        """
        await self._write(thing.id, msgspec.json.encode(thing))
        self._things[thing.id] = thing

    async def drop(self, name: str) -> None:
        """Delete an object, on the disk first.

        Raises:
            StoreError: the disk fails; nothing has changed.
        """
        await self._write(name, None)
        self._things.pop(name, None)

    async def _write(self, name: str, body: bytes | None) -> None:
        owner = self._place.connector
        key = f"{owner}/{name}"
        part = part_of(key)
        await self._place.commit(
            Entry(kind=self._kind, id=key, owner=owner, part=part, body=body)
        )


MOST_PARTICIPANTS = 1_000
"""Who may be in one channel."""

MOST_SERVERS = 1_000

DEFAULT = ElizaServer(id=ZERO, name="Default Server")


class Channels:
    """The servers and channels of one connector.

    Methods that read or write rows raise `StoreError` if the disk fails.
    """

    def __init__(
        self,
        place: ConnectorStore,
        config: WebConfig,
        names: Callable[[], Mapping[str, str]],
        history: ElizaHistory,
        tell: TellChannel,
    ) -> None:
        self._clock = place.clock
        self._names = names
        self._history = history
        self._tell = tell
        self._most = MOST_PARTICIPANTS
        self._servers = StoredTable(place, "web_server", ElizaServer, MOST_SERVERS)
        self._channels = StoredTable(
            place, "web_channel", ElizaChannel, config.max_channels
        )
        self._changing = trio.Lock()

    async def load(self) -> None:
        """Read all servers and channels."""
        await self._servers.load()
        await self._channels.load()

    @property
    def agents(self) -> AgentIds:
        """The agents that can be spoken to now."""
        return AgentIds(self._names())

    def now(self) -> int:
        """Milliseconds since 1970."""
        return int(self._clock.wall() * 1000)

    # --- servers ------------------------------------------------------------------

    def servers(self) -> tuple[ElizaServer, ...]:
        """Give all servers, the default one first."""
        return (self.server(ZERO), *(s for s in self._servers.all() if s.id != ZERO))

    def server(self, server_id: str) -> ElizaServer:
        """Give one.

        Raises:
            ApiError: 404.
        """
        found = self._servers.get(server_id)
        if server_id == ZERO:
            return structs.replace(found or DEFAULT, agents=tuple(self.agents.all()))
        if found is None:
            raise missing("server", server_id)
        return found

    async def make_server(self, server: ElizaServer) -> ElizaServer:
        """Create a server.

        Raises:
            ApiError: too many exist.
        """
        async with self._changing:
            if self._servers.is_full:
                raise full(f"there are {MOST_SERVERS} servers already; delete one")
            now = self.now()
            made = structs.replace(
                server, id=str(uuid4()), created_at=now, updated_at=now
            )
            await self._servers.put(made)
            return made

    async def seat_agent(
        self, caller: ApiCaller, server_id: str, agent_id: str, *, is_in: bool
    ) -> ElizaServer:
        """Add an agent to a server, or remove it.

        Raises:
            ApiError: 404, 403; 400 for the default server, which has all of them.
        """
        async with self._changing:
            server = self.server(server_id)
            self.need_agent(agent_id)
            if server.id == ZERO:
                if is_in:
                    return server
                raise wrong("all agents are on the default server", "agentId")
            if is_in and agent_id in server.agents:
                return server
            self._check_all(caller, server_id)
            left = tuple(each for each in server.agents if each != agent_id)
            agents = (*left, agent_id) if is_in else left
            seated = structs.replace(server, agents=agents, updated_at=self.now())
            await self._servers.put(seated)
            return seated

    async def change_server(
        self, caller: ApiCaller, server_id: str, *, name: str, metadata: Json
    ) -> ElizaServer:
        """Change a server.

        Raises:
            ApiError: 404, 403.
            StoreError: the disk fails; nothing has changed.
        """
        async with self._changing:
            now, server = self.now(), self.server(server_id)
            self._check_all(caller, server_id)
            changed = structs.replace(
                server, name=name, metadata=metadata, updated_at=now
            )
            await self._servers.put(changed)
            return changed

    async def drop_server(self, caller: ApiCaller, server_id: str) -> None:
        """Delete a server with its channels and their messages.

        Raises:
            ApiError: 404, 403; 400 for the default server.
            StoreError: the disk fails; some may be left.
        """
        if server_id == ZERO:
            raise wrong("the default server cannot be deleted")
        self.server(server_id)
        self._check_all(caller, server_id)
        for channel in self.of_server(caller, server_id):
            await self.drop(caller, channel.id)
        async with self._changing:
            await self._servers.drop(server_id)

    def need_agent(self, agent_id: str) -> str:
        """Give the name of an agent.

        Raises:
            ApiError: 404.
        """
        name = self.agents.name(agent_id)
        if not name:
            raise missing("agent", agent_id)
        return name

    # --- channels -----------------------------------------------------------------

    def find(self, channel_id: str) -> ElizaChannel | None:
        """Give a channel without checking access; None: it does not exist."""
        return self._channels.get(channel_id)

    def every(self) -> tuple[ElizaChannel, ...]:
        """Give all channels without checking access."""
        return self._channels.all()

    def channel(self, caller: ApiCaller, channel_id: str) -> ElizaChannel:
        """Give a channel.

        Raises:
            ApiError: 404; 403: the caller may not see it.
        """
        found = self._channels.get(channel_id)
        if found is None:
            raise missing("channel", channel_id)
        if not caller.may_enter(found):
            raise forbidden(f"this key may not enter the channel {channel_id}")
        return found

    def of_server(self, caller: ApiCaller, server_id: str) -> tuple[ElizaChannel, ...]:
        """Give the channels of a server that the caller may see.

        Raises:
            ApiError: 404.
        """
        self.server(server_id)
        return tuple(
            each
            for each in self._channels.all()
            if each.server == server_id and caller.may_enter(each)
        )

    async def make(self, caller: ApiCaller, channel: ElizaChannel) -> ElizaChannel:
        """Create a channel; without an id it gets one.

        Raises:
            ApiError: 404 for its server; 403; too many exist.
        """
        async with self._changing:
            self.server(channel.server)
            if self._channels.is_full:
                raise full(f"there are {self._channels.limit} channels; delete some")
            now = self.now()
            made = structs.replace(
                channel,
                id=channel.id or str(uuid4()),
                metadata=without_mirror(channel.metadata),
                participants=self._checked(channel.participants),
                created_at=now,
                updated_at=now,
            )
            if not caller.may_enter(made):
                raise forbidden("this key may make no channel that it may not enter")
            if self._channels.get(made.id) is not None:
                raise ApiError(409, f"channel {made.id} exists", code="channel_exists")
            await self._channels.put(made)
            return made

    async def direct(
        self, caller: ApiCaller, one: str, other: str, server: str
    ) -> ElizaChannel:
        """Give the direct channel of two participants; create it if needed.

        Raises:
            ApiError: 403; too many exist.
        """
        if one == other:
            raise wrong("two different ids are needed", "targetUserId")
        pair = tuple(sorted((one, other)))
        for each in self._channels.all():
            is_theirs = tuple(sorted(each.participants)) == pair
            # Channels of sessions and jobs have two participants, too.
            if is_theirs and each.type == "DM" and each.metadata.get("user1"):
                return self.channel(caller, each.id)
        known = {each.id for each in self.servers()}
        metadata: Json = {"user1": pair[0], "user2": pair[1], "isDm": True}
        agent = next((each for each in pair if self.agents.name(each)), "")
        if agent:
            metadata["forAgent"] = agent
        made = ElizaChannel(
            id="",
            server=server if server in known else ZERO,
            name=f"DM-{pair[0]}-{pair[1]}",
            type="DM",
            metadata=metadata,
            participants=(one, other),
        )
        return await self.make(caller, made)

    async def change(
        self,
        caller: ApiCaller,
        channel_id: str,
        *,
        name: str | None = None,
        participants: Iterable[str] | None = None,
        metadata: Json | None = None,
    ) -> ElizaChannel:
        """Change a channel; None leaves a field as it is.

        Raises:
            ApiError: 404, 403, 400.
            StoreError: the disk fails; nothing has changed.
        """
        async with self._changing:
            old = self.channel(caller, channel_id)
            new = structs.replace(
                old,
                name=old.name if name is None else name,
                participants=old.participants
                if participants is None
                else self._checked(participants),
                metadata=old.metadata if metadata is None else without_mirror(metadata),
                updated_at=self.now(),
            )
            await self._channels.put(new)
        updates: Json = {"name": new.name, "metadata": new.metadata}
        updates["participantCentralUserIds"] = list(new.participants)
        self._say("channelUpdated", channel_id, {"updates": updates})
        return new

    async def seat(
        self, caller: ApiCaller, channel_id: str, agent_id: str, *, is_in: bool
    ) -> ElizaChannel:
        """Add an agent to a channel, or remove it.

        Raises:
            ApiError: 404, 403.
            StoreError: the disk fails; nothing has changed.
        """
        old = self.channel(caller, channel_id)
        self.need_agent(agent_id)
        if not is_in and agent_id not in old.participants:
            raise missing("participant", agent_id)
        left = tuple(each for each in old.participants if each != agent_id)
        new = (*left, agent_id) if is_in else left
        return await self.change(caller, channel_id, participants=new)

    async def note_forgotten(self, channel_id: str, agent_id: str) -> None:
        """Store that an agent has forgotten all messages of a channel until now.

        Raises:
            StoreError: the disk fails; nothing has changed.
        """
        async with self._changing:
            found = self._channels.get(channel_id)
            if found is not None:
                inside = self.agents.all()
                kept = {k: v for k, v in found.forgotten.items() if k in inside}
                kept[agent_id] = self.now()
                await self._channels.put(structs.replace(found, forgotten=kept))

    async def drop(self, caller: ApiCaller, channel_id: str) -> None:
        """Delete a channel and its messages.

        Raises:
            ApiError: 404, 403.
            StoreError: the disk fails; some may be left.
        """
        self.channel(caller, channel_id)
        await self.forget(channel_id)

    async def forget(self, channel_id: str) -> None:
        """Delete a channel and its messages without checking access.

        Raises:
            StoreError: the disk fails; some may be left.
        """
        async with self._changing:
            await self._history.clear(channel_id)
            await self._channels.drop(channel_id)
        self._say("channelDeleted", channel_id, {})

    def _check_all(self, caller: ApiCaller, server_id: str) -> None:
        """Check that the caller may see all channels of a server before changing it."""
        own = (each for each in self._channels.all() if each.server == server_id)
        if not all(map(caller.may_enter, own)):
            raise forbidden("channels of this server are kept from this key")

    def _checked(self, participants: Iterable[str]) -> tuple[str, ...]:
        given = tuple(dict.fromkeys(each.lower() for each in participants))
        if len(given) > self._most:
            raise wrong(f"more than {self._most} participants", "participants")
        return given

    def _say(self, event: str, channel: str, payload: Json) -> None:
        told: Json = {"channelId": channel, "roomId": channel} | payload
        self._tell(ChannelEvent(event=event, channel=channel, payload=told))


def without_mirror(metadata: Json) -> Json:
    """Leave out the list of participants, which clients send back unchanged."""
    return {
        key: value
        for key, value in metadata.items()
        if key != "participantCentralUserIds"
    }
