"""Delivers to one chat, in order, one message at a time; tries again when it must."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, ClassVar

import msgspec
import trio

from actors import names
from actors.errors import DeliveryBusyError, DeliveryError
from actors.protocol import Deliver, Delivered, Settled, ShowDraft
from runtime.actor import Actor
from runtime.errors import DuplicateError, StoreUnavailableError
from runtime.logs import EventLog
from runtime.mailbox import MailboxConfig
from runtime.store import Commit, Committed, Receipt

if TYPE_CHECKING:
    from actors.messages import Delivery
    from actors.ports import Transport
    from actors.services import Services
    from runtime.store import ReceivedState

LOG = EventLog("courier")

# Chosen: six tries over about half a minute, unless the platform says how long to
# wait; then the delivery is dead and says so in the outbox.
TRIES = 6
FIRST_WAIT = 1.0
LONGEST_WAIT = 60.0

# Chosen: seconds until a receipt is stored again that the disk refused.
RETRY_COMMIT = 1.0

# Chosen: more than one chat has under way around a restart.
REMEMBERED = 1000


class Recorded(msgspec.Struct, frozen=True):
    """A note to itself: what became of a receipt's commit."""

    delivery_id: str
    outcome: Committed | Exception


class RecordAgain(msgspec.Struct, frozen=True):
    """A note to itself: try to store a receipt again."""

    delivery_id: str


class Courier(Actor):
    """The way out to one chat.

    Takes: `Deliver`, `ShowDraft`, `Settled`, in the order of the chat.
    Sends: receipts to the store, `Delivered` to its connector.
    Keeps: what it said of late, and receipts that the disk has not taken yet.
    Fails: when a transport breaks; the delivery is tried again, three times in all,
        and stays in the outbox.
    Ends: when its chat has been silent for a while and all receipts are stored.
    """

    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=10_000)
    deadline: ClassVar[float | None] = 600.0

    def __init__(
        self, connector: str, transport: Transport, services: Services
    ) -> None:
        super().__init__()
        self._connector = connector
        self._transport = transport
        self._services = services
        self._receipts: dict[str, Receipt] = {}
        self._done: deque[str] = deque(maxlen=REMEMBERED)

    def may_passivate(self) -> bool:
        """Whether all receipts are stored."""
        return not self._receipts

    def on_receive(self, message: object) -> object:
        """Do one thing in the chat."""
        match message:
            case Recorded():
                self._recorded(message)
            case RecordAgain(delivery_id=delivery_id):
                self._record(self._receipts[delivery_id])
            case Deliver(delivery=delivery):
                return self._deliver(delivery)
            case ShowDraft(draft=draft):
                self._transport.show_draft(draft)
                return None
            case Settled(inbound=inbound, reason=reason):
                return self._transport.settle(inbound.correlation_id, reason)
            case _:
                return super().on_receive(message)
        return None

    async def _deliver(self, delivery: Delivery) -> None:
        if delivery.id in self._done:
            # Handed over twice: by a session and, around a restart, from the outbox.
            if delivery.id not in self._receipts:
                self._tell_delivered(delivery.id)
            return
        began = self._services.clock.monotonic()
        state, word, tries = await self._send(delivery)
        seconds = self._services.clock.monotonic() - began
        self._services.metrics.stage("deliver", seconds)
        self._services.metrics.delivery(self._connector, state)
        if state == "dead":
            LOG.warning(
                "delivery given up",
                correlation_id=delivery.correlation_id,
                connector=self._connector,
                delivery=delivery.id,
                why=word,
            )
        self._done.append(delivery.id)
        receipt = Receipt(delivery.id, state, word, tries)
        self._receipts[delivery.id] = receipt
        self._record(receipt)

    def _record(self, receipt: Receipt) -> None:
        commit = Commit(at=self._services.clock.wall(), receipts=(receipt,))
        note, delivery_id = self.note, receipt.delivery_id
        self._services.store.submit(
            commit, lambda outcome: note(Recorded(delivery_id, outcome))
        )

    def _recorded(self, recorded: Recorded) -> None:
        outcome, delivery_id = recorded.outcome, recorded.delivery_id
        if isinstance(outcome, StoreUnavailableError) and delivery_id in self._receipts:
            LOG.warning("receipt waits for the disk", why=str(outcome))
            self.after(RETRY_COMMIT, RecordAgain(delivery_id))
            return
        # A receipt that was not stored leaves the row pending: after a restart the
        # message may be said again, and that is the promise.
        if isinstance(outcome, Exception) and not isinstance(outcome, DuplicateError):
            LOG.warning("receipt not stored", why=str(outcome))
        self._receipts.pop(delivery_id, None)
        self._tell_delivered(delivery_id)

    def _tell_delivered(self, delivery_id: str) -> None:
        self.tell(names.connector(self._connector), Delivered(delivery_id))

    async def _send(self, delivery: Delivery) -> tuple[ReceivedState, str, int]:
        """Try until it is said, or never will be: (state, receipt or why, tries)."""
        wait = FIRST_WAIT
        for attempt in range(1, TRIES + 1):
            try:
                return "sent", await self._transport.deliver(delivery), attempt
            except DeliveryBusyError as error:
                if attempt == TRIES:
                    return "dead", str(error), attempt
                asked = error.retry_after if error.retry_after is not None else wait
                await trio.sleep(min(max(asked, 0.0), LONGEST_WAIT))
                wait *= 2
            except DeliveryError as error:
                return "dead", str(error), attempt
        raise AssertionError("unreachable: the last attempt returns")
