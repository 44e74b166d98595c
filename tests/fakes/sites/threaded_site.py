"""A web site in a thread, for commands that run a loop of their own."""

from __future__ import annotations

import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = tuple[int, bytes]


class LittleSite:
    """Says the same to each path, and remembers who asked.

    Args:
        answers: status and body, by `METHOD /path`; 404 for what is missing. A body
            that is `HANGS` is never sent: the asker waits until it gives up. With
            ` +tools` behind the path: to a body that offers a model tools.
    """

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        self.answers = dict(answers)
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.bodies: list[bytes] = []
        """What was posted."""

        self.is_asked = threading.Event()
        """Set at the first request."""

        self.released = threading.Event()
        """Set at the end, for those that hang."""

        self.url = ""
        self.media_type = "application/json"


HANGS = b"..."
"""A body that never comes."""


@contextmanager
def open_little_site(answers: Mapping[str, Answer]) -> Generator[LittleSite]:
    """Listen on loopback while the block runs."""
    site = LittleSite(answers)

    class Asked(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.say()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            site.bodies.append(body)
            self.say(has_tools=b'"tools"' in body)

        def say(self, *, has_tools: bool = False) -> None:
            path = f"{self.command} {self.path.partition('?')[0]}"
            if has_tools and f"{path} +tools" in site.answers:
                path += " +tools"
            site.asked.append(path)
            site.headers.append({k.lower(): v for k, v in self.headers.items()})
            site.is_asked.set()
            status, body = site.answers.get(path, (404, b"{}"))
            if body == HANGS:
                site.released.wait(60)
                return
            self.send_response(status)
            self.send_header("content-type", site.media_type)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Asked)
    server.daemon_threads = False
    site.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield site
    finally:
        site.released.set()
        server.shutdown()
        thread.join()
        server.server_close()
