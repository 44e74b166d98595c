"""Which tools a turn is offered, and whose leave a call needs before it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.protocol import AskLeave, Leave
from actors.resting import LOST, Resting
from actors.rules import permissions, safe_tools, tool_notice
from actors.rules.briefing import SPOKEN_TO
from actors.steps import LeaveNoted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from actors.messages import ToolCall, ToolSpec
    from actors.persona import Persona
    from actors.protocol import StartTurn
    from actors.services import Services
    from actors.steps import Steps

# Chosen: the session's own timer is the one that counts; this is for a session that
# is gone.
GRACE = 10.0
"""Seconds beyond the time limit until a turn gives up waiting for its session."""

SUPERSEDED = "another attempt at this took over"


class Permits:
    """What the tools of one turn need.

    Args:
        start: on whose behalf.
        persona: how free the agent is.
        services: the operator's rules.
        steps: where decisions are recorded.
    """

    __slots__ = (
        "_caller",
        "_freedom",
        "_services",
        "_start",
        "_steps",
        "_verdicts",
        "denied",
        "offered",
        "resting",
    )

    def __init__(
        self, start: StartTurn, persona: Persona, services: Services, steps: Steps
    ) -> None:
        self._start = start
        self._services = services
        self._steps = steps
        self._verdicts: dict[str, permissions.Verdict] = {}
        inbound, config = start.inbound, persona.config
        self._caller = permissions.Caller(
            agent=persona.name,
            connector=inbound.address.connector,
            chat=inbound.address.chat,
            sender=inbound.sender_id,
            is_delegated=bool(inbound.chain.agents),
        )
        self._freedom = permissions.Freedom(
            autonomy=config.autonomy,
            tools=config.tool_permissions,
            delegated=config.delegated_tools,
        )
        self.offered: tuple[ToolSpec, ...] = ()
        """The tools that the model is told of."""

        self.resting = Resting(
            start.session, start.turn_id, persona.turn_seconds(services.limits)
        )
        """What the turn does and waits for; told of every call that begins or ends."""

        self.denied: dict[str, str] = {}
        """The others, and why."""

    def judge(self, tools: Iterable[ToolSpec]) -> None:
        """Say of each tool what it needs."""
        offered: list[ToolSpec] = []
        for tool in tools:
            verdict = self._judge(tool)
            self._verdicts[tool.name] = verdict
            if verdict.need == "deny":
                self.denied[tool.name] = verdict.why
            else:
                offered.append(tool)
        self.offered = tuple(offered)

    def _judge(self, tool: ToolSpec) -> permissions.Verdict:
        is_there = self._start.mode not in SPOKEN_TO or safe_tools.is_safe(
            tool, self._services.collaboration.tools
        )
        if not is_there:
            return permissions.Verdict("deny", safe_tools.NOT_THERE)
        return permissions.judge(
            tool, self._caller, self._freedom, self._services.permissions
        )

    def is_free(self, tool: str) -> bool:
        """Whether a tool is offered, and may be used without anybody's leave."""
        verdict = self._verdicts.get(tool)
        return verdict is not None and verdict.need == "allow"

    def needing(self, calls: Iterable[ToolCall]) -> tuple[str, ...]:
        """Name the tools among some calls that somebody is to be asked for."""
        names = {call.name for call in calls}
        return tuple(
            sorted(
                name
                for name in names.intersection(self._verdicts)
                if self._verdicts[name].need == "ask"
            )
        )

    async def refusal(self, call: ToolCall, tool: ToolSpec, key: str) -> str:
        """Wait until a call may run.

        Args:
            call: what is to run.
            tool: what the call can do at worst.
            key: says which call of the message it is.

        Returns:
            Why it may not; empty: it may.
        """
        if self._verdicts[tool.name].need == "allow":
            return ""
        known = self._steps.leaves.get(call.id)
        if known is not None and known.outcome in {"denied", "timeout"}:
            return known.why  # decided before the process ended
        if known is None or known.outcome != "approved":
            leave = await self._ask(call, tool, key)
            if self._steps.is_superseded:
                return SUPERSEDED
            if leave.outcome != "approved":
                self._services.metrics.tool_denial(tool.name, leave.outcome)
                return leave.why
        return ""

    async def _ask(self, call: ToolCall, tool: ToolSpec, key: str) -> Leave:
        # Recorded first: after a restart it says that the call has not begun.
        await self._steps.note(LeaveNoted(call.id, "asked"))
        if self._steps.is_superseded:
            return LOST
        wanted = AskLeave(
            turn_id=self._start.turn_id,
            call_id=call.id,
            key=key,
            tool=tool_notice.name_of(tool.name),
            effect=tool.effect,
            summary=tool_notice.summary(
                call, self._services.redact, tool_notice.MOST_ASKED
            ),
        )
        timeout = self._services.approvals.timeout + GRACE
        leave = await self.resting.ask(wanted, timeout)
        noted = LeaveNoted(call.id, leave.outcome, leave.by, leave.why)
        await self._steps.note(noted)
        return leave
