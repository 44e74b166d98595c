"""What a bot hears: its events, read from payloads, and on their way to the kernel.

`read` is pure and total: it gives a message, or why a payload is none. Edits are left
out: the agents may have begun with what stood there first, and an accepted message is
never changed. Whoever corrects an order writes it again.

Ids are snowflakes: they hold when they were made, so that they are places in time.
Source: developers' reference, "Snowflakes": milliseconds since 2015 in the upper 42 of
64 bits. They come as text, since JavaScript cannot hold them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import msgspec
import trio

from connectors.asyncio_bridge.bridge import Bridge, BridgeBusyError, BridgeClosedError
from connectors.chat.inbound import in_words, shown_name
from connectors.chat.requests import (
    Json,
    LinkedAttachment,
    table,
    tables,
    text,
    whole,
)

EPOCH_MS = 1_420_070_400_000
TIME_SHIFT = 22
LONGEST = 20
"""Digits of 64 bits."""


def at(seconds: float) -> int:
    """Return the first id of a moment (Unix seconds); 0 before there were any."""
    return max(0, int(seconds * 1000) - EPOCH_MS) << TIME_SHIFT


def seconds_of(snowflake: int) -> float:
    """Return when an id was made, in Unix seconds."""
    return ((snowflake >> TIME_SHIFT) + EPOCH_MS) / 1000


def span(seconds: float) -> int:
    """Return how far apart the ids of two moments are."""
    return int(seconds * 1000) << TIME_SHIFT


def number(text: str) -> int:
    """Read an id; 0 if it is none."""
    is_one = text.isascii() and text.isdigit() and len(text) <= LONGEST
    return int(text) if is_one else 0


class FileToSend(msgspec.Struct, frozen=True):
    """A file that goes with a message."""

    path: Path
    name: str
    media_type: str


class DiscordQuote(msgspec.Struct, frozen=True):
    """The message that another one replies to."""

    author: str
    author_name: str
    text: str
    files: tuple[LinkedAttachment, ...] = ()


class DiscordMessage(msgspec.Struct, frozen=True, kw_only=True):
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

    mentions_everyone: bool = False
    names: dict[str, str] = {}
    """How mentioned users are called, by id."""

    reply_to: str = ""
    quote: DiscordQuote | None = None
    files: tuple[LinkedAttachment, ...] = ()

    @property
    def all_files(self) -> tuple[LinkedAttachment, ...]:
        """What came with it, and in a server with what it replies to.

        Why not alone with somebody: there, an agent has that already.
        """
        quoted = self.quote.files if self.quote and self.guild else ()
        return (*self.files, *quoted)


class DiscordScene(msgspec.Struct, frozen=True, kw_only=True):
    """What the bots know of the channel of a message."""

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


class GatewayReady(msgspec.Struct, frozen=True):
    """All channels are known."""

    channels: tuple[Channel, ...]


class Resumed(msgspec.Struct, frozen=True):
    """The session goes on; what was missed is told again by Discord."""


class Parted(msgspec.Struct, frozen=True):
    """The connection is gone; discord.py makes a new one."""


class Came(msgspec.Struct, frozen=True):
    """A message was written."""

    message: Json
    scene: DiscordScene


class Changed(msgspec.Struct, frozen=True):
    """A message was edited, or Discord has shown where a link in it leads."""


class Removed(msgspec.Struct, frozen=True):
    """A message was deleted."""

    channel: str
    said: str


class Invoked(msgspec.Struct, frozen=True):
    """Somebody chose one of the bot's commands."""

    interaction: Json
    scene: DiscordScene


Event = Connected | GatewayReady | Resumed | Parted | Came | Changed | Removed | Invoked


Reason = Literal["own", "malformed", "system", "empty"]
"""Why a payload is no message for us: one of our own bots wrote it; it is not shaped as
it must be; Discord itself tells something (who joined, what was pinned); it says
nothing, as all do without the intent that do not speak to the bot."""

# Source: developers' reference, "Message Types": default, reply, and what an
# application says to a command.
SPOKEN = frozenset({0, 19, 20, 23})

