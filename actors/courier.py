"""Delivers to one chat, in order, one message at a time; tries again when it must.

The shell of `rules/sending.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, assert_never

import msgspec
import trio

from actors import names
from actors.errors import DeliveryBusyError, DeliveryError, DeliveryUnknownError
from actors.protocol import Deliver, Delivered, Settled, ShowDraft, ShowTyping
from actors.receipts import Receipts, RecordAgain, Recorded
from actors.rules import sending as rules
from runtime.actor import Actor
from runtime.errors import DuplicateError, StoreUnavailableError
from runtime.logs import EventLog
from runtime.mailbox import MailboxConfig
from runtime.rows import Attempt, Commit, Receipt

if TYPE_CHECKING:
    from actors.messages import Delivery
    from actors.ports import Transport
    from actors.services import Services

LOG = EventLog("courier")

# Chosen: seconds until a receipt is stored again that the disk refused.
RETRY_COMMIT = 1.0


class Before(msgspec.Struct, frozen=True):
    """A note to the next incarnation: what this one knew."""

    said: tuple[str, ...]
    """Deliveries of late, oldest first."""

    in_doubt: str
    """The one that was being said; empty if none was."""

    attempts: int
    """How often the platform was asked for that one."""


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
        self._receipts = Receipts(services, self.note, self._tell_delivered)
        self._in_hand = ""
        self._sending: rules.Sending | None = None  # of the one in hand
        self._in_doubt = ""
        self._asked = 0  # for the one in doubt
        self._free_at = 0.0  # on trio's clock: when the next message may go out

    def may_passivate(self) -> bool:
        """Whether all receipts are stored."""
        return self._receipts.are_stored

    def on_failure(self, *_: object, **__: object) -> None:
        """Hand on the receipts that are not stored, so that nothing is said twice."""
        for receipt in reversed(self._receipts.waiting):
            self.requeue(RecordAgain(receipt))
        asked = self._sending.attempts if self._sending is not None else 0
        self.requeue(Before(self._receipts.said, self._in_hand, asked))

    def on_receive(self, message: object) -> object:
        """Do one thing in the chat."""
        match message:
            case Recorded():
                self._recorded(message)
            case RecordAgain(receipt=receipt):
                self._receipts.store(receipt)
            case Deliver():
                return self._deliver(message)
            case Before(said=said, in_doubt=in_doubt, attempts=attempts):
                self._receipts.remember(said)
                self._in_doubt, self._asked = in_doubt, attempts
            case ShowDraft(draft=draft):
                self._transport.show_draft(draft)
            case ShowTyping(typing=typing):
                self._transport.show_typing(typing)
            case Settled(inbound=inbound, reason=reason):
                return self._transport.settle(inbound.correlation_id, reason)
            case _:
                return super().on_receive(message)
        return None

    async def _deliver(self, message: Deliver) -> None:
        delivery = message.delivery
        # Asked before, pending again: a person wants it said once more.
        is_by_hand = message.attempts > 0 and not message.was_sending
        if self._receipts.has_said(delivery.id) and not is_by_hand:
            # Handed over twice: by a session and, around a restart, from the outbox.
            if not self._receipts.is_waiting(delivery.id):
                self._tell_delivered(delivery.id)
            return
        await self._keep_pace()
        self._in_hand = delivery.id
        began = self._services.clock.monotonic()
        end = await self._send(message)
        self._in_hand, self._sending = "", None
        seconds = self._services.clock.monotonic() - began
        self._services.metrics.stage("deliver", seconds)
        self._services.metrics.delivery(self._connector, end.state)
        if end.state != "sent":
            LOG.warning(
                "delivery given up",
                correlation_id=delivery.correlation_id,
                connector=self._connector,
                delivery=delivery.id,
                state=end.state,
                why=end.receipt,
            )
        receipt = Receipt(delivery.id, end.state, end.receipt, end.attempts)
        self._receipts.store(receipt)

    async def _keep_pace(self) -> None:
        """Wait until the platform takes another message in this chat."""
        pace = self._transport.abilities.pace
        if pace:
            await trio.sleep_until(self._free_at)
            self._free_at = trio.current_time() + pace

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

    def _tell_delivered(self, delivery_id: str) -> None:
        self.tell(names.connector(self._connector), Delivered(delivery_id))

    async def _send(self, message: Deliver) -> rules.End:
        """Bring it to its end: said, or given up."""
        delivery = message.delivery
        is_in_doubt = self._in_doubt == delivery.id
        was_sending = message.was_sending or is_in_doubt
        if was_sending and not self._transport.abilities.is_idempotent:
            self._services.metrics.delivery(self._connector, "in_doubt")
        sending = rules.Sending(
            self._transport.abilities,
            self._services.account(self._connector).on_unknown,
            attempts=self._asked if is_in_doubt else message.attempts,
            was_sending=was_sending,
        )
        self._sending = sending
        effect = sending.on(rules.Begins())
        while not isinstance(effect, rules.End):
            event = await self._carry_out(effect, delivery)
            effect = sending.on(event)
        return effect

    async def _carry_out(
        self,
        effect: rules.Mark | rules.Say | rules.LookUp | rules.Pause,
        delivery: Delivery,
    ) -> rules.Event:
        match effect:
            case rules.Mark(attempt=attempt):
                return await self._mark(delivery, attempt)
            case rules.Say():
                return await self._say(delivery)
            case rules.LookUp():
                return await self._look_up(delivery)
            case rules.Pause(seconds=seconds):
                await trio.sleep(seconds)
                return rules.Waited()
            case _:
                assert_never(effect)

    async def _mark(self, delivery: Delivery, attempt: int) -> rules.Event:
        """Store that the platform is about to be asked."""
        commit = Commit(
            at=self._services.clock.wall(), attempts=(Attempt(delivery.id, attempt),)
        )
        while True:
            try:
                await self._services.store.commit(commit)
            except StoreUnavailableError as error:
                LOG.warning("delivery waits for the disk", why=str(error))
                await trio.sleep(RETRY_COMMIT)
            except DuplicateError as error:
                return rules.Refused(str(error))  # dropped by hand, for one
            else:
                return rules.Marked()

    async def _say(self, delivery: Delivery) -> rules.Event:
        try:
            return rules.Said(await self._transport.deliver(delivery))
        except DeliveryBusyError as error:
            return rules.Busy(str(error), error.retry_after)
        except DeliveryUnknownError as error:
            self._services.metrics.delivery(self._connector, "in_doubt")
            return rules.Lost(str(error))
        except DeliveryError as error:
            return rules.Refused(str(error))

    async def _look_up(self, delivery: Delivery) -> rules.Event:
        try:
            return rules.LookedUp(await self._transport.look_up(delivery))
        except DeliveryBusyError as error:
            return rules.Busy(str(error), error.retry_after)
