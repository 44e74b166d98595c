"""A server's tool, as agents have tools: a call is asked of the server's actor."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import msgspec

from actors.errors import ToolError
from actors.messages.inbound import ToolCall, ToolContext, ToolResult, ToolSpec
from actors.rules.prompt import tools as tool_names
from connectors.mcp.messages import CallTool, CancelCall, ServerTool
from connectors.tools.arguments import MAX_ARGUMENT_BYTES
from runtime.actor.ref import UNANSWERED, ActorRef
from runtime.errors import KernelError

if TYPE_CHECKING:
    from collections.abc import Callable

    from connectors.config.mcp import Effect, McpServerConfig
    from connectors.mcp.source import Known
    from runtime.actor.reply import Reply

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
