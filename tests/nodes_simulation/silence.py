"""How long conversations are silent when one thing goes wrong, or one node leaves.

People write all the time, each the next message when the one before is answered. What
is counted is for how long nobody works on a message: from the moment in which it is
stored, or in which whoever works on it dies or gives its part away, until somebody
begins with it.
"""

from __future__ import annotations

from tests.nodes_simulation.loop import Promise, Steps
from tests.nodes_simulation.node import TTL
from tests.nodes_simulation.world import CHATS, World

LONGEST = {
    **dict.fromkeys(("crash", "pause", "stop", "cut"), TTL + 2.0),
    **dict.fromkeys(("join", "leave", "drain"), 1.0),
}
"""By what happens, the longest silence that is promised, in seconds."""

KEEPS_ALL = frozenset({"keeps all"})
"""The mistake that who shows life and has not begun keeps what others could do."""

BEGINS, UNTIL = 16.0, 36.0
"""When it happens, and until when people write; seconds."""


class TalkingWorld(World):
    """A company in which people write all the time, and one thing happens.

    Args:
        seed: of its dice.
        kind: what happens.
        mistakes: what is done wrong on purpose.
    """

    def __init__(
        self, seed: int, kind: str, mistakes: frozenset[str] = frozenset()
    ) -> None:
        self._awaited: dict[str, Promise] = {}
        super().__init__(seed, mistakes)
        self.kinds = [kind]
        # A request is passed on to the node of its chat: no hint of it can get lost.
        self.drops_hints = 0.0
        self.ends_sessions = True  # without the right to do so nothing is promised

    def _plan_people(self) -> None:
        super()._plan_people()
        for chat in range(CHATS // 2):
            self._people.spawn(self._talking(2 * CHATS + chat))

    def _talking(self, chat: int) -> Steps:
        number = 0
        while self.loop.now < UNTIL:
            row = self._message(f"t{chat}-{number}", chat)
            self._awaited[row["name"]] = promise = Promise()
            self._people.spawn(self._sending(row, Promise()))
            yield promise
            yield self.dice.uniform(0.0, 0.3)
            number += 1

    def answered(self, name: str) -> None:
        """Have the next message of its chat written."""
        if name in self._awaited:
            self._awaited.pop(name).keep()

    def _plan_faults(self) -> None:
        at = BEGINS + self.dice.uniform(0.0, 4.0)
        self.loop.after(at, lambda: self._strike(self.kinds[0]))


def longest(play: tuple[int, str]) -> tuple[float, int, str]:
    """Play one seed of one kind; give the longest silence, the seed and the kind."""
    seed, kind = play
    return max(silence(seed, kind), default=0.0), seed, kind


def silence(
    seed: int, kind: str, mistakes: frozenset[str] = frozenset()
) -> list[float]:
    """Play one seed; give how long nobody worked on each message, longest last.

    Raises:
        AssertionError: something else went wrong.
    """
    world = TalkingWorld(seed, kind, mistakes)
    result = world.run()
    assert not result.breaches, (seed, kind, [*map(str, result.breaches)])
    # Of other messages, some wait for those that were written before them.
    asked = [each for each in world.checks.waits if each.name.startswith("t")]
    return sorted(each.seconds for each in asked if each.begun > BEGINS)
