"""Worlds: servers as agents know them; on the kernel's side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.web.eliza.errors import missing
from connectors.web.eliza.perspective import own_id
from connectors.web.eliza.shapes import Server

if TYPE_CHECKING:
    from connectors.web.eliza.asked import WorldAsked
    from connectors.web.eliza.channels import Channels
    from connectors.web.eliza.keys import Caller

MOST_LISTED = 1_000
"""Worlds of one answer: each agent has one for each of its servers."""


class Worlds:
    """All of them.

    Args:
        channels: has the servers.
    """

    def __init__(self, channels: Channels) -> None:
        self._channels = channels

    def all(self) -> list[tuple[str, Server]]:
        """Give all worlds, each with the id of the agent whose it is."""
        found = [
            (agent_id, server)
            for server in self._channels.servers()
            for agent_id in self._channels.agents.all()
            if agent_id in server.agents
        ]
        return found[:MOST_LISTED]

    def server(self, name: str) -> Server:
        """Give the server of a world, by its own id or by what an agent calls it.

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

    async def enter(self, caller: Caller, agent_id: str, asked: WorldAsked) -> Server:
        """Put an agent into a world; one that is not there is made.

        Args:
            caller: whoever asks.
            agent_id: which agent.
            asked: which world, or what the new one is called.

        Raises:
            ApiError: 404 for agent or world; 403; there are too many.
            StoreError: the disk fails.
        """
        self._channels.need_agent(agent_id)
        known = asked.world_id or asked.message_server_id
        if known is not None:
            server = self.server(known.lower())
        else:
            made = Server(id="", name=asked.name or "", metadata=asked.metadata or {})
            server = await self._channels.make_server(made)
        return await self._channels.seat_agent(caller, server.id, agent_id, is_in=True)

    async def change(
        self, caller: Caller, agent_id: str, name: str, asked: WorldAsked
    ) -> Server:
        """Change a world's name, what is noted of it, or its settings.

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
