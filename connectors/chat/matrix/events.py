"""What an event says; pure and total: a message, or why it is none.

Edits are left out: the agents may have begun with what stood there first, and what
was accepted is never changed. Whoever corrects an order writes it again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal
from urllib.parse import unquote

import msgspec

from connectors.chat.inbound import FileKind, PlatformFile, in_words, shown_name
from connectors.chat.requests import Json, table, tables, text, texts, whole

Reason = Literal[
    "own",
    "malformed",
    "edit",
    "reaction",
    "redaction",
    "encrypted",
    "state",
    "unknown",
    "empty",
]
"""Why an event is no message: one of our own accounts wrote it (`own`); it is not
shaped as it must be; it changes a message, or reacts to one; it cannot be read; it
tells of the room; nobody has told us of its kind; it says nothing."""

LONGEST_ID = 255
"""Bytes of an id. Source: spec, appendix "Common identifier format"."""

PILL = re.compile(
    r"""href\s*=\s*["']?https?://matrix\.to/#/([^"'\s>?]+)""", re.IGNORECASE
)
OLD_REPLY = re.compile(r"<mx-reply>.*?</mx-reply>", re.IGNORECASE | re.DOTALL)
WHOLE_ID = re.compile(r"(?<!\w)@[\w.=/+-]+:[\w.-]*\w(?::\d+)?")

# Element X writes mentions so in the body; element-x-android issue 5729.
LINKED = re.compile(
    r"\[([^\[\]\n]{1,255})\]\(<?https?://matrix\.to/#/((?:@|%40)[^\s()<>?]{1,700})"
    r"(?:\?[^\s()<>]*)?>?\)"
)
MEDIA_URI = re.compile(r"mxc://([\w.:\[\]-]+)/([\w-]+)")

MOST_HTML = 65_536
"""Characters; an event cannot hold more."""

FILES: dict[str, FileKind] = {
    "m.image": "image",
    "m.audio": "audio",
    "m.file": "document",
    "m.video": "document",
}


STICKER = "m.sticker"
POLLS = ("org.matrix.msc3381.poll.start", "m.poll.start")
"""What clients send today, and what the specification has."""

SAID = ["m.room.message", STICKER, *POLLS]
"""The types of events that say something."""


class MatrixFile(PlatformFile, frozen=True):
    """A file of a message, still on the homeserver."""

    server: str
    media_id: str
    """Empty: it cannot be had, because it is encrypted or has no address."""

    size: int
    """Bytes, as its sender says; 0 if they do not."""


class MatrixMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a person, or of another program."""

    event_id: str
    sender: str
    kind: str
    """`m.text`, `m.image`, …"""

    text: str
    thread: str = ""
    reply_to: str = ""
    mentions: tuple[str, ...] = ()
    """Agents, by name."""

    mentions_room: bool = False
    file: MatrixFile | None = None

    @property
    def is_bot(self) -> bool:
        """Whether a program wrote it: by agreement those write notices."""
        return self.kind == "m.notice"


class MatrixSkipped(msgspec.Struct, frozen=True):
    """An event that is no message for us."""

    reason: Reason


def read(event: Json, users: Mapping[str, str]) -> MatrixMessage | MatrixSkipped:
    """Say what an event is.

    Args:
        users: our agents by the ids of their accounts.
    """
    kind = event.get("type")
    if "state_key" in event:
        return MatrixSkipped("state")
    if kind not in SAID:
        return MatrixSkipped(reason_of(kind))
    event_id, sender = text(event.get("event_id")), text(event.get("sender"))
    if not (is_id(event_id, "$") and is_id(sender, "@")):
        return MatrixSkipped("malformed")
    content = table(event.get("content"))
    reason = left_out(content, sender, users)
    if reason is not None:
        return MatrixSkipped(reason)
    if kind == STICKER:
        content = {**content, "msgtype": STICKER}  # it has none of its own
    elif kind in POLLS:
        content = {**content, "msgtype": "m.text", "body": poll(content)}
    return read_message(content, event_id, sender, users)


def left_out(content: Json, sender: str, users: Mapping[str, str]) -> Reason | None:
    """Say why a message is not for us; None: it may be."""
    if sender in users:
        return "own"
    if not content:
        return "redaction"  # what is left of a message that was taken back
    return "edit" if relation(content) == "m.replace" else None


def reason_of(kind: object) -> Reason:
    """Say why an event of this type is left out."""
    match kind:
        case "m.room.encrypted":
            return "encrypted"
        case "m.reaction":
            return "reaction"
        case "m.room.redaction":
            return "redaction"
        case str():
            return "unknown"
        case _:
            return "malformed"


def is_id(value: str, sigil: str) -> bool:
    """Return whether this is an id that can be stored, and asked for."""
    return (
        value.startswith(sigil)
        and 1 < len(value.encode()) <= LONGEST_ID
        and value.isprintable()
        and " " not in value
    )


def read_message(
    content: Json, event_id: str, sender: str, users: Mapping[str, str]
) -> MatrixMessage | MatrixSkipped:
    """Read the content of an `m.room.message`."""
    kind, body = text(content.get("msgtype")), text(content.get("body"))
    if not kind or not isinstance(content.get("body"), str):
        return MatrixSkipped("malformed")
    thread, reply_to = relations(content)
    if reply_to:
        body = without_fallback(body)
    file = read_file(kind, content)
    if file is not None:
        body = caption(content, body)
    elif kind == "m.location":
        body = in_words("location", body, text(content.get("geo_uri")))
    elif kind == STICKER:
        body = in_words("sticker", body)
    elif kind not in {"m.text", "m.notice", "m.emote"}:
        return MatrixSkipped("unknown")
    if not body.strip() and file is None:
        return MatrixSkipped("empty")
    mentioned, is_for_room = read_mentions(content, body)
    return MatrixMessage(
        event_id=event_id,
        sender=sender,
        kind=kind,
        text=readable(body, users).strip(),
        thread=thread,
        reply_to=reply_to,
        mentions=tuple(agent for user, agent in users.items() if user in mentioned),
        mentions_room=is_for_room,
        file=file,
    )


def poll(content: Json) -> str:
    """Return a poll in words: its question, and what may be answered."""
    asked = table(content.get("m.poll") or content.get(POLLS[0]))
    answers = map(poll_text, tables(asked.get("answers")))
    return in_words("poll", poll_text(table(asked.get("question"))), *answers)


def poll_text(part: Json) -> str:
    """Return the text of a question or an answer.

    Source: MSC1767, "Extensible events": a string once, a list of its forms now.
    """
    forms = tables(part.get("m.text"))
    return text(forms[0].get("body") if forms else part.get("org.matrix.msc1767.text"))


def relation(content: Json) -> str:
    """Return how this relates to another event."""
    return text(table(content.get("m.relates_to")).get("rel_type"))


def relations(content: Json) -> tuple[str, str]:
    """Return the thread that a message belongs to, and what it replies to.

    In a thread, clients that know none are told to reply to its last message; that is
    no reply (`is_falling_back`).
    """
    relates_to = table(content.get("m.relates_to"))
    reply_to = text(table(relates_to.get("m.in_reply_to")).get("event_id"))
    thread = text(relates_to.get("event_id"))
    if relates_to.get("rel_type") != "m.thread" or not is_id(thread, "$"):
        thread = ""
    elif relates_to.get("is_falling_back") is True:
        reply_to = ""
    return thread, reply_to if is_id(reply_to, "$") else ""


def without_fallback(body: str) -> str:
    """Take out the lines that quote what is replied to.

    Source: spec, "Rich replies"; clients before v1.13 put them in front.
    """
    lines = body.split("\n")
    if not lines[0].startswith(("> <@", "> * <@")):
        return body
    quoted = 0
    while quoted < len(lines) and lines[quoted].startswith(">"):
        quoted += 1
    rest = lines[quoted:]
    return "\n".join(rest[1:] if rest and not rest[0].strip() else rest)


def read_mentions(content: Json, body: str) -> tuple[frozenset[str], bool]:
    """Return the ids of those who are mentioned, and whether all in the room are.

    Clients say so in `m.mentions`; older ones only write a link to the person, or the
    whole id.
    """
    said = content.get("m.mentions")
    if isinstance(said, dict):
        mentions = table(content.get("m.mentions"))
        return frozenset(texts(mentions.get("user_ids"))), mentions.get("room") is True
    html = OLD_REPLY.sub("", text(content.get("formatted_body"))[:MOST_HTML])
    pills = (unquote(each) for each in PILL.findall(html))
    return frozenset((*pills, *WHOLE_ID.findall(body))), False


def readable(body: str, users: Mapping[str, str]) -> str:
    """Write mentions as they read on the screen; an agent is `@anna`.

    Args:
        users: our agents by the ids of their accounts.
    """

    def linked(found: re.Match[str]) -> str:
        agent = users.get(unquote(found[2]))
        return f"@{agent}" if agent else found[1]

    def named(found: re.Match[str]) -> str:
        agent = users.get(found[0])
        return f"@{agent}" if agent else found[0]

    return WHOLE_ID.sub(named, LINKED.sub(linked, body))


def read_file(kind: str, content: Json) -> MatrixFile | None:
    """Read where a file is; None: there is none."""
    if kind not in FILES:
        return None
    details = table(content.get("info"))
    place = MEDIA_URI.fullmatch(text(content.get("url")))
    name = text(content.get("filename")) or text(content.get("body"))
    return MatrixFile(
        kind=FILES[kind],
        name=shown_name(name),
        media_type=shown_name(text(details.get("mimetype"))),
        server=place[1] if place is not None else "",
        media_id=place[2] if place is not None else "",
        size=max(0, whole(details.get("size"))),
    )


def caption(content: Json, body: str) -> str:
    """Return the words beside a file; its name is none of them."""
    name = text(content.get("filename"))
    return body if name and name != body else ""
