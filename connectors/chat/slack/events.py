"""What Slack tells of: a message, a command, or why it is none; pure and total.

Edits are left out: the agents may have begun with what stood there first, and what was
accepted is never changed. Whoever corrects an order writes it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from connectors.chat.buttons import command_of
from connectors.chat.loose_json import Json, table, tables, text, whole
from connectors.chat.shown_name import shown_name
from connectors.chat.slack.moments import is_channel, is_ts, message_id
from connectors.chat.slack.words import calls_everybody, named

Reason = Literal[
    "own",
    "malformed",
    "edit",
    "deleted",
    "state",
    "reaction",
    "unknown",
    "unknown_button",
    "empty",
]
"""Why an event is no message: one of our own apps wrote it (`own`); it is not shaped as
it must be; it changes a message, or takes it away; it tells of the channel; it reacts
to a message; nobody has told us of its kind; a button stands for nothing; it says
nothing."""

# Source: docs.slack.dev, "message" event, subtypes. All others tell of the channel.
SPOKEN = frozenset(
    {"", "bot_message", "file_share", "me_message", "thread_broadcast", "file_comment"}
)
SKIPPED: dict[str, Reason] = {
    "message_changed": "edit",
    "message_deleted": "deleted",
    "message_replied": "state",
}

LONGEST_ID = 64
LONGEST_TEXT = 40_000
"""Characters; Slack cuts what is longer."""

MOST_FILES = 10
"""Files of one message that are looked at; Slack shows no more."""

SLACKBOT = "USLACKBOT"


class File(msgspec.Struct, frozen=True):
    """What came with a message, still at Slack."""

    kind: Literal["image", "audio", "document"]
    name: str
    media_type: str
    url: str
    """Where an app may fetch it; empty: it cannot be had."""

    size: int
    """Bytes, as Slack says; 0 if it does not."""


class Spoken(msgspec.Struct, frozen=True, kw_only=True):
    """One message, or command, of a person or of another program."""

    id: str
    """Under which it is known here: `C1/1741234567.000100`."""

    channel: str
    ts: str
    """When it was said; empty: a command, which is no message there."""

    sender: str
    text: str
    """As Slack wrote it, or a command as it is read here."""

    thread: str = ""
    """The `ts` of the message whose thread it is in."""

    answers: str = ""
    """Who wrote that message, as far as Slack says."""

    is_direct: bool = False
    is_bot: bool = False
    is_command: bool = False
    """Whether it was given by a slash, or by a button that stands for one."""

    is_me: bool = False
    """Whether it tells of its sender, as `/me waves`."""

    sender_name: str = ""
    """As the message itself says; empty: it is to be looked up."""

    mentions: tuple[str, ...] = ()
    """Agents, by name."""

    mentions_all: bool = False
    files: tuple[File, ...] = ()


class Skipped(msgspec.Struct, frozen=True):
    """No message for us."""

    reason: Reason


class Ours(msgspec.Struct, frozen=True):
    """By what our own apps are known in a workspace."""

    users: Mapping[str, str]
    """Agents by the ids of their apps' users."""

    bots: frozenset[str] = frozenset()
    """The ids that mark what they say."""


def read(event: Json, ours: Ours) -> Spoken | Skipped:
    """Say what an event is.

    Args:
        event: as it stands inside of what Slack sends, or in a channel's history with
            the channel added.
        ours: our own apps.
    """
    kind = text(event.get("type"))
    if kind not in {"message", "app_mention"}:
        return Skipped(reason_of(kind))
    subtype = text(event.get("subtype"))
    if subtype not in SPOKEN:
        return Skipped(SKIPPED.get(subtype, "state"))
    channel, ts = text(event.get("channel")), text(event.get("ts"))
    bot = text(event.get("bot_id"))
    sender = text(event.get("user")) or bot
    if not (is_channel(channel) and is_ts(ts) and is_id(sender)):
        return Skipped("malformed")
    if sender in ours.users or bot in ours.bots:
        return Skipped("own")
    return read_message(event, ours)


def reason_of(kind: str) -> Reason:
    """Say why an event of this type is left out."""
    if kind in {"reaction_added", "reaction_removed"}:
        return "reaction"
    return "state" if kind.startswith(("member_", "channel_", "group_")) else "unknown"


def is_id(value: str) -> bool:
    """Tell whether this is an id that can be stored, and asked for."""
    return 0 < len(value) <= LONGEST_ID and value.isascii() and value.isalnum()


