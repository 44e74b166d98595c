"""Messages of the page, as they are stored and as HTML; pure.

Agents' Markdown is rendered in a dialect with safe tags only.
"""

from __future__ import annotations

import hashlib
import re
from html import escape
from typing import TYPE_CHECKING

import msgspec

from actors.messages.inbound import SentFile
from connectors.chat.markup.render import rendered_html
from connectors.web.history import ConnectorStore, MessageHistory
from connectors.web.page.chat.files import file_view
from connectors.web.page.words import SafeHtml

if TYPE_CHECKING:
    from actors.messages.deliveries import Delivery, Reaction
    from connectors.web.page.chat.hub import ChatParts


MOST_SHOWN = 20_000
"""Characters of a message that a chat shows; the whole text is a link away. A browser
draws a text of two million for seconds, each time that the chat is opened."""

MOST_SIGNS = 20
"""Reactions at one message; of more, the oldest is dropped."""


class PageMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message, as it reads now."""

    id: str
    """Its id; of an agent's message, also the receipt of its delivery."""

    chat: str
    at: int
    """When it was sent: Unix milliseconds, unique in its chat."""

    changed: int
    """When it last changed, likewise; tabs ask for the changes since a time."""

    author: str
    """The name of a person or an agent; empty: the runtime."""

    is_agent: bool = False
    text: str
    is_notice: bool = False
    trouble: str = ""
    reply_to: str = ""
    signs: tuple[tuple[str, str], ...] = ()
    """Agents, and the reaction of each."""

    is_gone: bool = False
    """Whether it was deleted."""

    file: SentFile | None = None
    """Its file; the bytes may be deleted sooner than the message."""

    files: tuple[SentFile, ...] = ()
    """The files of a person's message; likewise."""

    inbound: str = ""
    """The id under which a person's message was handed in."""

    approval: str = ""
    """The id of the approval that it asks for."""


PageHistory = MessageHistory[PageMessage]


def page_history(place: ConnectorStore) -> PageHistory:
    """Give the history of all chats of a page."""
    return MessageHistory(place, PageMessage, "page_message")


def own_id(person: str, chat: str, key: str) -> str:
    """Make the id of a person's message; the same key gives the same id."""
    return "p" + hashlib.sha256(f"{person}\n{chat}\n{key}".encode()).hexdigest()[:24]


def answer_id(delivery: Delivery) -> str:
    """Make the id of an agent's message; the same delivery gives the same id."""
    return "a" + hashlib.sha256(delivery.id.encode()).hexdigest()[:24]


def answer_of(delivery: Delivery, at: int, approval: str = "") -> PageMessage:
    """Make the message of a delivery, and of the approval that it asks for."""
    return PageMessage(
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
        approval=approval,
    )


def with_sign(message: PageMessage, reaction: Reaction) -> PageMessage:
    """Set the reaction of an agent at a message."""
    agent = reaction.agent
    gone = {(agent, reaction.instead_of), (agent, reaction.sign)}
    kept = tuple(each for each in message.signs if each not in gone)
    added = ((agent, reaction.sign),) if reaction.sign else ()
    return msgspec.structs.replace(message, signs=(*kept, *added)[-MOST_SIGNS:])


ALIGNED = re.compile(r'<(t[hd]) style="text-align:(left|center|right)">')
LINK = re.compile(r"<a href=")
OUTWARD = '<a target="_blank" rel="noopener noreferrer" href='


def message_html(text: str, *, is_agent: bool) -> SafeHtml:
    """Write the text of a message as HTML.

    People's text is shown as it is; agents write Markdown. The page's policy forbids
    the styles of aligned tables, so they become classes. The replacements are safe:
    every `<` of the text itself is escaped by then.

    Args:
        is_agent: whether an agent, or the runtime, wrote it.
    """
    html = rendered_html(text) if is_agent else ""
    if not html:
        return SafeHtml(f'<p class="as-is">{escape(text)}</p>')
    html = ALIGNED.sub(r'<\1 class="align-\2">', html)
    return SafeHtml(LINK.sub(OUTWARD, html))


def message_values(
    message: PageMessage, chat: ChatParts, *, is_writing: bool
) -> dict[str, object]:
    """Give the values of the template `message.html`. Called in threads.

    Args:
        chat: has the bytes of files, and knows which approvals are open.
        is_writing: whether it is still being written.
    """
    blobs = chat.blobs
    own = () if message.file is None else (message.file,)
    html = message_html(message.text[:MOST_SHOWN], is_agent=message.is_agent)
    return {
        "message": message,
        "html": html,
        "is_cut": len(message.text) > MOST_SHOWN,
        "is_writing": is_writing,
        "enclosed": [
            file_view(message.id, index, file, blobs)
            for index, file in enumerate((*own, *message.files))
        ],
        "asks": message.approval if chat.is_open(message.approval) else "",
    }
