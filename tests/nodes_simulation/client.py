"""A node's connection to the model of the server, over a network that fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tests.nodes_simulation.loop import Host, Promise, Steps
from tests.nodes_simulation.server import Answer, RefusedError, Reply, Run

if TYPE_CHECKING:
    from tests.nodes_simulation.world import World

GIVE_UP = 5.0
"""Seconds after which a client takes its connection for lost."""

KEEPALIVE = 10.0
"""Seconds after which the server takes a silent client's connection for lost."""


class LostError(Exception):
    """The connection is lost: what was sent may have been carried out, or may be."""


class Connection:
    """One connection of a node.

    Args:
        world: where all is.
        host: whose it is; it may stop in the middle of sending.
        name: of the node, and its `application_name`.
    """

    def __init__(self, world: World, host: Host, name: tuple[str, str]) -> None:
        self._world = world
        self._host = host
        self._node, application = name
        self._session = world.server.connect(application)
        self._session.on_end = self._ended
        self._arrives = 0.0
        self._is_broken = False
        """Whether something did not arrive: then nothing that was sent later does."""

        self._promise = Promise()
        self.is_lost = not world.can_reach(self._node)

    def call(self, runs: Sequence[Run | str], *, is_group: bool = False) -> Steps:
        """Send statements at once, and wait for all answers.

        Raises:
            RefusedError: what the server refused first.
            LostError: there is no answer.
        """
        if self.is_lost:
            yield 0.3
            raise LostError
        self._promise = promise = Promise()
        answers: list[Answer | RefusedError] = []
        fate = self._world.fate(self._node, len(runs))

        def reply(answer: Answer | RefusedError) -> None:
            answers.append(answer)
            if len(answers) == len(runs) and fate != "lost_ack":
                self._world.back(self._node, lambda: promise.keep(answers))

        stop = self._world.stop_in(self._node, len(runs))
        if stop:
            self._ship(runs[:stop], reply, fate, is_all=False)
            yield 0.0
        self._ship(runs[stop:], reply, fate)
        wait = GIVE_UP if fate == "right" else self._world.dice.uniform(0.1, 1.0)
        self._world.loop.after(wait, lambda: promise.keep(LostError()))
        result = yield from self._result(promise, len(runs) if is_group else 0)
        refused = [each for each in result if isinstance(each, RefusedError)]
        if refused:
            raise refused[0]
        return result

    def _result(self, promise: Promise, count: int) -> Steps:
        try:
            return (yield promise)
        except LostError:
            is_waiting = count > 0 and self._session.is_committing
            if self._world.wrong("cancel") and is_waiting:
                self._world.cancel(self._session)
                done: list[Answer] = [[{}]] * count
                return done
            self.close()
            raise

    def _ship(
        self,
        batch: Sequence[Run | str],
        reply: Reply,
        fate: str,
        *,
        is_all: bool = True,
    ) -> None:
        world = self._world
        if fate == "lost_request" or not world.can_reach(self._node):
            self._is_broken = True
        if self._is_broken:
            return
        late = world.dice.uniform(2.0, 20.0) if fate == "late" else 0.0
        self._arrives = max(self._arrives, world.loop.now + world.latency() + late)

        def arrive() -> None:
            self._session.is_in_pipeline = not is_all
            for run in batch:
                self._session.send(run, reply)

        world.loop.after(self._arrives - world.loop.now, arrive)

    def close(self) -> None:
        """Give it up; the server learns of it after all that was sent before."""
        if not self.is_lost:
            self.is_lost = True
            world = self._world
            wait = max(self._arrives - world.loop.now, 0.0)
            is_cut = not world.can_reach(self._node)
            wait += KEEPALIVE if is_cut else world.latency()
            world.loop.after(wait, self._session.close)

    def reset(self) -> None:
        """Have the system close it: its process is gone."""
        self._host.loop.after(0.001, self._session.close)

    def _ended(self) -> None:
        if not self._session.is_closing:
            self.is_lost = True
            promise = self._promise
            self._world.back(self._node, lambda: promise.keep(LostError()))
