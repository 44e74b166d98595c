"""What Slack tells of: a message, a command, or why it is none; pure and total.

Edits are left out: the agents may have begun with what stood there first, and what was
accepted is never changed. Whoever corrects an order writes it again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

from connectors.chat.inbound import PlatformFile, shown_name
from connectors.chat.markup.dialect import command_of
from connectors.chat.requests import Json, table, tables, text, whole

TS = re.compile(r"\d{1,12}\.\d{6}")
CHANNEL = re.compile(r"[CDG][A-Z0-9]{1,30}")

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's, in which our ids are written."""

START = "0000000000.000000"
"""Before all messages."""


def is_ts(value: str) -> bool:
    """Return whether this names a moment."""
    return TS.fullmatch(value) is not None


def is_channel(value: str) -> bool:
    """Return whether this can be the id of a channel, a direct chat or a group."""
    return CHANNEL.fullmatch(value) is not None


def order(ts: str) -> tuple[int, int]:
    """Return what sorts moments."""
    seconds, _, rest = ts.partition(".")
    return int(seconds), int(rest)


def at(seconds: float) -> str:
    """Return the name of a moment in Unix seconds."""
    return f"{max(0.0, seconds):.6f}"


def message_id(channel: str, ts: str) -> str:
    """Make the id under which a message is known here."""
    return f"{channel}/{ts}"


def taken_apart(message: str) -> tuple[str, str]:
    """Return the channel and the `ts` of a message's id; both empty if it is none.

    What a slash command says is no message there, and has an id of another shape.
    """
    channel, _, ts = message.partition("/")
    return (channel, ts) if is_channel(channel) and is_ts(ts) else ("", "")


def made_at(our_id: str) -> float:
    """Read when one of our ids was made, in Unix seconds; 0.0 if it does not say.

    Source: ULID; the first ten characters count milliseconds.
    """
    head = our_id[:10].upper()
    if len(head) < 10 or any(each not in ALPHABET for each in head):
        return 0.0
    milliseconds = 0
    for each in head:
        milliseconds = milliseconds * 32 + ALPHABET.index(each)
    return milliseconds / 1000


class Mark:
    """The moment up to which all messages of an account were submitted.

    Messages of several channels come in beside each other; the mark stands before the
    oldest that is not in yet, and only goes forward.
    """

    def __init__(self, ts: str = START) -> None:
        self.ts = ts
        self._open: set[str] = set()
        self._newest = ts

    def begin(self, ts: str) -> None:
        """Note that a message is being brought in.

        Until `end` it stays so, even if it is left: it comes again, and the mark goes
        no further before it has.
        """
        if order(ts) > order(self.ts):
            self._open.add(ts)

    def end(self, ts: str) -> None:
        """Note that a message is in, or that nobody needs it."""
        self._open.discard(ts)
        self._newest = max(self._newest, ts, key=order)
        self._move()

    def _move(self) -> None:
        if not self._open:
            self.ts = max(self.ts, self._newest, key=order)
            return
        oldest = min(self._open, key=order)
        done = [self._newest, before(oldest)]
        reached = min(done, key=order)
        self.ts = max(self.ts, reached, key=order)


def before(ts: str) -> str:
    """Return the moment right before another."""
    seconds, rest = order(ts)
    if rest:
        return f"{seconds:010}.{rest - 1:06}"
    return f"{max(0, seconds - 1):010}.999999"


def after(ts: str) -> str:
    """Return the moment right after another."""
    seconds, rest = order(ts)
    if rest < 999_999:
        return f"{seconds:010}.{rest + 1:06}"
    return f"{seconds + 1:010}.000000"


MARK = re.compile(r"<([^<>\n]{1,4000})>")
USER = re.compile(r"<@([UW][A-Z0-9]{1,30})(?:\|[^<>\n]{0,200})?>")

MOST_NAMED = 50
"""People in one message whose names are looked up."""

EVERYBODY = frozenset({"here", "channel", "everyone"})


