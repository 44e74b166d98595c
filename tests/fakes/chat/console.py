"""A keyboard that a test types on, and a screen that it reads."""

from __future__ import annotations

from collections import deque

import trio


class FakeConsole:
    """Stands for a terminal, or for a pipe whose end comes with `end`."""

    def __init__(self, *lines: str, at_end: bool = False) -> None:
        self.screen = ""
        self.error: OSError | None = None
        """Raised by writing, as long as it is set."""

        self._lines: deque[str | None] = deque(lines)
        if at_end:
            self._lines.append(None)
        self._changed = trio.Event()
        self.is_waiting = False
        """True while all that was typed has been read."""

        self.lines_read = 0

    def type(self, line: str) -> None:
        """Type a line."""
        self._lines.append(line)
        self.note_change()

    def end(self) -> None:
        """End the input."""
        self._lines.append(None)
        self.note_change()

    async def read_line(self) -> str | None:
        """Give the next line, None at the end."""
        while not self._lines:
            if not self.is_waiting:
                self.is_waiting = True
                self.note_change()
            await self._changed.wait()
        self.is_waiting = False
        await trio.lowlevel.checkpoint()
        line = self._lines.popleft()
        if line is None:
            self._lines.appendleft(None)
        self.lines_read += 1
        return line

    async def write(self, text: str) -> None:
        """Show text."""
        await trio.lowlevel.checkpoint()
        if self.error is not None:
            raise self.error
        self.screen += text
        self.note_change()

    async def wait_screen(self, end: str) -> None:
        """Wait until the screen ends so; fails after five seconds."""
        with trio.move_on_after(5) as scope:
            while not self.screen.endswith(end):
                await self._changed.wait()
        assert not scope.cancelled_caught, f"{self.screen!r} does not end in {end!r}"

    async def wait_change(self) -> None:
        """Wait until anything happens."""
        await self._changed.wait()

    def note_change(self) -> None:
        """Wake those in `wait_change`."""
        self._changed.set()
        self._changed = trio.Event()
