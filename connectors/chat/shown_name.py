"""Names that people give themselves, their chats and their files, for one line. Pure.

Nobody's name breaks out of a prompt or a log, or hides words in it.
"""

from __future__ import annotations

from actors.rules.foreign import one_line

LONGEST_NAME = 200
"""Characters."""


def shown_name(name: str) -> str:
    """Give a name in one line, without what cannot be seen, cut with an ellipsis."""
    return one_line(name, LONGEST_NAME)
