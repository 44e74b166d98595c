"""A real Synapse and a company that are killed, stopped, slowed down and locked out."""

from __future__ import annotations

import signal
from pathlib import Path

import httpx
import pytest
import trio

from tests.live.matrix.crew import Crew, figure, wait_in_step
from tests.live.matrix.synapse import wait_until
from tests.processes.running import Server

pytestmark = pytest.mark.live


async def wait_logged(server: Server, text: str, count: int = 1) -> None:
    """Wait until the log holds something."""

    async def look() -> int:
        await trio.lowlevel.checkpoint()
        return server.log.count(text)

    await wait_until(look, lambda found: found >= count)


async def test_killed_in_mid_answer_it_answers_once_after_the_next_start(
    crew: Crew, tmp_path: Path
) -> None:
    room = await crew.zoe.room(crew.anna, is_direct=True)
    with crew.served(tmp_path) as server:
        await room.wait_joined(crew.anna)
        await room.say("echo hello")
        assert await room.wait_said(1, crew.anna) == ["hello"]
        await room.say("slowly one two three four five six seven eight")
        await wait_logged(server, "message received", 2)
        await server.end(signal.SIGKILL)
    await room.say("echo and this, too")
    with crew.served(tmp_path) as server:
        answers = await room.wait_said(3, crew.anna)
        await wait_in_step(server)
        await server.end()
    assert answers[1:] == [
        "one two three four five six seven eight",
        "and this, too",
    ]
    assert len(await room.said(crew.anna)) == 3


async def test_a_homeserver_that_was_stopped_is_gone_on_with(
    crew: Crew, tmp_path: Path
) -> None:
    room = await crew.zoe.room(crew.anna, is_direct=True)
    with crew.served(tmp_path) as server:
        await room.wait_joined(crew.anna)
        await room.say("later you will hear this")
        await wait_logged(server, "message received")
        await trio.to_thread.run_sync(crew.synapse.stop)
        try:
            await wait_logged(server, "its homeserver is away", 3)
        finally:  # the other tests need it, too
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(crew.synapse.start)
        await room.say("echo hello again")
        answers = await room.wait_said(2, crew.anna, within=90)
        assert answers == ["you will hear this", "hello again"]
        await wait_in_step(server)
        assert await figure(server, "callboard_matrix_reconnects_total") >= 3


async def test_synapses_own_limits_are_waited_for(crew: Crew, tmp_path: Path) -> None:
    room = await crew.zoe.room(crew.cleo, is_direct=True)
    with crew.served(tmp_path) as server:
        await room.wait_joined(crew.cleo)
        for number in range(12):
            await room.say(f"echo number {number}")
        answers = await room.wait_said(12, crew.cleo, within=60)
        await server.end()
    assert answers == [f"number {number}" for number in range(12)]


async def test_an_account_with_a_wrong_token_is_told_of_and_left_out(
    crew: Crew, tmp_path: Path
) -> None:
    wrong = "syt_of_somebody_else"
    room = await crew.zoe.room(crew.anna, crew.ben)
    with crew.served(tmp_path, ben=wrong) as server:
        await room.wait_joined(crew.anna)
        await wait_logged(server, "account not let in")
        await wait_in_step(server, 2)
        await room.say("@anna echo hello")
        assert await room.wait_said(1, crew.anna) == ["hello"]
        async with httpx.AsyncClient() as client:
            assert (await client.get(f"{server.url}/readyz")).is_success
        assert "connectors.matrix.accounts.ben" in server.log
        for secret in (wrong, crew.anna.token, crew.cleo.password):
            assert secret not in server.log
