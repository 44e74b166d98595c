"""One structured line per event, on standard error.

How to write one, anywhere:

    log = EventLog("session")
    log.info("turn ended", correlation_id=id, seconds=0.8)

Nothing is written until the program opens `writing`, around all it does:

    with writing(level="info", shape="text", redactor=Redactor(secrets)):
        ...

The standard library's `logging` carries the lines, so libraries' own warnings
come out in the same shape. Chosen over its `extra` dictionaries: a call with
keywords is shorter and its values are typed. Two promises, each with a property
test: whatever a field holds, an event stays one line; and no secret is in it.

`LogWriter` writes the lines a moment later, many at once, on a thread of its own. Why:
a line written and flushed at once lets go of the interpreter, and at full load the
kernel's thread then waits for its turn after each: two lines for a message were a tenth
of its time (measured with 64 chats). What is important is written at once, and so is
all that waited before it. A process that is killed loses the lines of a moment;
messages are not kept in the log.

A stream may stall (a terminal that is paused, a pipe that nobody reads) or fail. A line
of no importance then does not wait for it, an important one waits for a moment at most,
and nothing raises into the program. Lines do not pile up: what was lost is counted, and
said as soon as a line can be written.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from typing import Literal, Protocol, Self

import msgspec

from runtime.errors import KernelError

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
        # Why a look first: most lines are of no kind that is limited.
        if self._limits.counts or hasattr(record, LIMIT):
            with self._limiting:
                ended = self._limits.ended(record.created)
                may_write = self._limits.may_write(record)
            for last, count in ended:
                self.handle(left_out(last, count))
            if not may_write:
                return False
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
                self.acquire()
                try:
                    lines, dropped = self.stream.take()
                finally:
                    self.release()
                self._write(lines, dropped)
            finally:
                self._is_writing = False
        return True

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


LONGEST_VALUE = 300
"""Characters of one field; a longer one, such as a message's text, is cut."""


class Redactor:
    """Replaces secrets in texts by `***`, by their exact values.

    Args:
        secrets: the values; empty ones are ignored.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Add secrets; known ones are never forgotten."""
        self._secrets.update(each for each in secrets if each)
        # Why the longest first: one secret may begin with another.
        values = sorted(self._secrets, key=len, reverse=True)
        found = "|".join(re.escape(value) for value in values)
        self._pattern = re.compile(found) if values else None

    def clean(self, text: str) -> str:
        """Replace every secret by `***`."""
        return text if self._pattern is None else self._pattern.sub("***", text)

    def leaves(self, texts: Iterable[str], longest: int = LONGEST_VALUE) -> bool:
        """Whether all of these texts are as they may be shown."""
        texts = tuple(texts)
        if max(map(len, texts), default=0) > longest:
            return False
        return self._pattern is None or not self._pattern.search("\n".join(texts))

    def clean_value(self, value: Value, longest: int = LONGEST_VALUE) -> Value:
        """Redact and shorten a log field; a number with a secret becomes a text."""
        text = str(value)
        if self._pattern is None and len(text) <= longest:
            return value
        # Invariant: cut after cleaning; half a secret would not be recognised.
        cleaned = shorten(self.clean(text), longest)
        return value if cleaned == text else cleaned


def shorten(text: str, longest: int) -> str:
    """Cut a text to what a log line should show of it, and say that it was cut."""
    if len(text) <= longest:
        return text
    return f"{text[:longest]}… (+{len(text) - longest} characters)"


Value = str | int | float | bool | None
"""What a field may hold."""

ROOT = "callboard"
FIELDS = "callboard_fields"
"""Name under which a record carries its fields."""

LONGEST_TEXT = 8_192
"""Characters of an event, an error and a traceback."""

# Chosen: who looks for a fault reads a few of a kind; a fault that comes with each
# message fills no disk.
MOST_ALIKE = 300
"""Lines of one event in a minute, from warnings on; further ones are counted."""

NUMBERS = (int, float)

PLAIN = re.compile(r"[A-Za-z0-9_.:/@%+,*-]+")
"""Texts that need no quotes; must match as a whole."""

LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


PRIORITIES = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3}
"""By level, what syslog and journald call it by."""


class Quoted(str):
    """What somebody said, or may have: words of people, or of what may quote them.

    As a field it is left out of every line where no words may stand (`writing`).
    """

    __slots__ = ()


class QuotedLater(msgspec.Struct, frozen=True):
    """Words as of `Quoted`, put together only for lines in which they may stand."""

    make: Callable[[], str]
    """Gives the words; called at once or never."""

    def __repr__(self) -> str:
        """Show none of the words."""
        return f"<{type(self).__name__}>"


Field = Value | QuotedLater
"""What an event's field may be given as."""