FORWARD = 1
"""The type of a reference to a message that was passed on."""

MOST_FILES = 10
LONGEST_QUOTE = 2_000
"""Characters."""

POINTED = re.compile(r"<(@[!&]?|#)(\d{1,20})>")
EMOJI = re.compile(r"<a?(:\w{1,32}:)\d{1,20}>")


class DiscordSkipped(msgspec.Struct, frozen=True):
    """A payload that is no message for us."""

    reason: Reason


def read(payload: Json, ours: Mapping[str, str]) -> DiscordMessage | DiscordSkipped:
    """Say what a payload is.

    Args:
        ours: our agents by the ids of their bots.
    """
    author = table(payload.get("author"))
    message_id, writer = text(payload.get("id")), text(author.get("id"))
    channel = text(payload.get("channel_id"))
    if not (number(message_id) and number(writer) and number(channel)):
        return DiscordSkipped("malformed")
    if writer in ours:
        return DiscordSkipped("own")
    if whole(payload.get("type")) not in SPOKEN:
        return DiscordSkipped("system")
    said = words_of(payload)
    files = files_of(payload)
    if not said.strip() and not files:
        return DiscordSkipped("empty")
    member = table(payload.get("member"))
    reply_to, quote = reply_of(payload)
    mentioned = [each for each in tables(payload.get("mentions")) if is_id(each)]
    return DiscordMessage(
        id=message_id,
        channel=channel,
        guild=text(payload.get("guild_id")),
        author=writer,
        author_name=name_of(author, member),
        text=said,
        is_bot=author.get("bot") is True or bool(text(payload.get("webhook_id"))),
        mentions=tuple(text(each["id"]) for each in mentioned),
        mentions_everyone=payload.get("mention_everyone") is True,
        names={
            text(each["id"]): name_of(each, table(each.get("member")))
            for each in mentioned
        },
        reply_to=reply_to,
        quote=quote,
        files=files,
    )


def is_id(user: Json) -> bool:
    """Return whether a user has an id."""
    return number(text(user.get("id"))) > 0


def name_of(user: Json, member: Json) -> str:
    """Return how somebody is called: in this server, else everywhere."""
    for name in (member.get("nick"), user.get("global_name"), user.get("username")):
        said = shown_name(text(name))
        if said:
            return said
    return text(user.get("id"))


def words_of(payload: Json) -> str:
    """Return what a message says: words, what it passes on, stickers, and its poll.

    Programs often say all in embeds, which count where there are no words.
    """
    lines = [text(payload.get("content"))]
    reference = table(payload.get("message_reference"))
    if whole(reference.get("type")) == FORWARD:
        for snapshot in tables(payload.get("message_snapshots")):
            passed_on = text(table(snapshot.get("message")).get("content"))
            lines.append(f"[forwarded] {passed_on}" if passed_on else "")
    lines += [
        in_words("sticker", text(each.get("name")))
        for each in tables(payload.get("sticker_items"))
    ]
    if poll := table(payload.get("poll")):
        media = (table(each.get("poll_media")) for each in tables(poll.get("answers")))
        question = text(table(poll.get("question")).get("text"))
        lines.append(in_words("poll", question, *(text(x.get("text")) for x in media)))
    if not "".join(lines).strip():
        for embed in tables(payload.get("embeds"))[:MOST_FILES]:
            lines += [text(embed.get("title")), text(embed.get("description"))]
    return "\n".join(line for line in lines if line)


def files_of(payload: Json) -> tuple[LinkedAttachment, ...]:
    """Return what came with a message, or with what it passes on."""
    found = tables(payload.get("attachments"))
    for snapshot in tables(payload.get("message_snapshots")):
        found += tables(table(snapshot.get("message")).get("attachments"))
    return tuple(file_of(each) for each in found[:MOST_FILES])


def file_of(attachment: Json) -> LinkedAttachment:
    """Read an attachment."""
    media_type = text(attachment.get("content_type")).partition(";")[0].strip()
    main = media_type.partition("/")[0]
    return LinkedAttachment(
        kind="image" if main == "image" else "audio" if main == "audio" else "document",
        name=shown_name(text(attachment.get("filename"))),
        media_type=media_type,
        url=text(attachment.get("url")),
        size=max(0, whole(attachment.get("size"))),
    )


