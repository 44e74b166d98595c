"""What Meta's webhooks tell: messages and statuses, of one or many at once; pure.

Whatever is missing or odd is empty, and what cannot be told from others is left out
with a reason: one strange message must not hold up all others for the week that Meta
goes on sending it.

What a refusal of the Graph API means is said in the kinds of
`connectors/chat/requests.py`, and two finer ones of `RefusedError`: `WindowError` and
`MissingError`.

Source: Meta, "Cloud API, error codes".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from connectors.chat.inbound import (
    FileKind,
    PlatformFile,
    coordinates,
    in_words,
    shown_name,
)
from connectors.chat.requests import (
    LONGEST_ID,
    LONGEST_QUOTE,
    BusyError,
    Json,
    LostError,
    PlatformError,
    RefusedError,
    ShutOutError,
    decode,
    is_id,
    table,
    tables,
    text,
    wait_asked,
    whole,
)
from connectors.chat.whatsapp.markup import PHONE, USER_ID, chat_of

PAIR_WAIT = 6.0
"""Seconds after which one person can be written to again (131056)."""

SPAM_WAIT = 3600.0
"""Seconds after a limit that is about our behaviour, and is not soon lifted."""

WINDOW = 131047
NO_OBJECT, NO_OBJECT_SUBCODE = 100, 33

Sense = Literal["busy", "lost", "account", "refused", "window"]

BUSY: dict[int, tuple[float | None, str]] = {
    2: (None, "the service is away for a moment"),
    4: (60.0, "the app asks too much"),
    80007: (60.0, "the business account asks too much"),
    130429: (1.0, "more than 80 messages a second"),
    131016: (None, "the service is away for a moment"),
    131048: (SPAM_WAIT, "people have blocked or reported this number"),
    131056: (PAIR_WAIT, "too many messages to this one person: one in 6 seconds"),
    131057: (60.0, "the account is being maintained"),
    133004: (None, "the server is away for a moment"),
}
"""Codes after which nothing was sent: seconds to wait, and what they mean."""

ACCOUNT: dict[int, str] = {
    0: "the access token is not taken: make a new one",
    3: "the token lacks a permission: give it whatsapp_business_messaging",
    10: "the token lacks a permission: give it whatsapp_business_messaging",
    190: "the access token has expired or was withdrawn: make a new one",
    368: "the account is blocked for breaking a policy: see Meta's Business Manager",
    130497: "the account may not write to people in that country",
    131005: "the token has no access to this number: give its user the account",
    131031: "the account is locked: see Meta's Business Manager",
    131037: "the number's display name is not approved: see WhatsApp Manager",
    131042: "there is a problem with the payment: see Meta's Business Manager",
    131045: "the number is not registered rightly: register it again",
    131064: "the account has reached its limit of new conversations",
    133010: "the number is not registered for the Cloud API: register it",
}
"""Codes that the operator can mend, with what to do."""

PERMISSIONS = range(200, 300)

REFUSED: dict[int, str] = {
    100: "a parameter is wrong",
    130472: "this person takes part in an experiment of Meta's, and gets no such words",
    131008: "a parameter is missing",
    131009: "a parameter is wrong",
    131021: "a number cannot write to itself",
    131026: "it cannot be delivered: no WhatsApp there, or one that is too old",
    131030: "this person is not on the list of a test number: add them to it",
    131049: "Meta does not deliver this, to spare its people",
    131050: "this person wants no such messages",
    131051: "messages of this kind are not sent",
    131052: "the file could not be fetched",
    131053: "the file could not be taken",
    131062: "this person's user id is not taken here",
    132000: "the template has not exactly one placeholder, {{1}}",
    132001: "there is no such template in this language, or it is not approved",
    132005: "the template with these words is too long: make max_chars smaller",
    132007: "the words break a policy of Meta's for templates",
    132012: "the template's placeholder takes something else than words",
    132015: "the template is paused, since people did not like it",
    132016: "the template is disabled, since people did not like it",
    132018: "the template's placeholder takes something else than words",
    WINDOW: "this person has not written for 24 hours: only they can begin again",
}
"""Codes that no repetition helps."""

UNAUTHORIZED, TOO_MANY, SERVER_FAULT = 401, 429, 500


class WindowError(RefusedError):
    """This person has not written for 24 hours."""


class MissingError(RefusedError):
    """What was asked for is not there, or not to be seen."""


def explained(code: int) -> str:
    """Say what a number of Meta's means, and what to do; empty: nobody knows."""
    if code in BUSY:
        return BUSY[code][1]
    if code in PERMISSIONS:
        return ACCOUNT[10]
    return ACCOUNT.get(code) or REFUSED.get(code, "")


