"""What crosses from the edge to the kernel: what a bot hears, and where; frozen."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from connectors.chat.loose_json import Json


class Brought(msgspec.Struct, frozen=True):
    """A file that goes with a message."""

    path: Path
    name: str
    media_type: str


class File(msgspec.Struct, frozen=True):
    """What came with a message, still with Discord; its address ends after a day."""

    kind: Literal["image", "audio", "document"]
    name: str
    media_type: str
    url: str
    size: int
    """Bytes; 0: Discord does not say."""


class Quote(msgspec.Struct, frozen=True):
    """The message that another one replies to."""

    author: str
    author_name: str
    text: str


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a person, or of a program that is none of ours."""

    id: str
    channel: str
    """Where it was said; a thread has an id of its own."""

    guild: str
    """Empty: said to one bot alone."""

    author: str
    author_name: str
    text: str
    """As Discord writes it: `<@1>` for a mention."""

    is_bot: bool = False
    mentions: tuple[str, ...] = ()
    """Ids of users."""

    role_mentions: tuple[str, ...] = ()
    mentions_everyone: bool = False
    names: dict[str, str] = {}
    """How mentioned users are called, by id."""

    author_roles: tuple[str, ...] = ()
    reply_to: str = ""
    quote: Quote | None = None
    files: tuple[File, ...] = ()


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """What the bots know of where something was said."""

    is_known: bool = False
    """Whether the channel is known at all; a thread that was asleep is not."""

    parent: str = ""
    """The channel that a thread belongs to; empty: it is no thread."""

    name: str = ""
    guild_name: str = ""
    present: tuple[str, ...] = ()
    """Agents whose bots can read there."""

    called: tuple[str, ...] = ()
    """Agents whose bot's own role was mentioned."""

    roles: tuple[str, ...] = ()
    """What its author is there: `admin`, `moderator`, `role:<id>`."""

    names: dict[str, str] = {}
    """How mentioned channels and roles are called, as `#1` and `&1`."""


class Channel(msgspec.Struct, frozen=True):
    """One channel that a bot can read."""

    id: str
    last: int
    """The id of its last message; 0: nobody knows."""

    guild: str = ""
    since: int = 0
    """The id of the moment when the bot came there."""


class Connected(msgspec.Struct, frozen=True):
    """A new session has begun: what was said between the two is missing."""

    user: str


class Ready(msgspec.Struct, frozen=True):
    """All channels are known."""

    channels: tuple[Channel, ...]


class Resumed(msgspec.Struct, frozen=True):
    """The session goes on; what was missed is told again by Discord."""


class Parted(msgspec.Struct, frozen=True):
    """The connection is gone; discord.py makes a new one."""


class Came(msgspec.Struct, frozen=True):
    """Somebody said something."""

    message: Json
    scene: Scene


class Changed(msgspec.Struct, frozen=True):
    """A message was edited, or Discord has shown where a link in it leads."""


class Invoked(msgspec.Struct, frozen=True):
    """Somebody chose one of the bot's commands."""

    interaction: Json
    scene: Scene


Event = Connected | Ready | Resumed | Parted | Came | Changed | Invoked
