"""A second question in the midst of tool calls, in a room of a real Synapse."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.live.matrix.crew import QUIET, Crew, asked_in_mid_answer, wait_in_step
from tests.processes.running import rows

pytestmark = pytest.mark.live

STEERED = """
[buffering]
policy = "steer"
"""


async def test_steer_puts_it_into_the_tool_calls(crew: Crew, tmp_path: Path) -> None:
    with crew.served(tmp_path, shown=QUIET + STEERED) as running:
        await wait_in_step(running)
        words = ("ponder 2+3", "echo rather this")
        room = await asked_in_mid_answer(crew, crew.ben, *words)
        assert await room.wait_said(1, crew.ben) == ["rather this"]
        await room.say("@anna echo over")
        await room.wait_said(1, crew.anna)
        assert len(await room.said(*crew.agents)) == 2
    settled = rows(tmp_path, "SELECT reason FROM inbox ORDER BY number")
    assert settled == [("ok",), ("steered",), ("ok",)]
