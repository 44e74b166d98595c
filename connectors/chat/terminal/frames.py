"""What a terminal and its company send each other; pure but for streams.

Each frame is one line of JSON. Both ends are the same program; the first frame of each
names its release, so that a server that was not restarted after an upgrade is noticed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from actors.errors import ChatError
from actors.messages.deliveries import Draft

if TYPE_CHECKING:
    import trio

CHAT: Final = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
"""What a terminal's conversation may be called."""

MOST_FILE = 8_388_608
"""Bytes of the files that a person sends with one message."""

# Chosen: a file of the largest size in Base64, and the longest text besides.
MOST_FRAME = 16_777_216
"""Bytes of one frame; who sends more is disconnected."""

BLOCK = 65_536


class FrameTooLongError(ChatError):
    """The other end sent more than one frame may have, or no frame at all."""


class TerminalFile(msgspec.Struct, frozen=True):
    """A file that a person sends."""

    name: str
    content: bytes


class TerminalHello(msgspec.Struct, frozen=True, tag="hello"):
    """A terminal's first frame."""

    release: str
    chat: str = ""
    """Its conversation; empty: the first one at which no terminal is."""

    after: int = -1
    """The number of the last answer that it has; -1: the company knows."""

    user: str = ""
    """Name of the person; empty: as the settings say."""

    agent: str = ""
    """Whom messages are for; empty: routes decide."""


class TerminalSay(msgspec.Struct, frozen=True, tag="say"):
    """A person's message."""

    id: str
    """Of the terminal's making: sent again under the same one, it counts once."""

    text: str
    files: tuple[TerminalFile, ...] = ()


class TerminalHas(msgspec.Struct, frozen=True, tag="has"):
    """The terminal has shown all answers up to this number."""

    number: int


FromTerminal = TerminalHello | TerminalSay | TerminalHas


class ShownAgent(msgspec.Struct, frozen=True):
    """One agent, for banner and completion."""

    name: str
    shown: str
    description: str
    model: str


class TerminalWelcome(msgspec.Struct, frozen=True, tag="welcome"):
    """The company's first frame."""

    release: str
    chat: str
    after: int
    """Answers with a higher number follow."""

    user: str


class TerminalRoster(msgspec.Struct, frozen=True, tag="roster"):
    """Who is here and which commands there are; sent again when that changes."""

    agents: tuple[ShownAgent, ...]
    answers: str
    """Name of the agent that answers when nobody is named; empty: routes say."""

    commands: tuple[tuple[str, str], ...]
    """Word and meaning of each slash command."""


class TerminalTold(msgspec.Struct, frozen=True, tag="told"):
    """An answer or a notice."""

    number: int
    agent: str
    """Empty for a notice of the runtime."""

    shown: str
    """What people call the agent."""

    text: str
    correlation_id: str
    is_aside: bool = False
    reply_to: str = ""
    """The terminal's id of the message that it answers; empty: it answers none."""


class TerminalDraft(msgspec.Struct, frozen=True, tag="draft"):
    """A piece of an answer that is being written."""

    draft: Draft
    shown: str


class TerminalTyping(msgspec.Struct, frozen=True, tag="typing"):
    """An agent works at an answer, or has stopped."""

    shown: str
    is_over: bool


class TerminalTaken(msgspec.Struct, frozen=True, tag="taken"):
    """A message was stored; or was not, with the reason."""

    id: str
    correlation_id: str = ""
    """Of answers to it; empty if it was refused."""

    refused: str = ""
    is_final: bool = False
    """Whether it is useless to send it again."""


class TerminalSettled(msgspec.Struct, frozen=True, tag="settled"):
    """Nothing more will be said to a message."""

    id: str
    correlation_id: str
    reason: str
    """As in `Transport.settle`."""


class TerminalRefused(msgspec.Struct, frozen=True, tag="refused"):
    """The terminal is not let in."""

    why: str


FromCompany = (
    TerminalWelcome
    | TerminalRoster
    | TerminalTold
    | TerminalDraft
    | TerminalTyping
    | TerminalTaken
    | TerminalSettled
    | TerminalRefused
)

READS_TERMINAL: Final[msgspec.json.Decoder[FromTerminal]] = msgspec.json.Decoder(
    FromTerminal
)
READS_COMPANY: Final[msgspec.json.Decoder[FromCompany]] = msgspec.json.Decoder(
    FromCompany
)


async def send(stream: trio.abc.SendStream, frame: FromTerminal | FromCompany) -> None:
    """Send one frame.

    Raises:
        trio.BrokenResourceError: the other end has gone.
    """
    await stream.send_all(msgspec.json.encode(frame) + b"\n")


class FrameReader:
    """Reads lines from a stream.

    Args:
        stream: from the other end.
    """

    def __init__(self, stream: trio.abc.ReceiveStream) -> None:
        self._stream = stream
        self._rest = bytearray()

    async def line(self) -> bytes | None:
        """Wait for the next line; None: the other end has gone.

        Raises:
            FrameTooLongError: it is longer than any frame.
            trio.BrokenResourceError: the connection broke.
        """
        looked = 0
        while (at := self._rest.find(b"\n", looked)) < 0:
            looked = len(self._rest)
            if looked > MOST_FRAME:
                raise FrameTooLongError(f"a frame of more than {MOST_FRAME} bytes")
            block = await self._stream.receive_some(BLOCK)
            if not block:
                return None
            self._rest += block
        line = bytes(self._rest[:at])
        del self._rest[: at + 1]
        return line
