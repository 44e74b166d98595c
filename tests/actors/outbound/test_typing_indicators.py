"""Proves that nobody is shown writing for ever, whoever forgot to end it."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from msgspec import structs

from actors.messages.deliveries import Typing
from actors.outbound.courier import MOST
from actors.protocol import ShowTyping
from tests.fakes.actors.neighbours import ROOM
from tests.fakes.chat.presence import EDITS, Screen
from tests.fakes.outbound.road import open_road

Clock = trio.testing.MockClock


def typing(number: int = 1, *, is_over: bool = False) -> ShowTyping:
    reply_id = f"m{number}"
    return ShowTyping(
        Typing(
            correlation_id=reply_id,
            reply_id=reply_id,
            address=ROOM,
            agent="anna",
            is_over=is_over,
        )
    )


async def test_who_is_not_heard_of_any_more_writes_no_more(
    autojump_clock: Clock,
) -> None:
    screen = Screen()
    async with open_road(autojump_clock, None, EDITS, platform=screen) as road:
        for _ in range(3):
            road.tell(typing())
            await trio.sleep(4)
        assert [each.is_over for each in screen.typing] == [False] * 3
        await trio.sleep(9)
        assert [each.is_over for each in screen.typing] == [False] * 3 + [True]
        await trio.sleep(1000)
        assert len(screen.typing) == 4


async def test_that_it_is_over_is_said_once(autojump_clock: Clock) -> None:
    screen = Screen()
    async with open_road(autojump_clock, None, EDITS, platform=screen) as road:
        road.tell(typing(is_over=True))
        road.tell(typing())
        for _ in range(2):
            road.tell(typing(is_over=True))
        await trio.sleep(100)
        assert [each.is_over for each in screen.typing] == [False, True]


@pytest.mark.parametrize(("typing_for", "told"), [(10.0, 3), (0.0, 1)])
async def test_a_platform_that_never_stops_by_itself_is_told_once(
    typing_for: float, told: int, autojump_clock: Clock
) -> None:
    screen = Screen()
    abilities = structs.replace(EDITS, typing_for=typing_for, ends_typing=False)
    async with open_road(autojump_clock, None, abilities, platform=screen) as road:
        for _ in range(3):
            road.tell(typing())
        road.tell(typing(is_over=True))
        await trio.sleep(100)
        assert len(screen.typing) == told


async def test_a_chat_shows_only_so_many_writing(autojump_clock: Clock) -> None:
    screen = Screen()
    async with open_road(autojump_clock, None, EDITS, platform=screen) as road:
        for number in range(MOST + 10):
            road.tell(typing(number))
        await trio.sleep(1)
        assert len(screen.typing) == MOST


async def test_who_still_writes_another_answer_is_shown_on(
    autojump_clock: Clock,
) -> None:
    screen = Screen()
    async with open_road(autojump_clock, None, EDITS, platform=screen) as road:
        road.tell(typing(1))
        road.tell(typing(2))
        road.tell(typing(1, is_over=True))
        await trio.sleep(1)
        assert [each.is_over for each in screen.typing] == [False, False]
        road.tell(typing(2, is_over=True))
        await trio.sleep(1)
        assert [each.is_over for each in screen.typing] == [False, False, True]
