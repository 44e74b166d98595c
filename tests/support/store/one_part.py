"""A guard: what one commit touches lies in one part, so that parts can have owners.

Used by the stories (`tests/stories/conftest.py`). It looks at every commit of both
engines, also at the rows that are changed by their id. What a commit hands over is
judged by itself. A commit that may still touch several parts is named in `EXCEPTIONS`,
with the reason; the list may only get shorter.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable
from contextlib import contextmanager

import apsw
import pytest

from runtime.sql import write as sql_rows
from runtime.store.facts import SaveFact
from runtime.store.rows import Commit, Committed
from tests.fakes.store.in_memory import Rows

Touched = set[tuple[str, int]]
"""What kind of row, and its part."""

EXCEPTIONS: dict[str, str] = {}
"""Commits with such a row may touch other parts; each needs a row handed over."""


def named(commit: Commit) -> Touched:
    """Give what a commit touches as far as it says so itself."""
    found: Touched = {("inbox", row.part) for row in commit.accepts}
    found |= {("journal", row.part) for row in commit.appends}
    found |= {("snapshot", row.part) for row in commit.snapshots}
    found |= {("outbox", row.part) for row in commit.deliveries}
    found |= {(f"record {row.kind}", row.part) for row in commit.records}
    found |= {(f"entry {row.kind}", row.part) for row in commit.entries}
    facts = (row for row in commit.facts if isinstance(row, SaveFact))
    return found | {("fact", row.part) for row in facts}


def messages_of(commit: Commit) -> list[str]:
    """Give the ids of the messages that a commit changes."""
    found = [row.inbox_id for row in commit.amends]
    found += [row.inbox_id for row in commit.claims]
    found += [row.inbox_id for row in commit.defers]
    return found + [row.inbox_id for row in commit.settles]


def deliveries_of(commit: Commit) -> list[str]:
    """Give the ids of the deliveries that a commit changes."""
    found = [row.delivery_id for row in commit.send_attempts]
    found += [row.delivery_id for row in commit.not_said]
    return found + [row.delivery_id for row in commit.receipts]


def is_excused(touched: Touched) -> bool:
    """Whether a commit may touch several parts."""
    return any(kind in EXCEPTIONS for kind, _ in touched)


@contextmanager
def guarded() -> Generator[list[Touched]]:
    """Collect what breaks the rule while the block runs."""
    broken: list[Touched] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Rows, "apply", _in_memory(Rows.apply, broken))
        patch.setattr(sql_rows, "write_own", _in_file(sql_rows.write_own, broken))
        yield broken


def _judge(touched: Touched, broken: list[Touched]) -> None:
    if len({part for _, part in touched}) > 1 and not is_excused(touched):
        broken.append(touched)


def _in_memory(
    apply: Callable[..., Committed], broken: list[Touched]
) -> Callable[..., Committed]:
    def guard(
        rows: Rows, commit: Commit, epoch: int, parts: Collection[int] | None = None
    ) -> Committed:
        committed = apply(rows, commit, epoch, parts)
        touched = named(commit)
        touched |= {("inbox", rows.inbox[x].part) for x in messages_of(commit)}
        touched |= {("outbox", rows.outbox[x].part) for x in deliveries_of(commit)}
        _judge(touched, broken)
        return committed

    return guard


def _in_file(
    write: Callable[..., Committed], broken: list[Touched]
) -> Callable[..., Committed]:
    def part(db: apsw.Connection, query: str, name: str) -> int:
        found: int = db.execute(query, (name,)).get  # pyright: ignore[reportUnknownMemberType]
        return found

    def places(db: apsw.Connection, table: str, ids: Iterable[str]) -> Touched:
        query = f"SELECT part FROM {table} WHERE id = ?"  # noqa: S608  two names
        return {(table, part(db, query, name)) for name in ids}

    def guard(db: apsw.Connection, commit: Commit, epoch: int) -> Committed:
        committed = write(db, commit, epoch)
        touched = named(commit) | places(db, "inbox", messages_of(commit))
        _judge(touched | places(db, "outbox", deliveries_of(commit)), broken)
        return committed

    return guard
