"""Who is killed by hand in the middle of work is started again, and loses nothing."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from actors import names
from actors.operations.warden import KillActor, Killed
from tests.fakes.company.company import (
    Cast,
    FakeModel,
    Says,
    at_rest,
    heard,
    open_company,
    until,
)

Clock = trio.testing.MockClock

TALK = f"{names.sessions('anna')}/anna/fake/room//zoe"


@pytest.mark.parametrize(
    "name", [TALK, names.branch("anna"), names.agent("anna"), names.connector("fake")]
)
async def test_a_message_is_answered_once_whoever_is_killed_meanwhile(
    autojump_clock: Clock, name: str
) -> None:
    cast = Cast(model=FakeModel(lambda _: Says("yes", after=5)))
    async with open_company(autojump_clock, cast) as system:
        cast.platform.write("hello")
        await until(lambda: cast.model.running)
        names_now = {each.name for each in system.actors()}
        assert name in names_now
        warden = system.find(names.WARDEN)
        assert warden is not None
        killed: Killed = await warden.ask(KillActor(name, "the operator"))
        assert killed.is_done, killed.text
        await at_rest(cast)
        (again,) = [each for each in system.actors() if each.name == name]
        assert (again.state, again.restarts) == ("running", 1)
        assert again.last_end == "EndedByHandError: killed by the operator"
        # Nobody has to wait until somebody looks for what was left lying.
        assert trio.current_time() < 15
    assert cast.platform.said() == ["anna: yes"]


@pytest.mark.parametrize("wait", [0.01, 0.5, 0.99, 1.0, 1.01])
async def test_what_comes_next_waits_behind_what_a_killed_agent_was_at(
    autojump_clock: Clock, wait: float
) -> None:
    cast = Cast(model=FakeModel(lambda x: Says(f"to {heard(x)}", after=5)))
    async with open_company(autojump_clock, cast) as system:
        cast.platform.write("one")
        await until(lambda: cast.model.running)
        branch = system.find(names.branch("anna"))
        assert branch is not None
        branch.kill()
        await trio.sleep(wait)
        cast.platform.write("two")
        await at_rest(cast)
    assert cast.platform.said() == ["anna: to one", "anna: to two"]


async def test_the_store_and_the_root_are_not_killed(autojump_clock: Clock) -> None:
    cast = Cast()
    async with open_company(autojump_clock, cast) as system:
        warden = system.find(names.WARDEN)
        assert warden is not None
        for name in (names.ROOT, names.KEEPER, names.ROUTER, names.WARDEN):
            killed: Killed = await warden.ask(KillActor(name, "the operator"))
            assert not killed.is_done
        cast.platform.write("hello")
        await at_rest(cast)
    assert cast.platform.said() == ["anna: anna heard hello"]
