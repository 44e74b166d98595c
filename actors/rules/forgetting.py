"""What was said before somebody had something forgotten, and so stays forgotten; pure.

A forgetting takes facts out of the memory, but not the words they came from out of the
conversation: gone through once more, these would bring the facts back. So each
forgetting leaves its *mark*, the id of the message that asked for it: ids are in the
order of their time (`runtime/ids.py`). Of what is older nothing is remembered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from actors.messages import Line


def is_forgotten(name: str, mark: str) -> bool:
    """Whether words are older than a forgetting.

    Args:
        name: id of the message they stand in, or mark of the forgetting that they are
            known to be newer than; empty: nobody says.
        mark: of the last forgetting, by the message that asked for it; empty: there
            was none.
    """
    return "" < name < mark


def since(
    lines: Sequence[Line], said: Iterable[tuple[str, int]], mark: str, newer: int = 0
) -> tuple[Line, ...]:
    """Give the newest lines that were said after a forgetting.

    Args:
        lines: of one conversation, oldest first.
        said: each exchange of it, the newest first: id of its message, how many lines.
        mark: of the forgetting; empty: there was none.
        newer: how many lines the conversation has after these.

    Returns:
        All, if nothing was forgotten. In doubt a line is older: what `said` does not
        reach is left out, and so is all before the first exchange that is older.
    """
    if not mark:
        return tuple(lines)
    count = 0
    for name, size in said:
        if name <= mark:
            break
        count += size
    left = max(0, min(count - newer, len(lines)))
    return tuple(lines[len(lines) - left :])
