"""`callboard records`: do the rows for people say what the journal says?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from actors.config import AuditConfig
from actors.redaction import Keep
from connectors.commands.database import (
    database_options,
    find_database,
    json_option,
    settings_beside,
)
from connectors.commands.interruptible import run_interruptible
from connectors.commands.printing import say, say_json
from connectors.commands.records_check import Comparison, lines_of, summary
from connectors.commands.records_write import rebuild_all
from connectors.commands.running import redacting
from runtime.clock import SystemClock
from runtime.sqlite_survey import survey

if TYPE_CHECKING:
    from pathlib import Path

    from connectors.config import AppConfig
    from runtime.config import Settings

FAILED = 1
DAY = 86_400.0

MOST_SHOWN = 20
"""Differences that are named; the others are counted."""


@click.group()
def command() -> None:
    """Compare conversations, audit and usage with the journal, or make them anew."""


@command.command()
@database_options
@json_option
def check(config: Path | None, db: Path | None, *, as_json: bool) -> int:
    """Compare all records with what the journal says; changes nothing.

    The exit code is 1 if any record is missing, different or not explained.
    """
    path, settings = find_database(config, db), settings_beside(config, db)
    with survey(path) as rows:
        comparison = Comparison(rows, audited_since(settings))
        first, count = summary(comparison.differences(), MOST_SHOWN)
        totals = rows.totals()
    if as_json:
        named = [
            {"kind": each.kind, "id": each.id, "problem": each.problem}
            for each in first
        ]
        say_json({"records": totals.records, "differences": count, "first": named})
    else:
        for line in lines_of(first, count):
            say(line)
        total = sum(totals.records.values())
        say(f"{totals.events:,} events, {total:,} records: {count:,} differences")
    return FAILED if count else 0


@command.command()
@database_options
def rebuild(config: Path | None, db: Path | None) -> int:
    """Write records anew that are missing or different; no server may be running.

    With --db alone the settings are not known: the words of exchanges are then left
    out of what is written, for nobody knows which of them are secret.
    """
    path, settings = find_database(config, db), settings_beside(config, db)
    keep = keeping(settings)
    written, left = run_interruptible(rebuild_all, path, audited_since(settings), keep)
    for line in left[:MOST_SHOWN]:
        say(line)
    say(f"{path}: {written:,} records written, {len(left):,} differences left")
    return FAILED if left else 0


def audited_since(settings: Settings[AppConfig] | None) -> float:
    """Tell from when on there must be audit records, in Unix seconds."""
    audit = AuditConfig() if settings is None else settings.value.audit
    return SystemClock().wall() - audit.keep_days * DAY


def keeping(settings: Settings[AppConfig] | None) -> Keep:
    """Say what the audit keeps."""
    if settings is None:
        return Keep(has_texts=False)
    return Keep(redacting(settings).clean, settings.value.audit.texts)
