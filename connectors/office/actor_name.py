"""Which actor is meant by a name, or by the end of one.

Names are ways down the tree, as `callboard/agents/anna`; people type `anna`.
"""

from __future__ import annotations

from difflib import get_close_matches
from heapq import nsmallest
from typing import TYPE_CHECKING

from actors.rules.near import LONGEST_WORD, did_you_mean
from connectors.office.safe_text import make_safe
from runtime.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_NAMED = 5
"""Names that an error tells."""

# Chosen: those nearest to the root, so that each agent is among them; to compare a
# word with 2,000 names takes a tenth of a second.
MOST_COMPARED = 2_000


def find_name(names: Iterable[str], wanted: str) -> str:
    """Give the whole name of the one actor that is meant.

    Args:
        names: of all actors.
        wanted: a whole name, or the last parts of one.

    Raises:
        MisuseError: nobody has this name, or more than one has it as an end.
    """
    known = list(names)
    if wanted in known:
        return wanted
    end = f"/{wanted}"
    found = [name for name in known if name.endswith(end)]
    if len(found) == 1:
        return found[0]
    if not found:
        near = did_you_mean(nearest(known, wanted))
        raise MisuseError(
            f"no actor has the name {shown(wanted)}, or one that ends so;"
            f" callboard tree shows all.{near}"
        )
    first = nsmallest(MOST_NAMED, found, key=depth)
    more = f" and {len(found) - len(first):,} more" if len(found) > len(first) else ""
    raise MisuseError(
        f"{len(found):,} actors have a name that ends in {shown(wanted)}:"
        f" {', '.join(first)}{more}; give more of it"
    )


def nearest(known: list[str], wanted: str) -> tuple[str, ...]:
    """Give at most three names that are like this one, or whose ends are."""
    word, parts = wanted[-LONGEST_WORD:].casefold(), wanted.count("/") + 1
    by_end: dict[str, str] = {}
    for name in nsmallest(MOST_COMPARED, known, key=depth):
        by_end.setdefault("/".join(name.casefold().split("/")[-parts:]), name)
    return tuple([by_end[end] for end in get_close_matches(word, by_end)])


def depth(name: str) -> tuple[int, str]:
    """Sort by how far below the root it stands."""
    return name.count("/"), name


def shown(wanted: str) -> str:
    """Write a name from outside, bounded and harmless on a terminal."""
    return repr(make_safe(wanted[:LONGEST_WORD]))
