"""Memories of agents over HTTP: read, changed and deleted; and their rooms and worlds.

Messages (`tableName=messages`) are read from the channels, facts (`facts`, `lessons`,
…; `memories` is all of them) from the agent's memory. Only facts are changed and
deleted one by one: a message belongs to its channel, and to a conversation that an
agent forgets as a whole. Vectors are not shown, whatever `includeEmbedding` says.

An agent's room is a channel that it is in, its world a server that it is on; the ids of
channel and server are accepted, too. A group of the memory API is all agents of a
server: creating one creates a channel for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec

from connectors.web.eliza.messages import (
    ZERO,
    ElizaChannel,
    ElizaServer,
    Json,
    is_uuid,
    missing,
    own_id,
    wrong,
)
from connectors.web.eliza.request import (
    ElizaCall,
    ElizaRoutes,
    GroupBody,
    MemoryPatch,
    RoomBody,
    WorldBody,
    both,
    gone,
    ok,
    read_time,
)
from connectors.web.eliza.services.memories import (
    SAID,
    TABLES,
    MemoryQuery,
    fact_shown,
    never_changed,
    room_shown,
    said_shown,
    world_shown,
)
from connectors.web.server import ApiError

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from connectors.web.eliza.app import ElizaServices
    from connectors.web.eliza.keys import ApiCaller
    from connectors.web.eliza.services.channels import Channels
    from runtime.store.facts import StoredFact


API = "/api/memory"

MOST_GIVEN = 500
"""Most memories in one response."""

MOST_PASSED = 10_000
"""Most memories that one request skips."""


class MemoryRoutes:
    """Routes of memories."""

    def __init__(self, services: ElizaServices) -> None:
        self._channels = services.channels
        self._memories = services.memories
        self._editor = services.memory_editor
        self._history = services.history

    def routes(self, desk: ElizaRoutes) -> list[BaseRoute]:
        """Give the routes; `all/:room` comes before those that read it as an id."""
        own = f"{API}/{{agent}}/memories"
        one, room = f"{own}/{{memory}}", f"{own}/all/{{room}}"
        there = f"{API}/{{agent}}/rooms/{{room}}/memories"
        return [
            desk.route("GET", own, "read", self.page),
            desk.route("DELETE", own, "manage", self.clear_all),
            desk.route("DELETE", room, "manage", self.clear),
            desk.route("PATCH", one, "manage", self.change),
            desk.route("DELETE", one, "manage", self.forget),
            desk.route("GET", there, "read", self.of_room),
        ]

    async def page(self, call: ElizaCall) -> Response:
        """List memories of an agent, from one room or those that changed last."""
        names = [call.query("roomId"), call.query("channelId")]
        return await self._page(call, next(filter(None, names), ""), 50)

    async def of_room(self, call: ElizaCall) -> Response:
        """List memories of one room."""
        return await self._page(call, call.id("room"), 20)

    async def change(self, call: ElizaCall) -> Response:
        """Change the text of a fact."""
        text = text_in(call.read(MemoryPatch))
        fact = await call.ask(self._fact, call.caller, call.agent(), call.id("memory"))
        row = await call.ask(self._editor.change, fact, text)
        changed = msgspec.structs.replace(
            fact,
            text=row.text,
            category=row.category,
            key=row.key,
            created_at=call.front.clock.wall(),
        )
        shown = fact_shown(call.agent(), changed)
        return ok(shown | {"message": "Memory updated"})

    async def forget(self, call: ElizaCall) -> Response:
        """Delete a fact."""
        fact = await call.ask(self._fact, call.caller, call.agent(), call.id("memory"))
        await call.ask(self._editor.forget, fact)
        return both({"message": "Memory deleted"})

    async def clear(self, call: ElizaCall) -> Response:
        """Make an agent forget a room."""
        agent_id, room_id = call.agent(), call.id("room")

        async def clear() -> int:
            room = self._memories.room(call.caller, agent_id, room_id)
            return await self._clear(call.caller, agent_id, (room,))

        return both({"deleted": await call.ask(clear)})

    async def clear_all(self, call: ElizaCall) -> Response:
        """Make an agent forget all rooms that this key may see."""
        agent_id = call.agent()

        async def clear() -> int:
            rooms = self._memories.rooms(call.caller, agent_id)
            return await self._clear(call.caller, agent_id, rooms)

        count = await call.ask(clear)
        return both({"deleted": count, "message": f"{count} memories deleted"})

    async def _clear(
        self, caller: ApiCaller, agent_id: str, rooms: tuple[ElizaChannel, ...]
    ) -> int:
        count = 0
        for room in rooms:
            count += await self._editor.clear(caller, agent_id, room)
        return count

    async def _page(self, call: ElizaCall, room_id: str, usual: int) -> Response:
        if room_id and not is_uuid(room_id):
            raise wrong(f"{room_id!r} is no UUID", "roomId")
        table = table_in(call)
        look, agent_id = look_in(call, usual), call.agent()

        async def read() -> list[Json]:
            rooms = self._memories.asked(call.caller, agent_id, room_id.lower())
            if table == SAID:
                said = await self._memories.said(agent_id, rooms, look)
                return [said_shown(agent_id, *each) for each in said]
            names = await self._memories.scopes(call.caller, rooms)
            kinds = TABLES[table]
            facts = await self._memories.facts(agent_id, names, kinds, look)
            return [fact_shown(agent_id, each) for each in facts]

        return ok({"memories": await call.ask(read)})

    async def _fact(
        self, caller: ApiCaller, agent_id: str, memory_id: str
    ) -> StoredFact:
        """Give a fact."""
        try:
            return await self._memories.fact(caller, agent_id, memory_id)
        except ApiError:
            rooms = self._memories.asked(caller, agent_id, "")
            said = await self._memories.said(
                agent_id, rooms, MemoryQuery(limit=MOST_GIVEN)
            )
            if any(
                memory_id in {each.id, said_shown(agent_id, room, each)["id"]}
                for room, each in said
            ):
                raise never_changed(memory_id) from None
            raise


def table_in(call: ElizaCall) -> str:
    """Read which table is wanted.

    Raises:
        ApiError: 400: unknown table.
    """
    table = (call.query("tableName") or call.query("type") or SAID).lower()
    for known in (SAID, *TABLES):
        if table in {known, known.removesuffix("s")}:
            return known
    text = f"{table!r} is no table; there are: {', '.join((SAID, *TABLES))}"
    raise wrong(text, "tableName")


def look_in(call: ElizaCall, usual: int) -> MemoryQuery:
    """Read which memories are wanted.

    Raises:
        ApiError: 400: a wrong number or time.
    """
    limit = call.number(
        "limit", call.number("count", usual, 1, MOST_GIVEN), 1, MOST_GIVEN
    )
    page = call.number("page", 1, 1, MOST_PASSED)
    skipped = min((page - 1) * limit, MOST_PASSED)
    before = read_time(call.query("before"), "before")
    return MemoryQuery(
        before=before or read_time(call.query("to"), "to"),
        after=read_time(call.query("after") or call.query("from"), "from"),
        search=call.query("search"),
        limit=limit,
        offset=call.number("offset", skipped, 0, MOST_PASSED),
    )


def text_in(asked: MemoryPatch) -> str:
    """Give the new text of a fact.

    Raises:
        ApiError: 400: it is missing, or something else is to change.
    """
    given = asked.content
    text = given.get("text") if isinstance(given, dict) else given
    if not isinstance(text, str) or not text.strip():
        raise wrong("is missing: write {content: {text: …}}", "content")
    if asked.metadata:
        raise wrong("is not kept with a memory; only its text changes", "metadata")
    return text


MOST_WORLDS = 1_000
"""Most worlds in one response: each agent has one for each of its servers."""


class Worlds:
    """The worlds of all agents; on the kernel's side."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels

    def all(self) -> list[tuple[str, ElizaServer]]:
        """Give all worlds, each with the id of its agent."""
        found = [
            (agent_id, server)
            for server in self._channels.servers()
            for agent_id in self._channels.agents.all()
            if agent_id in server.agents
        ]
        return found[:MOST_WORLDS]

    def server(self, name: str) -> ElizaServer:
        """Give the server of a world, by its own id or an agent's id for it.

        Raises:
            ApiError: 404.
        """
        servers = self._channels.servers()
        for each in servers:
            if each.id == name:
                return each
        for agent_id in self._channels.agents.all():
            for each in servers:
                if own_id(agent_id, each.id) == name:
                    return each
        raise missing("world", name)

    async def enter(
        self, caller: ApiCaller, agent_id: str, asked: WorldBody
    ) -> ElizaServer:
        """Add an agent to a world; without an id, create one.

        Args:
            asked: the id of the world, or the name of a new one.

        Raises:
            ApiError: 404 for agent or world; 403; too many exist.
            StoreError: the disk fails.
        """
        self._channels.need_agent(agent_id)
        known = asked.world_id or asked.message_server_id
        if known is not None:
            server = self.server(known.lower())
        else:
            made = ElizaServer(
                id="", name=asked.name or "", metadata=asked.metadata or {}
            )
            server = await self._channels.make_server(made)
        return await self._channels.seat_agent(caller, server.id, agent_id, is_in=True)

    async def change(
        self, caller: ApiCaller, agent_id: str, name: str, asked: WorldBody
    ) -> ElizaServer:
        """Change the name, the metadata or the settings of a world.

        Raises:
            ApiError: 404, 403.
            StoreError: the disk fails; nothing has changed.
        """
        self._channels.need_agent(agent_id)
        server = self.server(name)
        metadata = server.metadata if asked.metadata is None else asked.metadata
        if asked.settings is not None:
            metadata = metadata | {"settings": asked.settings}
        return await self._channels.change_server(
            caller, server.id, name=asked.name or server.name, metadata=metadata
        )


