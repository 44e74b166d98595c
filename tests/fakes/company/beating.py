"""A company whose agent has a heartbeat by the settings, and a list that may change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import trio

from actors.config.agents import AgentConfig
from actors.config.schedule import HeartbeatConfig, ScheduledConfig
from actors.errors import ToolError
from actors.messages.inbound import ModelRequest
from tests.fakes.company.company import Cast, FakeModel, Platform, Says

FIRST = 1000.0
"""Seconds from the mock clock's zero, 22:13:20 UTC, to the first beat at 22:30."""

PERIOD = 1800.0


class Listed:
    """A checklist on a disk that may be ill.

    Args:
        text: of the file.
    """

    def __init__(self, text: str = "- the oven") -> None:
        self.text = text
        self.is_broken = False
        self.read: list[Path] = []

    async def __call__(self, file: Path) -> str:
        await trio.lowlevel.checkpoint()
        self.read.append(file)
        if self.is_broken:
            raise ToolError(f"{file} is not UTF-8 text")
        return self.text


def beating(
    listed: Listed,
    talk: Callable[[ModelRequest], str | Says] | None = None,
    *,
    daily_tokens: int = 0,
    **heartbeat: Any,
) -> Cast:
    """Give a cast whose anna looks after a list, for zoe, in her chat."""
    given: dict[str, Any] = {"chat": "fake/room", "sender": "zoe", **heartbeat}
    agent = AgentConfig(
        persona=Path("personas/anna"),
        heartbeat=HeartbeatConfig(**given),
        scheduled=ScheduledConfig(daily_tokens=daily_tokens),
    )
    model = FakeModel() if talk is None else FakeModel(talk)
    return Cast(
        agents={"anna": agent},
        model=model,
        platform=Platform(),
        read_checklist=listed,
    )


def due(cast: Cast, kind: str = "heartbeat") -> dict[str, int]:
    """Give what became of slots, as the metrics have it."""
    name = "callboard_appointments_due_total"
    found: dict[str, int] = {}
    for line in cast.metrics.render().decode().splitlines():
        if line.startswith(f'{name}{{kind="{kind}"'):
            outcome = line.partition('outcome="')[2].partition('"')[0]
            found[outcome] = int(float(line.rpartition(" ")[2]))
    return found
