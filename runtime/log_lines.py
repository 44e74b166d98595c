"""Writes log lines a moment later, many at once, on a thread of its own.

Why: a line written and flushed at once lets go of the interpreter, and at full load
the kernel's thread then waits for its turn after each: two lines for a message were a
tenth of its time (measured with 64 chats). What is important is written at once, and
so is all that waited before it. A process that is killed loses the lines of a moment;
messages are not kept in the log.
"""

from __future__ import annotations

import logging
import sys
import threading
from typing import TYPE_CHECKING, TextIO

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
        super().__init__(stream)
        self._pace = pace
        self._lines: list[str] = []
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
        self.flush()

    def emit(self, record: logging.LogRecord) -> None:
        """Take a line; write it now if it matters, else in a moment."""
        try:
            self._lines.append(f"{self.format(record)}{self.terminator}")
        except Exception:  # noqa: BLE001  logging's own border: see `handleError`
            self.handleError(record)
            return
        if record.levelno >= logging.WARNING or len(self._lines) > MOST_LINES:
            self._flush_for(record)
        elif not self._has_lines.is_set():
            self._has_lines.set()

    def flush(self) -> None:
        """Write all that waits."""
        with self.lock or threading.RLock():
            lines, self._lines = self._lines, []
            if lines:
                self.stream.write("".join(lines))
            super().flush()

    def _flush_for(self, record: logging.LogRecord) -> None:
        try:
            self.flush()
        except Exception:  # noqa: BLE001  logging's own border
            self.handleError(record)

    def _write_on(self) -> None:
        last = logging.LogRecord("log", logging.INFO, "", 0, "", None, None)
        while not self._has_ended.is_set():
            self._has_lines.wait()
            self._has_ended.wait(self._pace)
            self._has_lines.clear()
            self._flush_for(last)
