"""Standard output, which says of itself when it cannot be written.

The system names no file when a write to an open one fails, so that a full disk behind
`> file` would look like one that the program itself needs.
"""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

NAME = "standard output"


class NamedOutput(io.FileIO):
    """An open descriptor, to write to; the errors of that name standard output."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "wb", closefd=False)

    def write(self, data: ReadableBuffer, /) -> int:
        """Write as much as is taken.

        Raises:
            OSError: nothing is taken; its file is `NAME`.
        """
        try:
            return super().write(data)
        except OSError as error:
            raise OSError(error.errno, error.strerror, NAME) from error


def name_output() -> None:
    """Have errors of standard output name it, from here on; call it at the start."""
    before = sys.stdout
    if isinstance(before, io.TextIOWrapper):  # none, if it was closed before the start
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(NamedOutput(before.fileno())),
            encoding=before.encoding,
            errors=before.errors,
            line_buffering=before.line_buffering or before.write_through,
        )


def in_words(error: OSError) -> str:
    """Say what the machine refused, and of which file, without its number."""
    if not error.strerror:
        return str(error)
    if error.filename == NAME:
        return (
            f"{NAME} cannot be written: {error.strerror}; direct it to a file or"
            " /dev/null that can"
        )
    place = "" if error.filename is None else f"{error.filename}: "
    return f"{place}{error.strerror}"
