"""What a message's payload says; pure and total: a message, or why it is none.

Edits are left out: the agents may have begun with what stood there first, and what
was accepted is never changed. Whoever corrects an order writes it again.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec

from connectors.chat.discord.snowflakes import number
from connectors.chat.discord.wire import File, Quote, Said, Scene
from connectors.chat.loose_json import Json, table, tables, text, texts, whole
from connectors.chat.shown_name import shown_name

if TYPE_CHECKING:
    from collections.abc import Mapping

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


class Skipped(msgspec.Struct, frozen=True):
    """No message for us."""

    reason: Reason


def read(payload: Json, ours: Mapping[str, str]) -> Said | Skipped:
    """Say what a payload is.

    Args:
        payload: as the gateway, or the history of a channel, gave it.
        ours: our agents by the ids of their bots.
    """
    author = table(payload.get("author"))
    message_id, writer = text(payload.get("id")), text(author.get("id"))
    channel = text(payload.get("channel_id"))
    if not (number(message_id) and number(writer) and number(channel)):
        return Skipped("malformed")
    if writer in ours:
        return Skipped("own")
    if whole(payload.get("type")) not in SPOKEN:
        return Skipped("system")
    said = words_of(payload)
    files = files_of(payload)
    if not said.strip() and not files:
        return Skipped("empty")
    member = table(payload.get("member"))
    reply_to, quote = reply_of(payload)
    mentioned = [each for each in tables(payload.get("mentions")) if is_id(each)]
    return Said(
        id=message_id,
        channel=channel,
        guild=text(payload.get("guild_id")),
        author=writer,
        author_name=name_of(author, member),
        text=said,
        is_bot=author.get("bot") is True or bool(text(payload.get("webhook_id"))),
        mentions=tuple(text(each["id"]) for each in mentioned),
        role_mentions=texts(payload.get("mention_roles")),
        mentions_everyone=payload.get("mention_everyone") is True,
        names={
            text(each["id"]): name_of(each, table(each.get("member")))
            for each in mentioned
        },
        author_roles=texts(member.get("roles")),
        reply_to=reply_to,
        quote=quote,
        files=files,
    )


def is_id(user: Json) -> bool:
    """Tell whether a user has an id."""
    return number(text(user.get("id"))) > 0


def name_of(user: Json, member: Json) -> str:
    """Give how somebody is called: in this server, else everywhere."""
    for name in (member.get("nick"), user.get("global_name"), user.get("username")):
        said = shown_name(text(name))
        if said:
            return said
    return text(user.get("id"))


def words_of(payload: Json) -> str:
    """Give what a message says: its words, what it passes on, and its stickers.

    Programs often say all in embeds, which count where there are no words.
    """
    lines = [text(payload.get("content"))]
    reference = table(payload.get("message_reference"))
    if whole(reference.get("type")) == FORWARD:
        for snapshot in tables(payload.get("message_snapshots")):
            passed_on = text(table(snapshot.get("message")).get("content"))
            lines.append(f"[forwarded] {passed_on}" if passed_on else "")
    lines += [
        f"[sticker: {shown_name(text(each.get('name')))}]"
        for each in tables(payload.get("sticker_items"))
    ]
    if not "".join(lines).strip():
        for embed in tables(payload.get("embeds"))[:MOST_FILES]:
            lines += [text(embed.get("title")), text(embed.get("description"))]
    return "\n".join(line for line in lines if line)


def files_of(payload: Json) -> tuple[File, ...]:
    """Give what came with a message, or with what it passes on."""
    found = tables(payload.get("attachments"))
    for snapshot in tables(payload.get("message_snapshots")):
        found += tables(table(snapshot.get("message")).get("attachments"))
    return tuple(file_of(each) for each in found[:MOST_FILES])


def file_of(attachment: Json) -> File:
    """Read an attachment."""
    media_type = text(attachment.get("content_type")).partition(";")[0].strip()
    main = media_type.partition("/")[0]
    return File(
        kind="image" if main == "image" else "audio" if main == "audio" else "document",
        name=shown_name(text(attachment.get("filename"))),
        media_type=media_type,
        url=text(attachment.get("url")),
        size=max(0, whole(attachment.get("size"))),
    )


def reply_of(payload: Json) -> tuple[str, Quote | None]:
    """Give which message is replied to, and what it says."""
    reference = table(payload.get("message_reference"))
    reply_to = text(reference.get("message_id"))
    if not number(reply_to) or whole(reference.get("type")) == FORWARD:
        return "", None
    quoted = table(payload.get("referenced_message"))
    author = table(quoted.get("author"))
    if not is_id(author):
        return reply_to, None
    said = words_of(quoted)[:LONGEST_QUOTE]
    name = name_of(author, table(quoted.get("member")))
    return reply_to, Quote(text(author["id"]), name, said)


def readable(words: str, said: Said, scene: Scene, ours: Mapping[str, str]) -> str:
    """Write mentions as people see them: `@anna`, `#desk`, `:smile:`.

    Args:
        words: what was said.
        said: by whom, with the names of whom it mentions.
        scene: where, with the names of channels and roles.
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


def command_of(interaction: Json) -> Said | None:
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
    return Said(
        id=known,
        channel=channel,
        guild=text(interaction.get("guild_id")),
        author=text(user["id"]),
        author_name=name_of(user, member),
        text=" ".join([f"/{name}", *filter(None, given)]),
        is_bot=user.get("bot") is True,
        author_roles=texts(member.get("roles")),
    )
