"""Writes log lines a moment later, many at once, on a thread of its own.

Why: a line written and flushed at once lets go of the interpreter, and at full load
the kernel's thread then waits for its turn after each: two lines for a message were a
tenth of its time (measured with 64 chats). What is important is written at once, and
so is all that waited before it. A process that is killed loses the lines of a moment;
messages are not kept in the log.
"""

from __future__ import annotations

import io
import logging
import sys
import threading
from typing import TYPE_CHECKING, TextIO, cast

if TYPE_CHECKING:
    from typing import Self

MOST_LINES = 1000
"""Lines that wait at most; one more, and all are written at once."""


class LineHandler(logging.StreamHandler[TextIO]):
    """Writes lines to a stream; a line that fails never takes the program along."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Say that a line is missing, and nothing of what was in it.

        The library's own version prints the arguments, secrets included.
        """
        error = sys.exc_info()[1]
        kind = type(error).__name__
        text = f"callboard: a log line of {record.name} could not be written: {kind}\n"
        # With an OSError the stream itself is gone, and there is nowhere to say it.
        if not isinstance(error, OSError):
            self.stream.write(text)


class PacedHandler(LineHandler):
    """Collects lines for a moment before it writes them; use it in a `with` block.

    Args:
        stream: where to.
        pace: seconds that a line of no importance waits at most.
    """

    def __init__(self, stream: TextIO, pace: float) -> None:
        super().__init__(Collected(stream))
        self._pace = pace
        self._has_lines = threading.Event()
        self._has_ended = threading.Event()
        self._thread = threading.Thread(
            target=self._write_on, name="log-lines", daemon=True
        )

    def __enter__(self) -> Self:
        """Begin to write."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Write what is left, and end the thread."""
        self._has_ended.set()
        self._has_lines.set()
        self._thread.join()
        self._write()

    def emit(self, record: logging.LogRecord) -> None:
        """Take a line; write it now if it matters, else in a moment."""
        super().emit(record)
        if record.levelno >= logging.WARNING or self._collected.is_full:
            self._write()
        elif not self._has_lines.is_set():
            self._has_lines.set()

    @property
    def _collected(self) -> Collected:
        return cast("Collected", self.stream)

    def _write(self) -> None:
        self.acquire()
        try:
            self._collected.write_out()
        except (OSError, ValueError):
            pass  # the stream is gone, or closed: there is nowhere to say it
        finally:
            self.release()

    def _write_on(self) -> None:
        while not self._has_ended.is_set():
            self._has_lines.wait()
            self._has_ended.wait(self._pace)
            self._has_lines.clear()
            self._write()


class Collected(io.StringIO):
    """Lines that wait to be written; what a handler takes for its stream.

    Args:
        target: where they are written in the end.
    """

    def __init__(self, target: TextIO) -> None:
        super().__init__()
        self._target = target
        self._lines: list[str] = []

    @property
    def is_full(self) -> bool:
        """Whether too many wait."""
        return len(self._lines) > MOST_LINES

    def write(self, text: str, /) -> int:
        """Keep a line."""
        self._lines.append(text)
        return len(text)

    def write_out(self) -> None:
        """Write all that waits.

        Raises:
            OSError: the target cannot be written to; the lines are lost.
            ValueError: it is closed.
        """
        lines, self._lines = self._lines, []
        if not lines:
            return
        text = "".join(lines)
        try:
            self._target.write(text)
        except UnicodeEncodeError:  # a terminal that knows ASCII only
            self._target.write(text.encode("ascii", "backslashreplace").decode())
        self._target.flush()
