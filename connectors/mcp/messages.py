"""What the actors of a server of tools say to each other, and are asked.

The errors of servers of tools.

McpError
├── McpMissingError     the program's part that speaks the protocol is not installed
├── ServerLostError     the connection has ended, or has to
└── ServerAnswerError   one question was not answered as it should be
"""

from __future__ import annotations

from typing import Literal

import msgspec

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


class ServerTool(msgspec.Struct, frozen=True):
    """A tool as its server lists it, cleaned and bounded."""

    name: str
    """As the server calls it."""

    description: str
    parameters: bytes
    """JSON schema of the arguments, an object, without references."""


class ToolListing(msgspec.Struct, frozen=True):
    """All tools of a server."""

    tools: tuple[ServerTool, ...] = ()
    left_out: tuple[str, ...] = ()
    """Why each further tool that it listed cannot be used."""


class ListTools(msgspec.Struct, frozen=True):
    """Ask a server which tools it has; the answer is a `Shelf`.

    Before its first start has come to an end, the answer waits for that.
    """


State = Literal["starting", "open", "down", "ended"]
"""`starting` for the first time; `open`; `down`, to be started again; `ended` for
good."""


class Shelf(msgspec.Struct, frozen=True):
    """What a server has to offer now."""

    state: State
    listing: ToolListing
    """As it was last known, also while the server is down."""

    reason: str = ""
    """Why it is not `open`, for a model or a person."""

    said: str = ""
    """What its program complained before it ended, for a person; its own words."""


class CallTool(msgspec.Struct, frozen=True):
    """Ask a server to run a tool; the answer is an `actors.messages.ToolResult`.

    The ask fails with `ToolError` if the server cannot run it, or does not answer.
    """

    number: int
    """By which `CancelCall` means it; unique in the process."""

    name: str
    """As the server calls it."""

    arguments: bytes
    """JSON text."""

    owner: str = ""
    """The person for whom it runs: whose share of the places it takes."""


class CancelCall(msgspec.Struct, frozen=True):
    """Tell a server that nobody waits for a call any more."""

    number: int


class SessionOpened(msgspec.Struct, frozen=True):
    """A session told its server: it stands, and these are the tools."""

    listing: ToolListing


class ToolsListed(msgspec.Struct, frozen=True):
    """A session told its server: these are the tools now."""

    listing: ToolListing


class SessionEnded(msgspec.Struct, frozen=True):
    """A session told its server: it has ended."""

    reason: str
    is_final: bool
    """Whether it is not started again."""

    said: str = ""
    """What its program complained at last, for a person; its own words."""
