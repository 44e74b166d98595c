"""People see at their messages that they were seen, and how they ended."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from actors.config.agents import AgentConfig
from actors.config.limits import LimitsConfig
from actors.config.presence import ConnectorPresence, PresenceConfig
from actors.config.sessions import BufferingConfig
from actors.errors import (
    DeliveryBusyError,
    DeliveryRefusedError,
    DeliveryUnknownError,
    ModelBusyError,
)
from tests.fakes.company.company import Says, at_rest, open_company
from tests.stories.outbound.test_presence import cast_of

Clock = trio.testing.MockClock


@pytest.mark.parametrize(
    ("said", "sign"),
    [
        (Says("done", after=5), "✅"),
        (Says("NO_REPLY", after=5), None),
        (Says(after=5, error=ModelBusyError("no")), "⚠️"),
    ],
)
async def test_a_message_is_seen_to_be_seen_and_then_how_it_ended(
    said: Says, sign: str | None, autojump_clock: Clock
) -> None:
    cast, screen = cast_of(said)
    async with open_company(autojump_clock, cast):
        inbound = screen.write("one")
        await trio.sleep(1)
        key = (inbound.platform_id, "anna")
        assert screen.hand.signs == {key: "👀"}
        await at_rest(cast)
        await trio.sleep(1)
    assert screen.hand.signs == ({} if sign is None else {key: sign})
    assert len(screen.hand.reactions) == 2


async def test_a_command_and_what_nobody_answers_get_no_sign(
    autojump_clock: Clock,
) -> None:
    cast, screen = cast_of()
    screen.is_direct = False
    async with open_company(autojump_clock, cast):
        screen.write("nobody is meant")
        screen.is_direct = True
        screen.write("/help")
        await at_rest(cast)
        await trio.sleep(5)
    assert screen.hand.reactions == []


async def test_of_several_agents_one_shows_the_sign(autojump_clock: Clock) -> None:
    agents = {"anna": AgentConfig(), "ben": AgentConfig()}
    cast, screen = cast_of(agents=agents)
    screen.is_direct = False
    async with open_company(autojump_clock, cast):
        screen.write("@anna @ben hello")
        await at_rest(cast)
        await trio.sleep(1)
    assert len(screen.deliveries) == 2
    assert len({each.agent for each in screen.hand.reactions}) == 1
    assert [each.sign for each in screen.hand.reactions] == ["👀", "✅"]


async def test_a_stopped_message_and_one_that_waited_have_their_signs(
    autojump_clock: Clock,
) -> None:
    cast, screen = cast_of(Says("late", after=60))
    async with open_company(autojump_clock, cast):
        first, second = screen.write("one"), screen.write("two")
        await trio.sleep(1)
        assert set(screen.hand.signs.values()) == {"👀"}
        await trio.sleep(30)
        screen.write("/stop")
        await at_rest(cast)
        await trio.sleep(1)
    signs = {key[0]: sign for key, sign in screen.hand.signs.items()}
    assert signs == {first.platform_id: "⚠️", second.platform_id: "⚠️"}


async def test_what_had_to_make_room_does_not_stay_seen_for_ever(
    autojump_clock: Clock,
) -> None:
    limits = LimitsConfig(max_waiting=1)
    buffering = BufferingConfig(policy="followup", debounce=0.0, overflow="oldest")
    cast, screen = cast_of(Says("late", after=30), limits=limits, buffering=buffering)
    async with open_company(autojump_clock, cast):
        screen.write("one")
        dropped = screen.write("two")
        screen.write("three")
        await at_rest(cast)
        await trio.sleep(1)
    signs = {key[0]: sign for key, sign in screen.hand.signs.items()}
    assert signs.pop(dropped.platform_id) == "⚠️"
    assert set(signs.values()) == {"✅"}


async def test_a_conversation_that_is_ended_leaves_no_sign_at_the_command(
    autojump_clock: Clock,
) -> None:
    cast, screen = cast_of(Says("done", after=5))
    async with open_company(autojump_clock, cast):
        screen.write("one")
        screen.write("/new")  # it waits for the answer
        await at_rest(cast)
        screen.write("/new")
        await at_rest(cast)
        await trio.sleep(1)
    assert list(screen.hand.signs.values()) == ["✅"]


async def test_a_sign_of_which_nobody_knows_is_taken_away_in_the_end(
    autojump_clock: Clock,
) -> None:
    cast, screen = cast_of(Says("done", after=5))
    async with open_company(autojump_clock, cast):
        screen.hand.busy.append(DeliveryUnknownError("it may stand there"))
        screen.write("one")
        await at_rest(cast)
        await trio.sleep(1)
    assert [each.instead_of for each in screen.hand.reactions][-1:] == ["👀"]


async def test_a_slow_or_busy_platform_keeps_no_answer_waiting(
    autojump_clock: Clock,
) -> None:
    cast, screen = cast_of("done")
    screen.hand.delay = 1000.0
    async with open_company(autojump_clock, cast):
        screen.write("one")
        await screen.wait_deliveries(1)
        assert trio.current_time() < 1
        screen.hand.delay = 0.0
        screen.hand.busy.append(DeliveryBusyError("x", retry_after=5))
        inbound = screen.write("two")
        await at_rest(cast)
        await trio.sleep(60)
    text = cast.metrics.render().decode()
    for outcome in ("slow", "busy"):
        assert f'outcome="{outcome}",what="reaction"}} 1' in text
    assert screen.hand.signs[inbound.platform_id, "anna"] == "✅"
    assert set(screen.hand.signs.values()) == {"✅"}


async def test_the_last_sign_is_tried_twice_and_no_refusal_hurts(
    autojump_clock: Clock,
) -> None:
    cast, screen = cast_of(Says("done", after=5))
    async with open_company(autojump_clock, cast):
        inbound = screen.write("one")
        await trio.sleep(1)
        screen.hand.busy.append(DeliveryBusyError("x", retry_after=20))
        await at_rest(cast)
        await trio.sleep(30)
        assert screen.hand.signs == {(inbound.platform_id, "anna"): "✅"}
        screen.hand.busy.extend([DeliveryRefusedError("no")] * 2)
        screen.write("two")
        await at_rest(cast)
        await trio.sleep(1)
    assert screen.said() == ["anna: done"] * 2


@pytest.mark.parametrize(
    "presence",
    [
        PresenceConfig(reactions=False),
        PresenceConfig(connectors={"fake": ConnectorPresence(reactions=False)}),
    ],
)
async def test_where_the_settings_want_no_signs_there_are_none(
    presence: PresenceConfig, autojump_clock: Clock
) -> None:
    cast, screen = cast_of("done", presence=presence)
    async with open_company(autojump_clock, cast):
        screen.write("one")
        await at_rest(cast)
        await trio.sleep(5)
    assert screen.hand.reactions == []
