"""A company in which somebody is to be asked before an agent may use its shell."""

from __future__ import annotations

from typing import Any

import msgspec
import trio
import trio.testing

from actors.config.agents import AgentConfig
from actors.config.limits import ApprovalConfig
from actors.messages.inbound import (
    ModelRequest,
    ToolCall,
    ToolContext,
    ToolResult,
    ToolSpec,
)
from actors.turn.steps import ApprovalRecorded
from tests.fakes.company.company import (
    Cast,
    FakeModel,
    Platform,
    Says,
    call,
    heard,
    until,
)

Clock = trio.testing.MockClock

OLGA = "fake/olga"
TIMEOUT = ApprovalConfig().timeout


class Shell:
    """A tool that can do anything, and notes what it did."""

    def __init__(self) -> None:
        self.spec = ToolSpec("shell", "", b"{}", is_own_words=True)
        self.ran: list[str] = []
        self.takes = 0.0

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        self.ran.append(f"{context.sender_id} {call.id}")
        await trio.sleep(self.takes)
        return ToolResult("done")


def talk(request: ModelRequest) -> str | Says:
    """Run what is asked for; tell what came of it."""
    line = request.lines[-1]
    if line.role == "tool":
        return f"It says: {line.text}"
    if "run" in line.text:
        return Says("Wait.", calls=(call("shell", command=line.text),))
    return f"to {heard(request)}"


class Office:
    """A company in which anna has a shell, and olga is the owner."""

    def __init__(self, clock: Clock, kind: type[Cast] = Cast, **cast: Any) -> None:
        self.clock = clock
        self.shell = Shell()
        given: dict[str, Any] = {
            "agents": {"anna": AgentConfig(tools=("shell",)), "ben": AgentConfig()},
            "model": FakeModel(talk),
            "tools": (self.shell,),
            "approvers": (OLGA,),
        }
        self.cast = kind(**{**given, **cast})

    @property
    def platform(self) -> Platform:
        return self.cast.platform

    def said(self, chat: str = "room") -> list[str]:
        return self.platform.said(chat)

    async def asked(self, count: int = 1, chat: str = "room") -> str:
        """Wait until somebody has been asked that often; give the last id."""

        def questions() -> list[str]:
            return [each for each in self.said(chat) if "/approve" in each]

        await until(lambda: len(questions()) == count)
        await trio.sleep(1.0)  # then a plain word is an answer
        return questions()[-1].split("/approve ")[1][:2]

    async def leaves(self) -> list[ApprovalRecorded]:
        events = [
            event
            for stream in self.cast.store._rows.journal.values()
            for event in stream
            if event.kind == "leave"
        ]
        return [
            msgspec.json.decode(event.body, type=ApprovalRecorded) for event in events
        ]

    def counted(self, outcome: str) -> bool:
        text = self.cast.metrics.render().decode()
        return f'callboard_approvals_total{{outcome="{outcome}"}}' in text
