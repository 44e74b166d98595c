"""What Meta's webhooks tell: messages and statuses, of one or many at once; pure.

Whatever is missing or odd is empty, and what cannot be told from others is left out
with a reason: one strange message must not hold up all others for the week that Meta
goes on sending it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from connectors.chat.inbound import coordinates, in_words, shown_name
from connectors.chat.lenient_json import (
    LONGEST_ID,
    Json,
    decode,
    is_id,
    table,
    tables,
    text,
)
from connectors.chat.whatsapp.content import PHONE, USER_ID, chat_of
from connectors.chat.whatsapp.errors import WINDOW, told_of

Reason = Literal["reaction", "system", "malformed", "stale", "foreign_number"]
"""Why something is no message for us: a sign at a message; news of somebody's account;
it makes no sense; it is older than Meta ever sends again; no agent has this number."""

# Source: Meta, "Webhooks": what was not taken is sent again for 7 days.
OLDEST = 8 * 86_400.0
"""Seconds. What is older was kept by somebody else, and is sent a second time."""

Kind = Literal["image", "audio", "document"]

FILES: dict[str, Kind] = {
    "image": "image",
    "sticker": "image",
    "audio": "audio",
    "voice": "audio",
    "video": "document",
    "document": "document",
}

PLAIN = {"text": "body", "button": "text"}
"""Where the words are, by kind."""

States = Literal["sent", "delivered", "read", "failed", "other"]
STATES: dict[str, States] = {
    "sent": "sent",
    "delivered": "delivered",
    "read": "read",
    "played": "read",
    "failed": "failed",
}


class WhatsAppFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a message, still at Meta."""

    kind: Kind
    id: str
    name: str
    media_type: str


class WhatsAppMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a person."""

    id: str
    """`wamid.…`"""

    number: str
    """Meta's id of our number."""

    sender: str
    sender_name: str
    phone: str
    """Empty where the person does not show it."""

    kind: str
    text: str
    at: float
    """Unix seconds."""

    reply_to: str = ""
    is_forwarded: bool = False
    file: WhatsAppFile | None = None

    @property
    def chat(self) -> str:
        """With which number, and with whom."""
        return chat_of(self.number, self.sender)


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a message of ours."""

    id: str
    number: str
    person: str
    state: States
    marker: str
    """What we gave the message when it was sent."""

    code: int = 0
    why: str = ""
    """Of `failed`."""

    @property
    def is_outside_window(self) -> bool:
        """Whether it failed because the person has not written for 24 hours."""
        return self.code == WINDOW


class WhatsAppSkipped(msgspec.Struct, frozen=True):
    """A change that is no message for us."""

    reason: Reason
    number: str
    id: str


class WhatsAppNews(msgspec.Struct, frozen=True):
    """All that one webhook tells, in its order."""

    heard: tuple[WhatsAppMessage, ...]
    statuses: tuple[Status, ...]
    skipped: tuple[WhatsAppSkipped, ...]


def read_news(body: bytes, numbers: Mapping[str, str], now: float) -> WhatsAppNews:
    """Read a webhook; several messages of several numbers may stand in it.

    Args:
        body: as it came.
        numbers: our agents by the ids of their numbers.
        now: Unix seconds.

    Raises:
        ValueError: it is no JSON object.
    """
    try:
        told = decode(body)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    found: list[WhatsAppMessage | WhatsAppSkipped] = []
    statuses: list[Status] = []
    for number, value in values(told):
        people = contacts(value)
        found += [
            judged(read(message, number, people), numbers, now)
            for message in tables(value.get("messages"))
        ]
        statuses += [read_status(one, number) for one in tables(value.get("statuses"))]
    return WhatsAppNews(
        tuple(each for each in found if isinstance(each, WhatsAppMessage)),
        tuple(each for each in statuses if each.id),
        tuple(each for each in found if isinstance(each, WhatsAppSkipped)),
    )


def values(told: Json) -> Iterator[tuple[str, Json]]:
    """Return number and content of each change that is about messages."""
    for entry in tables(told.get("entry")):
        for change in tables(entry.get("changes")):
            if change.get("field") == "messages":
                value = table(change.get("value"))
                yield text(table(value.get("metadata")).get("phone_number_id")), value


def contacts(value: Json) -> dict[str, Json]:
    """Return what is told of people, by each of their ids."""
    found: dict[str, Json] = {}
    for contact in tables(value.get("contacts")):
        for field in ("wa_id", "user_id"):
            key = text(contact.get(field))
            if key:
                found[key] = contact
    return found


def judged(
    message: WhatsAppMessage | WhatsAppSkipped, numbers: Mapping[str, str], now: float
) -> WhatsAppMessage | WhatsAppSkipped:
    """Leave out what is not ours, or comes far too late."""
    if isinstance(message, WhatsAppMessage):
        if message.number not in numbers:
            return WhatsAppSkipped("foreign_number", message.number, message.id)
        if now - message.at > OLDEST:
            return WhatsAppSkipped("stale", message.number, message.id)
        return msgspec.structs.replace(message, at=min(message.at, now))
    return message


def read(
    message: Json, number: str, people: Mapping[str, Json]
) -> WhatsAppMessage | WhatsAppSkipped:
    """Say what a message is.

    Args:
        message: as Meta gave it.
        number: the id of our number.
        people: what is told of people beside it.
    """
    message_id, kind = text(message.get("id")), text(message.get("type"))
    phone = text(message.get("from"))
    user = text(message.get("from_user_id"))
    contact = people.get(user) or people.get(phone) or Json()
    # Why the user id first: it stays when somebody changes or hides their number.
    sender = user or text(contact.get("user_id")) or phone or text(contact.get("wa_id"))
    if kind in {"reaction", "system"}:
        reason: Reason = "reaction" if kind == "reaction" else "system"
        return WhatsAppSkipped(reason, number, message_id[:LONGEST_ID])
    is_sender = USER_ID.fullmatch(sender) or PHONE.fullmatch(sender)
    if not (is_sender and is_id(message_id) and kind):
        return WhatsAppSkipped("malformed", number, message_id[:LONGEST_ID])
    content = table(message.get(kind))
    context = table(message.get("context"))
    name = shown_name(text(table(contact.get("profile")).get("name")))
    return WhatsAppMessage(
        id=message_id,
        number=number,
        sender=sender,
        sender_name=name or "somebody",
        phone=phone or text(contact.get("wa_id")),
        kind=kind,
        text=words_of(kind, message, content),
        at=seconds(message.get("timestamp")),
        reply_to=text(context.get("id")),
        is_forwarded=context.get("forwarded") is True,
        file=read_file(kind, content),
    )


def seconds(value: object) -> float:
    """Read a time; Meta writes it as a text. What is none is now, as far as we know."""
    digits = str(value)
    is_time = digits.isascii() and digits.isdigit() and len(digits) < 12
    return float(digits) if is_time else float("inf")


def words_of(kind: str, message: Json, content: Json) -> str:
    """Return the words of a message, or what stands for them."""
    field = "caption" if kind in FILES else PLAIN.get(kind)
    if field is not None:
        return text(content.get(field))
    if kind == "interactive":
        return answer_of(content)
    if kind == "location":
        return place_of(content)
    if kind == "contacts":
        return "\n".join(map(contact_of, tables(message.get("contacts"))))
    return f"[a message of the kind {kind[:40]!r}, which cannot be read here]"


def answer_of(content: Json) -> str:
    """Return what was chosen of buttons or a list."""
    for field in ("button_reply", "list_reply"):
        title = text(table(content.get(field)).get("title"))
        if title:
            return title
    return text(table(content.get("nfm_reply")).get("response_json"))


def place_of(place: Json) -> str:
    """Write a place down."""
    words = (text(place.get(field)) for field in ("name", "address"))
    point = coordinates(place.get("latitude"), place.get("longitude"))
    return in_words("location", *words, point)


def contact_of(contact: Json) -> str:
    """Write a contact down."""
    name = text(table(contact.get("name")).get("formatted_name"))
    phones = (text(each.get("phone")) for each in tables(contact.get("phones")))
    return in_words("contact", name, *phones)


def read_file(kind: str, content: Json) -> WhatsAppFile | None:
    """Return the file of a message; None: it has none."""
    if kind not in FILES:
        return None
    return WhatsAppFile(
        kind=FILES[kind],
        id=text(content.get("id")),
        name=shown_name(text(content.get("filename"))),
        media_type=text(content.get("mime_type")),
    )


def read_status(told: Json, number: str) -> Status:
    """Say what became of a message of ours."""
    errors = tables(told.get("errors"))
    error = errors[0] if errors else Json()
    code = error.get("code")
    number_of = code if isinstance(code, int) and not isinstance(code, bool) else 0
    person = text(told.get("recipient_user_id")) or text(told.get("recipient_id"))
    return Status(
        id=text(told.get("id"))[:LONGEST_ID],
        number=number,
        person=person,
        state=STATES.get(text(told.get("status")), "other"),
        marker=text(told.get("biz_opaque_callback_data")),
        code=number_of,
        why=told_of(error, "", number_of) if errors else "",
    )
