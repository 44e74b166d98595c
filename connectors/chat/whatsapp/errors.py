"""What a refusal of the Graph API means; pure.

The kinds are those of `connectors/chat/errors.py`, and two finer ones of
`RefusedError`: `WindowError` and `MissingError`.

Source: Meta, "Cloud API, error codes".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from connectors.chat.errors import (
    LONGEST_QUOTE,
    BusyError,
    LostError,
    PlatformError,
    RefusedError,
    ShutOutError,
    wait_asked,
)
from connectors.chat.lenient_json import Json, decode, table, text, whole

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
