"""How what is left of a text is joined where something was taken out of it; pure.

Blanks before it stay and decide what becomes of the blanks after it: after a line
break all go; after a blank, those up to the next line break; after anything else they
stay, and if there are none, one blank is put in. At the beginning of the text they
all go. The blank in between also makes sure that what stood left and right of it
cannot join to a new mark.
"""

from __future__ import annotations

from typing import Literal


class Gap:
    """Joins a text that comes in pieces."""

    __slots__ = ("_last", "is_open")

    def __init__(self) -> None:
        self.is_open = False
        """Whether something was taken out since the last word."""

        self._last: Literal["nothing", "text", "blank", "line"] = "nothing"

    def open(self) -> None:
        """Something was taken out here."""
        self.is_open = True

    def join(self, text: str) -> str:
        """Give back what is shown of the next piece of visible text."""
        if self.is_open and text:
            text = self._close(text)
        if text:
            self._remember(text)
        return text

    def _close(self, text: str) -> str:
        if self._last == "text":
            self.is_open = False
            return text if text[0].isspace() else " " + text
        rest = text.lstrip()
        if self._last == "blank":
            line = text.find("\n", 0, len(text) - len(rest))
            rest = rest if line < 0 else text[line:]
        self.is_open = not rest
        return rest

    def _remember(self, text: str) -> None:
        body = text.rstrip()
        if len(body) == len(text):
            self._last = "text"
        elif "\n" in text[len(body) :] or (not body and self._last == "line"):
            self._last = "line"
        else:
            self._last = "blank"
