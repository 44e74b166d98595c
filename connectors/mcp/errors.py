"""The errors of servers of tools.

McpError
├── McpMissingError     the program's part that speaks the protocol is not installed
├── ServerLostError     the connection has ended, or has to
└── ServerAnswerError   one question was not answered as it should be
"""

from __future__ import annotations

from runtime.errors import KernelError


class McpError(KernelError):
    """Base of everything that goes wrong with a server of tools."""


class McpMissingError(McpError):
    """What speaks the protocol is not installed."""


class ServerLostError(McpError):
    """The connection to a server has ended, or is not to be trusted any more."""


class ServerAnswerError(McpError):
    """A server refused a question, or what came was no answer to it.

    Args:
        text: what happened; the server's own words are cleaned.
        in_doubt: whether what was asked for may have been done.
    """

    def __init__(self, text: str, *, in_doubt: bool) -> None:
        super().__init__(text)
        self.in_doubt = in_doubt
