"""A conversation as a file: one JSON object in a line, for each message one (F112)."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Annotated

import msgspec

from actors.chapters import Compacted, Reset, read_chapter
from actors.history import Event, Exchanged
from actors.messages import Line
from runtime.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from runtime.rows import StoredEvent

LATEST = 253_402_300_799
"""Unix seconds of the last second that has a date: 9999-12-31 23:59:59 UTC."""


class Told(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the file: a message, or what became of those before it."""

    at: Annotated[float, msgspec.Meta(ge=0, le=LATEST)]
    """Unix seconds."""

    message: str = ""
    """Which exchange it belongs to; lines that follow each other with the same one are
    one exchange."""

    sender: str = ""
    """The platform's id of whoever asked."""

    line: Line | None = None
    compacted: Compacted | None = None
    reset: Reset | None = None


class Dated(msgspec.Struct, frozen=True):
    """An event of a journal, and when it happened."""

    at: float
    """Unix seconds."""

    event: Event


def written(events: Iterable[StoredEvent]) -> Iterator[bytes]:
    """Write the events of a conversation down, line by line.

    What is no part of it is left out: commands, refusals, and what calls have cost.

    Raises:
        ValueError: an event cannot be read.
    """
    for event in events:
        for told in told_of(event):
            yield msgspec.json.encode(told)


def told_of(event: StoredEvent) -> Iterator[Told]:
    """Tell one event.

    Raises:
        ValueError: it cannot be read.
    """
    if event.kind == "exchanged":
        read = msgspec.json.decode(event.body, type=Exchanged)
        for line in read.lines:
            yield Told(
                at=event.at,
                message=read.inbound_id,
                sender=read.sender_id,
                line=line,
            )
        return
    match read_chapter(event.kind, event.body):
        case Compacted() as compacted if compacted.outcome != "kept":
            own = msgspec.structs.replace(compacted, run=None)
            yield Told(at=event.at, compacted=own)
        case Reset() as reset:
            own_end = msgspec.structs.replace(reset, run=None)
            yield Told(at=event.at, reset=own_end)
        case _:
            return


def read_file(lines: Iterable[bytes], name: str) -> list[Dated]:
    """Read a file back as the events of a journal.

    Args:
        lines: of the file.
        name: of the file, for errors.

    Raises:
        MisuseError: a line is none that `written` writes, or holds nothing.
    """
    found: list[Told] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            told = msgspec.json.decode(line, type=Told)
        except (ValueError, RecursionError) as error:
            raise MisuseError(f"{name}:{number}: cannot be read: {error}") from error
        if [told.line, told.compacted, told.reset].count(None) != 2:
            text = "give one of `line`, `compacted` and `reset`"
            raise MisuseError(f"{name}:{number}: {text}")
        found.append(told)
    return [
        each
        for (message, _), group in itertools.groupby(found, key=_exchange)
        for each in _events(message, list(group))
    ]


def _exchange(told: Told) -> tuple[str, bool]:
    return (told.message, told.line is None)


def _events(message: str, group: list[Told]) -> Iterator[Dated]:
    lines = tuple(told.line for told in group if told.line is not None)
    first = group[0]
    if lines:
        names = [line.name for line in lines if line.role == "user"]
        exchanged = Exchanged(
            inbound_id=message,
            lines=lines,
            sender_id=first.sender,
            sender_name=names[-1] if names else "",
            reason="imported",
        )
        yield Dated(first.at, exchanged)
    for told in group:
        event = told.compacted or told.reset
        if event is not None:
            yield Dated(told.at, event)
