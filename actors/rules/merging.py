r"""How the words of several messages of one person become one question; pure.

Quick ones in succession are lines of one message (F076); what was said while somebody
was busy is numbered (F079); what interrupts joins the question before it (F092), as
`transcript.merge` joins neighbours in the history: `a\n\nb`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from actors.rules.busy_policies import Style

HEADER = "Several messages came in while you were busy. Answer all of them:"

MEANWHILE = "(This came in while you were working on it:)\n{text}"
"""What a model reads of words that are put into its tool loop."""

# Chosen: enough to tell what it was about.
SHORT = 80
"""Characters left of a message that is cut to one line."""


def merge(texts: Sequence[str], style: Style) -> str:
    """Make one text of several.

    Args:
        texts: in the order in which they were written; at least one.
        style: how; one text alone stays as it is.
    """
    if len(texts) == 1 or style == "alone":
        return texts[0]
    if style == "lines":
        return "\n".join(texts)
    if style == "paragraphs":
        return "\n\n".join(texts)
    parts = (f"---\n#{number}: {text}" for number, text in enumerate(texts, 1))
    return "\n".join((HEADER, *parts))


def shortened(text: str) -> str:
    """Cut a message to the beginning of its words, in one line."""
    line = " ".join(text.split())
    return line if len(line) <= SHORT else f"{line[: SHORT - 1]}…"


def meanwhile(name: str, text: str) -> str:
    """Say who wrote something while an answer was being worked on.

    Args:
        name: of the writer; empty: the text says it.
        text: what they wrote.
    """
    return MEANWHILE.format(text=f"{name}: {text}" if name else text)
