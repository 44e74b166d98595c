"""Who floods a chat is told so now and then, and nothing of it is lost uncounted."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from actors.config.sessions import BufferingConfig
from actors.messages.busy_policies import Overflow
from actors.messages.deliveries import Abilities
from tests.fakes.company.company import FakeModel, Says, at_rest, heard, open_company
from tests.stories.inbound.test_overload import BUSY_CHAT, small, write

Clock = trio.testing.MockClock


@pytest.mark.parametrize("overflow", ["new", "oldest"])
async def test_who_floods_is_told_once_a_minute_and_each_loss_is_counted(
    overflow: Overflow, autojump_clock: Clock
) -> None:
    cast = small(99, max_waiting=1)
    cast.model = FakeModel(lambda request: Says(f"to {heard(request)}", after=50))
    cast.buffering = BufferingConfig(policy="followup", overflow=overflow)
    async with open_company(autojump_clock, cast):
        write(cast, *"a" * 20)
        await trio.sleep(1)
        assert len(cast.platform.said("a")) == 1
        assert "notices_left_out_total{" in cast.metrics.render().decode()
        await trio.sleep(59)
        write(cast, *"a" * 5)
        await at_rest(cast)
    notices = [each for each in cast.platform.said("a") if "anna" not in each]
    assert len(notices) == 2
    inbox = await cast.inbox()
    assert inbox["dropped"] == 25 - inbox["replied"]
    assert inbox["dropped"] > 20


async def test_who_waits_for_each_answer_is_told_each_time(
    autojump_clock: Clock,
) -> None:
    cast = small(99, max_waiting=1)
    cast.platform.can = Abilities(is_idempotent=True, shows_asides=False)
    async with open_company(autojump_clock, cast):
        write(cast, *"a" * 9)
        await at_rest(cast)
    assert cast.platform.said("a").count(BUSY_CHAT) == 7
