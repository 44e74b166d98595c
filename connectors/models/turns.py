"""A transcript as turns that alternate between the user and the model.

Pure. Anthropic and Google want it so: the user begins and ends, tool results are in
the user's turn, and what follows each other in one role is one turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

import msgspec

from actors.messages.inbound import TranscriptLine

EARLIER = "[Earlier messages are not shown.]"
"""Begins a transcript whose beginning was cut off before an answer."""

GO_ON = "[Go on.]"
"""Ends a transcript whose last words are the model's own."""


class Turn(msgspec.Struct, frozen=True):
    """What one side says before the other does."""

    is_user: bool
    lines: tuple[TranscriptLine, ...]


def turns(lines: Iterable[TranscriptLine]) -> Iterator[Turn]:
    """Group a transcript into turns; the first and the last are the user's."""
    is_user = False
    is_first = True
    for is_user, group in groupby(lines, key=is_users):
        if is_first and not is_user:
            yield Turn(is_user=True, lines=(TranscriptLine("user", EARLIER),))
        is_first = False
        yield Turn(is_user=is_user, lines=tuple(group))
    if not is_user:
        yield Turn(is_user=True, lines=(TranscriptLine("user", GO_ON),))


def is_users(line: TranscriptLine) -> bool:
    """Tell whether a line is in the user's turn: all but the model's own are."""
    return line.role != "assistant"