def reply_of(payload: Json) -> tuple[str, DiscordQuote | None]:
    """Return which message is replied to, and what it says."""
    reference = table(payload.get("message_reference"))
    reply_to = text(reference.get("message_id"))
    if not number(reply_to) or whole(reference.get("type")) == FORWARD:
        return "", None
    quoted = table(payload.get("referenced_message"))
    author = table(quoted.get("author"))
    if not is_id(author):
        return reply_to, None
    files = files_of(quoted)
    named = (in_words(file.kind, file.name) for file in files)
    said = words_of(quoted)[:LONGEST_QUOTE] or " ".join(named)
    name = name_of(author, table(quoted.get("member")))
    return reply_to, DiscordQuote(text(author["id"]), name, said, files)


def readable(
    words: str, said: DiscordMessage, scene: DiscordScene, ours: Mapping[str, str]
) -> str:
    """Write mentions as people see them: `@anna`, `#desk`, `:smile:`.

    Args:
        ours: our agents by the ids of their bots.
    """

    def named(match: re.Match[str]) -> str:
        sign, known = match[1], match[2]
        if sign == "#":
            return f"#{scene.names.get(f'#{known}', known)}"
        if sign == "@&":
            return f"@{scene.names.get(f'&{known}', known)}"
        return f"@{ours.get(known) or said.names.get(known, known)}"

    return EMOJI.sub(r"\1", POINTED.sub(named, words))


def command_of(interaction: Json) -> DiscordMessage | None:
    """Read the choice of a command as the words that it stands for; None: it is none.

    Source: developers' reference, "Interaction Structure": `member` in a server, else
    `user`.
    """
    member = table(interaction.get("member"))
    user = table(member.get("user")) or table(interaction.get("user"))
    data = table(interaction.get("data"))
    name, known = text(data.get("name")), text(interaction.get("id"))
    channel = text(interaction.get("channel_id"))
    is_whole = number(known) and number(channel) and is_id(user) and name
    if whole(interaction.get("type")) != 2 or not is_whole:
        return None
    given = [text(each.get("value")) for each in tables(data.get("options"))]
    return DiscordMessage(
        id=known,
        channel=channel,
        guild=text(interaction.get("guild_id")),
        author=text(user["id"]),
        author_name=name_of(user, member),
        text=" ".join([f"/{name}", *filter(None, given)]),
        is_bot=user.get("bot") is True,
    )


# Chosen: what a bot in a hundred busy channels hears in some seconds. More is not lost:
# it is fetched from the channels' histories.
MOST_EVENTS = 2_000


class EventQueue:
    """The queue from one bot's edge to its listener.

    Args:
        note_overrun: is told, on the kernel, of each message that found no room.
        most: events that may wait.
    """

    def __init__(
        self,
        bridge: Bridge,
        note_overrun: Callable[[], object],
        most: int,
    ) -> None:
        self._bridge = bridge
        self._note_overrun = note_overrun
        self._most = most
        self._send, self._receive = trio.open_memory_channel[Event](math.inf)
        self._is_bridge_full = False

    def hear(self, event: Event) -> None:
        """Take an event; on the edge, and never fails."""
        try:
            self._bridge.post_kernel(self._put, event)
        except BridgeBusyError:
            self._is_bridge_full = True
        except BridgeClosedError:
            pass  # it is read again from the history, by whoever comes next

    def _put(self, event: Event) -> None:
        if self._is_bridge_full:
            self._is_bridge_full = False
            self._note_overrun()
        # Only messages can be fetched later; all else is rare.
        if isinstance(event, Came) and self.waiting >= self._most:
            self._note_overrun()
        else:
            self._send.send_nowait(event)

    @property
    def waiting(self) -> int:
        """How many events wait."""
        return self._receive.statistics().current_buffer_used

    async def next(self) -> Event:
        """Return the next event."""
        return await self._receive.receive()
