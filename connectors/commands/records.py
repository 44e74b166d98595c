"""`callboard records`: compares the records for people with the journal."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import click
import msgspec

from actors.config.limits import AuditConfig
from actors.journal.rebuild import Difference, Expected, Fold, compare
from actors.journal.records import (
    AUDIT,
    CHECK,
    COMPACTION,
    CONVERSATION,
    USAGE,
    AuditRecord,
    kept,
)
from actors.rules.text.secrets import AuditRedaction
from connectors.commands.common.database import DatabaseChoice, database_options
from connectors.commands.common.output import (
    FAILED,
    counting,
    first_words,
    json_option,
    progress,
    say,
    say_json,
)
from connectors.commands.common.running import redacting
from connectors.config.app import AppConfig
from runtime.clock import SystemClock
from runtime.config.loader import Settings
from runtime.store.database import Inspection
from runtime.store.rows import Commit, Record

DAY = 86_400.0

MOST_SHOWN = 20
"""Differences that are named; the others are counted."""

COUNTED = (COMPACTION, CONVERSATION, USAGE)
"""Kinds all of whose records follow from events; refused attempts are audited, too."""


REBUILD = (
    "To write these records anew, stop the server, then: callboard records rebuild"
)


@click.group()
def command() -> None:
    """Compare conversations, audit and usage with the journal, or make them anew."""


@command.command()
@database_options
@json_option
def check(choice: DatabaseChoice, *, as_json: bool) -> int:
    """Compare all records with what the journal says; changes nothing.

    The exit code is 1 if any record is missing, different or not explained.
    """
    since = audited_since(choice.settings)
    with choice.database.inspect() as rows:
        found = RecordComparison(rows, since).differences()
        first = list(itertools.islice(found, MOST_SHOWN))
        count = len(first) + sum(1 for _ in found)
        totals = rows.totals()
    if as_json:
        named = [
            {"kind": each.kind, "id": each.id, "problem": each.problem}
            for each in first
        ]
        say_json({"records": totals.records, "differences": count, "first": named})
    else:
        for each in first:
            say(first_words(f"{each.kind} {each.id} {each.problem}", 300))
        if count > len(first):
            say(f"… and {count - len(first):,} more")
        total = sum(totals.records.values())
        say(f"{totals.events:,} events, {total:,} records: {count:,} differences")
        if count:
            say(REBUILD)
    return FAILED if count else 0


@command.command()
@database_options
def rebuild(choice: DatabaseChoice) -> int:
    """Write records anew that are missing or different; no server may be running.

    With --db alone the settings are not known: the words of exchanges are then left
    out of what is written, for nobody knows which of them are secret.
    """
    settings = choice.settings
    keep, left = keeping(settings), list[str]()
    with choice.database.claim(), choice.database.inspect() as rows:
        comparison = RecordComparison(rows, audited_since(settings))
        written = choice.database.write(repairs(comparison, keep, left))
    for line in left[:MOST_SHOWN]:
        say(line)
    name = choice.database.name
    told = f"{name}: {written:,} records written, {len(left):,} differences left"
    say(told, written=written, left=len(left))
    return FAILED if left else 0


def audited_since(settings: Settings[AppConfig] | None) -> float:
    """Give the Unix seconds since which audit records must exist."""
    audit = AuditConfig() if settings is None else settings.value.audit
    return SystemClock().wall() - audit.keep_days * DAY


def keeping(settings: Settings[AppConfig] | None) -> AuditRedaction:
    """Give how audit records are redacted."""
    if settings is None:
        return AuditRedaction(has_texts=False)
    return AuditRedaction(redacting(settings).clean, settings.value.audit.texts)


class RecordComparison:
    """Compares the records of a database with its journal.

    Args:
        audited_since: Unix seconds; audit records of earlier events may be gone.
    """

    def __init__(self, rows: Inspection, audited_since: float) -> None:
        self._rows = rows
        self._audited_since = audited_since
        self._explained: Counter[str] = Counter()

    def differences(self) -> Iterator[Difference]:
        """Give each difference, in the order of the streams' names; call it once."""
        with progress(self._rows.totals().events, "comparing") as advance:
            yield from self._differences(advance)

    def _differences(self, advance: Callable[[int], object]) -> Iterator[Difference]:
        # Why the words as they are: secrets taken out of them are allowed for.
        fold = Fold(AuditRedaction())
        for event in counting(self._rows.journal(), advance):
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
        usage = self._rows.records(USAGE)
        self._explained[USAGE] += sum(1 for row in usage if row.id.startswith(CHECK))
        for kind in COUNTED:
            surplus = there.get(kind, 0) - self._explained[kind]
            if surplus > 0:
                yield Difference(kind, "", f"{surplus} follow from no event")


def repairs(
    comparison: RecordComparison, keep: AuditRedaction, left: list[str]
) -> Iterator[Commit]:
    """Write each record that is missing or different, with the time of its event.

    Args:
        left: is told what cannot be repaired.
    """
    for found in comparison.differences():
        if found.expected is None:
            left.append(f"{found.kind} {found.id} {found.problem}")
        else:
            record = cleaned(found.expected.record, keep)
            yield Commit(at=found.expected.at, records=(record,))


def cleaned(record: Record, keep: AuditRedaction) -> Record:
    """Redact an audit record; others stay as they are."""
    if record.kind != AUDIT:
        return record
    body = msgspec.json.decode(record.body, type=AuditRecord)
    return msgspec.structs.replace(record, body=msgspec.json.encode(kept(body, keep)))
