"""The journal of one message's turn, from which a turn that was cut off is resumed.

Each message has a journal stream of its own. Its events are the model's answers that
call tools, the results of tools, messages that were put in between, and decisions about
calls. Each is stored before the turn goes on. The final answer is not among them: the
session stores it with the reply. The steps are kept as long as the row of the message,
so that the message can be retried by hand and replayed.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

import msgspec
import trio

from actors.messages.inbound import SentFile
from actors.messages.keys import chat_partition
from actors.protocol import StartTurn
from actors.services import Services
from actors.turn import machine as rules
from runtime.actor.committer import commit_until_decided
from runtime.errors import SequenceConflictError, StoreUnavailableError
from runtime.store.rows import Append, Commit, NewEvent, StoredEvent

ROUND = "round"
TOOL = "tool"
LEAVE = "leave"
JOINED = "joined"
TAKEN = "taken"  # pictures that go out with the answer
TOGETHER = "together"  # the session's: `actors/session/shared_turns.py`

STEPS: dict[str, type[rules.Step]] = {
    ROUND: rules.ModelReplied,
    TOOL: rules.ToolReturned,
    JOINED: rules.MessageInjected,
}
KINDS = {step: kind for kind, step in STEPS.items()}

Files = tuple[SentFile, ...]

PAGE = 1000

# Chosen: together as long as a database takes that fails over.
READ_AGAIN = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds between the tries to read steps."""


class ApprovalRecorded(msgspec.Struct, frozen=True, omit_defaults=True):
    """Event `leave`: people were asked about a call, or somebody decided about it."""

    call_id: str
    outcome: Literal["asked", "approved", "denied", "timeout", "unasked"]
    by: str = ""
    """Who decided, as `connector/sender_id`; `always`: an earlier approval holds."""

    why: str = ""
    """For the model, if the call may not run."""


class StepJournal:
    """The recorded steps of one turn.

    Args:
        start: the turn; has the stream, and whether there may be steps.
    """

    def __init__(self, start: StartTurn, services: Services) -> None:
        self._stream = start.steps
        self._message = start.inbound.id
        address = start.inbound.address
        self._part = chat_partition(address.connector, address.chat)
        self._may_be_there = start.may_have_steps
        self._services = services
        self._version = 0
        self.leaves: dict[str, ApprovalRecorded] = {}
        """The last record about the approval of each call, by the call's id."""

        self.taken: tuple[SentFile, ...] = ()
        """Pictures that an earlier attempt took from the agent's folder."""

        self._lock = trio.Lock()
        self.is_superseded = False
        """Whether another attempt at the same message has taken over; then this one
        must end."""

    async def read(self) -> list[rules.Step]:
        """Read the steps of earlier attempts, in order.

        A store that is away for a moment, as in a fail-over, is asked again.

        Raises:
            runtime.errors.StoreError: they cannot be read.
        """
        if not (self._may_be_there and self._stream):
            return []
        found: list[rules.Step] = []
        while True:
            events = await self._read_page()
            for event in events:
                self._version = event.sequence
                if event.kind in STEPS:
                    step = msgspec.json.decode(event.body, type=STEPS[event.kind])
                    found.append(step)
                elif event.kind == LEAVE:
                    noted = msgspec.json.decode(event.body, type=ApprovalRecorded)
                    self.leaves[noted.call_id] = noted
                elif event.kind == TAKEN:
                    self.taken = msgspec.json.decode(event.body, type=Files)
            if len(events) < PAGE:
                return found

    async def _read_page(self) -> tuple[StoredEvent, ...]:
        store = self._services.store
        for seconds in READ_AGAIN:
            try:
                return await store.read(self._stream, self._version, PAGE)
            except StoreUnavailableError:
                await trio.sleep(seconds)
        return await store.read(self._stream, self._version, PAGE)

    async def add(self, step: rules.Step) -> None:
        """Record a step; returns when it is durable, or when `is_superseded`."""
        await self._append(NewEvent(KINDS[type(step)], msgspec.json.encode(step)))

    async def note(self, noted: ApprovalRecorded) -> None:
        """Record a question or a decision about a call; as `add`."""
        await self._append(NewEvent(LEAVE, msgspec.json.encode(noted)))

    async def take(self, files: tuple[SentFile, ...]) -> None:
        """Record which pictures go out with the answer; as `add`."""
        self.taken = files
        await self._append(NewEvent(TAKEN, msgspec.json.encode(files)))

    async def _append(self, event: NewEvent) -> None:
        if not self._stream:
            return
        async with self._lock:  # results of parallel tools, one after the other
            store, make = self._services.store, partial(self._commit, event)
            try:
                await commit_until_decided(store, make, "step")
            except SequenceConflictError:
                self.is_superseded = True
            else:
                self._version += 1

    def _commit(self, event: NewEvent) -> Commit:
        journal = Append(
            stream=self._stream,
            expected=self._version,
            part=self._part,
            events=(event,),
            inbox_id=self._message,
        )
        return Commit(at=self._services.clock.wall(), appends=(journal,))
