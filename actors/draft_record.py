"""What is durable about drafts: which messages of a chat are the draft of a reply.

A stream of its own for each reply that was shown while it was written. Its events
belong to the message that is answered, and are forgotten with it. So whoever goes on
after a crash finds the messages that stand in the chat, and edits them, instead of
saying the answer beside its own beginning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.rules.drafts import Message, Start
from actors.rules.keys import chat_partition
from runtime.errors import StoreError
from runtime.logs import EventLog
from runtime.rows import Append, Commit, NewEvent

if TYPE_CHECKING:
    from actors.messages import Address
    from actors.services import Services

LOG = EventLog("courier")

BEGUN = "draft_begun"
LEFT = "draft_left"
ENDED = "draft_ended"

# Chosen: a reply of a hundred messages is a bug; what is not read stays as it is.
PAGE = 1000


class Begun(msgspec.Struct, frozen=True, omit_defaults=True):
    """Event `draft_begun`: a message stands there, or may: with no receipt."""

    number: int
    agent: str
    receipt: str = ""


class Left(msgspec.Struct, frozen=True):
    """Event `draft_left`: something else was said, the answer goes on below it."""

    at: int
    tail: str


class Ended(msgspec.Struct, frozen=True):
    """Event `draft_ended`: what stands there is a draft no more."""


Noted = Begun | Left | Ended


class Found(msgspec.Struct, frozen=True):
    """What the events of a reply come to."""

    messages: list[Message]
    starts: list[Start]
    next_number: int


class DraftRecord:
    """The events of one reply's drafts.

    Args:
        reply_id: of the reply: the message that it answers.
        address: the chat.
        services: store and clock.
    """

    __slots__ = ("_part", "_reply_id", "_services", "_version", "is_broken")

    def __init__(self, reply_id: str, address: Address, services: Services) -> None:
        self._reply_id = reply_id
        self._part = chat_partition(address.connector, address.chat)
        self._services = services
        self._version = 0
        self.is_broken = False
        """Whether an event could not be stored, and none is any more."""

    async def read(self) -> Found:
        """Give what was recorded.

        Raises:
            runtime.errors.StoreError: it cannot be read now.
        """
        messages: dict[int, Message] = {}
        starts: list[Start] = []
        number = 0
        for event in await self._services.store.read(self._stream, 0, PAGE):
            self._version = event.sequence
            if event.kind == BEGUN:
                begun = msgspec.json.decode(event.body, type=Begun)
                number = max(number, begun.number + 1)
                messages[begun.number] = Message(
                    begun.number, begun.agent, begun.receipt
                )
            elif event.kind == LEFT:
                left = msgspec.json.decode(event.body, type=Left)
                starts.append(Start(left.at, left.tail))
            elif event.kind == ENDED:
                messages, starts = {}, []
        return Found(list(messages.values()), starts, number)

    async def put(self, noted: Noted) -> bool:
        """Record something, and come back when it is durable; False: it is not."""
        if self.is_broken:
            return False
        try:
            await self._services.store.commit(self._commit(noted))
        except StoreError as error:
            self._breaks(error)
            return False
        self._version += 1
        return True

    def note(self, noted: Noted) -> None:
        """Record something soon; should that fail, a crash leaves a draft behind."""
        if self.is_broken:
            return

        def done(outcome: object) -> None:
            if isinstance(outcome, Exception):
                self._breaks(outcome)

        commit = msgspec.structs.replace(self._commit(noted), may_wait=True)
        self._version += 1
        self._services.store.submit(commit, done)

    def _breaks(self, error: Exception) -> None:
        self.is_broken = True
        LOG.warning("draft not recorded", reply=self._reply_id, why=str(error))

    @property
    def _stream(self) -> str:
        return f"drafts/{self._reply_id}"

    def _commit(self, noted: Noted) -> Commit:
        kinds = {Begun: BEGUN, Left: LEFT, Ended: ENDED}
        event = NewEvent(kinds[type(noted)], msgspec.json.encode(noted))
        journal = Append(
            stream=self._stream,
            expected=self._version,
            part=self._part,
            events=(event,),
            inbox_id=self._reply_id,
        )
        return Commit(at=self._services.clock.wall(), appends=(journal,))
