"""Carries out the planned faults of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.faults import FaultClass, Strike
    from tests.simulation.world import World

# Chosen: seconds that reading fails; while it does, nothing can start.
UNREAD = 1.0


class Chaos:
    """What strikes a world at planned moments.

    Args:
        world: which one.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._ways: dict[FaultClass, Callable[[Strike], object]] = {
            "crash": lambda _: world.crash("at any moment"),
            "restart": self._restart,
            "disk_full": self._fill_disk,
            "disk_slow": self._slow_disk,
            "disk_unread": self._hide_disk,
            "listener": self._break_listener,
            "duplicate": self._repeat,
            "shock": self._strike_actor,
            "poison": self._strike_actor,
            "kill": self._kill,
            "wall": self._set_clock,
            "operator": lambda strike: world.operator.act(strike.roll),
        }

    async def run(self) -> None:
        """Strike as planned, until the safety phase is over."""
        world = self._world
        for strike in world.faults.strikes:
            await trio.sleep_until(strike.at)
            world.faults.hits.append(strike.kind)
            world.trace.note("fault", "", f"{strike.kind} {strike.seconds}")
            self._ways[strike.kind](strike)
            world.sample()
        await trio.sleep_until(world.plan.span + 1.0)

    def _restart(self, _: Strike) -> None:
        if self._world.life is not None:
            self._world.life.stop()

    def _fill_disk(self, strike: Strike) -> None:
        self._world.disk.full_until = trio.current_time() + strike.seconds

    def _slow_disk(self, strike: Strike) -> None:
        self._world.disk.slow_until = trio.current_time() + strike.seconds

    def _hide_disk(self, strike: Strike) -> None:
        seconds = min(strike.seconds, UNREAD)
        self._world.disk.unread_until = trio.current_time() + seconds

    def _break_listener(self, strike: Strike) -> None:
        platforms = self._world.platforms
        platforms[int(strike.roll * len(platforms))].break_listener()

    def _repeat(self, strike: Strike) -> None:
        """Have a platform hand in once more what somebody wrote before."""
        world, now = self._world, trio.current_time()
        past = [act for act in world.plan.acts if act.at < now]
        if past:
            act = past[int(strike.roll * len(past))]
            by_name = {each.name: each for each in world.platforms}
            by_name[act.platform].post(act, again=True)

    def _strike_actor(self, strike: Strike) -> None:
        if self._world.life is not None:
            self._world.life.strike(strike)

    def _kill(self, strike: Strike) -> None:
        self._strike_actor(strike)
        self._world.checkers.cuts += 1

    def _set_clock(self, strike: Strike) -> None:
        self._world.clock.offset += strike.jump
