"""Which tools of servers an agent has now.

A server as agents' tools need it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import trio

from actors.ports import Offer
from actors.rules.prompt import tools as tool_names
from connectors.mcp.messages import ListTools, Shelf
from connectors.mcp.tool import McpTool
from runtime.actor.ref import UNANSWERED, ActorRef
from runtime.errors import KernelError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from actors.messages.inbound import ToolContext
    from connectors.config.mcp import McpServerConfig


PATIENCE = 8.0
"""Seconds a turn waits for a server that is being started for the first time."""


class McpSource:
    """The tools of the servers in the settings.

    Args:
        servers: all there are, by name.
        wanted: by agent, its tools as the settings list them.
        find: gives a living actor by its name.
    """

    def __init__(
        self,
        servers: Iterable[Known],
        wanted: Mapping[str, tuple[str, ...]],
        find: Callable[[str], ActorRef | None],
    ) -> None:
        self._servers = {each.name: each for each in servers}
        self._wanted = wanted
        self._find = find

    async def offer(self, context: ToolContext, words: str) -> Offer:
        """Ask each server that the agent has tools of."""
        del words  # these tools are there whatever is said
        wanted = self._wanted.get(context.agent, ())
        names = {tool_names.server_of(each) for each in wanted}
        servers = [each for name, each in self._servers.items() if name in names]
        return await offer_of(
            servers,
            lambda server, name: tool_names.is_wanted(wanted, server, name),
            self._find,
        )


async def offer_of(
    servers: Iterable[Known],
    is_wanted: Callable[[str, str], bool],
    find: Callable[[str], ActorRef | None],
) -> Offer:
    """Ask several servers at once for their tools.

    Args:
        servers: whom to ask.
        is_wanted: tells by the names of a server and a tool whether it is wanted.
        find: gives a living actor by its name.
    """
    shelves: dict[str, Shelf | None] = {}
    asked = list(servers)

    async def look(server: Known) -> None:
        shelves[server.name] = await shelf_of(find(server.actor))

    async with trio.open_nursery() as nursery:
        for server in asked:
            nursery.start_soon(look, server)
    tools: list[McpTool] = []
    notes: list[str] = []
    for server in asked:
        shelf = shelves[server.name]
        if shelf is None or shelf.state != "open":
            notes.append(note_of(server.name, shelf))
        for tool in shelf.listing.tools if shelf is not None else ():
            config = server.config
            is_there = any(tool_names.fits(each, tool.name) for each in config.tools)
            if is_there and is_wanted(server.name, tool.name):
                tools.append(McpTool(tool, server, find))
    return Offer(tuple(tools), tuple(notes))


async def shelf_of(server: ActorRef | None) -> Shelf | None:
    """Ask a server for its tools; None if it does not say in time."""
    if server is None:
        return None
    try:
        shelf: object = await server.ask(ListTools(), timeout=PATIENCE)
    except (KernelError, *UNANSWERED):
        return None
    return shelf if isinstance(shelf, Shelf) else None


def note_of(name: str, shelf: Shelf | None) -> str:
    """Say to a model that a server's tools cannot be used."""
    reason = shelf.reason if shelf is not None else "it is still being started"
    return f"The tools of {name!r} cannot be used now: {reason}."


@dataclass(frozen=True)
class Known:
    """A server as an agent's tools need it."""

    name: str
    config: McpServerConfig
    actor: str
    """The name of its actor."""

    @property
    def prefix(self) -> str:
        """What its tools' names begin with."""
        return self.config.prefix or prefix_of(self.name)


def prefix_of(name: str) -> str:
    """Make a prefix of a server's name."""
    fit = tool_names.UNFIT.sub("-", name)[: tool_names.LONGEST_PREFIX]
    while tool_names.JOINT in fit:
        fit = fit.replace(tool_names.JOINT, "_")
    return fit.strip("_-") or "server"
