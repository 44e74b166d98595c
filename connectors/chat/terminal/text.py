"""What agents say, written for a terminal. Pure.

Agents' text is untrusted: control characters in it could move the cursor, change
colours or the window's title, or type into the shell. They are made visible.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from actors.outbound.draft_rules import DraftPiece
from connectors.admin.display import make_safe

if TYPE_CHECKING:
    from collections.abc import Iterable


class TerminalWriter:
    """Turns pieces of answers into the lines `anna> text`, notices into `* text`.

    Further lines of an answer are indented to where its first one begins. Blank
    lines at an answer's end are left out, so line feeds wait for what follows.
    """

    def __init__(self) -> None:
        self._indent = 0
        self._owed_line_feeds = 0
        self._is_at_line_start = False

    @property
    def is_at_line_start(self) -> bool:
        """Whether the answer being written goes on with a line of its own."""
        return self._is_at_line_start

    def break_line(self) -> None:
        """Learn that somebody else ended the line on which an answer stands."""
        self._is_at_line_start, self._owed_line_feeds = True, 0

    def beside(self, text: str, *, is_speaking: bool) -> str:
        """Return a notice on a line of its own, and go on with the answer below it.

        Args:
            text: the notice.
            is_speaking: whether an answer is being written.
        """
        lead = "\n" if is_speaking and not self._is_at_line_start else ""
        if is_speaking:
            self.break_line()
        notice = DraftPiece("", text, begins=True, ends=True)
        return lead + TerminalWriter().write([notice])

    def write(self, pieces: Iterable[DraftPiece]) -> str:
        """Return the text that shows these pieces."""
        return "".join(self._write_piece(piece) for piece in pieces)

    def _write_piece(self, piece: DraftPiece) -> str:
        text = ""
        if piece.begins:
            name = make_safe(piece.agent).replace("\n", " ")
            text = f"{name}> " if name else "* "
            self._indent, self._owed_line_feeds = len(text), 0
            self._is_at_line_start = False
        text += self._indent_lines(make_safe(piece.text))
        if piece.ends:
            text += "" if self._is_at_line_start else "\n"
            self._owed_line_feeds, self._is_at_line_start = 0, False
        return text

    def _indent_lines(self, text: str) -> str:
        said = text.rstrip("\n")
        if not said:
            self._owed_line_feeds += len(text)
            return ""
        whole = "\n" * self._owed_line_feeds + said
        if self._is_at_line_start:
            whole = " " * self._indent + whole.lstrip("\n")
            self._is_at_line_start = False
        self._owed_line_feeds = len(text) - len(said)
        return re.sub(r"\n(?=[^\n])", "\n" + " " * self._indent, whole)
