"""Proves that the `order` fixture still steers trio's scheduler.

The fixture reaches into trio's private names. When this goes red after an upgrade
of trio or Hypothesis, race tests run under one unknown order instead of twenty
known ones.
"""

from __future__ import annotations

import trio

TASKS = 6


async def finished_order() -> tuple[int, ...]:
    """Start tasks that take turns, and tell in which order they ended."""
    ended: list[int] = []

    async def step_twice(number: int) -> None:
        await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()
        ended.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(TASKS):
            nursery.start_soon(step_twice, number)
    return tuple(ended)


def test_the_fixture_seeds_the_dice_of_the_scheduler(order: int) -> None:
    dice = trio._core._run._r
    assert dice.getstate() == type(dice)(order).getstate()


def test_hypothesis_made_the_scheduler_deterministic() -> None:
    assert trio._core._run._ALLOW_DETERMINISTIC_SCHEDULING


async def test_one_seed_gives_one_order(order: int) -> None:
    dice = trio._core._run._r
    dice.seed(order)
    first = await finished_order()
    dice.seed(order)
    assert await finished_order() == first


async def test_twenty_seeds_give_more_than_ten_orders() -> None:
    dice = trio._core._run._r
    before = dice.getstate()
    seen: set[tuple[int, ...]] = set()
    for seed in range(20):
        dice.seed(seed)
        seen.add(await finished_order())
    dice.setstate(before)
    assert len(seen) > 10
