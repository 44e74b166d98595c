"""Discord is asked again when it says so, for a while, and not sooner."""

from __future__ import annotations

from typing import cast

import pytest
import trio
from trio.testing import MockClock

from connectors.chat.discord.client import DiscordAccount
from connectors.chat.discord.events import Channel
from connectors.chat.discord.listener import (
    PAGE_WITHIN,
    ask_patiently,
    asked_to_wait,
)
from connectors.chat.requests import BusyError, LostError, PlatformError, RefusedError

CHANNEL = Channel("1", 9)


class Busy:
    """An account whose client fails in turn, then finds nothing.

    Args:
        errors: what it raises.
    """

    def __init__(self, *errors: PlatformError) -> None:
        self._errors = list(errors)
        self.asked: list[float] = []
        self._began = trio.current_time()

    async def ask(self, _: object) -> list[object]:
        await trio.lowlevel.checkpoint()
        self.asked.append(trio.current_time() - self._began)
        if self._errors:
            raise self._errors.pop(0)
        return []


async def ask(account: Busy) -> list[object]:
    page = await ask_patiently(CHANNEL, 0, 9, cast("DiscordAccount", account))
    return [*page]


async def test_a_page_is_asked_for_when_discord_says(autojump_clock: MockClock) -> None:
    del autojump_clock
    account = Busy(BusyError("slow", 7.5), LostError("cut"), BusyError("slow"))
    assert await ask(account) == []
    first, second, third, fourth = account.asked
    assert (first, second) == (0.0, 7.5)
    assert second < third < fourth < PAGE_WITHIN


async def test_who_is_to_wait_longer_than_that_waits_no_moment(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    account = Busy(BusyError("slow", PAGE_WITHIN + 1))
    with pytest.raises(BusyError):
        await ask(account)
    assert account.asked == [0.0]
    began = trio.current_time()
    with pytest.raises(LostError):
        await ask(Busy(*[LostError("cut")] * 99))
    assert PAGE_WITHIN / 2 < trio.current_time() - began <= PAGE_WITHIN


async def test_what_is_refused_is_not_asked_again(autojump_clock: MockClock) -> None:
    del autojump_clock
    account = Busy(RefusedError("no"))
    with pytest.raises(RefusedError):
        await ask(account)
    assert account.asked == [0.0]


def test_a_bot_begins_anew_when_discord_says() -> None:
    assert asked_to_wait(BusyError("slow", 3.5)) == 3.5
    assert asked_to_wait(BusyError("slow")) is None
    assert asked_to_wait(LostError("cut")) is None