def named(text: str) -> tuple[str, ...]:
    """Return the ids of the people whom a text mentions, each once."""
    return tuple(dict.fromkeys(USER.findall(text)))[:MOST_NAMED]


def calls_everybody(text: str) -> bool:
    """Return whether a text calls all who are there."""
    return any(f"<!{each}" in text for each in EVERYBODY)


def plain(text: str, name_of: Callable[[str], str]) -> str:
    """Write a text as it reads on the screen.

    Args:
        name_of: gives a person's name by their id; empty: it is not known.
    """
    said = MARK.sub(lambda found: read_mark(found[1], name_of), text)
    # In this order: what was written as `&amp;lt;` is no bracket.
    return said.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def read_mark(inside: str, name_of: Callable[[str], str]) -> str:
    """Write what stands in one pair of brackets."""
    target, _, label = inside.partition("|")
    match target[:1]:
        case "@":
            return f"@{name_of(target[1:]) or label or target[1:]}"
        case "#":
            return f"#{label or target[1:]}"
        case "!":
            return called(target[1:], label)
        case _:
            return link(target, label)


def called(target: str, label: str) -> str:
    """Write what calls many, or is shown in everybody's own way."""
    kind, _, rest = target.partition("^")
    if kind == "subteam":
        return f"@{label.lstrip('@') or rest}"
    return label or (f"@{kind}" if kind in EVERYBODY else kind)


def link(target: str, label: str) -> str:
    """Write a link."""
    shown = target.removeprefix("mailto:").removeprefix("tel:")
    bare = target.partition("://")[2]
    if not label or label in {target, shown, bare, bare.rstrip("/")}:
        return shown
    return f"{label} ({shown})"


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


class SlackFile(PlatformFile, frozen=True):
    """A file of a message, still at Slack."""

    url: str
    """Where an app may fetch it; empty: it cannot be had."""

    size: int
    """Bytes, as Slack says; 0 if it does not."""


class SlackMessage(msgspec.Struct, frozen=True, kw_only=True):
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

    response_url: str = ""
    """Of a slash command: where it may be answered; empty: in the channel only."""

    is_me: bool = False
    """Whether it tells of its sender, as `/me waves`."""

    sender_name: str = ""
    """As the message itself says; empty: it is to be looked up."""

    mentions: tuple[str, ...] = ()
    """Agents, by name."""

    mentions_all: bool = False
    files: tuple[SlackFile, ...] = ()


class SlackSkipped(msgspec.Struct, frozen=True):
    """An event that is no message for us."""

    reason: Reason


class Ours(msgspec.Struct, frozen=True):
    """The ids by which a workspace knows our own apps."""

    users: Mapping[str, str]
    """Agents by the ids of their apps' users."""

    bots: frozenset[str] = frozenset()
    """The ids that mark what they say."""


def read(event: Json, ours: Ours) -> SlackMessage | SlackSkipped:
    """Say what an event is.

    Args:
        event: as it stands inside of what Slack sends, or in a channel's history with
            the channel added.
    """
    kind = text(event.get("type"))
    if kind not in {"message", "app_mention"}:
        return SlackSkipped(reason_of(kind))
    subtype = text(event.get("subtype"))
    if subtype not in SPOKEN:
        return SlackSkipped(SKIPPED.get(subtype, "state"))
    channel, ts = text(event.get("channel")), text(event.get("ts"))
    bot = text(event.get("bot_id"))
    sender = text(event.get("user")) or bot
    if not (is_channel(channel) and is_ts(ts) and is_id(sender)):
        return SlackSkipped("malformed")
    if sender in ours.users or bot in ours.bots:
        return SlackSkipped("own")
    return read_message(event, ours)


def reason_of(kind: str) -> Reason:
    """Say why an event of this type is left out."""
    if kind in {"reaction_added", "reaction_removed"}:
        return "reaction"
    return "state" if kind.startswith(("member_", "channel_", "group_")) else "unknown"


def is_id(value: str) -> bool:
    """Return whether this is an id that can be stored, and asked for."""
    return 0 < len(value) <= LONGEST_ID and value.isascii() and value.isalnum()