def read_message(event: Json, ours: Ours) -> Spoken | Skipped:
    """Read a message that somebody else wrote."""
    channel, ts = text(event.get("channel")), text(event.get("ts"))
    words = text(event.get("text"))[:LONGEST_TEXT] or beside(event)
    files = read_files(event)
    if not words.strip() and not files:
        return Skipped("empty")
    bot, sender = text(event.get("bot_id")), text(event.get("user"))
    thread = text(event.get("thread_ts"))
    called = named(words)
    profile = table(event.get("bot_profile"))
    return Spoken(
        id=message_id(channel, ts),
        channel=channel,
        ts=ts,
        sender=sender or bot,
        text=words,
        # The first of a thread says so of itself as soon as somebody has answered.
        thread=thread if is_ts(thread) and thread != ts else "",
        answers=text(event.get("parent_user_id")),
        is_direct=event.get("channel_type") == "im" or channel.startswith("D"),
        is_bot=bool(bot) or sender == SLACKBOT,
        is_me=event.get("subtype") == "me_message",
        sender_name=shown_name(
            text(event.get("username")) or text(profile.get("name"))
        ),
        mentions=tuple(agent for user, agent in ours.users.items() if user in called),
        mentions_all=calls_everybody(words),
        files=files,
    )


def beside(event: Json) -> str:
    """Give what stands beside a message without words, as other programs write."""
    found = (
        text(each.get("fallback")) or text(each.get("text"))
        for each in tables(event.get("attachments"))
    )
    return "\n".join(each for each in found if each)[:LONGEST_TEXT]


def read_files(event: Json) -> tuple[File, ...]:
    """Read where the files are that came with a message."""
    return tuple(read_file(each) for each in tables(event.get("files"))[:MOST_FILES])


def read_file(said: Json) -> File:
    """Read where one file is."""
    media_type = shown_name(text(said.get("mimetype")))
    is_here = text(said.get("mode")) not in {"tombstone", "hidden_by_limit", "external"}
    url = text(said.get("url_private_download")) or text(said.get("url_private"))
    head = media_type.partition("/")[0]
    return File(
        kind="image" if head == "image" else "audio" if head == "audio" else "document",
        name=shown_name(text(said.get("name")) or text(said.get("title"))),
        media_type=media_type,
        url=url if is_here else "",
        size=max(0, whole(said.get("size"))),
    )


def read_command(payload: Json, agent: str, command: str) -> Spoken | Skipped:
    """Read a slash command.

    Args:
        payload: as Slack sends it.
        agent: whose app it was given to.
        command: the one whose text is itself a command.
    """
    channel, sender = text(payload.get("channel_id")), text(payload.get("user_id"))
    trigger, called = text(payload.get("trigger_id")), text(payload.get("command"))
    is_whole = is_channel(channel) and is_id(sender) and called.startswith("/")
    if not (is_whole and trigger and len(trigger) <= 100 and trigger.isprintable()):
        return Skipped("malformed")
    rest = text(payload.get("text")).strip()[:LONGEST_TEXT]
    if called == command:
        said = f"/{rest.removeprefix('/') or 'help'}"
    else:
        said = f"{called} {rest}".strip()
    return Spoken(
        id=f"{channel}/command-{trigger}",
        channel=channel,
        ts="",
        sender=sender,
        text=said,
        is_direct=channel.startswith("D"),
        is_command=True,
        sender_name=shown_name(text(payload.get("user_name"))),
        mentions=(agent,),
    )


def read_pressed(payload: Json, agent: str) -> Spoken | Skipped:
    """Read a button that was pressed, as the command that it stands for.

    Args:
        payload: as Slack tells of it; source: docs.slack.dev, "block_actions payload".
        agent: whose app the button is.
    """
    if payload.get("type") != "block_actions":
        return Skipped("unknown")
    channel, user = text(table(payload.get("channel")).get("id")), payload.get("user")
    sender, trigger = text(table(user).get("id")), text(payload.get("trigger_id"))
    is_whole = is_channel(channel) and is_id(sender)
    if not (is_whole and trigger and len(trigger) <= 100 and trigger.isprintable()):
        return Skipped("malformed")
    said = [text(each.get("value")) for each in tables(payload.get("actions"))[:1]]
    command = command_of("".join(said))
    if not command:
        return Skipped("unknown_button")
    message = table(payload.get("message"))
    thread = text(message.get("thread_ts"))
    return Spoken(
        id=f"{channel}/button-{trigger}",
        channel=channel,
        ts="",
        sender=sender,
        text=command,
        thread=thread if is_ts(thread) else "",
        is_direct=channel.startswith("D"),
        is_command=True,
        sender_name=shown_name(text(table(user).get("username"))),
        mentions=(agent,),
    )
