"""The line to a launcher: a socket, a plan out, lines of text in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from connectors.sandbox.plan import KILLED, SandboxError

if TYPE_CHECKING:
    import socket


class Line:
    """The socket to a launcher.

    Args:
        own: our end.
    """

    def __init__(self, own: socket.socket) -> None:
        self._socket = trio.socket.from_stdlib_socket(own)
        self._stream = trio.SocketStream(self._socket)
        self._left = b""
        self._lock = trio.Lock()
        self._end: tuple[int, bool] | None = None

    async def order(self, plan: bytes) -> None:
        """Send the plan, and wait until the program runs.

        Raises:
            SandboxError: it does not.
        """
        try:
            await self._stream.send_all(plan)
        except trio.BrokenResourceError:
            text = ""
        else:
            text = await self._read()
        if text != "started":
            raise SandboxError(text.removeprefix("refused "))

    async def ended(self) -> tuple[int, bool]:
        """Wait for the program's end: its exit code, and whether it was too much."""
        async with self._lock:
            if self._end is None:
                _, *words = (await self._read()).split() or [""]
                self._end = (
                    (int(words[0]), words[1] == "1") if words else (KILLED, False)
                )
            return self._end

    def cut(self) -> None:
        """Have the launcher end everything."""
        try:
            self._socket.shutdown(trio.socket.SHUT_WR)
        except OSError:
            return  # it is gone

    async def aclose(self) -> None:
        """Close our end."""
        await self._stream.aclose()

    async def _read(self) -> str:
        """Read a line; nothing once the launcher is gone."""
        while b"\n" not in self._left:
            try:
                piece = await self._stream.receive_some(4096)
            except trio.BrokenResourceError:
                piece = b""
            if not piece:
                return ""
            self._left += piece
        line, _, self._left = self._left.partition(b"\n")
        return line.decode(errors="replace")
