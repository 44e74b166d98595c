r"""Joining several messages of one person into one question. Pure.

Quick successive messages become lines of one message. Messages that arrived during a
turn are numbered. An interrupting message is appended to the interrupted question as a
paragraph, as `transcript.merge` joins neighbours in the history: `a\n\nb`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from actors.messages.busy_policies import Style

HEADER = "Several messages came in while you were busy. Answer all of them:"

MEANWHILE = "(This came in while you were working on it:)\n{text}"
"""Text around a message that is injected into a tool loop."""

# Chosen: enough to tell what it was about.
SHORT = 80
"""Longest message, in characters, after shortening to one line."""


def merge(texts: Sequence[str], style: Style) -> str:
    """Join several texts into one.

    Args:
        texts: at least one, in the order of writing.
        style: how to join them; a single text is returned unchanged.
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
    """Shorten a message to its beginning, in one line."""
    line = " ".join(text.split())
    return line if len(line) <= SHORT else f"{line[: SHORT - 1]}…"


def meanwhile(name: str, text: str) -> str:
    """Wrap a message that arrived while the answer was being made.

    Args:
        name: of the writer; empty if the text names the writer.
        text: the message.
    """
    return MEANWHILE.format(text=f"{name}: {text}" if name else text)
