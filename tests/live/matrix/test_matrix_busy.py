"""A second question in mid-answer, under each busy policy, in rooms of a Synapse."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import trio

from tests.live.matrix.crew import QUIET, Crew, asked_in_mid_answer, wait_in_step
from tests.processes.running import Server

pytestmark = pytest.mark.live

POLICIES = """
[[busy_policies]]
agent = "anna"
policy = "serial"
note = true

[[busy_policies]]
agent = "ben"
policy = "followup"

[[busy_policies]]
agent = "cleo"
policy = "interrupt"
"""
LONG = "on and " * 20


@pytest.fixture(scope="module")
def server(crew: Crew, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Run the company, each agent by a policy of its own."""
    folder = tmp_path_factory.mktemp("busy")
    with crew.served(folder, shown=QUIET + POLICIES) as running:
        trio.run(wait_in_step, running)
        yield running
        assert running.process.poll() is None, running.log


@pytest.mark.usefixtures("server")
async def test_serial_answers_one_after_the_other_and_says_so(crew: Crew) -> None:
    room = await asked_in_mid_answer(crew, crew.anna, f"slowly {LONG}", "echo two")
    said = await room.wait_said(3, crew.anna)
    assert said[0] == "Got it, I'll get to this next."
    assert [each.strip() for each in said[1:]] == [LONG.strip(), "two"]


@pytest.mark.usefixtures("server")
async def test_followup_answers_together_what_came_meanwhile(crew: Crew) -> None:
    words = (f"slowly {LONG}", "echo two", "echo three")
    room = await asked_in_mid_answer(crew, crew.ben, *words)
    said = await room.wait_said(2, crew.ben)
    assert [each.strip() for each in said] == [LONG.strip(), "three"]
    await room.say("@anna echo over")
    await room.wait_said(1, crew.anna)
    assert len(await room.said(*crew.agents)) == 3


@pytest.mark.usefixtures("server")
async def test_interrupt_begins_anew_with_both(crew: Crew) -> None:
    room = await asked_in_mid_answer(crew, crew.cleo, f"slowly {LONG}", "echo two")
    said = await room.wait_said(1, crew.cleo)
    await room.say("@anna echo over")
    await room.wait_said(1, crew.anna)
    assert said == ["two"]
    assert len(await room.said(*crew.agents)) == 2
