"""What a model program is told, on its standard input. Pure.

A program that keeps the conversation itself needs only the newest words; any other
needs it all, in one text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from actors.messages.inbound import ModelRequest, TranscriptLine

ENDS_AN_ELEMENT = str.maketrans({"<": "[", ">": "]"})
"""What people write stands between tags, and must not close them."""


def full_prompt(request: ModelRequest, images: Sequence[str]) -> bytes:
    """Write all that a new session of the program must know.

    Args:
        request: what is asked, with its conversation.
        images: files with the pictures of the newest message.
    """
    *earlier, newest = request.lines
    parts = [
        f"<instructions>\n{request.system}\n</instructions>" if request.system else "",
    ]
    if earlier:
        told = "\n\n".join(told_line(line) for line in earlier)
        parts.append(f"<conversation>\n{told}\n</conversation>")
    parts.append(question(newest, images))
    return "\n\n".join(part for part in parts if part).encode()


def short_prompt(request: ModelRequest, images: Sequence[str]) -> bytes:
    """Write what a session of the program that goes on must know."""
    newest = request.lines[-1]
    parts = [*request.notes, question(newest, images)]
    return "\n\n".join(parts).encode()


def told_line(line: TranscriptLine) -> str:
    """Tell who said what."""
    speaker = line.name or line.role
    return f"{speaker}: {line.text}".translate(ENDS_AN_ELEMENT)


def question(line: TranscriptLine, images: Sequence[str]) -> str:
    """Write the newest words, after the files that came with them."""
    named = [f"[Attached image: {path}]" for path in images]
    return "\n".join([*named, told_line(line)])
