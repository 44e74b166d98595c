"""The journal of one message's turn: what a cut off turn is resumed from.

Each model answer that asks for tools, each tool's result, words of people that were put
in between, and whatever somebody decided about a call, is one event of a stream of its
own, stored before the turn goes on. The final answer is not: it is stored with the
reply, by the session. The steps belong to the message: they are kept as long as its
row, so that it can be tried again by hand, and replayed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec
import trio

from actors.messages import SentFile
from actors.rules import turn as rules
from actors.rules.keys import chat_partition
from runtime.errors import SequenceConflictError, StoreUnavailableError
from runtime.logs import EventLog
from runtime.rows import Append, Commit, NewEvent

if TYPE_CHECKING:
    from actors.protocol import StartTurn
    from actors.services import Services

LOG = EventLog("turn")

ROUND = "round"
TOOL = "tool"
LEAVE = "leave"
JOINED = "joined"
TAKEN = "taken"  # pictures that go out with the answer
TOGETHER = "together"  # the session's: `together.py`

STEPS: dict[str, type[rules.Step]] = {
    ROUND: rules.ModelReplied,
    TOOL: rules.ToolReturned,
    JOINED: rules.Joined,
}
KINDS = {step: kind for kind, step in STEPS.items()}

Files = tuple[SentFile, ...]

PAGE = 1000

# Chosen: seconds until a step is stored again that the disk refused; the turn's own
# time goes on meanwhile.
RETRY_COMMIT = 1.0


class LeaveNoted(msgspec.Struct, frozen=True, omit_defaults=True):
    """Event `leave`: somebody was asked about a call, or decided about it."""

    call_id: str
    outcome: Literal["asked", "approved", "denied", "timeout", "unasked"]
    by: str = ""
    """Who decided, as `connector/sender_id`; `always`: it held from before."""

    why: str = ""
    """For the model, if the call may not run."""


class Steps:
    """The recorded steps of one turn.

    Args:
        start: which turn; says the stream, and whether there may be steps.
        services: store and clock.
    """

    def __init__(self, start: StartTurn, services: Services) -> None:
        self._stream = start.steps
        self._message = start.inbound.id
        address = start.inbound.address
        self._part = chat_partition(address.connector, address.chat)
        self._may_be_there = start.may_have_steps
        self._services = services
        self._version = 0
        self.leaves: dict[str, LeaveNoted] = {}
        """What earlier attempts recorded last of the leave for a call, by its id."""

        self.taken: tuple[SentFile, ...] = ()
        """Pictures that an earlier attempt took out of the agent's folder."""

        self._lock = trio.Lock()
        self.is_superseded = False
        """Whether another attempt at the same message goes on with it; this one must
        end then."""

    async def read(self) -> list[rules.Step]:
        """Give what earlier attempts recorded, in order.

        Raises:
            runtime.errors.StoreError: it cannot be read.
        """
        if not (self._may_be_there and self._stream):
            return []
        found: list[rules.Step] = []
        while True:
            events = await self._services.store.read(self._stream, self._version, PAGE)
            for event in events:
                self._version = event.sequence
                if event.kind in STEPS:
                    step = msgspec.json.decode(event.body, type=STEPS[event.kind])
                    found.append(step)
                elif event.kind == LEAVE:
                    noted = msgspec.json.decode(event.body, type=LeaveNoted)
                    self.leaves[noted.call_id] = noted
                elif event.kind == TAKEN:
                    self.taken = msgspec.json.decode(event.body, type=Files)
            if len(events) < PAGE:
                return found

    async def add(self, step: rules.Step) -> None:
        """Record a step; comes back when it is durable, or `is_superseded`."""
        await self._append(NewEvent(KINDS[type(step)], msgspec.json.encode(step)))

    async def note(self, noted: LeaveNoted) -> None:
        """Record what is known of the leave for a call; as `add`."""
        await self._append(NewEvent(LEAVE, msgspec.json.encode(noted)))

    async def take(self, files: tuple[SentFile, ...]) -> None:
        """Record which pictures go out with the answer; as `add`."""
        self.taken = files
        await self._append(NewEvent(TAKEN, msgspec.json.encode(files)))

    async def _append(self, event: NewEvent) -> None:
        if not self._stream:
            return
        async with self._lock:  # results of parallel tools, one after the other
            while True:
                try:
                    await self._services.store.commit(self._commit(event))
                except StoreUnavailableError as error:
                    LOG.warning("step not stored yet", why=str(error))
                    await trio.sleep(RETRY_COMMIT)
                except SequenceConflictError:
                    self.is_superseded = True
                    return
                else:
                    self._version += 1
                    return

    def _commit(self, event: NewEvent) -> Commit:
        journal = Append(
            stream=self._stream,
            expected=self._version,
            part=self._part,
            events=(event,),
            inbox_id=self._message,
        )
        return Commit(at=self._services.clock.wall(), appends=(journal,))
