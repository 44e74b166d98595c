"""Rooms and worlds over HTTP: channels and servers as agents know them.

An agent's room is a channel that it is in, its world a server that it is on; both are
known by the ids of the channel and the server, too. A group of the memory API is all
agents of a server: making one makes a channel for them there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from connectors.web.eliza.asked import GroupAsked, RoomAsked, WorldAsked
from connectors.web.eliza.desk import both, gone, ok
from connectors.web.eliza.errors import wrong
from connectors.web.eliza.ids import ZERO, to_uuid
from connectors.web.eliza.memory_routes import API, agent_in
from connectors.web.eliza.memory_shapes import room_shown, world_shown
from connectors.web.eliza.perspective import own_id
from connectors.web.eliza.shapes import Channel
from connectors.web.eliza.worlds import Worlds

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from connectors.web.eliza.desk import Call, Desk
    from connectors.web.eliza.keys import Caller
    from connectors.web.eliza.parts import Parts
    from connectors.web.eliza.shapes import Json, Server


class RoomRoutes:
    """What is asked about rooms and worlds.

    Args:
        parts: as of all routes.
    """

    def __init__(self, parts: Parts) -> None:
        self._channels = parts.channels
        self._memories = parts.memories
        self._forgetting = parts.forgetting
        self._speech = parts.speech
        self._worlds = Worlds(parts.channels)

    def routes(self, desk: Desk) -> list[BaseRoute]:
        """Give the routes.

        `worlds` and `groups` stand before what would take them for an agent.
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

    async def rooms(self, call: Call) -> Response:
        """List the rooms of an agent that this key may see."""
        agent_id = agent_in(call)
        found = await call.look(self._memories.rooms, call.caller, agent_id)
        start = call.number("offset", 0, 0, len(found))
        end = start + call.number("limit", 1_000, 1, 1_000)
        shown = [room_shown(agent_id, each) for each in found[start:end]]
        return ok({"rooms": shown, "total": len(found)})

    async def room(self, call: Call) -> Response:
        """Show one."""
        agent_id = agent_in(call)

        def look() -> tuple[Channel, Server]:
            found = self._memories.room(call.caller, agent_id, call.id("room"))
            return found, self._channels.server(found.server)

        room, server = await call.look(look)
        return ok(room_shown(agent_id, room) | {"worldName": server.name})

    async def make_room(self, call: Call) -> Response:
        """Make a channel of an agent and whoever asks."""
        asked, agent_id = call.read(RoomAsked), agent_in(call)
        author = call.author(None)

        async def make() -> Channel:
            self._channels.need_agent(agent_id)
            named = asked.world_id or asked.message_server_id or ZERO
            server = self._worlds.server(named.lower())
            channel = Channel(
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

    async def worlds(self, call: Call) -> Response:
        """List all worlds."""
        found = await call.look(self._worlds.all)
        return ok({"worlds": [world_shown(*each) for each in found]})

    async def enter(self, call: Call) -> Response:
        """Put an agent into a world, or make one for it."""
        asked, agent_id = call.read(WorldAsked), agent_in(call)
        if not (asked.world_id or asked.message_server_id or asked.name):
            raise wrong("is missing: write worldId, or the name of a new one", "name")
        server = await call.ask(self._worlds.enter, call.caller, agent_id, asked)
        return ok({"world": world_shown(agent_id, server), "success": True}, 201)

    async def change_world(self, call: Call) -> Response:
        """Change a world."""
        asked, agent_id = call.read(WorldAsked), agent_in(call)
        world = call.id("world")
        server = await call.ask(
            self._worlds.change, call.caller, agent_id, world, asked
        )
        shown = world_shown(agent_id, server)
        settings = server.metadata.get("settings", {})
        told: Json = {"world": shown, "worldId": shown["id"], "settings": settings}
        return ok(told)

    async def make_group(self, call: Call) -> Response:
        """Make a channel for agents of a server: those that are named, or all."""
        asked, server_id = call.read(GroupAsked), call.id("server")
        author = call.author(None)

        async def make() -> tuple[Channel, tuple[str, ...]]:
            server = self._worlds.server(server_id)
            agents = tuple(to_uuid(each) for each in asked.agent_ids) or server.agents
            for each in agents:
                self._channels.need_agent(each)
            for each in agents:
                await self._channels.seat_agent(
                    call.caller, server.id, each, is_in=True
                )
            described = {"description": asked.description} if asked.description else {}
            channel = Channel(
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

    async def drop_group(self, call: Call) -> Response:
        """Delete the channels of a server that this key may see; it stays itself."""

        async def drop() -> None:
            for each in self._of_server(call.caller, call.id("server")):
                await self._forgetting.clear_for_all(each)
                await self._channels.drop(call.caller, each.id)

        await call.ask(drop)
        return gone()

    async def clear_group(self, call: Call) -> Response:
        """Delete all that was said in the channels of a server; agents forget it."""

        async def clear() -> int:
            count = 0
            for each in self._of_server(call.caller, call.id("server")):
                count += await self._forgetting.clear_for_all(each)
                await self._speech.clear(call.caller, each.id)
            return count

        return both({"deleted": await call.ask(clear)})

    def _of_server(self, caller: Caller, name: str) -> tuple[Channel, ...]:
        return self._channels.of_server(caller, self._worlds.server(name).id)
