"""Writes rows for people and for programs; options that several commands have.

What people and agents wrote is made safe for a terminal first; what a terminal cannot
show becomes a question mark. Tables fit the terminal; into a file or a pipe they are
written whole.

A command that shows things has `--json` of its own. One that does things has no shape
of its own: `answer_programs` gives it `--json`, which collects what it says.
"""

from __future__ import annotations

import functools
import re
import shutil
import sys
import unicodedata
from collections.abc import (
    Callable,
    Collection,
    Generator,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import contextmanager
from datetime import datetime
from typing import TextIO, TypeVar

import click
import msgspec

from connectors.admin.display import NONE, UNITS, make_safe
from runtime.clock import Clock, SystemClock

Row = TypeVar("Row")

FAILED = 1
"""Exit code of a command that could not do what it was told."""

FIRST_WORDS = 48
"""Characters of a text on a line of its own."""

LONGEST_CELL = 200
"""Characters of a text in a table, however wide the terminal."""

NARROWEST = 6
"""Columns that are left of a column of a table, however narrow the terminal."""

COPIED = frozenset({"ACCOUNT", "CLIENT", "CODE", "CONVERSATION", "ID", "PERSON"})
"""Columns that people copy into the next command, and that are therefore never cut."""

STAMP = re.compile(r"\d{4}-(\d\d-\d\d)T(\d\d:\d\d):\d\d[+-]\d\d:\d\d(?!.)")
"""A time; where a terminal is narrow, its day and minute are shown, and never cut."""

COLLECTED = "callboard.said"
"""Where click keeps that `--json` was given, then the `_Collector` of the command."""

NO_HEADER = "callboard.no-header"
WIDE = "callboard.wide"
"""Where click keeps what the options of tables said."""

json_option = click.option("--json", "as_json", is_flag=True, help="For programs.")
"""Gives a command the parameter `as_json: bool`."""

log_option = click.option(
    "--log",
    "log_level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="error",
    show_default=True,
    help="Least important kind of log line that is shown.",
)
"""Gives a command the parameter `log_level: str`."""


def _keep(key: str) -> Callable[[click.Context, click.Parameter, bool], None]:
    def kept(context: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001  click's signature
        context.meta[key] = value

    return kept


def _kept(key: str) -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(key))


def rows_options(command: Callable[..., object]) -> Callable[..., object]:
    """Give a command `as_json: bool`, and its tables `--no-header` and `--wide`."""
    for name, key, words in (
        ("--wide", WIDE, "Cut nothing, however wide the table is."),
        ("--no-header", NO_HEADER, "Leave the names of the columns out."),
    ):
        option = click.option(
            name, is_flag=True, expose_value=False, callback=_keep(key), help=words
        )
        command = option(command)
    return json_option(command)


class OutputPart(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that a command said, for programs."""

    text: str

    is_trouble: bool = False
    """Whether it was not done, or people should know; said on standard error else."""

    facts: dict[str, object] = {}
    """What of it a program may want: the id of what was made or changed."""


class _Collector:
    """Keeps what a command with `--json` says until it has ended."""

    def __init__(self) -> None:
        self.said: list[OutputPart] = []


ANSWER_OTHERWISE = frozenset(
    {"chat", "config schema", "conversations export", "play", "serve"}
)
"""Commands without `--json`: people watch them run, or they write JSON in any case."""


LONGEST_HELP = 1_000
"""Characters of a command's first sentence, which the help of its group shows."""


def answer_programs(command: click.Command, name: str) -> None:
    """Give a command that does things the option `--json`, and a group all of its own.

    With it the command says nothing until it has ended, and then writes one object:
    whether all went well, and what it said, each with its facts.

    Args:
        command: is left as it is if it has `--json` already.
        name: of the command, with those of its groups: `queue retry`.
    """
    if isinstance(command, click.Group):
        for below, each in command.commands.items():
            # As a whole: click's own cuts it off at the end of a line.
            each.short_help = each.get_short_help_str(LONGEST_HELP)
            answer_programs(each, f"{name} {below}")
    has_json = any("--json" in each.opts for each in command.params)
    if isinstance(command, click.Group) or has_json or name in ANSWER_OTHERWISE:
        return
    if command.callback is not None:
        option = click.Option(
            ["--json"],
            is_flag=True,
            expose_value=False,
            callback=_keep(COLLECTED),
            help="For programs: what was done, as one object.",
        )
        command.params.append(option)
        command.callback = _collecting(command.callback)


def _collecting(callback: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(callback)
    def collected(*given: object, **named: object) -> object:
        if not _kept(COLLECTED):
            return callback(*given, **named)
        collector = _Collector()
        click.get_current_context().meta[COLLECTED] = collector
        result = callback(*given, **named)
        say_json({"ok": not result, "said": collector.said})
        return result

    return collected


def is_for_program() -> bool:
    """Tell whether the command line has `--json`: then nobody is asked anything."""
    context = click.get_current_context(silent=True)
    return _kept(COLLECTED) or bool(context and context.params.get("as_json"))


def _collect(said: OutputPart) -> bool:
    """Keep what is said for the end; False: it is to be written now."""
    context = click.get_current_context(silent=True)
    into = None if context is None else context.meta.get(COLLECTED)
    if not isinstance(into, _Collector):
        return False
    into.said.append(said)
    return True


def say(text: str = "", **facts: object) -> None:
    """Write one or more lines to standard output.

    Args:
        facts: what of it a program may want; see `answer_programs`.
    """
    if _collect(OutputPart(text, facts=facts)):
        return
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    click.echo(text.encode(encoding, "replace").decode(encoding))


def complain(text: str, **facts: object) -> None:
    """Write one line to standard error, as `callboard` writes its errors."""
    if not _collect(OutputPart(make_safe(text), is_trouble=True, facts=facts)):
        click.echo(wrapped(f"callboard: {make_safe(text)}", sys.stderr), err=True)


def say_json(value: object, *, is_line: bool = False) -> None:
    """Write a value as JSON, always UTF-8.

    Args:
        is_line: whether it is one line of many.
    """
    made = msgspec.json.encode(value)
    click.echo(made if is_line else msgspec.json.format(made))


def first_words(text: str, most: int = FIRST_WORDS) -> str:
    """Write the beginning of a text on one line."""
    line = " ".join(make_safe(text[: 4 * most]).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def table(
    headers: Sequence[str],
    rows: Iterable[Sequence[object]],
    room: int | None = None,
) -> Iterator[str]:
    """Write rows in aligned columns; nothing at all (empty, None) is `-`.

    Args:
        headers: of the columns; left out after `--no-header`.
        room: columns that all may take together; None: what the terminal has, and
            without a terminal, or after `--wide`, as many as they like.
    """
    if room is None:
        room = room_here()
    most = LONGEST_CELL if room is not None else None
    cells = [tuple(in_cell(value, most) for value in row) for row in rows]
    if not _kept(NO_HEADER):
        cells.insert(0, tuple(headers))
    if not cells:
        return
    widths = widths_of(cells)
    if room is not None and sum(widths) + 2 * (len(widths) - 1) > room:
        kept = {number for number, name in enumerate(headers) if name in COPIED}
        kept |= {n for row in cells for n, cell in enumerate(row) if STAMP.match(cell)}
        cells = [tuple(STAMP.sub(r"\1 \2", cell) for cell in row) for row in cells]
        widths = narrowed(widths_of(cells), room, kept)
    for row in cells:
        shown = [cut(cell, most) for cell, most in zip(row, widths, strict=True)]
        yield "  ".join(
            cell + " " * (most - width(cell))
            for cell, most in zip(shown, widths, strict=True)
        ).rstrip()


def widths_of(cells: Sequence[Sequence[str]]) -> list[int]:
    """Give how many columns of a terminal each column of a table takes."""
    return [max(map(width, column)) for column in zip(*cells, strict=True)]


def room_here() -> int | None:
    """Give the width of the terminal that tables are written to; None: there is none.

    `COLUMNS` is obeyed at a terminal only: it stands in the environment of many
    scripts, whose tables must stay whole.
    """
    if _kept(WIDE) or sys.stdout is None or not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size().columns


def narrowed(widths: Sequence[int], room: int, kept: Collection[int] = ()) -> list[int]:
    """Take from the widest columns until all fit beside each other.

    Args:
        widths: of the columns, without the two blanks between them.
        room: what they may take with those.
        kept: numbers of the columns that are left as they are.

    Returns:
        The new widths. They may still be too wide: none but an empty column is made
        narrower than `NARROWEST`.
    """
    given = list(widths)
    over = sum(given) + 2 * (len(given) - 1) - room
    while over > 0:
        free = [number for number in range(len(given)) if number not in kept]
        widest = max(free, key=given.__getitem__, default=None)
        if widest is None or given[widest] <= NARROWEST:
            break
        given[widest] -= 1
        over -= 1
    return given


def cut(text: str, most: int) -> str:
    """Cut a text to so many columns of a terminal; what is cut ends with `…`."""
    if width(text) <= most:
        return text
    taken = 0
    for number, character in enumerate(text):
        taken += _width(character)
        if taken > most - 1:
            return f"{text[:number]}…"
    return text


def say_rows(
    rows: Collection[Row],
    headers: Sequence[str],
    cells: Callable[[Row], Sequence[object]],
    none: str,
    *,
    as_json: bool = False,
) -> None:
    """Write rows as a table, or all that they say as JSON.

    Args:
        cells: gives the columns of one row.
        none: what is said if there is no row.
    """
    if as_json:
        say_json(rows)
        return
    if not rows:
        say(none)
    for line in table(headers, map(cells, rows)) if rows else ():
        say(line)


def in_cell(value: object, most: int | None = None) -> str:
    """Write one value of a table, on one line.

    Args:
        most: characters of it; None: all.
    """
    if value is None:
        return NONE
    if most is None:
        return " ".join(make_safe(str(value)).split()) or NONE
    return first_words(str(value), most) or NONE


def width(text: str) -> int:
    """Count the columns that a text takes on a terminal."""
    return sum(_width(character) for character in text)


def indented(text: str, indent: int) -> str:
    """Write a text of several lines, each but the first behind so many spaces."""
    return make_safe(text).replace("\n", "\n" + " " * indent)


def wrapped(text: str, stream: TextIO | None, indent: int = 0) -> str:
    """Break lines between words where the terminal would break them anywhere.

    Args:
        text: sentences; nothing that is to be copied as one line.
        stream: where it is written; into a file or a pipe it goes as it is.
        indent: blanks before what is broken off.
    """
    if stream is None or not stream.isatty():
        return text
    room = shutil.get_terminal_size().columns
    return "\n".join(
        part for line in text.split("\n") for part in broken(line, room, indent)
    )


def broken(line: str, room: int, indent: int = 0) -> list[str]:
    """Break a line between words, so that no part is wider than `room`, if it can be.

    Joined by one blank each, the parts without their indent are the line.
    """
    indent = indent if 2 * indent < room else 0
    first, *words = line.split(" ")
    parts = [first]
    for word in words:
        if width(parts[-1]) + 1 + width(word) > room and parts[-1].strip():
            parts.append(" " * indent + word)
        else:
            parts[-1] += f" {word}"
    return parts


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


@contextmanager
def progress(total: int, label: str) -> Generator[Callable[[int], object]]:
    """Show how far long work is, on standard error, if that is a terminal.

    Args:
        total: how much is to be done, in whatever it is counted.

    Yields:
        What is told how much more is done.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield _nothing
        return
    with click.progressbar(
        length=max(total, 1), label=label, file=sys.stderr, show_pos=False
    ) as bar:
        yield bar.update


def _nothing(_done: int) -> None:
    """Show nothing."""


Counted = TypeVar("Counted")


def counting(
    rows: Iterable[Counted], advance: Callable[[int], object]
) -> Iterator[Counted]:
    """Give rows on, telling of each that it is done."""
    for row in rows:
        yield row
        advance(1)


def counted(count: int, noun: str) -> str:
    """Count things: `1 delivery`, `2 deliveries`."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"


AGO = re.compile(r"(\d{1,6})([smhd])")
LENGTHS = dict(UNITS)


def seconds_of(text: str, clock: Clock) -> float:
    """Read `2026-11-21`, `2026-11-21T14:00`, `90s`, `30m`, `2h`, `7d` as Unix seconds.

    Args:
        text: a time without an offset is local.

    Raises:
        ValueError: it is none of these.
    """
    ago = AGO.fullmatch(text)
    if ago is not None:
        return clock.wall() - int(ago[1]) * LENGTHS[ago[2]]
    return datetime.fromisoformat(text).astimezone().timestamp()


def _read(_: click.Context, __: click.Parameter, value: str | None) -> float:
    if value is None:
        return 0.0
    try:
        return seconds_of(value, SystemClock())
    except (ValueError, OverflowError) as error:
        raise click.BadParameter(
            f"{value!r} is no time; write 2026-11-21, 2026-11-21T14:00, 30m, 2h or 7d"
        ) from error


since_option = click.option(
    "--since",
    metavar="TIME",
    callback=_read,
    help="Only from then on: 2026-11-21, 2026-11-21T14:00, 30m, 2h, 7d.",
)
"""Gives a command the parameter `since: float`, Unix seconds; 0 without it."""

yes_option = click.option("--yes", is_flag=True, help="Do not ask.")
"""Gives a command the parameter `yes: bool`; pass it to `is_wanted`."""


def is_wanted(question: str, *, yes: bool) -> bool:
    """Ask, unless that was answered on the command line.

    Raises:
        click.UsageError: nobody is there to answer.
    """
    if yes:
        return True
    if is_for_program():
        raise click.UsageError("--json asks nobody; give --yes")
    click.echo(f"{question} [y/N] ", err=True, nl=False)
    # Python has None for a standard input that was closed before the start.
    answer = "" if sys.stdin is None else sys.stdin.readline()
    if not answer:
        click.echo(err=True)
        raise click.UsageError("nobody is there to say yes; give --yes")
    if answer.strip().lower() in {"y", "yes"}:
        return True
    click.echo("Nothing was changed.", err=True)
    return False


def named_or_all(
    help_text: str,
) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Give a command the parameters `ids`, `all_failed` and `yes`."""

    def decorated(command: Callable[..., object]) -> Callable[..., object]:
        command = click.argument("ids", nargs=-1, metavar="ID...")(command)
        option = click.option("--all-failed", is_flag=True, help=help_text)
        return yes_option(option(command))

    return decorated


def refuse_unclear(ids: tuple[str, ...], what: str, *, all_failed: bool) -> None:
    """Refuse a command that does not say which rows it means.

    Raises:
        click.UsageError: none is named, or both ways are used.
    """
    if all_failed == bool(ids):
        raise click.UsageError(f"give IDs, or --all-failed for all that {what}")


def split_chat(text: str) -> tuple[str, str]:
    """Split `matrix/!room:example.org`, or `matrix:!room:example.org`, after the name.

    Returns:
        The connector, and the chat; what is missing is empty.
    """
    connector, _, chat = with_slash(text).partition("/")
    return connector, chat


def with_slash(text: str) -> str:
    """Write `telegram:1` as `telegram/1`, as accounts and chats are kept."""
    return re.sub(r"\A([a-z][a-z0-9_-]*):", r"\1/", text)
