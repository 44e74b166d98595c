"""`callboard logs`: lines of the log, by agent, connector, message or level.

`callboard usage` sums up what the models took, and with `--budgets` shows what was
spent of each budget, and what is left.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path

import click
import msgspec

from connectors.admin.display import make_safe
from connectors.admin.usage import (
    NAMES,
    PARTS,
    BudgetStatus,
    UsageSum,
    budget_statuses,
    sum_up,
)
from connectors.commands import config_option
from connectors.commands.common.database import (
    DatabaseChoice,
    database_options,
    load_settings,
)
from connectors.commands.common.output import (
    FAILED,
    complain,
    rows_options,
    say,
    say_json,
    say_rows,
    since_option,
)
from runtime.clock import SystemClock
from runtime.telemetry.log_file import Follower, LogFields, fields_of, read_lines
from runtime.telemetry.logs import LEVELS

LOOK_EVERY = 0.5
"""Seconds between two looks for new lines."""

STANDARD_INPUT = "-"

ELSEWHERE = """\
the log goes to standard error, where whatever started `callboard serve` keeps it:
  systemd     journalctl -u callboard -o cat | callboard logs -
  a container docker logs NAME 2>&1 | callboard logs -
or set [log] file = "var/callboard.log" and restart, and `callboard logs` reads that"""


class LineFilter(msgspec.Struct, frozen=True):
    """Which lines are wanted; empty: all."""

    agent: str = ""
    connector: str = ""
    correlation_id: str = ""
    level: str = ""
    """The least important."""

    def wants(self, fields: LogFields | None) -> bool:
        """Tell whether a line is wanted; one that is none of ours has no fields."""
        if fields is None:
            return False
        least = LEVELS.get(self.level, 0)
        of_connector = fields.get("connector", fields.get("channel"))
        return (
            self.agent in {"", fields.get("agent")}
            and self.connector in {"", of_connector}
            and self.correlation_id in {"", fields.get("correlation_id")}
            and LEVELS.get(str(fields.get("level", "")).lower(), 0) >= least
        )


@click.command(name="logs")
@config_option
@click.argument("file", default="", metavar="[FILE]")
@click.option("--follow", "-f", is_flag=True, help="Also show new lines as they come.")
@click.option(
    "--lines",
    "-n",
    type=click.IntRange(0, 1_000_000),
    default=200,
    show_default=True,
    help="How many of the existing lines to show at most.",
)
@click.option("--agent", default="", help="Only lines about this agent.")
@click.option("--connector", default="", help="Only lines about this connector.")
@click.option("--id", "correlation_id", default="", help="Only this correlation id.")
@click.option(
    "--level",
    type=click.Choice(tuple(LEVELS)),
    metavar="LEVEL",
    help="Only this level and above: debug, info, warning or error.",
)
@click.option("--json", "as_json", is_flag=True, help="One object a line.")
def command(
    config: Path | None,
    file: str,
    *,
    lines: int,
    follow: bool,
    as_json: bool,
    **only: str | None,
) -> int:
    """Show lines of the log, the newest last.

    Reads FILE, or standard input if that is `-`, or the file of [log] in the settings.
    Exit code 1 if no line fits.
    """
    wanted = LineFilter(**{name: text or "" for name, text in only.items()})
    if file == STANDARD_INPUT:
        given = (line.rstrip("\n") for line in sys.stdin)
        # What follows a log that comes in is not to wait for its end.
        kept = fitting(given, wanted) if follow else last(given, wanted, lines)
        return 0 if show(kept, as_json=as_json) else FAILED
    path = Path(file) if file else path_of(config)
    # Whoever follows has no other way to end it.
    ends = (KeyboardInterrupt,) if follow else ()
    with Follower(path) as follower, suppress(*ends):
        kept = last(read_lines(path), wanted, lines)
        if follow:
            kept = chain(kept, fitting(later(follower), wanted))
        if show(kept, as_json=as_json):
            return 0
        complain(f"no line of {path} fits")
        return FAILED
    return 0


def path_of(config: Path | None) -> Path:
    """Find the file of the log in the settings.

    Raises:
        click.ClickException: the log is in no file.
    """
    file = load_settings(config).value.log.file
    if not file:
        raise click.ClickException(ELSEWHERE)
    return Path(file)


def later(follower: Follower) -> Iterator[str]:
    """Give what comes to be written, for ever."""
    pause = threading.Event()
    while True:
        yield from follower.read()
        pause.wait(LOOK_EVERY)


def fitting(given: Iterable[str], wanted: LineFilter) -> Iterator[str]:
    """Give the lines that are wanted."""
    if wanted == LineFilter():  # nothing has to be read of millions of lines
        return filter(None, given)
    return (line for line in given if line and wanted.wants(fields_of(line)))


def last(given: Iterable[str], wanted: LineFilter, most: int) -> Iterable[str]:
    """Give so many of the last lines that are wanted."""
    return deque(fitting(given, wanted), most)


def show(given: Iterable[str], *, as_json: bool) -> int:
    """Write lines; count them."""
    count = 0
    for line in given:
        count += 1
        if as_json:
            say_json(fields_of(line) or {"event": line}, is_line=True)
        else:
            say(make_safe(line))
    return count


HEADERS = ("BUDGET", "WHO", "PERIOD", "SPENT $", "LEFT $", "TOKENS", "LEFT TOKENS")


def budget_cells(each: BudgetStatus) -> tuple[object, ...]:
    """Give the columns of one budget."""
    left = None if each.left_usd is None else f"{each.left_usd:.4f}"
    return (
        each.scope,
        each.who,
        each.period,
        f"{each.spent_usd:.4f}",
        left,
        each.spent_tokens,
        each.left_tokens,
    )


WHY = "calls that were cut off, or whose provider told none"


@click.command()
@database_options
@click.option(
    "--by",
    type=click.Choice([*NAMES, *PARTS]),
    default="agent",
    show_default=True,
)
@click.option(
    "--budgets", "shows_budgets", is_flag=True, help="What is left of each budget."
)
@since_option
@rows_options
def usage_command(
    choice: DatabaseChoice,
    by: str,
    since: float,
    *,
    shows_budgets: bool,
    as_json: bool,
) -> None:
    """Sum up tokens, cost and time of all turns, failed ones included.

    Cost is by the price list, or the prices in the settings, at the time; 0 without.
    A turn that asked several models counts as a run of each.
    """
    if shows_budgets:
        say_budgets(choice, as_json=as_json)
        return
    with choice.database.inspect() as rows:
        sums = sum_up(rows, by, since, complain)
    if as_json:
        say_json(sums[:-1])
        return
    headers = (by.upper(), "RUNS", "TOKENS IN", "TOKENS OUT", "COST $", "SECONDS")
    shown = sums if sums[-1].runs else []
    say_rows(shown, headers, cells, "No model has been asked in that time.")
    if sums[-1].reckoned_tokens:
        say(f"Of these, {sums[-1].reckoned_tokens} tokens are reckoned: {WHY}.")


def say_budgets(choice: DatabaseChoice, *, as_json: bool) -> None:
    """Say what is left of each budget."""
    if choice.settings is None:
        raise click.UsageError("budgets stand in the settings: give --config FILE")
    with choice.database.inspect() as rows:
        now = SystemClock().wall()
        found = budget_statuses(rows, choice.settings.value, now, complain)
    none = "The settings name no budget: add [[budgets]]."
    say_rows(found, HEADERS, budget_cells, none, as_json=as_json)


def cells(found: UsageSum) -> tuple[object, ...]:
    """Give the columns of a sum."""
    return (
        found.name,
        found.runs,
        found.input_tokens,
        found.output_tokens,
        f"{found.cost:.4f}",
        f"{found.seconds:.1f}",
    )
