"""Submits the messages of clients, and tells them what went wrong."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import pykka

from actors.errors import (
    NOT_STORED,
    ChatError,
    MessageRefusedError,
    OverloadedError,
    SenderRefusedError,
    StoppingError,
)
from actors.messages.inbound import Address, Inbound
from connectors.chat.websocket.errors import FrameError
from runtime.errors import KernelError, StoreError

if TYPE_CHECKING:
    from connectors.chat.websocket.frames import Hello, Say
    from connectors.chat.websocket.shared import SocketShared

NOT_TAKEN = (ChatError, KernelError, pykka.ActorDeadError, pykka.Timeout)
"""What submitter a message in may raise; anything else is a bug."""

MINUTE = 60.0
RETRY_SOON, RETRY_LATER = 2.0, 10.0
AGAIN = "send it again, under the same id"


class ClientPace:
    """How many messages came of late; pure.

    Args:
        most: of them in a minute; 0: any.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._times: deque[float] = deque(maxlen=most or 1)

    def wait(self, now: float) -> float:
        """Count a message; give seconds to wait if it is one too many, else 0."""
        is_full = self._most and len(self._times) == self._most
        if is_full and now - self._times[0] < MINUTE:
            return self._times[0] + MINUTE - now
        self._times.append(now)
        return 0.0


async def submit(say: Say, hello: Hello, chat: str, shared: SocketShared) -> bool:
    """Have a message stored; False: it was before.

    Raises:
        FrameError: it was not taken.
    """
    inbound = inbound_of(say, hello, chat, shared)
    known = shared.agents()
    if inbound.agent and inbound.agent not in known:
        told = f"there is no agent {inbound.agent[:64]!r}"
        raise FrameError("unknown_agent", told, f"known: {', '.join(known)}")
    shared.note(inbound.id, chat, say.id)
    try:
        return await shared.ingress.accept(inbound)
    except NOT_TAKEN as error:
        raise fault_of(error) from error


def inbound_of(say: Say, hello: Hello, chat: str, shared: SocketShared) -> Inbound:
    """Return the inbound message of a client's frame."""
    name = f"={say.id}" if say.id else shared.ids.new()
    return Inbound(
        id=shared.ids.new(),
        platform="websocket",
        platform_id=f"{chat}/{name}",
        address=Address(shared.connector, chat),
        sender_id=chat,
        sender_name=hello.name or "user",
        text=say.content,
        received_at=shared.clock.wall(),
        agent=say.agent or hello.agent,
        wants_drafts=hello.drafts,
    )


def fault_of(error: Exception) -> FrameError:
    """Say to a client why its message was not taken."""
    text = str(error)
    match error:
        case SenderRefusedError():
            cure = "ask whoever runs this to let you in, by the name in `welcome.you`"
            return FrameError("not_admitted", text, cure)
        case MessageRefusedError():
            return FrameError("refused", text, "say it otherwise")
        case OverloadedError():
            return FrameError("busy", text, AGAIN, RETRY_SOON)
        case StoppingError():
            return FrameError("stopping", text, AGAIN, RETRY_LATER)
        case StoreError():
            return FrameError("unavailable", NOT_STORED, AGAIN, RETRY_LATER)
        case _:
            return FrameError("unavailable", text, AGAIN, RETRY_LATER)


def too_fast(most: int, wait: float) -> FrameError:
    """Say that too much comes."""
    told = f"more than {most} messages in a minute"
    return FrameError("too_fast", told, AGAIN, round(wait, 1))
