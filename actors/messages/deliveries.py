"""Outgoing messages: what agents send to people, through the transport port.

Frozen, like all messages: `actors/messages/inbound.py`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from actors.messages.inbound import Address, SentFile, Usage
from actors.rules.text.measure import CHARACTERS, Measure

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
"""Why a person gets a notice instead of an answer. `busy`: too many messages wait in
this chat. `waiting`: the turn will be retried. `unavailable`: the model cannot answer
now. `refused`: the model refused the request. `budget`: a budget is used up. `timeout`:
the turn took too long. `broken`: an internal error. `dropped`: an operator dropped the
message.
"""


Status = Literal["", "slow", "step", "tool", "note"]
"""Kind of a progress message: the answer takes longer (`slow`), a plan step is done
(`step`), a tool runs (`tool`), or anything else (`note`). Settings can disable each
kind. Empty for messages that are no progress messages.
"""


GONE = "the client has gone"
"""Prefix of the receipt of a delivery whose client has disconnected. The delivery
belonged to one request or connection, so retrying cannot help.
"""


class TakesFiles(msgspec.Struct, frozen=True):
    """Which files a platform accepts. Each file is sent in a message of its own."""

    max_bytes: int = 0
    """Largest file in bytes; 0 means no known limit."""

    max_image_bytes: int = 0
    """Largest file that the platform shows as a picture, in bytes. A larger one is sent
    as a document. 0 means no limit.
    """

    max_caption: int = 0
    """Longest caption, as `Abilities.measure` counts it. A longer text is sent
    in a message before the file. 0 means no limit.
    """

    uncaptioned: tuple[str, ...] = ()
    """Kinds of files (`SentFile.kind`) that cannot have a caption. The text is sent in
    a message before the file.
    """

    platform: str = "this place"
    """The platform's name, as people are told why a file was left out."""


