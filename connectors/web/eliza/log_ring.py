"""The newest lines of this program's log, for who operates it over the web.

A handler of `logging`, beside the one that writes to standard error: the same lines,
with the same secrets taken out, and without anything that somebody said. At most
`MOST_KEPT` are kept, in memory alone.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from connectors.web.eliza.ids import to_uuid
from runtime.logs import LineFormatter, Redactor, shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from connectors.web.eliza.shapes import Json
    from runtime.logs import Value

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
"""Numbers of levels in the API; source: the official server (pino's, and its own)."""

NUMBERS = {
    logging.DEBUG: 20,
    logging.INFO: 30,
    logging.WARNING: 40,
    logging.ERROR: 50,
    logging.CRITICAL: 60,
}


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One line."""

    number: int
    """Grows with every line; those that are gone have left a gap."""

    time: int
    """Milliseconds."""

    level: int
    msg: str
    agent: str = ""
    """Which agent it is about, as far as it says."""

    fields: dict[str, object] = {}

    def shown(self) -> Json:
        """Show it as the API does."""
        own: Json = {"time": self.time, "level": self.level, "msg": self.msg}
        if self.agent:
            own |= {"agentName": self.agent, "agentId": to_uuid(self.agent)}
        return {**self.fields, **own}


class Filter(msgspec.Struct, frozen=True):
    """Which lines somebody wants."""

    level: int = 0
    """The least number."""

    agent: str = ""
    """Only about this one; empty: about any, and about none."""

    since: int = 0
    """Milliseconds."""

    def fits(self, entry: Entry) -> bool:
        """Whether a line is one of them."""
        is_about = not self.agent or self.agent == entry.agent
        return is_about and entry.level >= self.level and entry.time >= self.since


class Cleaner(Redactor):
    """Takes secrets out as a given function does.

    Args:
        redact: gives a text without them.
    """

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__()
        self._redact = redact

    def clean(self, text: str) -> str:
        """Give a text without secrets."""
        return self._redact(text)

    def clean_value(self, value: Value, longest: int = 300) -> Value:
        """Give a field without secrets; a number that shows one becomes a text."""
        text = str(value)
        cleaned = shorten(self._redact(text), longest)
        return value if cleaned == text else cleaned


class LogRing(logging.Handler):
    """The newest lines.

    Args:
        redact: takes secrets out; called on any thread.
    """

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__()
        self.setFormatter(LineFormatter("json", Cleaner(redact), has_words=False))
        self._guard = threading.Lock()
        self._kept: deque[tuple[int, float, int, str]] = deque(maxlen=MOST_KEPT)
        self._count = 0
        self._wake: Callable[[], object] | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line; never fails."""
        try:
            line = self.format(record)
        except Exception:  # noqa: BLE001  any library's line, with anything in it
            return  # whoever logs it wrongly is told so on standard error
        level = NUMBERS.get(record.levelno, 30)
        with self._guard:
            self._count += 1
            self._kept.append((self._count, record.created, level, line))
            wake = self._wake
        if wake is not None:
            wake()

    @property
    def newest(self) -> int:
        """Number of the newest line."""
        return self._count

    def entries(self, after: int = 0) -> list[Entry]:
        """Give the lines after one, the oldest first."""
        with self._guard:
            kept = [each for each in self._kept if each[0] > after]
        return [entry_of(*each) for each in kept]

    def clear(self) -> int:
        """Forget all lines; count them."""
        with self._guard:
            count = len(self._kept)
            self._kept.clear()
        return count

    def wake_by(self, wake: Callable[[], object] | None) -> None:
        """Have something called after each line, on any thread; None: nothing."""
        with self._guard:
            self._wake = wake

    @contextmanager
    def filling(self) -> Generator[None]:
        """Take in what is logged while the block runs."""
        root = logging.getLogger()
        root.addHandler(self)
        try:
            yield
        finally:
            root.removeHandler(self)


def entry_of(number: int, created: float, level: int, line: str) -> Entry:
    """Read a line back."""
    fields = msgspec.json.decode(line, type=dict[str, object])
    for own in ("time", "level", "msg", "agentName", "agentId"):
        fields.pop(own, None)
    text = str(fields.pop("event", ""))
    return Entry(
        number=number,
        time=int(created * 1000),
        level=level,
        msg=text,
        agent=str(fields.get("agent") or ""),
        fields=fields,
    )
