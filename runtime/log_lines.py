"""Writes log lines a moment later, many at once, on a thread of its own.

Why: a line written and flushed at once lets go of the interpreter, and at full load
the kernel's thread then waits for its turn after each: two lines for a message were a
tenth of its time (measured with 64 chats). What is important is written at once, and
so is all that waited before it. A process that is killed loses the lines of a moment;
messages are not kept in the log.

A stream may stall (a terminal that is paused, a pipe that nobody reads) or fail. A
line of no importance then neither waits for it nor piles up, and nothing raises into
the program; what was lost is counted, and said as soon as a line can be written.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections import deque
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

MOST_LINES = 1000
"""Lines that wait for their moment; one more, and they are written without it."""

# Chosen: ten times as many, some seconds at full load and a few MB.
MOST_WAITING = 10_000
"""Lines that wait while the stream is stalled; one more, and the oldest is lost."""

END_WITHIN = 5.0
"""Seconds that the end of the program waits for a stalled stream."""

STALLED = "they came faster than the stream took them"

# A disk or a pipe; a stream called from inside itself; a closed one; and None, which
# Python has for standard error when the process was started without it.
UNWRITABLE = (OSError, RuntimeError, ValueError, AttributeError)


class LineHandler(logging.StreamHandler["WaitingLines"]):
    """Writes each line at once; one that fails never takes the program along.

    Args:
        stream: where to.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(WaitingLines())
        self._target = stream
        # Why a second lock: whoever logs needs the handler's own, which so is never
        # held while the stream may stall. This one is taken before that one, so that
        # lines are written in the order in which they were taken.
        self._writing = threading.RLock()
        self._is_writing = False
        self._lost = 0
        self._why = ""

    def handle(self, record: logging.LogRecord) -> bool:
        """Take a line, and write it."""
        is_wanted = bool(super().handle(record))
        if is_wanted:
            self.pass_on(record)
        return is_wanted

    def emit(self, record: logging.LogRecord) -> None:
        """Take a line."""
        self.stream.is_important = is_important(record)
        super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Say that a line is missing, and nothing of what was in it.

        The library's own version prints the arguments, secrets included.
        """
        kind = type(sys.exc_info()[1]).__name__
        text = f"callboard: a log line of {record.name} could not be written: {kind}\n"
        self.stream.write(text)

    def pass_on(self, record: logging.LogRecord) -> None:
        """See to it that a line which has been taken is written."""
        del record
        self.write_out()

    def write_out(self) -> bool:
        """Write all that waits, or count it as lost.

        Returns:
            False when this thread is writing already: a signal or the collector of
            garbage has made a line in the middle of it.
        """
        with self._writing:
            if self._is_writing:
                return False
            self._is_writing = True
            try:
                self._write(*self._taken())
            finally:
                self._is_writing = False
        return True

    def _taken(self) -> tuple[Sequence[str], int]:
        self.acquire()
        try:
            return self.stream.take()
        finally:
            self.release()

    def _write(self, lines: Sequence[str], dropped: int) -> None:
        if dropped:
            self._lost += dropped
            self._why = STALLED
        if not lines and not self._lost:
            return
        try:
            put(self._target, self._notice() + "".join(lines))
        except UNWRITABLE as error:
            self._lost += len(lines)
            self._why = f"{type(error).__name__}: {error}"
        else:
            self._lost = 0

    def _notice(self) -> str:
        if not self._lost:
            return ""
        given = {
            "name": "callboard.logs",
            "levelno": logging.WARNING,
            "levelname": "WARNING",
            "msg": "%d log lines lost: %s",
            "args": (self._lost, self._why),
        }
        return f"{self.format(logging.makeLogRecord(given))}\n"


class PacedHandler(LineHandler):
    """Collects lines for a moment before it writes them; use it in a `with` block.

    Args:
        stream: where to.
        pace: seconds that a line of no importance waits at most.
        end_within: seconds that the end of the block waits for a stalled stream.
    """

    def __init__(
        self, stream: TextIO, pace: float, *, end_within: float = END_WITHIN
    ) -> None:
        super().__init__(stream)
        self._pace = pace
        self._end_within = end_within
        self._has_lines = threading.Event()
        self._is_due = threading.Event()
        self._has_ended = False
        self._thread = threading.Thread(
            target=self._write_on, name="log-lines", daemon=True
        )

    def __enter__(self) -> Self:
        """Begin to write."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Write what is left, and end the thread; give up on a stalled stream."""
        self._has_ended = True
        self._hurry()
        self._thread.join(self._end_within)

    def pass_on(self, record: logging.LogRecord) -> None:
        """Write a line now if it matters, else have it written in a moment."""
        if is_important(record):
            if not self.write_out():
                self._hurry()
        elif self.stream.is_full:
            # Not by this thread: it must not wait for the stream.
            self._hurry()
        elif not self._has_lines.is_set():
            self._has_lines.set()

    def _hurry(self) -> None:
        self._is_due.set()
        self._has_lines.set()

    def _write_on(self) -> None:
        has_ended = False
        while not has_ended:
            self._has_lines.wait()
            self._is_due.wait(self._pace)
            self._is_due.clear()
            self._has_lines.clear()
            # Invariant: read before the lines are taken, so none is left behind.
            has_ended = self._has_ended
            self.write_out()


class WaitingLines:
    """Lines that wait to be written; what a handler takes for its stream."""

    def __init__(self) -> None:
        self.is_important = False
        """Whether the next line is a warning, or worse."""

        self._lines: deque[tuple[str, bool]] = deque()
        self._dropped = 0

    @property
    def is_full(self) -> bool:
        """Whether too many wait for their moment."""
        return len(self._lines) > MOST_LINES

    def write(self, text: str, /) -> int:
        """Keep a line; the oldest of no importance gives way if there are too many."""
        self._lines.append((text, self.is_important))
        if len(self._lines) > MOST_WAITING:
            self._drop_one()
        return len(text)

    def take(self) -> tuple[Sequence[str], int]:
        """Give all lines away, and the number of those that were dropped."""
        lines, dropped = [text for text, _ in self._lines], self._dropped
        self._lines.clear()
        self._dropped = 0
        return lines, dropped

    def _drop_one(self) -> None:
        # Short, for each important line has a thread that waits until it is written.
        kinds = (is_important for _, is_important in self._lines)
        place = next((at for at, kind in enumerate(kinds) if not kind), 0)
        del self._lines[place]
        self._dropped += 1


def is_important(record: logging.LogRecord) -> bool:
    """Whether a line is to be written at once; one without a level is not."""
    return (record.levelno or logging.NOTSET) >= logging.WARNING


def put(target: TextIO, text: str) -> None:
    """Write a text to a stream and flush it.

    Raises:
        OSError: it cannot be written to.
        RuntimeError: it is being written to, by this very thread.
        ValueError: it is closed.
    """
    try:
        target.write(text)
    except UnicodeEncodeError:  # a terminal that knows ASCII only
        target.write(text.encode("ascii", "backslashreplace").decode())
    target.flush()
