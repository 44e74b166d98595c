"""The keyboard and the screen, so that neither ever blocks the kernel's loop.

Reading and writing happen in threads that are left behind on Ctrl-C: nobody can
wake a thread that waits for a key, or for a screen that was stopped with Ctrl-S.

Agents' text is untrusted: control characters in it could move the cursor, change
colours or the window's title, or type into the shell. `TerminalWriter` makes them
visible.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from typing import Protocol, TextIO

import trio

from actors.outbound.draft_rules import DraftPiece
from connectors.admin.display import make_safe

# Chosen: ten times what a message may have unless the settings say otherwise, so that
# whoever takes it in says how much too long it is.
MOST_CHARACTERS = 1_000_000
"""Longest line that is kept; what is beyond is read, and forgotten."""

PIECE = 65_536
"""Characters read at a time."""


class Console(Protocol):
    """Where lines come from and text goes to."""

    async def read_line(self) -> str | None:
        """Wait for the next line, without its line feed; None at the end."""
        ...

    async def write(self, text: str) -> None:
        """Write text as it is, at once.

        Raises:
            OSError: nobody reads any more.
        """
        ...


class StandardConsole:
    """The process's own standard input and output."""

    def __init__(self, source: TextIO, target: TextIO) -> None:
        self._source = source
        self._target = target
        # Why: what a terminal's encoding cannot show must not end the chat.
        for stream in (source, target):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")

    @property
    def is_interactive(self) -> bool:
        """True if a person types and watches; False if one of both is a pipe."""
        return self._source.isatty() and self._target.isatty()

    async def read_line(self) -> str | None:
        """Wait for the next line, without its line feed; None at the end."""
        line = await trio.to_thread.run_sync(self._read, abandon_on_cancel=True)
        return line.removesuffix("\n") if line else None

    async def write(self, text: str) -> None:
        """Write text as it is, at once.

        Raises:
            OSError: nobody reads any more.
        """
        await trio.to_thread.run_sync(self._write, text, abandon_on_cancel=True)

    def _read(self) -> str:
        pieces: list[str] = []
        kept = 0
        try:
            while piece := self._source.readline(PIECE):
                pieces.append(piece[: max(0, MOST_CHARACTERS - kept)])
                kept += len(pieces[-1])
                if piece.endswith("\n"):
                    break
        except OSError:
            return ""  # the terminal was hung up
        return "".join(pieces)

    def _write(self, text: str) -> None:
        self._target.write(text)
        self._target.flush()


class Printer:
    """Text on its way to a console, in order; putting never waits."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._pending: list[str] = []
        self._wake = trio.Event()
        self._written = trio.Event()
        self.is_running = False

    def put(self, text: str) -> trio.Event:
        """Print soon; gives what is set when it is written or never will be."""
        self._pending.append(text)
        self._wake.set()
        return self._written

    async def run(self) -> None:
        """Print what is put until cancelled, or until nobody reads any more.

        Raises:
            OSError: nobody reads any more.
        """
        if self._written.is_set():  # an earlier run ended
            self._written = trio.Event()
        written = self._written
        self.is_running = True
        try:
            while True:
                await self._wake.wait()
                self._wake = trio.Event()
                text, self._pending = "".join(self._pending), []
                written, self._written = self._written, trio.Event()
                if text:
                    await self._console.write(text)
                written.set()
        finally:
            self.is_running = False
            written.set()
            self._written.set()


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
