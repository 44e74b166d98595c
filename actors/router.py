"""The router: takes messages from connectors and agents, and what was left unanswered.

Who hears them is decided in `deciding.py`.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, ClassVar

from actors import commits, names
from actors.deciding import RETRY_COMMIT, Deciding
from actors.late import Late
from actors.protocol import (
    DrainOutbox,
    Replied,
    Route,
    StopCaused,
    TakeUp,
)
from actors.router_notes import (
    HandOn,
    ReplaceDue,
    SweepDue,
    TakeUpDue,
)
from actors.rules.backlog import Backlog
from actors.staffing import ReplaceTable
from actors.unheard import Unheard, place, read_back, read_open, tell_found
from runtime.errors import StoreUnavailableError
from runtime.logs import EventLog
from runtime.mailbox import MailboxConfig

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from collections.abc import Set as AbstractSet

    from actors.late import Left
    from actors.rules.allotted import Allotted
    from actors.services import Services

LOG = EventLog("router")

SWEEP_EVERY = 60.0
"""Seconds between looks for messages that nobody told of: their connector, or their
session, may have been killed with its whole branch before it could. Whoever has such
a message in hand knows it, and takes it no second time."""

# Chosen: an agent starts its sessions right after itself.
TAKE_UP_AFTER = 1.0
"""Seconds until unanswered messages are looked for."""

# Chosen: a thousand a second. Waking ten thousand conversations at once keeps the
# process from answering anybody, and from saying that it is ready, for seconds.
HANDED_AT_ONCE = 100
"""Messages taken up that are handed out in one go."""

HAND_ON_EVERY = 0.1
"""Seconds between two goes."""


class Router(Deciding):
    """Hands each message to the sessions of the agents that hear it.

    Takes: `Route`, from connectors and, for what agents hand on, from sessions;
        `Replied` and `StopCaused` from sessions; `TakeUp` from whoever was restarted;
        `ReplaceTable` from `staff`.
    Sends: `Hear` and `StopCaused` to sessions; `Deliver` or `Settled` about what
        nobody hears.
    Keeps: its table, whom agents answered lately, what waits behind a message that
        several agents hear, what was taken up until all of it is handed out, and what
        came new behind that.
    Fails: never by a message.
    Ends: with the system. When it starts, it routes again what was accepted and
        never settled.
    """

    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=100_000)

    def __init__(
        self, allotted: Allotted, connectors: AbstractSet[str], services: Services
    ) -> None:
        super().__init__(allotted, services)
        self._connectors = connectors
        self._newest: ReplaceTable | None = None
        self._is_taking_up = False
        self._is_handing_on = False
        self._taken_up: Backlog[Left] = Backlog()
        """What is still to be handed out: what comes new in its chats waits behind.
        Its rows are read when their turn comes, so that the first need not wait."""

        self._late = Late()

    async def on_start(self) -> None:
        """Route again what an earlier process accepted and did not settle."""
        self.every(SWEEP_EVERY, SweepDue())
        await self._hearing.read()
        tell_found(await self._find(), self._connectors)
        self._hand_on()

    def on_receive(self, message: object) -> object:
        """Route, or go on after a commit."""
        match message:
            case Route(inbound=inbound, number=number, arrived_at=at):
                self._hear_of(Unheard(inbound, number, arrived_at=at))
            case StopCaused():
                self._stop_caused(message)
            case Replied():
                self._hearing.answered(message)
            case TakeUp() | TakeUpDue() | SweepDue() | HandOn():
                return self._on_taken_up(message)
            case ReplaceTable() | ReplaceDue():
                return self._replace_table(message)
            case _:
                return super().on_receive(message)
        return None

    def _on_taken_up(self, message: TakeUp | TakeUpDue | SweepDue | HandOn) -> object:
        match message:
            case TakeUp():
                return self._take_up_soon()
            case TakeUpDue():
                return self._take_up_again()
            case SweepDue():  # what is due soon finds the same
                return None if self._is_taking_up else self._take_up_again()
            case HandOn():
                self._is_handing_on = False
                self._hand_on()
        return None

    # --- what was left unanswered ---------------------------------------------------

    def _take_up_soon(self) -> Awaitable[object] | None:
        """Give who asked for it time to start; several who ask are one.

        What is new meanwhile goes behind what was left of its chat, so that has to be
        known at once.
        """
        if self._is_taking_up:
            return None
        self._is_taking_up = True
        self.after(TAKE_UP_AFTER, TakeUpDue())
        return self._look()

    async def _take_up_again(self) -> None:
        self._is_taking_up = False
        # Before: what was stored goes out before what is said next in the same chat.
        for name in self._connectors:
            self.tell(names.connector(name), DrainOutbox())
        if await self._look():
            late, self._late = self._late, Late()
            for chat in late.chats:  # nobody waits for the chats of others
                self._route_all(self._taken_up.hurry(chat, HANDED_AT_ONCE))
            self._hand_on()
        else:
            self._is_taking_up = True
            self.after(TAKE_UP_AFTER, TakeUpDue())

    async def _look(self) -> bool:
        """Look for what is not settled; whether the disk lets it."""
        try:
            await self._find()
        except StoreUnavailableError as error:
            LOG.warning("messages not taken up yet", why=str(error))
            return False
        return True

    async def _find(self) -> Counter[str]:
        """Find what is not settled; give how many there are of each connector."""
        found: Counter[str] = Counter()
        rows = await read_open(self._services.store)
        found.update(row.connector for row in rows)
        self._hearing.sweep(min((row.at for row in rows), default=math.inf))
        mine = [row for row in rows if row.connector in self._connectors]
        self._allotted.forget_all_but({row.id for row in mine})
        # Copies for further agents stand where their original stands. What an earlier
        # look found and is not handed out yet is among them.
        mine.sort(key=place)
        self._taken_up.refill(
            (row.stream, each) for row in mine for each in self._late.put_in(row)
        )
        return found

    async def _replace_table(self, message: ReplaceTable | ReplaceDue) -> None:
        """Route what is new by another table; what somebody has goes its old way."""
        if isinstance(message, ReplaceTable):
            self._newest = message
        if (newest := self._newest) is None:
            return
        try:
            rows = await read_open(self._services.store)
        except StoreUnavailableError as error:
            LOG.warning("agents not taken over yet", why=str(error))
            self.after(RETRY_COMMIT, ReplaceDue())
            return
        still_open = [each.inbound for row in rows for each in read_back(row)]
        self._allotted.replace(newest.table, newest.finishing, still_open)
        self._newest = None

    def _hand_on(self) -> None:
        """Hand out some of what was taken up, and the rest later."""
        if self._is_handing_on:
            return
        self._route_all(self._taken_up.take(HANDED_AT_ONCE))
        if self._taken_up:
            self._is_handing_on = True
            self.after(HAND_ON_EVERY, HandOn())

    def _hear_of(self, unheard: Unheard) -> None:
        """Route what is new, behind what was taken up of the same chat.

        That is handed out at once, so that nobody waits for the chats of others; or
        soon with it, while whoever is to hear it may not be up yet.
        """
        stream = commits.chat_stream(unheard.inbound)
        is_left = stream in self._taken_up or stream in self._late
        if is_left and self._is_taking_up:
            self._late.add(stream, unheard)
        elif stream in self._taken_up:
            self._taken_up.add(stream, unheard)
            self._route_all(self._taken_up.hurry(stream, HANDED_AT_ONCE))
        else:
            self._route(unheard)

    def _stop_caused(self, stop: StopCaused) -> None:
        """Stop what runs, and behind what waits in its chat that, too."""
        self._late.stop(commits.chat_stream(stop.by), stop)
        super()._stop_caused(stop)

    def _route_all(self, taken: list[Left]) -> None:
        for each in taken:
            if isinstance(each, StopCaused):
                self._stop_caused(each)
                continue
            for unheard in (each,) if isinstance(each, Unheard) else read_back(each):
                self._route(unheard)