class Abilities(msgspec.Struct, frozen=True):
    """What a transport supports."""

    is_idempotent: bool = False
    """Whether the platform shows a delivery once when it is sent twice under one id."""

    is_operators: bool = False
    """Whether only who runs the program sits there: other connectors need not leave
    room for it, as they do for each other.
    """

    can_look_up: bool = False
    """Whether the transport can find out if a delivery has arrived
    (`Transport.look_up`).
    """

    max_part_chars: int = 0
    """Longest message, as `measure` counts it. Longer replies are sent in parts. 0
    means no limit.
    """

    measure: Measure = CHARACTERS
    """How much of a message a text takes in the platform's markup."""

    notes_tools: bool = True
    """Whether the history of a conversation there says which tools were used."""

    pace: float = 0.0
    """Shortest time between two messages in one chat, in seconds."""

    per_minute: int = 0
    """Most messages and edits per minute in one chat; 0 means no limit."""

    answers_each: int = 0
    """Most messages that may answer one message of a person; 0 means no limit. A longer
    answer says at its last place that the rest follows once they write again.
    """

    paces_threads: bool = False
    """Whether the rate limit of a chat covers all of its threads together. They then
    share one courier. False: each thread has a limit of its own.
    """

    shows_typing: bool = False
    """Whether the transport can show a typing indicator (`Transport.show_typing`)."""

    typing_for: float = 0.0
    """Seconds after which the platform hides the typing indicator. 0: never, so it
    needs no refresh.
    """

    ends_typing: bool = False
    """Whether the typing indicator can be switched off (`Typing.is_over`)."""

    shows_drafts: bool = True
    """Whether people see drafts of an answer, because the transport shows them or has a
    `Presence`. False: streamed text does not count as a sign of life.
    """

    draft_pace: float = 0.0
    """Shortest time between two edits of one message by `Presence`, in seconds."""

    has_free_drafts: bool = False
    """Whether edits cost nothing and notify nobody. Answers are then shown from their
    first words (`presence.draft_after` and `draft_chars` do not count).
    """

    is_sparing: bool = False
    """Whether the platform allows so few calls that drafts and reactions would delay
    answers. They are then shown only if the connector's own settings ask for them.
    """

    takes_back: bool = False
    """Whether an `Edit` with an empty text deletes the message."""

    counts_answers: bool = False
    """Whether it waits for the answer of every agent, so that it is sent `silence`."""

    shows_asides: bool = True
    """Whether people see messages beside the answer. False where a client takes the
    first message for the answer; nothing else is then sent and no approval is
    requested.
    """

    shows_thoughts: bool = False
    """Whether people see the thought and the actions of an answer beside it."""

    has_member_ids: bool = False
    """Whether the members of a group have other ids there than in a direct chat, so
    that nobody who is let in alone is known in a group.
    """

    files: TakesFiles | None = None
    """Which files the transport accepts. None: no files; people get a text that says
    so.
    """


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """One message to a chat; a row of the outbox."""

    id: str
    """Unique and stable over retries: the platform's idempotency key."""

    correlation_id: str
    address: Address
    agent: str
    """Name of the agent that sends it; empty for the runtime's own notices."""

    speaker: str = ""
    """Whose account says a notice, where each agent has one of its own; empty: any."""

    text: str
    """The message, or the caption of its file."""

    file: SentFile | None = None
    """The file of this message. Files are sent after all text parts of their reply."""

    reply_id: str = ""
    """Id of the reply that this is a part of; the same for its drafts and for every
    attempt.
    """

    part: int = 0
    """Index of this part in its reply, from 0. Long replies are sent in several
    messages.
    """

    parts: int = 1
    """Number of parts of its reply."""

    is_draft: bool = False
    """Whether this is a draft: the beginning of an answer that is still being written.
    `Edit`s extend it, and the last `Edit` holds the final answer. Never stored.
    """

    after_draft: bool = False
    """Whether the draft shown so far stays, and this message follows it."""

    reply_to: str = ""
    """The platform's id of the message it answers."""

    kind: Literal["reply", "notice", "silence"] = "reply"
    ends: str = ""
    """Of silence: how its message ended, as in `Transport.settle`, when no agent was
    asked; empty: an agent answered by silence.
    """

    status: Status = ""
    """Kind of progress message; empty if it is none."""

    is_aside: bool = False
    """Whether it is sent beside an answer that is still to come, such as a tool notice
    or an approval request.
    """

    trouble: Trouble = ""
    """Reason of a failure notice; empty for an answer."""

    is_root: bool = True
    """False for answers of further agents to the same message, and of agents that work
    for another agent. The exchange ends only with the message's own answer.
    """

    answers_left: int = 0
    """How many more answers with this correlation id will follow: one per delegation
    made by this answer. The exchange ends when all have arrived.
    """

    thought: str = ""
    """Why the agent answers so, in its own words. Only for transports with
    `shows_thoughts`; so also `actions`. Both go with the first part of a reply.
    """

    actions: tuple[str, ...] = ()
    """Names of the actions that the agent says it takes, such as `REPLY`."""

    usage: Usage | None = None
    """Tokens of the whole turn, if its models reported them."""

    retry_at: float = 0.0
    """Earliest time at which asking again can succeed, in Unix seconds; 0 if
    unknown.
    """

    @property
    def account(self) -> str:
        """Name the agent whose account says it; empty: any."""
        return self.agent or self.speaker


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of an answer that is still being written; never stored."""

    correlation_id: str
    reply_id: str = ""
    """Same id as in the deliveries of the final answer."""

    turn_id: str
    address: Address
    agent: str
    text: str
    """Only the new piece; already sanitised."""

    begins_at: int = 0
    """Characters of this turn that were shown before."""

    reply_to: str = ""
    """The platform's id of the message it answers."""


class Typing(msgspec.Struct, frozen=True, kw_only=True):
    """Typing indicator of an agent; never stored, repeated while it lasts."""

    correlation_id: str
    reply_id: str
    address: Address
    agent: str
    is_over: bool = False
    """Whether writing has ended. Sent only to transports with `ends_typing`."""


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """New text for a message that was sent before."""

    id: str
    """Unique and stable over retries: the platform's idempotency key."""

    correlation_id: str
    address: Address
    agent: str
    """Name of the agent that sent the message."""

    receipt: str
    """The platform's id of the message."""

    text: str
    """The whole new text. Empty deletes the message; sent only to transports with
    `takes_back`.
    """

    is_last: bool = False
    """Whether this is the final answer. False for drafts."""


class Reaction(msgspec.Struct, frozen=True, kw_only=True):
    """An emoji reaction to somebody's message, such as `👀`; never stored."""

    correlation_id: str
    address: Address
    agent: str
    message: str
    """The platform's id of the message."""

    sign: str
    """One emoji; empty only removes `instead_of`."""

    instead_of: str = ""
    """The same agent's earlier reaction that this one replaces; empty if there is
    none.
    """


class Owed:
    """The answers that one message is still to get."""

    __slots__ = ("_counted", "_has_root", "_left")

    def __init__(self) -> None:
        self._left = 1
        self._has_root = False
        self._counted: set[str] = set()

    def count(self, delivery: Delivery) -> bool:
        """Take one answer off, and add what it announces.

        Returns:
            Whether the exchange is over; False for a delivery that was counted before.
        """
        if delivery.id in self._counted:
            return False
        self._counted.add(delivery.id)
        self._left += delivery.answers_left - 1
        self._has_root = self._has_root or delivery.is_root
        return self._has_root and self._left <= 0
