"""Which tools a turn may use, and which calls people must approve before they run.

While a turn only waits for approvals, it gives its permit to another turn.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import msgspec
import trio

from actors.agents.persona import Persona
from actors.approvals import permissions
from actors.config.collaboration import ToolsThere
from actors.config.limits import PermissionConfig
from actors.messages.inbound import Inbound, ToolCall, ToolSpec
from actors.protocol import (
    ApprovalResult,
    RequestApproval,
    ResumeTurn,
    StartTurn,
    TurnPaused,
)
from actors.rules.markers.descriptions import SPOKEN_TO, Mode
from actors.rules.prompt import tools as safe_tools
from actors.services import Services
from actors.turn.steps import ApprovalRecorded, StepJournal
from runtime.actor.ref import UNANSWERED, ActorRef
from runtime.errors import MailboxFullError

LOST = ApprovalResult(
    "unasked", why="it needs somebody's leave, and the question was lost"
)

# Chosen: a session handles a full mailbox of a thousand messages in less.
AGAIN = 1.0
"""Seconds until a session whose mailbox was full is asked again."""


class PermitPauses(msgspec.Struct, eq=False):
    """Pauses the permit of a turn while all of its calls wait for approval.

    Args:
        most: most seconds to wait for the permit again.
    """

    _session: ActorRef
    _turn_id: str
    _most: float
    _working: int = 0
    _waiting: int = 0
    _is_resting: bool = False

    def begin(self, count: int) -> None:
        """Note that this many calls begin, side by side."""
        self._working += count

    def end(self) -> None:
        """Note that one call has ended."""
        self._working -= 1
        self._rest()

    async def ask(self, wanted: RequestApproval, within: float) -> ApprovalResult:
        """Ask people about a call; afterwards the turn holds its permit again.

        Args:
            within: most seconds to wait for the answer.
        """
        reply = self._session.ask(wanted, timeout=within)
        self._working -= 1
        self._waiting += 1
        self._rest()
        try:
            leave = cast("ApprovalResult", await reply)
        except (*UNANSWERED, MailboxFullError):
            leave = LOST
        finally:
            self._waiting -= 1
            self._working += 1
        return leave if await self._go_on() else LOST

    def _rest(self) -> None:
        if self._waiting and not self._working and not self._is_resting:
            self._is_resting = True
            # If this does not arrive, the turn simply keeps its permit.
            self._session.tell(TurnPaused(self._turn_id))

    async def _go_on(self) -> bool:
        """Take the permit again; give whether the session still waits for this turn."""
        while self._is_resting:
            wanted = ResumeTurn(self._turn_id)
            try:
                may = cast("bool", await self._session.ask(wanted, timeout=self._most))
            except MailboxFullError:
                await trio.sleep(AGAIN)
            except UNANSWERED:
                return False
            else:
                self._is_resting = False
                return may
        return True


# Chosen: the session's own timer comes first; this one is for a session that is gone.
GRACE = 10.0
"""Seconds beyond the approval's time limit that a turn waits for its session."""

SUPERSEDED = "another attempt at this took over"


def judge(
    tool: ToolSpec,
    persona: Persona,
    asked: tuple[Inbound, Mode],
    rules: tuple[PermissionConfig, ...],
    there: ToolsThere,
) -> permissions.PermissionDecision:
    """Decide whether a turn may use a tool.

    Args:
        asked: the message, and the mode of its turn.
    """
    inbound, mode = asked
    config = persona.config
    if mode in SPOKEN_TO and not safe_tools.is_safe(tool, there):
        return permissions.PermissionDecision("deny", safe_tools.NOT_THERE)
    caller = permissions.Caller(
        agent=persona.name,
        connector=inbound.address.connector,
        chat=inbound.address.chat,
        sender=inbound.sender_id,
        is_delegated=bool(inbound.chain.agents),
    )
    freedom = permissions.Freedom(
        autonomy=config.autonomy,
        tools=config.tool_permissions,
        delegated=config.delegated_tools,
    )
    return permissions.judge(tool, caller, freedom, rules)


class ToolPermissions:
    """Which tools of one turn are allowed, denied, or need an approval."""

    __slots__ = (
        "_persona",
        "_services",
        "_start",
        "_steps",
        "_verdicts",
        "denied",
        "offered",
        "resting",
    )

    def __init__(
        self, start: StartTurn, persona: Persona, services: Services, steps: StepJournal
    ) -> None:
        self._start = start
        self._services = services
        self._steps = steps
        self._verdicts: dict[str, permissions.PermissionDecision] = {}
        self._persona = persona
        self.offered: tuple[ToolSpec, ...] = ()
        """The tools that the model may call."""

        self.resting = PermitPauses(
            start.session, start.turn_id, persona.turn_seconds(services.limits)
        )
        """Is told of every call that begins or ends."""

        self.denied: dict[str, str] = {}
        """The other tools, with the reason."""

    def judge(self, tools: Iterable[ToolSpec]) -> None:
        """Judge each tool by the rules."""
        offered: list[ToolSpec] = []
        for tool in tools:
            verdict = self._judge(tool)
            self._verdicts[tool.name] = verdict
            if verdict.need == "deny":
                self.denied[tool.name] = verdict.why
            else:
                offered.append(tool)
        self.offered = tuple(offered)

    def _judge(self, tool: ToolSpec) -> permissions.PermissionDecision:
        start, services = self._start, self._services
        asked = (start.inbound, start.mode)
        return judge(
            tool,
            self._persona,
            asked,
            services.permissions,
            services.collaboration.tools,
        )

    def is_free(self, tool: str) -> bool:
        """Whether a tool may be used without an approval."""
        verdict = self._verdicts.get(tool)
        return verdict is not None and verdict.need == "allow"

    def needing(self, calls: Iterable[ToolCall]) -> tuple[str, ...]:
        """Give the names of the tools among some calls that need an approval."""
        names = {call.name for call in calls}
        return tuple(
            sorted(
                name
                for name in names.intersection(self._verdicts)
                if self._verdicts[name].need == "ask"
            )
        )

    async def refusal(self, call: ToolCall, tool: ToolSpec, key: str) -> str:
        """Wait until a call is approved, or refused.

        Args:
            tool: its tool, with the worst effect that it may have.
            key: says which call of the message it is.

        Returns:
            Why the call may not run; empty: it may.
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
                self._services.metrics.denials.add(1, tool.name, leave.outcome)
                return leave.why
        return ""

    async def _ask(self, call: ToolCall, tool: ToolSpec, key: str) -> ApprovalResult:
        # Recorded first, so that a restart knows that the call has not begun.
        await self._steps.note(ApprovalRecorded(call.id, "asked"))
        if self._steps.is_superseded:
            return LOST
        wanted = RequestApproval(
            turn_id=self._start.turn_id,
            call_id=call.id,
            key=key,
            tool=safe_tools.name_of(tool.name),
            effect=tool.effect,
            summary=safe_tools.summary(
                call, self._services.redact, safe_tools.MOST_ASKED
            ),
        )
        timeout = self._services.approvals.timeout + GRACE
        leave = await self.resting.ask(wanted, timeout)
        noted = ApprovalRecorded(call.id, leave.outcome, leave.by, leave.why)
        await self._steps.note(noted)
        return leave
