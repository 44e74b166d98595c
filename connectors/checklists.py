"""Reads what a heartbeat looks after from the file in its agent's folder (F296)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from actors.errors import ToolError

if TYPE_CHECKING:
    from pathlib import Path

# Chosen: as a persona's files; a list that is read at each beat costs at each beat.
MOST_BYTES = 65_536


async def read_checklist(file: Path) -> str:
    """Give the text of a file as it is now, in a thread; empty if there is none.

    Raises:
        ToolError: it cannot be read, is too long or no UTF-8 text; says which file.
    """
    return await trio.to_thread.run_sync(_read, file)


def _read(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            content = opened.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise ToolError(f"{file} cannot be read: {error.strerror}") from error
    if len(content) > MOST_BYTES:
        raise ToolError(f"{file} is longer than {MOST_BYTES:,} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ToolError(f"{file} is not UTF-8 text; save it as UTF-8") from error
