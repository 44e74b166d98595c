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
"""

from __future__ import annotations

import logging
import os
import re
import sys
import traceback
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from typing import Literal

import msgspec

from runtime.errors import KernelError
from runtime.telemetry.log_writer import LIMIT, LineHandler, LogStream, PacedHandler

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
        redactor: what takes secrets out.
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
    """What is written, and how; may be changed while it is.

    Args:
        handler: writes the lines.
        redactor: what takes secrets out.
        is_for_journal: as of `LineFormatter`.
    """

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
