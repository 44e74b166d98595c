"""What the bytes of one HTTP/1.1 response say, as they come.

Sans-I/O, around llhttp (httptools), the parser of Node and of our own server. h11,
which httpx brings, took a third of the processor time of a model call.
"""

from __future__ import annotations

import httptools
import httpx

MAX_SILENT_BYTES = 100 * 1024
"""Most bytes, a piece aside, that may come without a byte of the body: heads, lines
around chunks, trailers. As httpcore's bound on a head."""


class HttpResponse:
    """One response in the making.

    What has come before a mistake is kept: an answer may be whole by then.
    """

    def __init__(self) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.has_begun = False
        """Whether the head has come, so that `status` and `headers` are known."""

        self.is_complete = False
        self.may_follow = False
        """Whether the connection may carry another request once this is complete."""

        self._parser: httptools.HttpResponseParser | None = (
            httptools.HttpResponseParser(self)
        )
        self._body: list[bytes] = []
        self._silent_bytes = 0
        self._ends_with_connection = True
        self._mistake: httpx.RemoteProtocolError | None = None

    def feed(self, piece: bytes) -> None:
        """Take what came next; no bytes: the connection has ended.

        A mistake is raised by `take` and by `check`.
        """
        if self._parser is None:
            return
        if piece:
            self._parse(self._parser, piece)
        else:
            self._end()
        if self.is_complete or self._mistake is not None:
            # It knows us, we know it: let go, neither waits for the collector.
            self._parser = None

    def _parse(self, parser: httptools.HttpResponseParser, piece: bytes) -> None:
        bodies = len(self._body)
        try:
            parser.feed_data(piece)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.may_follow = False
            self._fail(f"this is not HTTP/1.1: {error}")
        if len(self._body) > bodies:
            self._silent_bytes = 0
            return
        self._silent_bytes += len(piece)
        if self._silent_bytes > MAX_SILENT_BYTES:
            self._fail(f"more than {MAX_SILENT_BYTES} bytes without any of the body")

    def take(self) -> bytes:
        """Give what has come of the body since last asked; often nothing.

        Raises:
            httpx.RemoteProtocolError: nothing more will come that makes sense.
        """
        if self._body:
            body = b"".join(self._body)
            self._body.clear()
            return body
        self.check()
        return b""

    def check(self) -> None:
        """Raise the mistake that was found, if one was.

        Raises:
            httpx.RemoteProtocolError: what came is no response, or half of one.
        """
        if self._mistake is not None:
            raise self._mistake

    def on_message_begin(self) -> None:
        """See httptools: a response begins."""
        # After a complete one: nobody has asked for it.
        if self.is_complete:
            self.may_follow = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """See httptools: one header, or one trailer."""
        if not self.has_begun:
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """See httptools: the head is complete."""
        if self.has_begun or self._parser is None:
            return
        self.status = self._parser.get_status_code()
        if self.status < httpx.codes.OK:
            # Source: RFC 9110, 15.2: any number of them come before the response.
            self.headers.clear()
            return
        self.has_begun = True
        self.may_follow = self._parser.should_keep_alive()
        lengths = {b"content-length", b"transfer-encoding"}
        self._ends_with_connection = not any(
            name.lower() in lengths for name, _ in self.headers
        )

    def on_body(self, body: bytes) -> None:
        """See httptools: a piece of the body."""
        if not self.is_complete:
            self._body.append(body)

    def on_message_complete(self) -> None:
        """See httptools: the response is complete, or it was an interim one."""
        self.is_complete = self.has_begun

    def _end(self) -> None:
        self.may_follow = False
        if not self.has_begun:
            self._fail("the server closed the connection without a response")
        elif self._ends_with_connection:
            self.is_complete = True
        else:
            self._fail("the server closed the connection before the end of the body")

    def _fail(self, why: str) -> None:
        if not self.is_complete and self._mistake is None:
            self._mistake = httpx.RemoteProtocolError(why)
