"""What travels from agents to people, and across the port of chats.

Frozen, like all messages: `actors/messages.py`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from actors.messages import Address, Inbound, SentFile, Usage

Trouble = Literal[
    "",
    "busy",
    "waiting",
    "unavailable",
    "refused",
    "budget",
    "timeout",
    "broken",
    "dropped",
]
"""Why somebody reads a notice instead of an answer: too much waits in this chat
(`busy`); it will be tried again (`waiting`); the model cannot answer now
(`unavailable`) or will not (`refused`); a budget is used up (`budget`); it took too
long; something broke; the operator dropped it."""


Status = Literal["", "slow", "step", "tool", "note"]
"""What a message about the making of an answer is about: that it takes longer; a step
of its plan that is done; a tool that runs; anything else of the kind. Empty: it is
none, so no setting keeps it back."""


Markup = Literal["", "discord", "slack", "telegram", "whatsapp"]
"""In what markup a platform is told things; it says how much of a message a text takes
(`rules/measures.py`). Empty: as it is, and every character counts 1."""


GONE = "the client has gone"
"""What the receipt of a delivery begins with that nobody is there to take any more: it
was for one request, or one connection, so it cannot be said later either."""


class TakesFiles(msgspec.Struct, frozen=True):
    """What files a platform takes; each goes out in a message of its own."""

    max_bytes: int = 0
    """Largest file; 0: any, as far as is known."""

    max_image_bytes: int = 0
    """Largest that is shown as a picture; a larger one goes out as a document. 0:
    any."""

    max_caption: int = 0
    """Longest text with a file, as the platform's markup counts it; a longer one is
    said before it. 0: any."""

    uncaptioned: tuple[str, ...] = ()
    """Kinds of files (`SentFile.kind`) that no text goes with: it is said before."""


class Abilities(msgspec.Struct, frozen=True):
    """What a transport can do about deliveries."""

    is_idempotent: bool = False
    """Whether a delivery said twice under one id is seen once."""

    can_look_up: bool = False
    """Whether it can find out if a delivery was said (`Transport.look_up`)."""

    max_part_chars: int = 0
    """Most of one message, as its `markup` counts it; longer replies go out in parts.
    0: any."""

    markup: Markup = ""

    pace: float = 0.0
    """Least seconds between two messages in one chat."""

    per_minute: int = 0
    """Most messages and edits in one chat and minute; 0: any."""

    paces_threads: bool = False
    """Whether what a chat takes holds for all of its threads together: they then share
    a courier, and its pauses. False: each of them takes as much by itself."""

    shows_typing: bool = False
    """Whether it can show that somebody is writing (`Transport.show_typing`)."""

    typing_for: float = 0.0
    """Seconds after which the platform stops showing it by itself; 0: it never does,
    and need not be told again."""

    ends_typing: bool = False
    """Whether it can be told that nobody writes any more (`Typing.is_over`)."""

    shows_drafts: bool = True
    """Whether people see an answer while it is written: the transport shows drafts
    itself, or has a `Presence`. Where they do not, words are no sign of life."""

    draft_pace: float = 0.0
    """Least seconds between two edits of one message, where `Presence` edits."""

    takes_back: bool = False
    """Whether an `Edit` without text takes its message away."""

    counts_answers: bool = False  # it waits for all: it is told of a `silence`, too
    shows_asides: bool = True
    """Whether people see what is said beside an answer. False where whoever asks
    takes the first words for the answer: nothing is said there, and nobody asked."""

    files: TakesFiles | None = None
    """Which files it takes; None: none, and people are told so in words."""


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """One message to a chat; a row of the outbox."""

    id: str
    """Unique and stable over retries: the platform's idempotency key."""

    correlation_id: str
    address: Address
    agent: str
    """Name under which it is said; empty for the runtime's own notices."""

    text: str
    """What is said; with a file, what is said of it."""

    file: SentFile | None = None
    """What it brings; it stands alone with its text, after all words of its reply."""

    reply_id: str = ""
    """Which reply it is a part of: the same for its drafts and every attempt."""

    part: int = 0
    """Which part of its reply, from 0; a long reply goes out in several messages."""

    parts: int = 1
    """How many parts its reply has."""

    is_draft: bool = False
    """Whether it is the beginning of an answer that is still being written: `Edit`s say
    how it goes on, the last of them what the answer is. Never stored."""

    after_draft: bool = False
    """Whether what was written until now stands, and this comes after it."""

    reply_to: str = ""
    """The platform's id of the message it answers."""

    kind: Literal["reply", "notice", "silence"] = "reply"
    status: Status = ""
    """What of the making of an answer it tells."""

    is_aside: bool = False
    """Said beside an answer that is still to come: which tool runs, what to approve."""

    trouble: Trouble = ""
    """What went wrong, if it tells of that instead of answering."""

    is_root: bool = True
    """False for what a further agent says to the same words, or on behalf of another
    agent: the exchange is not over before the message's own answer has come."""

    answers_left: int = 0
    """How many more answers with this correlation id this one announces: one for
    each delegation that it makes. An exchange is over when all have come."""

    usage: Usage | None = None
    """What the whole turn took, if its models told."""

    retry_at: float = 0.0
    """Unix seconds before which asking again could not end better; 0 if unknown."""


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of an answer that is still being written; never stored."""

    correlation_id: str
    reply_id: str = ""
    """As in the deliveries that will say it."""

    turn_id: str
    address: Address
    agent: str
    text: str
    """The new piece only, already through the sanitiser."""

    begins_at: int = 0
    """How many characters were shown of this turn before."""

    reply_to: str = ""
    """The platform's id of the message it answers."""


class Typing(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody is writing an answer; never stored, told again while it lasts."""

    correlation_id: str
    reply_id: str
    address: Address
    agent: str
    is_over: bool = False
    """Whether nobody writes this answer any more; told to who `ends_typing` only."""


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """A message that was said before is to read otherwise."""

    id: str
    """Unique and stable over retries: the platform's idempotency key."""

    correlation_id: str
    address: Address
    agent: str
    """Under whose name it was said."""

    receipt: str
    """The platform's id of the message."""

    text: str
    """All that it is to read from now on; empty: it is to be taken away, which is asked
    only of who `takes_back`."""

    is_last: bool = False
    """Whether this is the answer itself; before, a draft of it."""


class Reaction(msgspec.Struct, frozen=True, kw_only=True):
    """A small sign at somebody's message, as `👀`; never stored."""

    correlation_id: str
    address: Address
    agent: str
    message: str
    """The platform's id of the message."""

    sign: str
    """One emoji; empty: the other one is only taken away."""

    instead_of: str = ""
    """The sign of the same agent that it takes the place of; empty: of none."""


def replied_to(inbound: Inbound) -> str:
    """Give the platform's id of the message that answers to this one are replies to."""
    is_from_people = not (inbound.chain.agents or inbound.occasion)
    return inbound.platform_id if is_from_people else ""
