"""Writes log lines a moment later, many at once, on a thread of its own.

Why: a line written and flushed at once lets go of the interpreter, and at full load
the kernel's thread then waits for its turn after each: two lines for a message were a
tenth of its time (measured with 64 chats). What is important is written at once, and
so is all that waited before it. A process that is killed loses the lines of a moment;
messages are not kept in the log.

A stream may stall (a terminal that is paused, a pipe that nobody reads) or fail. A line
of no importance then does not wait for it, an important one waits for a moment at most,
and nothing raises into the program. Lines do not pile up: what was lost is counted, and
said as soon as a line can be written.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections import deque
from collections.abc import Sequence
from typing import Protocol, Self

MOST_LINES = 1000
"""Lines that wait for their moment; one more, and they are written without it."""

# Chosen: ten times as many, some seconds at full load and a few MB.
MOST_WAITING = 10_000
"""Lines that wait while the stream is stalled; one more, and the oldest is lost."""

END_WITHIN = 5.0
"""Seconds that the end of the program waits for a stalled stream."""

IMPORTANT_WITHIN = 0.2
"""Seconds that the thread which logs a warning waits until it is written. While the
stream is stalled, only the first warning waits. Source: OTP's logger drops as well,
rather than block the process that logs."""

STALLED = "they came faster than the stream took them"

LIMIT = "most_per_minute"
"""Name under which a record carries how many like it are written in a minute."""

LIMIT_WINDOW = 60.0
"""Seconds."""

MOST_LIMITED = 256
"""Kinds of limited lines that are counted at once; more are not limited."""

# A disk or a pipe; a stream called from inside itself; a closed one; and None, which
# Python has for standard error when the process was started without it.
UNWRITABLE = (OSError, RuntimeError, ValueError, AttributeError)


class LogStream(Protocol):
    """What lines are written to."""

    def write(self, text: str, /) -> int:
        """Write them; `OSError`, `RuntimeError` or `ValueError` if it cannot."""
        ...

    def flush(self) -> None:
        """See to it that they are out."""
        ...


class LineHandler(logging.StreamHandler["WaitingLines"]):
    """Writes each line at once; one that fails never takes the program along."""

    def __init__(self, stream: LogStream) -> None:
        super().__init__(WaitingLines())
        self._target = stream
        # Why a second lock: who logs needs the handler's own, which so is never held
        # while the stream may stall. This one is taken before that one, so that
        # lines are written in the order in which they were taken.
        self._writing = threading.RLock()
        self._limiting = threading.RLock()
        self._is_writing = False
        self._limits = LineLimits()
        self._lost = 0
        self._why = ""

    def handle(self, record: logging.LogRecord) -> bool:
        """Take a line, and write it."""
        may_write = True
        # Why a look first: most lines are of no kind that is limited.
        if self._limits.counts or hasattr(record, LIMIT):
            with self._limiting:
                ended = self._limits.ended(record.created)
                may_write = self._limits.may_write(record)
            for last, count in ended:
                self._take(left_out(last, count))
        return may_write and self._take(record)

    def _take(self, record: logging.LogRecord) -> bool:
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
            notice = self._notice() if self._lost else ""
            put(self._target, notice + "".join(lines))
        except UNWRITABLE as error:
            self._lost += len(lines)
            self._why = f"{type(error).__name__}: {error}"
        else:
            self._lost = 0

    def _notice(self) -> str:
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
        pace: seconds that a line of no importance waits at most; 0: each is written
            as soon as an important one.
        end_within: seconds that the end of the block waits for a stalled stream.
    """

    def __init__(
        self, stream: LogStream, pace: float, *, end_within: float = END_WITHIN
    ) -> None:
        super().__init__(stream)
        self._pace = pace
        self._end_within = end_within
        self._has_lines = threading.Event()
        self._is_due = threading.Event()
        self._has_ended = False
        self._written = threading.Condition()
        self._asked = self._answered = 0
        """How often lines were to be written now, and up to which they were."""

        self._is_stalled = False
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
        """Have a line written now if it matters, else in a moment.

        The stream is only touched by the thread of the lines: whoever logs must not
        wait for a stream that nobody reads.
        """
        if is_important(record) or not self._pace:
            self._write_now()
        elif self.stream.is_full:
            self._hurry()
        elif not self._has_lines.is_set():
            self._has_lines.set()

    def _write_now(self) -> None:
        """Wait until all lines so far are written, for a moment at most."""
        if threading.current_thread() is self._thread:
            self._hurry()  # made while a line is written, as by a finalizer
            return
        with self._written:
            self._asked += 1
            wanted = self._asked
            self._hurry()
            if not self._is_stalled:
                self._is_stalled = not self._written.wait_for(
                    lambda: self._answered >= wanted, IMPORTANT_WITHIN
                )

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
            # Invariant: both are read before the lines are taken, so none is left
            # behind, and none counts as written that is not.
            has_ended, asked = self._has_ended, self._asked
            self.write_out()
            with self._written:
                self._answered, self._is_stalled = asked, False
                self._written.notify_all()