class RoomRoutes:
    """Routes of rooms, worlds and groups."""

    def __init__(self, services: ElizaServices) -> None:
        self._channels = services.channels
        self._memories = services.memories
        self._editor = services.memory_editor
        self._messages = services.messages
        self._worlds = Worlds(services.channels)

    def routes(self, desk: ElizaRoutes) -> list[BaseRoute]:
        """Give the routes.

        `worlds` and `groups` come before routes that would read them as an agent.
        """
        rooms, group = f"{API}/{{agent}}/rooms", f"{API}/groups/{{server}}"
        worlds = "/api/agents/{agent}/worlds"
        return [
            desk.route("GET", "/api/agents/worlds", "read", self.worlds),
            desk.route("POST", worlds, "manage", self.enter),
            desk.route("PATCH", f"{worlds}/{{world}}", "manage", self.change_world),
            desk.route("POST", group, "manage", self.make_group),
            desk.route("DELETE", group, "manage", self.drop_group),
            desk.route("DELETE", f"{group}/memories", "manage", self.clear_group),
            desk.route("GET", rooms, "read", self.rooms),
            desk.route("POST", rooms, "manage", self.make_room),
            desk.route("GET", f"{rooms}/{{room}}", "read", self.room),
        ]

    async def rooms(self, call: ElizaCall) -> Response:
        """List the rooms of an agent that this key may see."""
        agent_id = call.agent()
        found = await call.look(self._memories.rooms, call.caller, agent_id)
        start = call.number("offset", 0, 0, len(found))
        end = start + call.number("limit", 1_000, 1, 1_000)
        shown = [room_shown(agent_id, each) for each in found[start:end]]
        return ok({"rooms": shown, "total": len(found)})

    async def room(self, call: ElizaCall) -> Response:
        """Show one."""
        agent_id = call.agent()

        def look() -> tuple[ElizaChannel, ElizaServer]:
            found = self._memories.room(call.caller, agent_id, call.id("room"))
            return found, self._channels.server(found.server)

        room, server = await call.look(look)
        return ok(room_shown(agent_id, room) | {"worldName": server.name})

    async def make_room(self, call: ElizaCall) -> Response:
        """Create a channel of an agent and the author of the request."""
        asked, agent_id = call.read(RoomBody), call.agent()
        author = call.author(None)

        async def make() -> ElizaChannel:
            self._channels.need_agent(agent_id)
            named = asked.world_id or asked.message_server_id or ZERO
            server = self._worlds.server(named.lower())
            channel = ElizaChannel(
                id="",
                server=server.id,
                name=asked.name,
                type=asked.type,
                source_type=asked.source,
                metadata=asked.metadata or {},
                participants=(author, agent_id),
            )
            return await self._channels.make(call.caller, channel)

        return ok(room_shown(agent_id, await call.ask(make)), 201)

    async def worlds(self, call: ElizaCall) -> Response:
        """List all worlds."""
        found = await call.look(self._worlds.all)
        return ok({"worlds": [world_shown(*each) for each in found]})

    async def enter(self, call: ElizaCall) -> Response:
        """Add an agent to a world, or create one for it."""
        asked, agent_id = call.read(WorldBody), call.agent()
        if not (asked.world_id or asked.message_server_id or asked.name):
            raise wrong("is missing: write worldId, or the name of a new one", "name")
        server = await call.ask(self._worlds.enter, call.caller, agent_id, asked)
        return ok({"world": world_shown(agent_id, server), "success": True}, 201)

    async def change_world(self, call: ElizaCall) -> Response:
        """Change a world."""
        asked, agent_id = call.read(WorldBody), call.agent()
        world = call.id("world")
        server = await call.ask(
            self._worlds.change, call.caller, agent_id, world, asked
        )
        shown = world_shown(agent_id, server)
        settings = server.metadata.get("settings", {})
        told: Json = {"world": shown, "worldId": shown["id"], "settings": settings}
        return ok(told)

    async def make_group(self, call: ElizaCall) -> Response:
        """Create a channel for the named agents of a server, or all."""
        asked, server_id = call.read(GroupBody), call.id("server")
        author = call.author(None)

        async def make() -> tuple[ElizaChannel, tuple[str, ...]]:
            server = self._worlds.server(server_id)
            agents = tuple(map(self._channels.agents.id, asked.agent_ids))
            agents = agents or server.agents
            for each in agents:
                self._channels.need_agent(each)
            for each in agents:
                await self._channels.seat_agent(
                    call.caller, server.id, each, is_in=True
                )
            described = {"description": asked.description} if asked.description else {}
            channel = ElizaChannel(
                id=str(uuid4()),
                server=server.id,
                name=asked.name,
                source_type=asked.source,
                metadata=(asked.metadata or {}) | described,
                participants=(author, *agents),
            )
            return await self._channels.make(call.caller, channel), agents

        channel, agents = await call.ask(make)
        rooms = [room_shown(each, channel) for each in agents]
        if asked.agent_ids:
            return ok(rooms, 201)
        first = agents[0] if agents else ""
        world = own_id(first, channel.server) if first else channel.server
        told: Json = {"worldId": world, "messageServerId": channel.server}
        return ok(told | {"channelId": channel.id, "rooms": rooms}, 201)

    async def drop_group(self, call: ElizaCall) -> Response:
        """Delete the channels of a server that this key may see; the server stays."""

        async def drop() -> None:
            for each in self._of_server(call.caller, call.id("server")):
                await self._editor.clear_for_all(each)
                await self._channels.drop(call.caller, each.id)

        await call.ask(drop)
        return gone()

    async def clear_group(self, call: ElizaCall) -> Response:
        """Delete all messages in the channels of a server; agents forget them."""

        async def clear() -> int:
            count = 0
            for each in self._of_server(call.caller, call.id("server")):
                count += await self._editor.clear_for_all(each)
                await self._messages.clear(call.caller, each.id)
            return count

        return both({"deleted": await call.ask(clear)})

    def _of_server(self, caller: ApiCaller, name: str) -> tuple[ElizaChannel, ...]:
        return self._channels.of_server(caller, self._worlds.server(name).id)
