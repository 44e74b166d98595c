"""What goes wrong on a WebSocket; pure.

SocketError
├── FrameError   a frame is wrong: its sender is told, and may go on
├── RefusedError the client is not let in: told why, and let go
└── GoneError    nobody is there any more
"""

from __future__ import annotations


class SocketError(Exception):
    """Base of what this connector raises itself."""


class FrameError(SocketError):
    """A frame is not taken.

    Args:
        code: one bounded word, for programs.
        text: what is wrong.
        cure: what to do.
        retry_after: seconds after which it may be taken; None: it must change.
    """

    def __init__(
        self, code: str, text: str, cure: str, retry_after: float | None = None
    ) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.cure = cure
        self.retry_after = retry_after


class ClientRefusedError(FrameError):
    """The client is let go after it is told.

    Args:
        code: one bounded word.
        text: what is wrong.
        cure: what to do.
        status: of HTTP, while there is no WebSocket yet.
        retry_after: seconds after which it may be let in.
    """

    def __init__(
        self,
        code: str,
        text: str,
        cure: str,
        *,
        status: int = 400,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(code, text, cure, retry_after)
        self.status = status


class ClientGoneError(SocketError):
    """The client has gone, or is let go; the text says why, in one bounded word."""