class EventLog:
    """Writes events of one part of the program.

    Args:
        name: the part, as in `session`; lines show it as `callboard.session`.
        per_minute: most lines of one event and level in a minute; 0: `MOST_ALIKE` of a
            warning or an error, and no bound of others.
    """

    __slots__ = ("_logger", "_per_minute")

    def __init__(self, name: str, per_minute: int = 0) -> None:
        self._logger = logging.getLogger(f"{ROOT}.{name}")
        self._per_minute = per_minute

    def limited(self, per_minute: int) -> EventLog:
        """Give a log of the same part whose lines are bounded.

        For events that strangers can cause as often as they like. Of each event and
        level so many lines are written in a minute; the others are counted, and a line
        says how many they were.
        """
        return EventLog(self._logger.name.removeprefix(f"{ROOT}."), per_minute)

    def debug(self, event: str, /, **fields: Field) -> None:
        """Write what only somebody looking for a mistake wants to read."""
        self._write(logging.DEBUG, event, fields)

    def info(self, event: str, /, **fields: Field) -> None:
        """Write what happened in the normal course of things."""
        self._write(logging.INFO, event, fields)

    def warning(self, event: str, /, **fields: Field) -> None:
        """Write what went wrong and was put right."""
        self._write(logging.WARNING, event, fields)

    def error(self, event: str, /, **fields: Field) -> None:
        """Write what went wrong and needs somebody."""
        self._write(logging.ERROR, event, fields)

    def fault(self, event: str, error: BaseException, /, **fields: Field) -> None:
        """Write an error that was raised, with its traceback."""
        self._write(logging.ERROR, event, fields, error)

    def _write(
        self,
        level: int,
        event: str,
        fields: Mapping[str, Field],
        error: BaseException | None = None,
    ) -> None:
        logger = self._logger
        if not logger.isEnabledFor(level):
            return
        # Why not `logger.log`: it first looks for its caller in the stack, which no
        # line shows. Why `%s`: an event's text may hold a percent sign.
        trace = None if error is None else (type(error), error, error.__traceback__)
        record = logging.LogRecord(logger.name, level, "", 0, "%s", (event,), trace)
        setattr(record, FIELDS, fields)
        most = self._per_minute or (MOST_ALIKE if level >= logging.WARNING else 0)
        if most:
            setattr(record, LIMIT, most)
        logger.handle(record)


class LineFormatter(logging.Formatter):
    """Makes one line of a record.

    Args:
        shape: `text` for eyes, `json` for machines.
        has_words: whether what people say may stand in it. If not, `Quoted` fields are
            left out; and of errors but the kernel's and the system's their texts, which
            may hold anything, so that class and place must do.
        is_for_journal: whether a line begins with its importance, as `<6>`, which
            journald takes off it again. Source: sd-daemon(3).
    """

    def __init__(
        self,
        shape: Literal["text", "json"],
        redactor: Redactor,
        *,
        has_words: bool = True,
        is_for_journal: bool = False,
    ) -> None:
        super().__init__()
        self._redactor = redactor
        self._is_for_journal = is_for_journal
        self._has_words = has_words
        self._write = json_line if shape == "json" else text_line

    def format(self, record: logging.LogRecord) -> str:
        """Write time, level, part, event and fields; no line break anywhere."""
        fields: dict[str, Value] = {
            "time": utc(record.created),
            "level": record.levelname,
            "part": record.name,
            "event": record.getMessage(),
        }
        given: Mapping[str, Field] = getattr(record, FIELDS, {})
        for name, value in given.items():
            if isinstance(value, Quoted | QuotedLater) and not self._has_words:
                continue
            said = value.make() if isinstance(value, QuotedLater) else value
            # A field may not pass for one of the four above.
            fields[f"{name}_" if name in fields else name] = said
        # Why all at once: of most lines nothing has to be taken out.
        if not self._redactor.leaves(map(str, fields.values())):
            self._clean(fields)
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            said, trace = self._of_error(error)
            clean = self._redactor.clean_value
            fields["error"] = clean(said, LONGEST_TEXT)
            fields["traceback"] = clean(trace, LONGEST_TEXT)
        line = self._redactor.clean(self._write(fields))
        if self._is_for_journal:
            return f"<{PRIORITIES.get(record.levelno, PRIORITIES[logging.INFO])}>{line}"
        return line

    def _clean(self, fields: dict[str, Value]) -> None:
        """Redact and shorten fields; time and level are the program's own."""
        for name, value in fields.items():
            longest = LONGEST_TEXT if name == "event" else LONGEST_VALUE
            if name not in {"time", "level"}:
                fields[name] = self._redactor.clean_value(value, longest)

    def _of_error(self, error: BaseException) -> tuple[str, str]:
        """Tell what an error is, and where it was raised."""
        kind = type(error).__name__
        if self._has_words:
            return f"{kind}: {error}", "".join(traceback.format_exception(error))
        said = f"{kind}: {error}" if isinstance(error, KernelError | OSError) else kind
        return said, "".join(traceback.format_tb(error.__traceback__))


