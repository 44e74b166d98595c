"""Proves that sleep and waking lose no message, repeat none and keep their order."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import msgspec
import trio
from hypothesis import HealthCheck, given, settings, strategies as st
from trio.testing import MockClock

from runtime.actor.actor import Actor
from runtime.actor.messages import Keyed, Passivate
from runtime.actor.ref import ActorRef
from runtime.supervision.keyed import KeyedConfig, KeyedSupervisor
from runtime.supervision.restarts import Backoff
from runtime.system import ActorSystem
from runtime.testing import open_test_system, seeded_order, wait_settled

KEYS = "abc"


class Send(msgspec.Struct, frozen=True):
    """Tell a key its next number."""

    key: str


class Advance(msgspec.Struct, frozen=True):
    """Let time go by."""

    seconds: float


class Sleep(msgspec.Struct, frozen=True):
    """Ask a child to sleep, if it is awake, whatever it is doing."""

    key: str


class Kill(msgspec.Struct, frozen=True):
    """Kill a child, if it is awake."""

    key: str


Step = Send | Advance | Sleep | Kill

KEY = st.sampled_from(KEYS)
PAUSE = st.sampled_from([0.0, 0.01, 0.1, 0.5, 1.0, 1.3, 3.0])
QUIET_STEPS = st.lists(
    st.builds(Send, KEY) | st.builds(Advance, PAUSE) | st.builds(Sleep, KEY),
    max_size=40,
)
STEPS = st.lists(
    st.builds(Send, KEY)
    | st.builds(Advance, PAUSE)
    | st.builds(Sleep, KEY)
    | st.builds(Kill, KEY),
    max_size=40,
)
PACES = st.lists(st.sampled_from([0.0, 0.0, 0.05, 0.4]), min_size=1, max_size=7)
"""Seconds that starts, handlers and stops take, in turn; most take none."""


class Reader(Actor):
    """Keeps what it has handled to the end, at an unsteady pace."""

    def __init__(self, pace: cycle[float], handled: list[object]) -> None:
        super().__init__()
        self._pace = pace
        self._handled = handled

    def on_start(self) -> Any:
        return self._take(next(self._pace))

    def on_stop(self) -> Any:
        return self._take(next(self._pace))

    def on_receive(self, message: object) -> object:
        seconds = next(self._pace)
        if seconds:
            return self._handle(seconds, message)
        self._handled.append(message)
        return None

    def _take(self, seconds: float) -> Any:
        return self._wait(seconds) if seconds else None

    async def _wait(self, seconds: float) -> None:
        await trio.sleep(seconds)

    async def _handle(self, seconds: float, message: object) -> None:
        await trio.sleep(seconds)
        self._handled.append(message)


class World:
    """Three keys, what was sent to each, and what each has handled."""

    def __init__(self, paces: list[float]) -> None:
        self.sent: dict[str, list[object]] = {key: [] for key in KEYS}
        self.handled: dict[str, list[object]] = {key: [] for key in KEYS}
        self.lost: list[object] = []
        pace = cycle(paces)
        self._config = KeyedConfig(
            idle_after=1.0, most=2, intensity=1000, backoff=Backoff(maximum=0.2)
        )
        self._actor = KeyedSupervisor(
            lambda key: Reader(pace, self.handled[key]), self._config
        )

    async def live(self, steps: list[Step]) -> None:
        async with open_test_system() as system:
            ref = system.spawn(self._actor, name="keys")
            for step in steps:
                await self._take(step, system, ref)
            await trio.sleep(60)
            await wait_settled(system)
            names = [each.name for each in system.actors()]
            assert names == ["keys"], "after a minute everybody sleeps"
            self.lost = [letter.message for letter in system.dead_letters.last()]

    async def _take(self, step: Step, system: ActorSystem, ref: ActorRef) -> None:
        match step:
            case Send(key=key):
                number = (key, len(self.sent[key]))
                self.sent[key].append(number)
                ref.tell(Keyed(key, number))
            case Advance(seconds=seconds):
                await trio.sleep(seconds)
            case Sleep(key=key):
                if child := system.find(f"keys/{key}"):
                    child._cell.post_system(Passivate())
            case Kill(key=key):
                if child := system.find(f"keys/{key}"):
                    child.kill()


def live(order: int, steps: list[Step], paces: list[float]) -> World:
    world = World(paces)
    # Why once more: Hypothesis seeds trio's dice itself, the same for each example.
    with seeded_order(order):
        trio.run(world.live, steps, clock=MockClock(autojump_threshold=0))
    return world


many = settings(
    max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@given(steps=QUIET_STEPS, paces=PACES)
@many
def test_nothing_is_lost_or_repeated_and_each_key_keeps_its_order(
    order: int, steps: list[Step], paces: list[float]
) -> None:
    world = live(order, steps, paces)
    assert world.handled == world.sent
    assert world.lost == []


@given(steps=STEPS, paces=PACES)
@many
def test_what_a_kill_cut_short_is_a_dead_letter_and_all_else_is_handled(
    order: int, steps: list[Step], paces: list[float]
) -> None:
    world = live(order, steps, paces)
    for key in KEYS:
        expected = [each for each in world.sent[key] if each not in world.lost]
        assert world.handled[key] == expected
    assert len(world.lost) <= sum(isinstance(step, Kill) for step in steps)
