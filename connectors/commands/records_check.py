"""The comparison behind `callboard records`: each event once, as of one moment."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING

from actors.difference import Difference, compare
from actors.rebuild import Fold
from actors.records import CHECK, COMPACTION, CONVERSATION, USAGE
from actors.redaction import Keep
from connectors.commands.printing import first_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from actors.rebuild import Expected
    from runtime.sqlite_survey import Survey

COUNTED = (COMPACTION, CONVERSATION, USAGE)
"""Kinds all of whose records follow from events; refused attempts are audited, too."""


class Comparison:
    """Holds the records of a database against its journal.

    Args:
        rows: the database.
        audited_since: Unix seconds; audit records of earlier events may be gone.
    """

    def __init__(self, rows: Survey, audited_since: float) -> None:
        self._rows = rows
        self._audited_since = audited_since
        self._explained: Counter[str] = Counter()

    def differences(self) -> Iterator[Difference]:
        """Give each difference, in the order of the streams' names; call it once."""
        # Why the words as they are: secrets taken out of them are allowed for.
        fold = Fold(Keep())
        for event in self._rows.events():
            try:
                yield from self._hold(fold.take(event))
            except ValueError as error:
                name = f"{event.stream}#{event.sequence}"
                yield Difference("journal", name, f"cannot be read: {error}")
        yield from self._hold(fold.end())
        yield from self._surplus()

    def _hold(self, made: Iterable[Expected]) -> Iterator[Difference]:
        for expected in made:
            record = expected.record
            stored = self._rows.record(record.kind, record.id)
            if stored is not None and stored.at <= expected.at:
                self._explained[record.kind] += 1
            found = compare(expected, stored, self._audited_since)
            if found is not None:
                yield found

    def _surplus(self) -> Iterator[Difference]:
        there = self._rows.totals().records
        usage = self._rows.recent(USAGE)
        self._explained[USAGE] += sum(1 for row in usage if row.id.startswith(CHECK))
        for kind in COUNTED:
            surplus = there.get(kind, 0) - self._explained[kind]
            if surplus > 0:
                yield Difference(kind, "", f"{surplus} follow from no event")


def summary(
    found: Iterator[Difference], most: int
) -> tuple[tuple[Difference, ...], int]:
    """Give the first differences, and how many there are in all."""
    first = tuple(itertools.islice(found, most))
    return first, len(first) + sum(1 for _ in found)


def lines_of(first: tuple[Difference, ...], count: int) -> Iterator[str]:
    """Write the differences for people."""
    for each in first:
        yield first_words(f"{each.kind} {each.id} {each.problem}", 300)
    if count > len(first):
        yield f"… and {count - len(first):,} more"
