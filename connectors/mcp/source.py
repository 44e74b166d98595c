"""Which tools of servers an agent has now, and how each is called."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import msgspec
import trio

from actors.errors import ToolError
from actors.messages.inbound import ToolCall, ToolContext, ToolResult, ToolSpec
from actors.ports import Offer
from actors.rules.prompt import tools as tool_names
from connectors.config.mcp import Effect, McpServerConfig
from connectors.mcp.connection import CallTool, CancelCall, ListTools, ServerTool, Shelf
from connectors.tools.arguments import MAX_ARGUMENT_BYTES
from runtime.actor.ref import UNANSWERED, ActorRef
from runtime.actor.reply import Reply
from runtime.errors import KernelError

NUMBERS = itertools.count(1)

# Chosen: seconds beyond a call's own time until its asker gives up: the session
# answers before that, even if it has to see first whether the server lives.
GRACE = 15.0


class McpTool:
    """One tool of a server."""

    def __init__(
        self,
        tool: ServerTool,
        server: Known,
        find: Callable[[str], ActorRef | None],
    ) -> None:
        config = server.config
        effect = effect_of(config, tool.name)
        self.server = server.name
        """Where it comes from, for people."""

        self._actor = server.actor
        self._name = tool.name
        self._find = find
        # A call may have to wait until those before it have ended.
        self._timeout = 2 * config.call_timeout + GRACE
        self._spec = ToolSpec(
            tool_names.offered_name(server.prefix, tool.name),
            tool.description,
            tool.parameters,
            is_repeatable=effect == "read",
            effect=effect,
        )

    @property
    def spec(self) -> ToolSpec:
        """What the model is told."""
        return self._spec

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Ask the server; one that is away, hangs or fails is a `ToolError`."""
        problem = check_arguments(call.arguments)
        if problem:
            return ToolResult(problem, is_error=True)
        server = self._find(self._actor)
        if server is None:
            raise ToolError("the server of this tool is not running")
        arguments = call.arguments.strip() or b"{}"
        asked = CallTool(next(NUMBERS), self._name, arguments, context.owner)
        reply: Reply = server.ask(asked, timeout=self._timeout)
        try:
            result: object = await reply
        except UNANSWERED as error:
            text = "the server of this tool gave no answer; nobody knows what it did"
            raise ToolError(text) from error
        except KernelError as error:
            raise ToolError(f"the server of this tool failed: {error}") from error
        finally:
            if not reply.is_set:  # the turn was given up
                give_up(server, asked)
        if not isinstance(result, ToolResult):
            raise TypeError(f"a server answered with {type(result).__name__}")
        return result


def give_up(server: ActorRef, asked: CallTool) -> None:
    """Tell a server that nobody waits; one that is gone need not know."""
    try:
        server.tell(CancelCall(asked.number))
    except (KernelError, *UNANSWERED):
        return


def check_arguments(arguments: bytes) -> str:
    """Say why arguments cannot be sent to a server; empty if they can."""
    if len(arguments) > MAX_ARGUMENT_BYTES:
        return f"the arguments are above {MAX_ARGUMENT_BYTES} bytes"
    try:
        decoded: object = msgspec.json.decode(arguments.strip() or b"{}")
    except (ValueError, RecursionError):
        return "the arguments are no JSON; expected an object"
    return "" if isinstance(decoded, dict) else "the arguments must be an object"


def effect_of(config: McpServerConfig, name: str) -> Effect:
    """Say what the settings believe a tool can do at worst."""
    for pattern, effect in config.effects.items():
        if tool_names.fits(pattern, name):
            return effect
    return config.effect


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
