"""Servers over HTTP, and which agents are on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.web.eliza.asked import (
    AgentAsked,
    ServerAsked,
    SyncAsked,
    SyncedChannel,
    read,
)
from connectors.web.eliza.desk import gone, ok
from connectors.web.eliza.errors import wrong
from connectors.web.eliza.ids import ZERO, to_uuid
from connectors.web.eliza.shapes import Channel, Server, channel_shown, server_shown

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from connectors.web.eliza.channels import Channels
    from connectors.web.eliza.desk import Call, Desk
    from connectors.web.eliza.keys import Caller
    from connectors.web.eliza.shapes import Json

API = "/api/messaging"

OLD_PLACES = ("message-servers", "central-servers", "servers")
"""Where servers are found; the last two are names of earlier releases."""


class ServerRoutes:
    """What is asked about servers.

    Args:
        channels: the servers; asked on the kernel's side only.
    """

    def __init__(self, channels: Channels) -> None:
        self._channels = channels

    def routes(self, desk: Desk) -> list[BaseRoute]:
        """Give the routes, under each of their names."""
        found: list[BaseRoute] = [
            desk.route("GET", f"{API}/message-server/current", "read", self.current),
            desk.route(
                "GET", f"{API}/agents/{{agent}}/message-servers", "read", self.of_agent
            ),
            desk.route("GET", f"{API}/agents/{{agent}}/servers", "read", self.of_agent),
        ]
        for place in OLD_PLACES:
            one = f"{API}/{place}/{{server}}"
            agent = f"{one}/agents/{{agent}}"
            found += [
                desk.route("GET", f"{API}/{place}", "read", self.all),
                desk.route("POST", f"{API}/{place}", "manage", self.make),
                desk.route("DELETE", one, "manage", self.drop),
                desk.route("GET", f"{one}/channels", "read", self.channels),
                desk.route("POST", f"{one}/sync-channels", "manage", self.sync),
                desk.route("GET", f"{one}/agents", "read", self.agents),
                desk.route("POST", f"{one}/agents", "manage", self.seat),
                desk.route("DELETE", agent, "manage", self.unseat),
            ]
        return found

    async def current(self, _call: Call) -> Response:
        """Name the server of who does not say which."""
        return ok({"messageServerId": ZERO, "serverId": ZERO})

    async def all(self, call: Call) -> Response:
        """List servers."""
        servers = await call.look(self._channels.servers)
        shown = [server_shown(each) for each in servers]
        return ok({"messageServers": shown, "servers": shown})

    async def make(self, call: Call) -> Response:
        """Make a server."""
        asked = call.read(ServerAsked)
        server = Server(
            id="",
            name=asked.name,
            source_type=asked.source_type,
            source_id=asked.source_id or "",
            metadata=asked.metadata or {},
        )
        made = await call.ask(self._channels.make_server, server)
        shown = server_shown(made)
        # Why both: the client takes the server itself, the official answer wraps it.
        return ok(shown | {"server": shown}, 201)

    async def drop(self, call: Call) -> Response:
        """Delete a server with all that is in it."""
        await call.ask(self._channels.drop_server, call.caller, call.id("server"))
        return gone()

    async def channels(self, call: Call) -> Response:
        """List the channels of a server."""
        found = await call.look(
            self._channels.of_server, call.caller, call.id("server")
        )
        return ok({"channels": [channel_shown(each) for each in found]})

    async def sync(self, call: Call) -> Response:
        """Make the channels that another platform has and this server has not."""
        asked = call.read(SyncAsked)
        made = await call.ask(
            self._sync, call.caller, call.id("server"), asked.channels
        )
        return ok({"channels": [channel_shown(each) for each in made]})

    async def agents(self, call: Call) -> Response:
        """List the agents of a server."""
        server = await call.look(self._channels.server, call.id("server"))
        shown: Json = {"messageServerId": server.id, "serverId": server.id}
        return ok(shown | {"agents": list(server.agents)})

    async def seat(self, call: Call) -> Response:
        """Put an agent on a server."""
        return await self._seat(call, agent_of(call), "added to", is_in=True)

    async def unseat(self, call: Call) -> Response:
        """Take an agent off a server."""
        agent_id = to_uuid(call.request.path_params["agent"])
        return await self._seat(call, agent_id, "removed from", is_in=False)

    async def of_agent(self, call: Call) -> Response:
        """List the servers that an agent is on."""
        agent_id = to_uuid(call.request.path_params["agent"])
        servers = await call.look(self._channels.servers)
        found = [each.id for each in servers if agent_id in each.agents]
        return ok({"agentId": agent_id, "messageServers": found, "servers": found})

    async def _seat(
        self, call: Call, agent_id: str, done: str, *, is_in: bool
    ) -> Response:
        async def seat() -> Server:
            server_id = call.id("server")
            return await self._channels.seat_agent(
                call.caller, server_id, agent_id, is_in=is_in
            )

        server = await call.ask(seat)
        told: Json = {"messageServerId": server.id, "serverId": server.id}
        text = f"Agent {done} the server"
        return ok(told | {"agentId": agent_id, "message": text}, 201 if is_in else 200)

    async def _sync(
        self, caller: Caller, server_id: str, asked: tuple[SyncedChannel, ...]
    ) -> list[Channel]:
        there = {
            each.source_id or each.name: each
            for each in self._channels.of_server(caller, server_id)
        }
        found: list[Channel] = []
        for each in asked:
            key = each.source_id or each.name
            if key not in there:
                made = Channel(
                    id="",
                    server=server_id,
                    name=each.name,
                    type=each.type,
                    source_id=each.source_id,
                    source_type=each.source_type,
                )
                there[key] = await self._channels.make(caller, made)
            found.append(there[key])
        return found


def agent_of(call: Call) -> str:
    """Give the id of the agent that a body names.

    Raises:
        ApiError: 400: it names none.
    """
    asked = read(call.body, AgentAsked)
    if not asked.agent_id:
        raise wrong("is missing", "agentId")
    return to_uuid(asked.agent_id)
