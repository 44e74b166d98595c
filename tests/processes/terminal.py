"""A terminal with a person at it: types into a command, reads what it shows."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import termios
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.processes.running import COMMAND, PATIENCE, environment

CTRL_C = "\x03"
CTRL_D = "\x04"

# Why a shell in between: the first terminal that the leader of a new session opens
# becomes its controlling terminal, and only that one turns Ctrl-C into a signal.
TAKE_TERMINAL = 'exec "$@" <"$TTY" >"$TTY" 2>&1'


class Terminal:
    """A command that runs on a terminal of its own.

    Args:
        process: the command.
        screen: our end of the terminal.
        keyboard: the command's end, held open so that its state can be asked.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], screen: int, keyboard: int
    ) -> None:
        self.process = process
        self._screen = screen
        self._keyboard = keyboard
        self._seen = 0
        self.shown = ""
        """All that has been shown so far."""

        self.state = termios.tcgetattr(keyboard)

    def type(self, keys: str) -> None:
        """Press keys; a line ends with a line feed."""
        os.write(self._screen, keys.encode())

    def see(self, text: str) -> str:
        """Wait until this text is shown, after all that was waited for before.

        Returns:
            What was shown from there to the end of the text.
        """
        while (at := self.shown.find(text, self._seen)) < 0:
            assert self._read(), f"waited for {text!r}, saw {self.shown!r}"
        before, self._seen = self._seen, at + len(text)
        return self.shown[before : self._seen]

    def end(self) -> int:
        """Wait for the command's end; gives its exit code."""
        code = self.process.wait(PATIENCE)
        while self._read(0):
            pass
        assert termios.tcgetattr(self._keyboard) == self.state
        return code

    def _read(self, seconds: float = PATIENCE) -> bool:
        ready, _, _ = select.select([self._screen], [], [], seconds)
        if not ready:
            return False
        said = os.read(self._screen, 65_536)
        self.shown += said.decode().replace("\r\n", "\n")
        return True


@contextmanager
def on_terminal(
    *arguments: str, folder: Path, term: str = "dumb"
) -> Generator[Terminal]:
    """Run a command on a terminal during the block; killed after it if it runs.

    Args:
        arguments: the command.
        folder: where it runs.
        term: the kind of terminal; a dumb one has plain lines. None of them answers
            where its cursor is.
    """
    screen, keyboard = pty.openpty()
    termios.tcsetwinsize(keyboard, (30, 100))
    more = {"TTY": os.ttyname(keyboard), "TERM": term}
    try:
        with subprocess.Popen(
            ["/bin/sh", "-c", TAKE_TERMINAL, "sh", *COMMAND, *arguments],
            cwd=folder,
            env=environment(more),
            start_new_session=True,
        ) as process:
            try:
                yield Terminal(process, screen, keyboard)
            finally:
                process.kill()
    finally:
        os.close(screen)
        os.close(keyboard)