def read_error(status: int, headers: Mapping[str, str], body: bytes) -> PlatformError:
    """Return the error that an answer other than 200 means."""
    try:
        said = table(decode(body).get("error"))
    except (ValueError, RecursionError):
        said = Json()
    code, subcode = whole(said.get("code")), whole(said.get("error_subcode"))
    has_code = "code" in said
    told = told_of(said, f"HTTP {status}", code if has_code else None)
    sense = sense_of(status, code if has_code else None)
    match sense:
        case "busy":
            asked = BUSY.get(code, (None, ""))[0]
            wait = wait_asked(headers)
            return BusyError(told, asked if wait is None else wait)
        case "lost":
            return LostError(told)
        case "account":
            return ShutOutError(told)
        case "window":
            return WindowError(told, str(code), status)
        case "refused":
            is_missing = (code, subcode) == (NO_OBJECT, NO_OBJECT_SUBCODE)
            kind = MissingError if is_missing else RefusedError
            return kind(told, str(code) if has_code else "", status)


def sense_of(status: int, code: int | None) -> Sense:
    """Sort an error by its number first, by HTTP's status where it has none."""
    if code is not None:
        if code == WINDOW:
            return "window"
        if code in BUSY:
            return "busy"
        if code in ACCOUNT or code in PERMISSIONS:
            return "account"
        if code in REFUSED:
            return "refused"
    return by_status(status)


def by_status(status: int) -> Sense:
    """Sort an error whose number says nothing."""
    if status == TOO_MANY:
        return "busy"
    if status == UNAUTHORIZED:
        return "account"
    # Why lost: a message has no id of ours, so that what a server did before it failed
    # may stand there, and what is no answer of Graph's at all says nothing.
    return "lost" if status >= SERVER_FAULT or status < 400 else "refused"


def told_of(said: Json, where: str, code: int | None) -> str:
    """Put an error into words: number, Meta's text, ours."""
    details = text(table(said.get("error_data")).get("details"))
    theirs = details or text(said.get("message")) or text(said.get("title"))
    words = " ".join(theirs.split())[:LONGEST_QUOTE]
    number = "" if code is None else f"error {code}"
    subcode = whole(said.get("error_subcode"))
    if number and subcode:
        number = f"{number}/{subcode}"
    ours = "" if code is None else explained(code)
    if (code, subcode) == (NO_OBJECT, NO_OBJECT_SUBCODE):
        ours = "it is not there, or the token may not see it: is the id right?"
    told = ": ".join(part for part in (where, number, words) if part)
    return f"{told} ({ours})" if ours else told


Reason = Literal["reaction", "system", "malformed", "stale", "foreign_number"]
"""Why something is no message for us: a sign at a message; news of somebody's account;
it makes no sense; it is older than Meta ever sends again; no agent has this number."""

# Source: Meta, "Webhooks": what was not taken is sent again for 7 days.
OLDEST = 8 * 86_400.0
"""Seconds. What is older was kept by somebody else, and is sent a second time."""


FILES: dict[str, FileKind] = {
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


class WhatsAppFile(PlatformFile, frozen=True, kw_only=True):
    """A file of a message, still at Meta."""

    id: str


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
