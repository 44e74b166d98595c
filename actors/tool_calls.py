"""The tools of a turn: what is offered, and the calls of one round side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import trio

from actors.errors import ToolError
from actors.messages import ToolContext, ToolSpec
from actors.rules import loop_guard, prompt
from actors.rules import turn as rules
from actors.rules.markers import Delegation

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from actors.messages import ToolCall
    from actors.persona import Persona
    from actors.protocol import StartTurn
    from actors.services import Services

IN_DOUBT = (
    "nobody knows whether this was done: the program ended while it ran. Find out"
    " before you do it again, or say so."
)
"""What the model is told of a call that was cut off and must not simply be repeated."""


class DelegateArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the model gives the `delegate` tool."""

    agent: str
    task: str


DELEGATE_SPEC = ToolSpec(
    name=prompt.DELEGATE,
    description="Hand a task to a colleague, who answers in this chat.",
    parameters=msgspec.json.encode(
        {
            "type": "object",
            "properties": {
                "agent": {"type": "string", "description": "the colleague's name"},
                "task": {"type": "string", "description": "what is to be done"},
            },
            "required": ["agent", "task"],
            "additionalProperties": False,
        }
    ),
    effect="read",
)


class ToolCalls:
    """Runs the tool calls of one turn.

    Args:
        start: on whose behalf.
        persona: which tools, and whom work may be handed to.
        services: clock, counts, limits.
    """

    __slots__ = ("_in_doubt", "_persona", "_services", "_start", "delegations", "specs")

    def __init__(self, start: StartTurn, persona: Persona, services: Services) -> None:
        self._start = start
        self._persona = persona
        self._services = services
        self._in_doubt: frozenset[str] = frozenset()
        specs = tuple(tool.spec for tool in persona.tools.values())
        self.specs = (*specs, DELEGATE_SPEC) if persona.colleagues else specs
        """What the model is offered."""

        self.delegations: list[Delegation] = []
        """What was handed on so far."""

    def doubt(self, open_effects: list[rules.Effect]) -> None:
        """Learn which calls were begun by an attempt that was cut off."""
        self._in_doubt = frozenset(
            effect.call.id
            for effect in open_effects
            if isinstance(effect, rules.CallTool)
        )

    async def run(
        self,
        calls: list[ToolCall],
        returned: Callable[[rules.ToolReturned], Awaitable[None]],
    ) -> None:
        """Run the calls of one round side by side.

        Args:
            calls: what to run.
            returned: is told what came of each, one after the other or at once.
        """

        async def run(call: ToolCall) -> None:
            await returned(await self._run_one(call))

        async with trio.open_nursery() as nursery:
            for call in calls:
                nursery.start_soon(run, call)

    async def _run_one(self, call: ToolCall) -> rules.ToolReturned:
        if call.name == prompt.DELEGATE:
            began = self._services.clock.monotonic()
            returned = self.delegate(call)
            outcome = "error" if returned.is_error else "ok"
            seconds = self._services.clock.monotonic() - began
            self._services.metrics.tool_call(call.name, outcome, seconds)
            return returned
        tool = self._persona.tools[call.name]
        if call.id in self._in_doubt and not tool.spec.is_repeatable:
            self._services.metrics.tool_call(call.name, "unknown", 0.0)
            return rules.ToolReturned(call.id, IN_DOUBT, is_error=True)
        inbound = self._start.inbound
        context = ToolContext(
            agent=self._persona.name,
            correlation_id=inbound.correlation_id,
            address=inbound.address,
            sender_id=inbound.sender_id,
        )
        began = self._services.clock.monotonic()
        outcome = "cancelled"
        try:
            result = await tool.run(call, context)
            outcome = "error" if result.is_error else "ok"
        except ToolError as error:
            outcome = "failed"
            return rules.ToolReturned(call.id, str(error), is_error=True)
        finally:
            seconds = self._services.clock.monotonic() - began
            self._services.metrics.tool_call(call.name, outcome, seconds)
        return rules.ToolReturned(call.id, result.text, result.is_error)

    def delegate(self, call: ToolCall) -> rules.ToolReturned:
        """Note what is to be handed on, if it may be."""
        try:
            wanted = msgspec.json.decode(call.arguments, type=DelegateArguments)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return rules.ToolReturned(call.id, f"bad arguments: {error}", is_error=True)
        verdict = loop_guard.may_delegate(
            self._start.inbound.chain,
            self._persona.name,
            wanted.agent,
            self._persona.delegation_limits(self._services.limits.max_hops),
            self._services.clock.wall(),
        )
        if isinstance(verdict, loop_guard.Refused):
            return rules.ToolReturned(call.id, verdict.text, is_error=True)
        if not wanted.task.strip():
            return rules.ToolReturned(call.id, "say what is to be done", is_error=True)
        self.delegations.append(Delegation(verdict.target, wanted.task.strip()))
        text = f"Handed to {verdict.target}, who will answer in this chat."
        return rules.ToolReturned(call.id, text)
