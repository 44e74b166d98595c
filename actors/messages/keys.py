"""Session keys: which conversation a message belongs to.

Pure. A session's key decides who shares a history with whom, so two conversations must
never get the same key. Chat ids may hold any character.
"""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import sha256
from typing import Literal

import msgspec

from actors.messages.inbound import Inbound

SessionScope = Literal["chat", "sender"]
"""In groups: one session for the whole chat and thread, or one for each sender."""

PARTITIONS = 256

_FIELDS = (5, 6)
_ESCAPED = re.compile(r"(?:[^~/]|~0|~1)*")


class SessionKey(msgspec.Struct, frozen=True):
    """The parts that identify one conversation."""

    agent: str
    connector: str
    chat: str
    thread: str = ""
    sender: str = ""
    """Empty when all senders of the chat share the session."""

    lane: str = ""
    """See `Inbound.lane`; left out of the text when empty."""

    @property
    def text(self) -> str:
        """The key in one line; different keys have different texts."""
        parts = msgspec.structs.astuple(self)
        parts = parts if self.lane else parts[:-1]
        text = "/".join(parts)
        if "~" not in text and text.count("/") == len(parts) - 1:
            return text  # mostly there is nothing to escape
        return "/".join(map(_escape, parts))


def session_key(inbound: Inbound, agent: str, scope: SessionScope) -> SessionKey:
    """Return the session of `agent` that a message belongs to.

    Args:
        agent: the agent that hears it.
        scope: matters only in groups; direct chats always have one session per sender.
    """
    by_sender = inbound.is_direct or scope == "sender"
    return SessionKey(
        agent=agent,
        connector=inbound.address.connector,
        chat=inbound.address.chat,
        thread=inbound.address.thread,
        sender=inbound.sender_id if by_sender else "",
        lane=inbound.lane,
    )


# Why kept: each message of a conversation is looked up by its key again.
@lru_cache(maxsize=1024)
def parse_key(text: str) -> SessionKey:
    """Parse the text of a session key.

    Raises:
        ValueError: `text` is not the text of a session key.
    """
    parts = text.split("/")
    is_whole = len(parts) in _FIELDS and (len(parts) == _FIELDS[0] or parts[-1])
    if not (is_whole and all(map(_ESCAPED.fullmatch, parts))):
        raise ValueError(
            f"{text!r} is not a session key; expected"
            " agent/connector/chat/thread/sender, perhaps with /lane, and ~1 for /"
            " and ~0 for ~"
        )
    return SessionKey(*map(_unescape, parts))


@lru_cache(maxsize=1024)
def partition(text: str) -> int:
    """Return the partition, 0 to 255, of a key's text; it never changes.

    Durable rows carry it, so the function must never change.
    """
    # Why: SHA-256 and not Python's hash, which differs from process to process; and
    # not a faster one, because every SQL engine can compute this one too.
    return sha256(text.encode("utf-8", "surrogatepass")).digest()[0]


@lru_cache(maxsize=1024)
def chat_partition(connector: str, chat: str) -> int:
    """Return the partition of all rows of a chat, which move between nodes together."""
    return partition(f"{connector}/{chat}")


_CHAT = "chat:"


def fact_partition(agent: str, scope: str) -> int:
    """Return the partition of what an agent remembers of a scope.

    A group's, or a member's in it, is that of its chat. What belongs to a person is
    read in many chats, and what an agent knows everywhere: these have their own.

    Args:
        scope: as `actors.memory.scopes` names it.
    """
    if not scope.startswith(_CHAT):
        return partition(f"{agent}/{scope}")
    connector, _, rest = scope.removeprefix(_CHAT).partition("/")
    return chat_partition(_unescape(connector), _unescape(rest.partition("/")[0]))


# Source: RFC 6901 (JSON Pointer) 3 and 4, including the order of replacements.
def _escape(part: str) -> str:
    return part.replace("~", "~0").replace("/", "~1")


def _unescape(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


def owner_of(inbound: Inbound) -> str:
    """Name whose share of places a message takes, where few are shared by many.

    One who hands in for many has one share: who the sender is, they say themselves.
    """
    return f"{inbound.address.connector}/{inbound.caller or inbound.sender_id}"


def account_of(inbound: Inbound) -> str:
    """Return the account of the message's sender, as `connector/sender_id`."""
    return f"{inbound.address.connector}/{inbound.sender_id}"
