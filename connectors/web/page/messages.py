"""What was said on the page, one message each; pure."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from actors.messages import SentFile

if TYPE_CHECKING:
    from actors.deliveries import Delivery, Reaction

MOST_SIGNS = 20
"""Signs at one message; of more, the first goes."""


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message, as it reads now."""

    id: str
    """The platform's id, and the receipt of whoever said it."""

    chat: str
    at: int
    """When it was said: Unix milliseconds, of which no two in a chat are the same."""

    changed: int
    """When it came to read so; likewise. What has changed since is what is told."""

    author: str
    """Name of the person or the agent; empty: the runtime."""

    is_agent: bool = False
    text: str
    is_notice: bool = False
    trouble: str = ""
    reply_to: str = ""
    signs: tuple[tuple[str, str], ...] = ()
    """Agents, and the sign that each has put."""

    is_gone: bool = False
    """Whether it was taken away."""

    file: SentFile | None = None
    """What came with it; its bytes may be gone sooner than the message."""


def own_id(person: str, chat: str, key: str) -> str:
    """Name what somebody says; the same key is the same message.

    Args:
        person: who.
        chat: where.
        key: made up by their browser.
    """
    return "p" + hashlib.sha256(f"{person}\n{chat}\n{key}".encode()).hexdigest()[:24]


def answer_id(delivery: Delivery) -> str:
    """Name what is delivered; the same delivery is the same message."""
    return "a" + hashlib.sha256(delivery.id.encode()).hexdigest()[:24]


def answer(delivery: Delivery, at: int) -> Message:
    """Make the message that a delivery comes to."""
    return Message(
        id=answer_id(delivery),
        chat=delivery.address.chat,
        at=at,
        changed=at,
        author=delivery.agent,
        is_agent=True,
        text=delivery.text,
        is_notice=delivery.kind != "reply" or delivery.is_aside,
        trouble=delivery.trouble,
        reply_to=delivery.reply_to,
        file=delivery.file,
    )


def with_sign(message: Message, reaction: Reaction) -> Message:
    """Put a sign at a message, in place of the other one of the same agent."""
    agent = reaction.agent
    gone = {(agent, reaction.instead_of), (agent, reaction.sign)}
    kept = tuple(each for each in message.signs if each not in gone)
    added = ((agent, reaction.sign),) if reaction.sign else ()
    return msgspec.structs.replace(message, signs=(*kept, *added)[-MOST_SIGNS:])
