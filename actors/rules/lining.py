"""The line of messages that wait in one session: who joins whom, who makes room. Pure.

Everything here is about one sender at a time, and keeps the order of their messages:
where one of them cannot join, those behind it do not either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from actors.rules.busy_policies import Overflow
    from actors.rules.queue_events import Heard

Line = tuple["Heard", ...]


def belongs(one: Heard, other: Heard) -> bool:
    """Whether two messages are of one sender, in one scope."""
    return one.whose == other.whose


def is_full(line: Line, heard: Heard, cap: int) -> bool:
    """Whether a message finds no room; what is cut short takes none.

    As many again as `cap` may wait of those of whose sender nothing waits yet: nobody
    is kept out by what somebody else writes.
    """
    is_first = not any(belongs(heard, each) for each in line)
    most = cap * 2 if is_first else cap
    return sum(not each.is_short for each in line) >= most


def make_room(
    line: Line, heard: Heard, cap: int, overflow: Overflow
) -> tuple[Line, tuple[str, ...]] | None:
    """Make room for a message at the cost of its sender's oldest one.

    Args:
        line: what waits.
        heard: the new one.
        cap: most messages that wait whole.
        overflow: how room is made.

    Returns:
        The line that is left, and what is dropped; None: there is no room.
    """
    old = [each for each in line if _may_go(each, heard)]
    if overflow == "new" or not (old and heard.may_join):
        return None
    if overflow == "oldest":
        return _without(line, old[0]), (old[0].id,)
    whole = [each for each in old if not each.is_short]
    if not whole:
        return None
    short = msgspec.structs.replace(whole[0], is_short=True)
    line = tuple(short if each is whole[0] else each for each in line)
    cut = [each for each in line if each.is_short]
    if len(cut) <= cap:
        return line, ()
    mine = next((each for each in cut if _may_go(each, heard)), short)
    return _without(line, mine), (mine.id,)


def _may_go(each: Heard, heard: Heard) -> bool:
    return each.may_join and not each.is_begun and belongs(each, heard)


def _without(line: Line, gone: Heard) -> Line:
    return tuple(each for each in line if each is not gone)


def joining(line: Line, most_chars: int) -> Sequence[Heard]:
    """Give the first in line, and those behind it that share its turn.

    Args:
        line: what waits; not empty.
        most_chars: characters of all together; the first may be longer by itself.
    """
    first = line[0]
    taken = [first]
    size = first.size
    for each in line[1:]:
        if not belongs(each, first):
            continue
        size += each.size
        if size > most_chars or not each.may_join or each.is_begun:
            break
        taken.append(each)
    return taken


def leading(line: Line, current: Heard, most: int) -> Sequence[Heard]:
    """Give the messages that may be put into a running turn, at most so many."""
    taken: list[Heard] = []
    for each in line:
        if not belongs(each, current):
            continue
        is_plain = each.may_join and not (each.is_media or each.is_begun)
        if len(taken) >= most or not is_plain:
            break
        taken.append(each)
    return taken
