"""A TCP proxy before a PostgreSQL server that loses what it is told to lose."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path
from typing import Literal

COMMIT = b"COMMIT\x00"

Lost = Literal["nothing", "answer", "request"]


class CutProxy:
    """Hands bytes on between clients and a server's Unix socket.

    Args:
        target: the server's socket.
    """

    def __init__(self, target: Path) -> None:
        self._target = str(target)
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._door.getsockname()[1]
        self.losing: Lost = "nothing"
        """What becomes of the next statement with `word`: its answer, or itself, gets
        lost, and the connection with it."""

        self.word = COMMIT

        self.is_away = False
        """Whether new connections are refused."""

        self.lost = 0
        """How many statements were treated so."""

        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def _start(self, work: object, *given: object) -> threading.Thread:
        assert callable(work)
        thread = threading.Thread(target=work, args=given, name="cut-proxy")
        self._threads.append(thread)
        thread.start()
        return thread

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._door.accept()
                if self.is_away:
                    client.close()
                    continue
                server = socket.socket(socket.AF_UNIX)
                try:
                    server.connect(self._target)
                except OSError:  # the server is away
                    client.close()
                    server.close()
                    continue
                self._pairs.append((client, server))
                self._start(self._join, client, server)

    def _join(self, client: socket.socket, server: socket.socket) -> None:
        answering = self._start(self._answer, server, client)
        self._ask(client, server)
        answering.join()
        # Why not at the end: a long test would have more open than a process may have.
        self._pairs.remove((client, server))
        client.close()
        server.close()

    def _ask(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while sent := client.recv(65536):
                if self.word in sent and self.losing != "nothing":
                    self._lose(client, server, sent)
                    return
                server.sendall(sent)
        shut(client, server)

    def _lose(self, client: socket.socket, server: socket.socket, sent: bytes) -> None:
        losing, self.losing = self.losing, "nothing"
        self.lost += 1
        # The client sees the end first: then the server does what it was sent.
        shut(client)
        if losing == "answer":
            server.sendall(sent)
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_WR)

    @staticmethod
    def _answer(server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while said := server.recv(65536):
                client.sendall(said)
        shut(client, server)

    def cut(self) -> None:
        """Cut all connections."""
        for pair in tuple(self._pairs):
            shut(*pair)

    def close(self) -> None:
        """Cut all connections, and take no more."""
        shut(self._door)
        self.cut()
        for thread in tuple(self._threads):
            thread.join(10)
        self._door.close()


def shut(*sockets: socket.socket) -> None:
    """End both directions of connections."""
    for each in sockets:
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
