"""Virtual time: what happens next, tasks of a node that crash and pause with it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from heapq import heappop, heappush
from typing import Any

Steps = Generator[Any, Any, Any]
"""A task: yields seconds to sleep, or a `Promise` whose value it waits for."""


class FencedError(Exception):
    """The node was fenced before this was done: the task that waited for it ends."""


class Promise:
    """A value that comes later; an exception is raised in whoever waits for it."""

    def __init__(self) -> None:
        self.is_kept = False
        self._value: Any = None
        self._then: list[Callable[[Any], object]] = []

    def keep(self, value: Any = None) -> None:
        """Give the value; what comes after the first is ignored."""
        if not self.is_kept:
            self.is_kept, self._value = True, value
            for then in self._then:
                then(value)

    def then(self, call: Callable[[Any], object]) -> None:
        """Call with the value when it is there."""
        if self.is_kept:
            call(self._value)
        else:
            self._then.append(call)


class Loop:
    """What is to happen, in the order of its time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.count = 0
        self._heap: list[tuple[float, int, Callable[[], object]]] = []

    def after(self, seconds: float, call: Callable[[], object]) -> None:
        """Call that many seconds from now."""
        self.count += 1
        heappush(self._heap, (self.now + seconds, self.count, call))

    def step(self) -> bool:
        """Let the next thing happen; False: there is none."""
        if not self._heap:
            return False
        self.now, _, call = heappop(self._heap)
        call()
        return True


class Host:
    """A machine: its tasks stand still while it is paused, and end when it crashes."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.is_paused = False
        self.life = 0
        self._held: list[Callable[[], object]] = []

    def spawn(self, steps: Steps) -> Task:
        """Begin a task."""
        task = Task(self, steps)
        self.loop.after(0.0, task.step)
        return task

    def pause(self, seconds: float) -> None:
        """Stand still (SIGSTOP)."""
        if not self.is_paused:
            self.is_paused = True
            self.loop.after(seconds, self.go_on)

    def go_on(self) -> None:
        """Go on (SIGCONT)."""
        self.is_paused = False
        held, self._held = self._held, []
        for call in held:
            call()

    def crash(self) -> None:
        """End all tasks at once."""
        self.life += 1
        self._held = []

    def hold(self, call: Callable[[], object]) -> None:
        """Call when it goes on."""
        self._held.append(call)


class Task:
    """One task of a host."""

    def __init__(self, host: Host, steps: Steps) -> None:
        self._host = host
        self._steps = steps
        self._life = host.life
        self.is_killed = False

    def kill(self) -> None:
        """End it where it stands."""
        self.is_killed = True

    def step(self, value: Any = None) -> None:
        """Go on with what it waited for."""
        if self.is_killed or self._life != self._host.life:
            return
        if self._host.is_paused:
            self._host.hold(lambda: self.step(value))
            return
        try:
            if isinstance(value, Exception):
                wanted = self._steps.throw(value)
            else:
                wanted = self._steps.send(value)
        except (StopIteration, FencedError):
            return
        if isinstance(wanted, Promise):
            wanted.then(self.step)
        else:
            self._host.loop.after(wanted, self.step)