class LineLimits:
    """Bounds how many lines of one kind are written in a minute.

    Only records that carry a `LIMIT` are bounded: those that strangers can cause. The
    minutes are of the records' own clock; one that is set back begins a new minute.
    """

    def __init__(self) -> None:
        self.counts: dict[tuple[str, int, str], LimitedLine] = {}
        """The minutes that are not over, by part, level and event."""

    def may_write(self, record: logging.LogRecord) -> bool:
        """Count a line; False: it is left out."""
        most: int = getattr(record, LIMIT, 0)
        if not most:
            return True
        kind = (record.name, record.levelno, record.getMessage())
        known = self.counts.get(kind)
        if known is None:
            if len(self.counts) >= MOST_LIMITED:
                return True
            known = self.counts[kind] = LimitedLine(record)
        known.count += 1
        known.last = record
        return known.count <= most

    def ended(self, now: float) -> list[tuple[logging.LogRecord, int]]:
        """Forget the minutes that are over.

        Args:
            now: Unix seconds.

        Returns:
            For each kind of which lines were left out: the last, and how many.
        """
        over = [
            kind
            for kind, each in self.counts.items()
            if not each.began <= now < each.began + LIMIT_WINDOW
        ]
        found = [self.counts.pop(kind) for kind in over]
        gone = [(each.last, each.count - getattr(each.last, LIMIT)) for each in found]
        return [(last, count) for last, count in gone if count > 0]


class LimitedLine:
    """How many lines of one kind came in one minute."""

    __slots__ = ("began", "count", "last")

    def __init__(self, first: logging.LogRecord) -> None:
        self.began = first.created
        self.count = 0
        self.last = first


def left_out(last: logging.LogRecord, count: int) -> logging.LogRecord:
    """Make the line that says how many lines were not written."""
    given = {
        "name": last.name,
        "levelno": last.levelno,
        "levelname": last.levelname,
        "msg": "%d more lines left out: %s",
        "args": (count, last.getMessage()),
    }
    return logging.makeLogRecord(given)


class WaitingLines:
    """Lines that wait to be written; what a handler takes for its stream."""

    def __init__(self) -> None:
        self.is_important = False
        """Whether the next line is a warning, or worse."""

        self._lines: deque[tuple[str, bool]] = deque()
        self._unimportant = 0
        self._dropped = 0

    @property
    def is_full(self) -> bool:
        """Whether too many wait for their moment."""
        return len(self._lines) > MOST_LINES

    def write(self, text: str, /) -> int:
        """Keep a line; the oldest of no importance gives way if there are too many."""
        self._lines.append((text, self.is_important))
        self._unimportant += not self.is_important
        if len(self._lines) > MOST_WAITING:
            self._drop_one()
        return len(text)

    def take(self) -> tuple[Sequence[str], int]:
        """Give all lines away, and the number of those that were dropped."""
        lines, dropped = [text for text, _ in self._lines], self._dropped
        self._lines.clear()
        self._dropped = self._unimportant = 0
        return lines, dropped

    def _drop_one(self) -> None:
        place = 0
        if self._unimportant:
            kinds = (important for _, important in self._lines)
            place = next(at for at, important in enumerate(kinds) if not important)
            self._unimportant -= 1
        del self._lines[place]
        self._dropped += 1


def is_important(record: logging.LogRecord) -> bool:
    """Whether a line is to be written at once; one without a level is not."""
    return (record.levelno or logging.NOTSET) >= logging.WARNING


def put(target: LogStream, text: str) -> None:
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