class Writing:
    """What is written, and how; may be changed while it is."""

    def __init__(
        self,
        handler: logging.Handler,
        redactor: Redactor,
        *,
        is_for_journal: bool = False,
    ) -> None:
        self._handler = handler
        self._redactor = redactor
        self._is_for_journal = is_for_journal

    def change(
        self, level: str, shape: Literal["text", "json"], *, has_words: bool
    ) -> None:
        """Write so from the next line on; as in `writing`."""
        formatter = LineFormatter(
            shape,
            self._redactor,
            has_words=has_words,
            is_for_journal=self._is_for_journal,
        )
        self._handler.setFormatter(formatter)
        logging.getLogger(ROOT).setLevel(LEVELS[level])


@contextmanager
def writing(
    *,
    level: str = "info",
    shape: Literal["text", "json"] = "text",
    redactor: Redactor | None = None,
    stream: LogStream | None = None,
    pace: float | None = None,
    has_words: bool = True,
) -> Generator[Writing]:
    """Write this program's events, and libraries' warnings, while open.

    Args:
        level: the least important kind written: debug, info, warning or error.
        shape: `text` for eyes, `json` for machines.
        redactor: what takes secrets out; None if there are none.
        stream: where to; None is standard error.
        pace: seconds that a line below a warning may wait for others; 0 writes each
            at once. None writes on the thread that logs, which then waits for the
            stream: for short commands.
        has_words: whether what people say may stand in lines; see `LineFormatter`.

    Yields:
        What changes some of this meanwhile.
    """
    target: LogStream = sys.stderr if stream is None else stream
    handler = LineHandler(target) if pace is None else PacedHandler(target, pace)
    own = Writing(
        handler,
        redactor or Redactor(),
        is_for_journal=stream is None and is_journal(os.environ.get(JOURNAL, "")),
    )
    root, ours = logging.getLogger(), logging.getLogger(ROOT)
    before = (root.level, ours.level)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    own.change(level, shape, has_words=has_words)
    try:
        writes = handler if isinstance(handler, PacedHandler) else nullcontext()
        with without_whereabouts(), writes:
            yield own
    finally:
        root.removeHandler(handler)
        root.setLevel(before[0])
        ours.setLevel(before[1])


JOURNAL = "JOURNAL_STREAM"
"""Names the stream to the journal, as `device:inode`. Source: systemd.exec(5)."""


def is_journal(named: str) -> bool:
    """Tell whether standard error is the stream to the journal, by its name."""
    try:
        seen = os.fstat(sys.stderr.fileno())
    except (OSError, ValueError, AttributeError):
        return False
    return named == f"{seen.st_dev}:{seen.st_ino}"


@contextmanager
def without_whereabouts() -> Generator[None]:
    """Keep records from looking for their thread and process, which no line shows.

    Source: `logging`'s documentation, "Optimization".
    """
    before = (logging.logThreads, logging.logProcesses, logging.logMultiprocessing)
    try:
        logging.logThreads = False
        logging.logProcesses = logging.logMultiprocessing = False
        yield
    finally:
        logging.logThreads, logging.logProcesses = before[:2]
        logging.logMultiprocessing = before[2]


def utc(seconds: float) -> str:
    """Write a moment as in 2026-11-21T03:30:00.123Z."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment.isoformat(timespec='milliseconds')[:-6]}Z"


def text_line(fields: Mapping[str, Value]) -> str:
    """Write fields for eyes: the first four bare, the rest as name=value."""
    time, level, part, event, *_ = fields.values()
    line = escaped(f"{time} {level} {part} {event}")
    rest = list(fields.items())[4:]
    is_plain = PLAIN.fullmatch  # here, too: most values are numbers and plain texts
    return line + "".join(
        [
            f" {name}={value}"
            if type(value) in NUMBERS or (type(value) is str and is_plain(value))
            else f" {name}={text_value(value)}"
            for name, value in rest
        ]
    )


def text_value(value: Value) -> str:
    """Write a field's value, in quotes unless it is plain."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    if PLAIN.fullmatch(text):
        return text
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped(quoted)}"'


def json_line(fields: Mapping[str, Value]) -> str:
    """Write fields as one JSON object."""
    whole = {name: encodable(value) for name, value in fields.items()}
    # Outside of texts JSON has none of the characters that are escaped here.
    return escaped(msgspec.json.encode(whole).decode())


def encodable(value: Value) -> Value:
    """Put a question mark for halves of characters, which UTF-8 cannot write."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return value


def escaped(text: str) -> str:
    """Write out what does not print: line breaks, terminal commands, hidden marks.

    Every such character becomes a JSON escape: a backslash and `n` or `u202e`.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else escape(each) for each in text)


def escape(character: str) -> str:
    """Write one character as JSON would."""
    short = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(character)
    if short is not None:
        return short
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(
        f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2)
    )
