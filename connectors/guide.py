"""What AGENTS.md in an agent's folder says of it and of the agent; pure (F299).

The program writes one part of the file, between two lines of its own. What stands
around it is the agent's, or the operator's, and stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

FILE = "AGENTS.md"
BEGIN = "<!-- callboard: written anew every day, down to the next such line -->"
END = "<!-- callboard: what you write below is kept -->"

MOST_ROWS = 200
"""Rows of a table; of more it says how many are left out."""

MOST_CELL = 300
"""Characters of a cell."""


ABOUT = (
    "Your files live here. Paths begin in this folder, as `notes/today.md`, and nothing"
    " leads out of it. Keep what belongs to one piece of work in one folder. One file"
    " may have {one:,} bytes, all together {every:,}."
)


class Guide(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of an agent and its folder."""

    agent: str
    description: str = ""
    tools: tuple[str, ...] = ()
    skills: tuple[tuple[str, str], ...] = ()
    """Names and what each is for."""

    projects: tuple[str, ...] = ()
    max_bytes: int
    """Of all files together."""

    max_file_bytes: int


def written(guide: Guide) -> str:
    """Write the program's part of the file."""
    lines = [f"# The folder of {guide.agent}", ""]
    if guide.description:
        lines += [_cell(guide.description), ""]
    about = ABOUT.format(one=guide.max_file_bytes, every=guide.max_bytes)
    lines += [about, ""]
    if guide.tools:
        lines += [f"Tools: {', '.join(map(_cell, guide.tools))}.", ""]
    if guide.skills:
        lines += _table(("Skill", "For"), guide.skills)
    if guide.projects:
        lines += _table(("Project",), [(each,) for each in guide.projects])
    return "\n".join(lines).rstrip()


def merged(old: str, part: str) -> str:
    """Put the program's part in its place; what else there is stays.

    Args:
        old: the file as it is; empty: there is none.
        part: as `written` gives it.
    """
    block = f"{BEGIN}\n{part}\n{END}\n"
    before, begin, rest = old.partition(BEGIN)
    if not begin:
        return f"{block}\n{old}" if old.strip() else block
    _, end, after = rest.partition(END)
    # Without its end, nobody knows what was somebody's: what follows is kept.
    kept = after.removeprefix("\n") if end else rest.removeprefix("\n")
    return f"{before}{block}{kept}"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    every = list(rows)
    shown = [f"| {' | '.join(map(_cell, row))} |" for row in every[:MOST_ROWS]]
    left = len(every) - len(shown)
    more = [f"({left} more are not shown.)"] if left else []
    return [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *shown, *more, ""]


def _cell(text: str) -> str:
    """Make a text fit into a line of a table, and end no comment."""
    line = " ".join(text.split()).replace("|", "/").replace("-->", "→")
    return line if len(line) <= MOST_CELL else f"{line[: MOST_CELL - 1]}…"
