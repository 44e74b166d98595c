"""The frames that client and server send each other; pure.

In: `hello`, `message`, `ack`, `ping`. Out: `welcome`, `message`, `received`, `lost`,
`draft`, `typing`, `settled`, `pong`, `error`. Whoever sends nothing but
`{"type": "message", "content": "..."}` is told nothing but such frames, and errors.
"""

from __future__ import annotations

import hashlib
import re

import msgspec

from actors.messages.deliveries import Draft, Typing
from connectors.chat.outbox import StoredAnswer
from runtime.store.text import why_no_json


class SocketError(Exception):
    """Base of what this connector raises itself."""


class FrameError(SocketError):
    """A frame is not taken.

    Args:
        code: one bounded word, for programs.
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


GOING, RESTARTED, TRY_LATER, NORMAL = 1001, 1012, 1013, 1000
MOVED = "moved"
"""Why a client goes whose chat another node works on by now."""

CODES = {
    "idle": NORMAL,
    "stopping": GOING,
    "store": TRY_LATER,
    "replaced": NORMAL,
    MOVED: RESTARTED,
    "full": TRY_LATER,
}
"""By why a client is let go: the code of the close."""

CLIENT = re.compile(r"[A-Za-z0-9._~-]{16,128}", re.ASCII)
"""What clients may call themselves: as long as what nobody guesses."""

LONGEST_ID = 128
LONGEST_NAME = 128
MOST_FILES = 10
"""With one message."""

CURE = 'send {"type": "message", "content": "..."}'


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """Who connects, and what it wants to be told; the first frame, or left out."""

    client: str = ""
    """An id of its own making, by which it is known when it comes back."""

    key: str = ""
    name: str = ""
    """What people call it."""

    agent: str = ""
    """Whom its messages are for, unless they say; empty: routes decide."""

    after: int = -1
    """The last message that it has; -1: what it was told before is known here."""

    drafts: bool = False
    typing: bool = False
    acks: bool = False
    """Whether it says itself what it has, by `ack`."""


class File(msgspec.Struct, frozen=True):
    """A picture or another file that comes with a message."""

    content: bytes
    """In base64 on the wire. The bytes say what it is."""

    name: str = ""


class Say(msgspec.Struct, frozen=True, tag="message"):
    """What somebody says."""

    content: str
    id: str = ""
    """Of its own making: sent again under the same one, it counts once."""

    agent: str = ""
    files: tuple[File, ...] = ()


class Ack(msgspec.Struct, frozen=True, tag="ack"):
    """The client has every message up to this one."""

    id: int


class Ping(msgspec.Struct, frozen=True, tag="ping"):
    """A client asks whether the server is there."""


Frame = Hello | Say | Ack | Ping
KNOWN = ("hello", "message", "ack", "ping")


class Tagged(msgspec.Struct, frozen=True):
    """What every frame has."""

    type: str


def read(text: str) -> Frame:
    """Read one frame.

    Raises:
        FrameError: it is none.
    """
    try:
        kind = msgspec.json.decode(text, type=Tagged).type
    except msgspec.ValidationError as error:
        raise FrameError("bad_frame", str(error), CURE) from error
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise FrameError(
            "bad_json", f"no JSON: {why_no_json(text, error)}", CURE
        ) from error
    if kind not in KNOWN:
        told = f"the type {kind[:40]!r} is not known"
        raise FrameError("unknown_type", told, f"known: {', '.join(KNOWN)}")
    try:
        frame: Frame = msgspec.json.decode(text, type=Frame)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise FrameError("bad_frame", str(error), CURE) from error
    check(frame)
    return frame


def check(frame: Frame) -> None:
    """Check what a type cannot say.

    Raises:
        FrameError: it does not hold.
    """
    match frame:
        case Say():
            if not (frame.content.strip() or frame.files):
                raise FrameError("empty", "the content is empty", CURE)
            if len(frame.files) > MOST_FILES or not all(x.content for x in frame.files):
                told = "too many files, or one without a byte"
                cure = f"send up to {MOST_FILES}, each as base64 in its content"
                raise FrameError("bad_files", told, cure)
            if len(frame.id) > LONGEST_ID:
                told = f"an id of {len(frame.id)} characters"
                raise FrameError("bad_id", told, f"{LONGEST_ID} are enough")
        case Hello():
            if frame.client and not CLIENT.fullmatch(frame.client):
                told = "the client's id is none, or can be guessed"
                cure = "take 16 to 128 of A-Z a-z 0-9 . _ ~ -, as of a UUID"
                raise FrameError("bad_client", told, cure)
            if len(frame.name) > LONGEST_NAME:
                told = f"a name of {len(frame.name)} characters"
                raise FrameError("bad_name", told, f"{LONGEST_NAME} are enough")
        case _:
            pass


def chat_of(client: str) -> str:
    """Name the conversation of a client.

    Why a digest: whoever knows the client's own id may read what is said to it, so it
    is neither stored nor logged.
    """
    return hashlib.sha256(f"callboard/client/{client}".encode()).hexdigest()[:32]


def welcome(client: str, chat: str, *, last: int, after: int, most: int) -> str:
    """Answer a `hello`."""
    return write(
        "welcome",
        client=client,
        you=chat,
        last=last,
        after=after,
        max_frame_bytes=most,
    )


def message(said: StoredAnswer) -> str:
    """Tell what was said."""
    told: dict[str, object] = {"content": said.text, "id": said.number}
    told |= {"agent": said.agent} if said.agent else {}
    told |= {"reply_to": said.reply_to} if said.reply_to else {}
    told |= {"trouble": said.trouble} if said.trouble else {}
    told |= {"aside": True} if said.is_aside else {}
    return write("message", **told)


def received(name: str, *, is_new: bool) -> str:
    """Tell that a message is stored."""
    return write("received", id=name, again=not is_new)


def lost(count: int) -> str:
    """Tell that older messages are not kept any more."""
    return write("lost", count=count)


def draft(draft: Draft, text: str) -> str:
    """Show a piece of an answer that is still being written, and where it begins."""
    turn, at = draft.turn_id, draft.begins_at
    return write("draft", agent=draft.agent, turn=turn, at=at, content=text)


def typing(typing: Typing) -> str:
    """Show that somebody is writing, or has ended."""
    return write("typing", agent=typing.agent, on=not typing.is_over)


def settled(name: str, reason: str) -> str:
    """Tell that nothing more will be said to a message."""
    return write("settled", id=name, reason=reason)


def pong() -> str:
    """Answer a `ping`."""
    return write("pong")


def error(fault: FrameError, name: str = "") -> str:
    """Tell what is wrong, and what to do."""
    told: dict[str, object] = {
        "code": fault.code,
        "message": fault.text,
        "do": fault.cure,
    }
    told |= {"id": name} if name else {}
    if fault.retry_after is not None:
        told["retry_after"] = fault.retry_after
    return write("error", **told)


def write(kind: str, **fields: object) -> str:
    """Write a frame."""
    return msgspec.json.encode({"type": kind, **fields}).decode()