def read_message(event: Json, ours: Ours) -> SlackMessage | SlackSkipped:
    """Read a message that somebody else wrote."""
    channel, ts = text(event.get("channel")), text(event.get("ts"))
    words = text(event.get("text"))[:LONGEST_TEXT] or beside(event)
    files = read_files(event)
    if not words.strip() and not files:
        return SlackSkipped("empty")
    bot, sender = text(event.get("bot_id")), text(event.get("user"))
    thread = text(event.get("thread_ts"))
    called = named(words)
    profile = table(event.get("bot_profile"))
    return SlackMessage(
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
    """Return what stands beside a message without words, as other programs write."""
    found = (
        text(each.get("fallback")) or text(each.get("text"))
        for each in tables(event.get("attachments"))
    )
    return "\n".join(each for each in found if each)[:LONGEST_TEXT]


def read_files(event: Json) -> tuple[SlackFile, ...]:
    """Read where the files are that came with a message."""
    return tuple(read_file(each) for each in tables(event.get("files"))[:MOST_FILES])


def read_file(said: Json) -> SlackFile:
    """Read where one file is."""
    media_type = shown_name(text(said.get("mimetype")))
    is_here = text(said.get("mode")) not in {"tombstone", "hidden_by_limit", "external"}
    url = text(said.get("url_private_download")) or text(said.get("url_private"))
    head = media_type.partition("/")[0]
    return SlackFile(
        kind="image" if head == "image" else "audio" if head == "audio" else "document",
        name=shown_name(text(said.get("name")) or text(said.get("title"))),
        media_type=media_type,
        url=url if is_here else "",
        size=max(0, whole(said.get("size"))),
    )


def read_command(
    payload: Json, agent: str, command: str
) -> SlackMessage | SlackSkipped:
    """Read a slash command.

    Args:
        agent: whose app it was given to.
        command: the one whose text is itself a command.
    """
    channel, sender = text(payload.get("channel_id")), text(payload.get("user_id"))
    trigger, called = text(payload.get("trigger_id")), text(payload.get("command"))
    is_whole = is_channel(channel) and is_id(sender) and called.startswith("/")
    if not (is_whole and trigger and len(trigger) <= 100 and trigger.isprintable()):
        return SlackSkipped("malformed")
    rest = text(payload.get("text")).strip()[:LONGEST_TEXT]
    if called == command:
        said = f"/{rest.removeprefix('/') or 'help'}"
    else:
        said = f"{called} {rest}".strip()
    return SlackMessage(
        id=f"{channel}/command-{trigger}",
        channel=channel,
        ts="",
        sender=sender,
        text=said,
        is_direct=channel.startswith("D"),
        is_command=True,
        response_url=text(payload.get("response_url")),
        sender_name=shown_name(text(payload.get("user_name"))),
        mentions=(agent,),
    )


def read_pressed(payload: Json, agent: str) -> SlackMessage | SlackSkipped:
    """Read a button that was pressed, as the command that it stands for.

    Args:
        payload: as Slack tells of it; source: docs.slack.dev, "block_actions payload".
        agent: whose app the button is.
    """
    if payload.get("type") != "block_actions":
        return SlackSkipped("unknown")
    channel, user = text(table(payload.get("channel")).get("id")), payload.get("user")
    sender, trigger = text(table(user).get("id")), text(payload.get("trigger_id"))
    is_whole = is_channel(channel) and is_id(sender)
    if not (is_whole and trigger and len(trigger) <= 100 and trigger.isprintable()):
        return SlackSkipped("malformed")
    said = [text(each.get("value")) for each in tables(payload.get("actions"))[:1]]
    command = command_of("".join(said))
    if not command:
        return SlackSkipped("unknown_button")
    message = table(payload.get("message"))
    thread = text(message.get("thread_ts"))
    return SlackMessage(
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


def next_cursor(answer: Json) -> str:
    """Return where the next page begins; empty: there is none."""
    return text(table(answer.get("response_metadata")).get("next_cursor"))
