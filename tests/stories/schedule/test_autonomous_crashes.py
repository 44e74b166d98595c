"""A process may end at any commit: what an agent decided is done, and told, once."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from actors.messages.inbound import (
    ModelRequest,
    ToolCall,
    ToolContext,
    ToolResult,
    ToolSpec,
)
from tests.fakes.company.by_itself import HOURLY, ByItself, acts, planned
from tests.fakes.company.company import Says, at_rest, call, open_company
from tests.fakes.store.crashes import Death, Moment, MortalStore

Clock = trio.testing.MockClock

HOUR = 3600.0


class Can:
    """A watering can: what is poured twice is too much."""

    spec = ToolSpec("pour", "Pours water.", b'{"type":"object"}')

    def __init__(self) -> None:
        self.poured: Counter[str] = Counter()
        self.logged: list[str] = []
        """What memory has of it in the end."""

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        del call
        self.poured[context.correlation_id] += 1
        await trio.lowlevel.checkpoint()
        return ToolResult("poured")


def works(request: ModelRequest) -> Says:
    """Pour, then report."""
    is_done = any(line.role == "tool" for line in request.lines)
    return Says("Watered.") if is_done else Says(calls=(call("pour"),))


def garden(*deaths: Death, **own: Any) -> tuple[ByItself, Can]:
    can = Can()
    cast = ByItself(
        model=planned(acts("pour"), works),
        autonomous=msgspec.structs.replace(HOURLY, **own),
        more={"tools": ("pour",), "autonomy": "full"},
        tools=(can,),
        store=MortalStore(*deaths),
    )
    return cast, can


async def run_for(clock: Clock, cast: ByItself, seconds: float) -> bool:
    """Run a company for so long; tell whether its process lived that long."""
    store = cast.store
    assert isinstance(store, MortalStore)
    with trio.CancelScope() as life:
        store.on_death = life.cancel
        async with open_company(clock, cast):
            await trio.sleep(seconds)
            await at_rest(cast)
            await trio.sleep(1)
    cast.restart()
    return not life.cancelled_caught


def play(*deaths: Death) -> tuple[ByItself, Can]:
    """Let one hour pass, and a bit; a dead process is followed by another."""

    async def main() -> None:
        until = trio.current_time() + HOUR + 200
        has_lived = False
        while not has_lived:
            left = max(1.0, until - trio.current_time())
            has_lived = await run_for(clock, cast, left)
        can.logged = await cast.known("person:fake/ops")

    cast, can = garden(*deaths)
    clock = trio.testing.MockClock(autojump_threshold=0)
    trio.run(main, clock=clock)
    return cast, can


def all_commits() -> int:
    cast, can = play()
    assert cast.platform.said("ops") == ["anna: Watered."]
    assert list(can.poured.values()) == [1]
    assert isinstance(cast.store, MortalStore)
    return len(cast.store.commits)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_crash_at_any_commit_does_nothing_twice(moment: Moment) -> None:
    count = all_commits()
    assert count >= 8
    for number in range(1, count + 1):
        cast, can = play((number, moment))
        said = cast.platform.said("ops")
        assert said == ["anna: Watered."], f"commit {number} {moment}: {said}"
        assert max(can.poured.values(), default=0) <= 1, f"commit {number} {moment}"
        rows = cast.store._rows.inbox.values()
        assert [row.reason for row in rows] == ["decided", "ok", "told"], number
        assert can.logged == ["By myself: 1. pour → Watered."], number
