"""Lines of the program's log for operators: the newest in memory, and streams of them.

`LogRing` is a handler of `logging` beside the one for standard error: the same lines,
without secrets and without messages' texts. `LogStreams`, on the edge's loop, sends
lines to Socket.IO clients that asked for them, at a limited rate; it says how many were
left out, and `/api/server/logs` has them.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Annotated

import msgspec
from msgspec import Meta, structs

from connectors.web.eliza.messages import Json, full, to_uuid, wrong
from runtime.telemetry.logs import LineFormatter, Redactor, Value, shorten

MOST_KEPT = 1_000

LEVELS: dict[str, int] = {
    "trace": 10,
    "debug": 20,
    "success": 27,
    "progress": 28,
    "log": 29,
    "info": 30,
    "warn": 40,
    "error": 50,
    "fatal": 60,
}
"""Numbers of levels in the API. Source: the official server (pino's, and its own)."""

NUMBERS = {
    logging.DEBUG: 20,
    logging.INFO: 30,
    logging.WARNING: 40,
    logging.ERROR: 50,
    logging.CRITICAL: 60,
}


class LogEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the log."""

    number: int
    """Grows with every line; dropped lines leave a gap."""

    time: int
    """Milliseconds."""

    level: int
    msg: str
    agent: str = ""
    """The agent that it is about; empty: none is named."""

    fields: dict[str, object] = {}

    def shown(self) -> Json:
        """Show the line as the API does."""
        own: Json = {"time": self.time, "level": self.level, "msg": self.msg}
        if self.agent:
            own |= {"agentName": self.agent, "agentId": to_uuid(self.agent)}
        return {**self.fields, **own}


class LogFilter(msgspec.Struct, frozen=True):
    """Which lines a client wants."""

    level: int = 0
    """The lowest level's number."""

    agent: str = ""
    """Only lines about this agent; empty: all lines."""

    since: int = 0
    """Milliseconds."""

    def fits(self, entry: LogEntry) -> bool:
        """Whether a line is wanted."""
        is_about = self.agent in {"", entry.agent}
        return is_about and entry.level >= self.level and entry.time >= self.since


class LogCleaner(Redactor):
    """Removes secrets by a given function."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__()
        self._redact = redact

    def clean(self, text: str) -> str:
        """Give a text without secrets."""
        return self._redact(text)

    def clean_value(self, value: Value, longest: int = 300) -> Value:
        """Give a field without secrets; a number that contains one becomes a text."""
        text = str(value)
        cleaned = shorten(self._redact(text), longest)
        return value if cleaned == text else cleaned


class LogRing(logging.Handler):
    """Keeps the newest lines in memory.

    Args:
        redact: removes secrets; called on any thread.
        shown: gives what people call an agent; likewise.
    """

    def __init__(
        self, redact: Callable[[str], str], shown: Callable[[str], str] = str
    ) -> None:
        super().__init__()
        self.setFormatter(LineFormatter("json", LogCleaner(redact), has_words=False))
        self._shown = shown
        self._guard = threading.Lock()
        self._kept: deque[tuple[int, float, int, str]] = deque(maxlen=MOST_KEPT)
        self._count = 0
        self._wake: Callable[[], object] | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line; never fails."""
        try:
            line = self.format(record)
        except Exception:  # noqa: BLE001  any library's line, with anything in it
            return  # the handler of standard error reports it
        level = NUMBERS.get(record.levelno, 30)
        with self._guard:
            self._count += 1
            self._kept.append((self._count, record.created, level, line))
            wake = self._wake
        if wake is not None:
            wake()

    @property
    def newest(self) -> int:
        """The number of the newest line."""
        return self._count

    def entries(self, after: int = 0) -> list[LogEntry]:
        """Give the lines after one, the oldest first."""
        with self._guard:
            kept = [each for each in self._kept if each[0] > after]
        found = (entry_of(*each) for each in kept)
        return [structs.replace(x, agent=self._shown(x.agent)) for x in found]

    def clear(self) -> int:
        """Drop all lines; count them."""
        with self._guard:
            count = len(self._kept)
            self._kept.clear()
        return count

    def wake_by(self, wake: Callable[[], object] | None) -> None:
        """Set a function that is called after each line, on any thread; None: none."""
        with self._guard:
            self._wake = wake

    @contextmanager
    def filling(self) -> Generator[None]:
        """Collect lines during the block."""
        root = logging.getLogger()
        root.addHandler(self)
        try:
            yield
        finally:
            root.removeHandler(self)


def entry_of(number: int, created: float, level: int, line: str) -> LogEntry:
    """Parse a line."""
    fields = msgspec.json.decode(line, type=dict[str, object])
    for own in ("time", "level", "msg", "agentName", "agentId"):
        fields.pop(own, None)
    text = str(fields.pop("event", ""))
    return LogEntry(
        number=number,
        time=int(created * 1000),
        level=level,
        msg=text,
        agent=str(fields.get("agent") or ""),
        fields=fields,
    )


# Chosen: 2,000 lines a second for each client, more than eyes follow.
PACE = 0.1
"""Seconds between two batches of lines."""

MOST_AT_ONCE = 200

MOST_LISTENING = 50
"""Most clients that get lines."""


class LogFilterBody(msgspec.Struct, frozen=True, rename="camel"):
    """Which lines a client wants from now on."""

    agent_name: Annotated[str, Meta(max_length=200)] = "all"
    level: str = "all"


class LogStreams:
    """The clients that get lines.

    Args:
        tell: sends a client an event; never waits.
    """

    def __init__(self, ring: LogRing, tell: Callable[[str, Json], None]) -> None:
        self._ring = ring
        self._tell = tell
        self._filters: dict[str, LogFilter] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_due = False
        self._seen = 0

    def __len__(self) -> int:
        """Count the clients."""
        return len(self._filters)

    def subscribe(self, sid: str) -> None:
        """Send a client lines from now on.

        Raises:
            ApiError: too many clients get lines.
        """
        if sid not in self._filters and len(self._filters) >= MOST_LISTENING:
            raise full(f"{MOST_LISTENING} clients read the log already")
        if not self._filters:
            self._loop = asyncio.get_running_loop()
            self._seen = self._ring.newest
            self._ring.wake_by(self._wake)
        self._filters.setdefault(sid, LogFilter())

    def unsubscribe(self, sid: str) -> None:
        """Send a client no more lines."""
        self._filters.pop(sid, None)
        if not self._filters:
            self._ring.wake_by(None)

    def change(self, sid: str, asked: object) -> Json:
        """Change which lines a client gets; give its filter.

        Raises:
            ApiError: it is not subscribed, or the filter is wrong.
        """
        if sid not in self._filters:
            raise wrong("subscribe first: emit subscribe_logs")
        self._filters[sid] = filter_of(asked)
        found = msgspec.convert(asked or {}, LogFilterBody)
        return {"agentName": found.agent_name, "level": found.level}

    def stop(self) -> None:
        """Send no client lines any more."""
        self._filters.clear()
        self._ring.wake_by(None)

    def _wake(self) -> None:
        """Schedule a batch; on any thread."""
        if self._is_due or self._loop is None:
            return
        self._is_due = True
        try:
            self._loop.call_soon_threadsafe(self._soon)
        except RuntimeError:
            self._is_due = False  # the loop has ended, and all clients are gone

    def _soon(self) -> None:
        if self._loop is not None:
            self._loop.call_later(PACE, self._flush)

    def _flush(self) -> None:
        self._is_due = False
        found = self._ring.entries(self._seen)
        if not found:
            return
        left_out = found[0].number - self._seen - 1
        left_out += max(0, len(found) - MOST_AT_ONCE)
        self._seen = found[-1].number
        if left_out > 0:
            gap = LogEntry(
                number=0,
                time=found[-1].time,
                level=LEVELS["warn"],
                msg=f"{left_out} lines left out",
            )
            found = [gap, *found[-MOST_AT_ONCE:]]
        for sid, wanted in self._filters.items():
            for entry in found:
                if wanted.fits(entry) or not entry.number:
                    told: Json = {"type": "log_entry", "payload": entry.shown()}
                    self._tell(sid, told)


def filter_of(asked: object) -> LogFilter:
    """Read which lines a client wants.

    Raises:
        ApiError: 400: the filter is wrong.
    """
    try:
        found = msgspec.convert(asked or {}, LogFilterBody)
    except msgspec.ValidationError as error:
        raise wrong(f"no filter: {error}") from None
    agent = "" if found.agent_name == "all" else found.agent_name
    return LogFilter(level_of(found.level), agent)


def level_of(name: str) -> int:
    """Give the number of a level; of `all`, 0.

    Raises:
        ApiError: 400: unknown level.
    """
    if name.lower() in {"", "all"}:
        return 0
    number = LEVELS.get(name.lower())
    if number is None:
        raise wrong(f"{name!r} is none of all, {', '.join(LEVELS)}", "level")
    return number
