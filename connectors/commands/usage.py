"""`callboard usage`: what the models took, summed up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from actors import records
from actors.records import UsageRecord
from connectors.commands.database import database_options, find_database, json_option
from connectors.commands.printing import say, say_json, table, when
from connectors.commands.reading import read_record
from connectors.commands.since import since_option
from runtime.sqlite_survey import survey

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from runtime.rows import StoredRecord
    from runtime.sqlite_survey import Survey

    Name = Callable[[StoredRecord, UsageRecord], str]

NAMES: dict[str, Name] = {
    "agent": lambda _, body: body.agent,
    "model": lambda _, body: f"{body.provider}/{body.model}",
    "sender": lambda _, body: f"{body.connector}/{body.sender_id}",
    "day": lambda row, _: when(row.at)[:10],
}
TOTAL = "all"


class Sum(msgspec.Struct):
    """What some turns took together."""

    name: str
    runs: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    """US dollars."""

    seconds: float = 0.0

    def add(self, body: UsageRecord) -> None:
        """Count one turn more."""
        self.runs += 1
        self.input_tokens += body.input_tokens
        self.output_tokens += body.output_tokens
        self.cost += body.cost
        self.seconds += body.seconds


@click.command()
@database_options
@click.option(
    "--by", type=click.Choice(list(NAMES)), default="agent", show_default=True
)
@since_option
@json_option
def command(
    config: Path | None, db: Path | None, by: str, since: float, *, as_json: bool
) -> None:
    """Sum up tokens, cost and time of all turns, failed ones included.

    Cost is by the prices in the settings at the time; 0 without prices.
    """
    with survey(find_database(config, db)) as rows:
        sums = sum_up(rows, NAMES[by], since)
    if as_json:
        say_json(sums[:-1])
    elif not sums[-1].runs:
        say("No model has been asked in that time.")
    else:
        headers = (by.upper(), "RUNS", "TOKENS IN", "TOKENS OUT", "COST $", "SECONDS")
        for line in table(headers, map(cells, sums)):
            say(line)


def sum_up(rows: Survey, name: Name, since: float) -> list[Sum]:
    """Sum up by name, in the order of the names; the last one is all together."""
    total = Sum(TOTAL)
    sums: dict[str, Sum] = {}
    for row in rows.recent(records.USAGE, since):
        body = read_record(row, UsageRecord)
        if body is None:
            continue
        key = name(row, body)
        for each in (total, sums.setdefault(key, Sum(key))):
            each.add(body)
    return [*(sums[key] for key in sorted(sums)), total]


def cells(found: Sum) -> tuple[object, ...]:
    """Give what the table says of a sum."""
    return (
        found.name,
        found.runs,
        found.input_tokens,
        found.output_tokens,
        f"{found.cost:.4f}",
        f"{found.seconds:.1f}",
    )
