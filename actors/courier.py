"""Delivers to one chat, in order, one message at a time; tries again when it must.

The shell of `rules/sending.py`. What has to wait for long, for its platform or for
the disk, is handed back: it stays in the outbox, and the connector hands it over again.
Until it has gone, so are all later deliveries of the chat.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, assert_never

import trio

from actors import marks, names
from actors.delivering import instead
from actors.drafting import Drafting, DraftsDue
from actors.errors import DeliveryBusyError, DeliveryError, DeliveryUnknownError
from actors.marks import RETRY_COMMIT
from actors.parked import Before, Parked
from actors.protocol import (
    Deliver,
    Delivered,
    Settled,
    ShowDraft,
    ShowTyping,
    Undelivered,
)
from actors.receipts import Receipts, RecordAgain, Recorded
from actors.rules import sending as rules
from actors.typists import TypingDue, Typists
from runtime.actor import Actor
from runtime.errors import DuplicateError, StoreError, StoreUnavailableError
from runtime.logs import EventLog
from runtime.mailbox import MailboxConfig
from runtime.rows import Receipt

if TYPE_CHECKING:
    from actors.deliveries import Delivery
    from actors.services import Services
    from actors.transport import Transport

LOG = EventLog("courier")

LONGEST_HOLD = rules.LONGEST_WAIT
"""Seconds of a pause that are waited out with the delivery in hand."""

# Chosen: a third of the deadline; the rest is left to the platform's last answer.
HAND_BACK_AFTER = 600.0
"""Seconds with one delivery in hand after which its next pause is not waited out."""

# Chosen: what is in the outbox comes again twice a minute, unless the disk fails.
FORGET_AFTER = 3600.0
"""Seconds after which what does not come again was dropped by hand."""


class Courier(Actor):
    """The way out to one chat.

    Takes: `Deliver`, `ShowDraft`, `Settled`, in the order of the chat.
    Sends: receipts to the store; `Delivered` and `Undelivered` to its connector.
    Keeps: what it said of late, receipts that the disk has not taken yet, and which
        deliveries it handed back.
    Fails: when a transport breaks; the delivery is tried again, three times in all,
        and stays in the outbox.
    Ends: when its chat has been silent for a while, all receipts are stored and
        nothing that was handed back is to come again.
    """

    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=10_000)
    # Chosen: `HAND_BACK_AFTER`, and twice as long for a transport's own time-outs.
    deadline: ClassVar[float | None] = 1800.0

    def __init__(
        self, connector: str, transport: Transport, services: Services
    ) -> None:
        super().__init__()
        self._connector = connector
        self._transport = transport
        self._services = services
        self._receipts = Receipts(services)
        self._in_hand = ""
        self._sending: rules.Sending | None = None  # of the one in hand
        self._in_doubt = ""
        self._asked = 0  # for the one in doubt
        self._line = rules.Line()
        self._parked: Parked | None = None  # the first in line, if any
        self._handed_back_at = 0.0
        self._drafting = Drafting(connector, transport, services)
        self._typists = Typists(transport, services)

    def may_passivate(self) -> bool:
        """Whether all receipts are stored, and nothing is to come again."""
        quiet = trio.current_time() - self._handed_back_at
        is_awaiting = len(self._line) > 0 and quiet < FORGET_AFTER
        is_seen = self._typists.is_empty and self._drafting.is_quiet
        return self._receipts.are_stored and is_seen and not is_awaiting

    def on_failure(self, *_: object, **__: object) -> None:
        """Hand on the receipts that are not stored, so that nothing is said twice."""
        for receipt in reversed(self._receipts.waiting):
            self.requeue(RecordAgain(receipt))
        asked = self._sending.attempts if self._sending is not None else 0
        said, line = self._receipts.said, self._line.deliveries
        drafts = self._drafting.open
        self.requeue(Before(said, self._in_hand, asked, self._parked, line, drafts))

    def on_receive(self, message: object) -> object:
        """Do one thing in the chat."""
        match message:
            case Recorded():
                self._recorded(message)
            case RecordAgain(receipt=receipt):
                self._receipts.store(receipt, self)
            case Deliver():
                return self._deliver(message)
            case Before():
                self._remember(message)
            case Settled():
                return self._settle(message)
            case _:
                return self._show(message)
        return None

    def _show(self, message: object) -> object:
        """Show what is no message yet."""
        match message:
            case ShowDraft(draft=draft):
                return self._drafting.take(draft, self)
            case DraftsDue():
                return self._drafting.wake(self)
            case ShowTyping(typing=typing):
                self._typists.take(typing, self)
            case TypingDue():
                self._typists.wake(self)
            case _:
                return super().on_receive(message)
        return None

    async def _settle(self, settled: Settled) -> None:
        inbound = settled.inbound
        await self._drafting.settle(inbound.id)
        await self._transport.settle(inbound.correlation_id, settled.reason)

    def _remember(self, before: Before) -> None:
        self._receipts.remember(before.said)
        self._in_doubt, self._asked = before.in_doubt, before.attempts
        self._parked, self._handed_back_at = before.parked, trio.current_time()
        self._drafting.open = before.drafts
        for delivery_id in before.line:
            self._line.join(delivery_id)

    async def _deliver(self, message: Deliver) -> None:
        delivery_id, is_new = message.delivery.id, not message.is_again
        # Why the second: what is said only now, and not stored to be, comes again so.
        if message.is_by_hand and not self._receipts.is_waiting(delivery_id):
            self._receipts.forget(delivery_id)
        if self._receipts.has_said(delivery_id):
            # Handed over twice: by a session and, around a restart, from the outbox.
            if not self._receipts.is_waiting(delivery_id):
                self.tell_delivered(delivery_id)
        elif not self._line.may_go(delivery_id, is_new=is_new) or self._must_wait(
            delivery_id
        ):
            self._hand_back(delivery_id)
        elif not await self._is_known(message):
            self._line.join(delivery_id)
            self._hand_back(delivery_id)
        else:
            await self._drafting.keep_pace(message.delivery)
            await self._bring(message)

    async def _is_known(self, message: Deliver) -> bool:
        """Find what was shown of it while it was written; False: not yet."""
        delivery = message.delivery
        if self._receipts.are_refused:
            return False  # else a crash would have more than one be said again
        try:
            await self._drafting.look(delivery)
        except StoreError as error:
            LOG.warning("delivery waits for the disk", why=str(error))
            return False
        if delivery.is_aside:
            await self._drafting.beside(delivery)
        elif message.was_sending and self._drafting.is_edited(delivery):
            self._drafting.let_go(delivery)  # it was being said beside them
        return True

    def _must_wait(self, delivery_id: str) -> bool:
        parked = self._parked
        if parked is None or parked.delivery_id != delivery_id:
            return False
        return parked.until - trio.current_time() > LONGEST_HOLD

    def _hand_back(self, delivery_id: str) -> None:
        """Leave it in the outbox for now; it will be handed over again."""
        self._handed_back_at = trio.current_time()
        self.tell(names.connector(self._connector), Undelivered(delivery_id))

    async def _bring(self, message: Deliver) -> None:
        """Bring it to its end, or as far as it goes now."""
        delivery = message.delivery
        self._in_hand = delivery.id
        began = self._services.clock.monotonic()
        end = await self._send(message)
        self._in_hand, self._sending = "", None
        if end is None:
            self._line.join(delivery.id)
            self._hand_back(delivery.id)
            return
        self._line.leave(delivery.id)
        if isinstance(end, rules.LetGo):
            await self._let_go(delivery, end.why)
            return
        if delivery.is_aside and end.state == "sent":
            now = self._services.clock.monotonic()
            self._services.board.note_shown(delivery.id, now)
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
        is_repeatable = self._transport.abilities.is_idempotent
        self._receipts.store(receipt, self, may_wait=is_repeatable)
        # Why after: what is stored to be over is not looked for again.
        await self._drafting.conclude(delivery)

    async def _let_go(self, delivery: Delivery, why: str) -> None:
        """Say no more of what somebody has settled."""
        LOG.info("delivery let go", delivery=delivery.id, why=why)
        # Why no receipt: should it be retried in this moment, that would end it.
        self._receipts.remember((delivery.id,))
        self.tell_delivered(delivery.id)
        await self._drafting.conclude(delivery)

    def _recorded(self, recorded: Recorded) -> None:
        outcome = recorded.outcome
        if isinstance(outcome, StoreUnavailableError):
            LOG.warning("receipt waits for the disk", why=str(outcome))
            self._receipts.refuse(recorded.receipt)
            self.after(RETRY_COMMIT, RecordAgain(recorded.receipt))
            return
        # A receipt that was not stored leaves the row pending: after a restart the
        # message may be said again, and that is the promise.
        if isinstance(outcome, Exception) and not isinstance(outcome, DuplicateError):
            LOG.warning("receipt not stored", why=str(outcome))
        self._receipts.drop(recorded.receipt)

    def tell_delivered(self, delivery_id: str) -> None:
        """Say that a delivery's receipt is stored, or never will be."""
        self.tell(names.connector(self._connector), Delivered(delivery_id))

    async def _send(self, message: Deliver) -> rules.End | rules.LetGo | None:
        """Bring it to its end: said, or given up, or let go; None: it is parked."""
        delivery = message.delivery
        counts = self._transport.abilities.counts_answers
        if delivery.kind == "silence" and not counts:
            return rules.End("sent", "", 0)
        hold_until = trio.current_time() + HAND_BACK_AFTER
        sending, effect = self._take_up(message)
        self._sending = sending
        while not isinstance(effect, rules.End | rules.LetGo):
            event = await self._carry_out(effect, delivery, hold_until)
            if event is None:
                self._park(delivery, sending, effect)
                return None
            effect = sending.on(event, trio.current_time())
        return effect

    def _take_up(self, message: Deliver) -> tuple[rules.Sending, rules.Effect]:
        """Go on with a delivery that was handed back, or begin with it."""
        parked, self._parked = self._parked, None
        now = trio.current_time()
        if parked is None or parked.delivery_id != message.delivery.id:
            sending = self._begin(message)
            return sending, sending.on(rules.Begins(), now)
        if isinstance(parked.effect, rules.Pause):
            return parked.sending, rules.Pause(max(parked.until - now, 0.0))
        return parked.sending, parked.effect

    def _begin(self, message: Deliver) -> rules.Sending:
        is_in_doubt = self._in_doubt == message.delivery.id
        was_sending = message.was_sending or is_in_doubt
        if was_sending and not self._transport.abilities.is_idempotent:
            self._services.metrics.delivery(self._connector, "in_doubt")
        waited = self._services.clock.monotonic() - message.handed_at
        return rules.Sending(
            self._transport.abilities,
            self._services.account(self._connector).on_unknown,
            attempts=self._asked if is_in_doubt else message.attempts,
            was_sending=was_sending,
            is_edit=self._drafting.is_edited(message.delivery),
            has_waited=waited > rules.WAITED_AFTER,
        )

    def _park(
        self, delivery: Delivery, sending: rules.Sending, effect: rules.Effect
    ) -> None:
        waits_for, seconds = "the disk", 0.0
        if isinstance(effect, rules.Pause):
            waits_for, seconds = "the platform", effect.seconds
        until = trio.current_time() + seconds
        self._parked = Parked(delivery.id, sending, effect, until)
        LOG.warning(
            "delivery handed back",
            correlation_id=delivery.correlation_id,
            connector=self._connector,
            delivery=delivery.id,
            waits_for=waits_for,
            seconds=seconds,
        )

    async def _carry_out(
        self,
        effect: rules.Mark | rules.Say | rules.LookUp | rules.Pause,
        delivery: Delivery,
        hold_until: float,
    ) -> rules.Event | None:
        """Do it; None: it takes longer than this handler may."""
        match effect:
            case rules.Mark():
                return await marks.mark(effect, delivery, self._services)
            case rules.Say():
                return await self._say(delivery)
            case rules.LookUp():
                return await self._look_up(delivery)
            case rules.Pause(seconds=seconds, unsaid=unsaid):
                if unsaid:
                    marks.put_back(delivery, unsaid, self._services)
                until = trio.current_time() + seconds
                if seconds > LONGEST_HOLD or until > hold_until:
                    return None
                await trio.sleep_until(until)
                return rules.Waited()
            case _:
                assert_never(effect)

    async def _say(self, delivery: Delivery) -> rules.Event:
        is_edit = self._drafting.is_edited(delivery)
        try:
            return rules.Said(await self._drafting.say(delivery))
        except DeliveryBusyError as error:
            return rules.Busy(str(error), error.retry_after)
        except DeliveryUnknownError as error:
            self._services.metrics.delivery(self._connector, "in_doubt")
            return rules.Lost(str(error))
        except DeliveryError as error:
            if is_edit:
                self._drafting.let_go(delivery)
                return rules.Gone()
            if delivery.file is not None:
                return await self._say_instead(delivery, str(error))
            return rules.Refused(str(error))

    async def _say_instead(self, delivery: Delivery, why: str) -> rules.Event:
        """Say in words that a platform has refused a file."""
        self._services.metrics.delivery(self._connector, "file_refused")
        LOG.warning("file refused", delivery=delivery.id, why=why)
        await trio.lowlevel.checkpoint()
        return await self._say(instead(delivery, why))

    async def _look_up(self, delivery: Delivery) -> rules.Event:
        try:
            return rules.LookedUp(await self._transport.look_up(delivery))
        except DeliveryBusyError as error:
            return rules.Busy(str(error), error.retry_after)
