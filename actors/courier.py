"""Delivers to one chat, in order, one message at a time; tries again when it must."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import trio

from actors import names
from actors.errors import DeliveryBusyError, DeliveryError
from actors.protocol import Deliver, Delivered, Settled, ShowDraft
from actors.receipts import Receipts, RecordAgain, Recorded
from runtime.actor import Actor
from runtime.errors import DuplicateError, StoreUnavailableError
from runtime.logs import EventLog
from runtime.mailbox import MailboxConfig
from runtime.store import Receipt

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
    # Chosen: six tries, each within a transport's own time-outs, and the waits between.
    deadline: ClassVar[float | None] = 1800.0

    def __init__(
        self, connector: str, transport: Transport, services: Services
    ) -> None:
        super().__init__()
        self._connector = connector
        self._transport = transport
        self._services = services
        self._receipts = Receipts(services, self.note)

    def may_passivate(self) -> bool:
        """Whether all receipts are stored."""
        return self._receipts.are_stored

    def on_failure(self, *_: object, **__: object) -> None:
        """Hand on the receipts that are not stored, so that nothing is said twice."""
        for receipt in reversed(self._receipts.waiting):
            self.requeue(RecordAgain(receipt))

    def on_receive(self, message: object) -> object:
        """Do one thing in the chat."""
        match message:
            case Recorded():
                self._recorded(message)
            case RecordAgain(receipt=receipt):
                self._receipts.store(receipt)
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
        if self._receipts.has_said(delivery.id):
            # Handed over twice: by a session and, around a restart, from the outbox.
            if not self._receipts.is_waiting(delivery.id):
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
        self._receipts.store(Receipt(delivery.id, state, word, tries))

    def _recorded(self, recorded: Recorded) -> None:
        outcome = recorded.outcome
        if isinstance(outcome, StoreUnavailableError):
            LOG.warning("receipt waits for the disk", why=str(outcome))
            self.after(RETRY_COMMIT, RecordAgain(recorded.receipt))
            return
        # A receipt that was not stored leaves the row pending: after a restart the
        # message may be said again, and that is the promise.
        if isinstance(outcome, Exception) and not isinstance(outcome, DuplicateError):
            LOG.warning("receipt not stored", why=str(outcome))
        self._receipts.drop(recorded.receipt)
        self._tell_delivered(recorded.receipt.delivery_id)

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
