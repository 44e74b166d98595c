"""The courier: delivers to one chat, one message at a time and in order, with retries.

It carries out what `retry.py` decides. A delivery that has to wait long, for its
platform or for the disk, is handed back: it stays in the outbox, the connector hands it
over again, and until then all later deliveries of the chat are handed back, too. What
was delivered lately, and which receipts are not stored yet, is kept in `Receipts`.
"""

from __future__ import annotations

from typing import ClassVar, assert_never

import msgspec
import trio

from actors import names
from actors.config.presence import TYPING_EVERY
from actors.errors import DeliveryBusyError, DeliveryError, DeliveryUnknownError
from actors.journal.outbox import instead
from actors.messages.deliveries import Delivery, Typing
from actors.messages.tracing import TracedStep
from actors.outbound import retry as rules
from actors.outbound.drafts import DraftedReply, Drafting, DraftsDue
from actors.protocol import (
    AsideShown,
    Deliver,
    Delivered,
    MessageSettled,
    ShowDraft,
    ShowTyping,
    Undelivered,
)
from actors.services import Services
from actors.transport import Transport
from runtime.actor.actor import Actor
from runtime.actor.committer import Committer, commit_until_decided
from runtime.actor.mailbox import MailboxConfig
from runtime.actor.timers import Timer
from runtime.errors import DuplicateError, StoreError, StoreUnavailableError
from runtime.store.rows import Commit, Committed, NotSaid, Receipt, SendAttempt
from runtime.telemetry.logs import EventLog

# Chosen: more than one chat has under way around a restart.
REMEMBERED = 1000


class ReceiptStored(msgspec.Struct, frozen=True):
    """A courier's note to itself: the outcome of a receipt's commit."""

    receipt: Receipt
    outcome: Committed | Exception


class StoreReceipt(msgspec.Struct, frozen=True):
    """A courier's note to its next incarnation: store a receipt."""

    receipt: Receipt


class Receipts:
    """The receipts of one chat.

    Args:
        connector: told `Delivered` about each receipt, also when the courier has ended.
    """

    __slots__ = (
        "_committer",
        "_connector",
        "_services",
        "_waiting",
        "said",
    )

    def __init__(self, connector: str, services: Services) -> None:
        self._connector = connector
        self._services = services
        self._committer = Committer(services.store)
        self._waiting: dict[str, Receipt] = {}
        # Oldest first. Why no deque: an empty one takes 600 bytes, for each chat; and
        # each message looks its id up here.
        self.said: dict[str, None] = {}
        """Ids of recent deliveries that were sent or given up, oldest first."""

    @property
    def are_stored(self) -> bool:
        """Whether all receipts are stored."""
        return not self._waiting

    @property
    def are_refused(self) -> bool:
        """Whether the disk has refused a receipt that is not stored yet."""
        return self._committer.refused > 0

    @property
    def waiting(self) -> tuple[Receipt, ...]:
        """The receipts that are not stored yet, oldest first."""
        return tuple(self._waiting.values())

    def remember(self, said: tuple[str, ...]) -> None:
        """Add ids of recent deliveries, such as those of the incarnation before."""
        self.said.update(dict.fromkeys(said))
        while len(self.said) > REMEMBERED:
            del self.said[next(iter(self.said))]

    def forget(self, delivery_id: str) -> None:
        """Allow a delivery to be sent once more."""
        self.said.pop(delivery_id, None)

    def is_waiting(self, delivery_id: str) -> bool:
        """Whether a delivery's receipt is not stored yet."""
        return delivery_id in self._waiting

    def store(
        self, receipt: Receipt, courier: Actor, *, may_wait: bool = False
    ) -> None:
        """Store a receipt.

        Args:
            courier: told `ReceiptStored`; kept here, it would be in a reference cycle.
            may_wait: whether the commit may wait for others. Should the process end
                before, the message is sent again, so only where that does no harm.
        """
        if receipt.delivery_id not in self._waiting:
            self._waiting[receipt.delivery_id] = receipt
            self.remember((receipt.delivery_id,))

        def make() -> Commit:
            now = self._services.clock.wall()
            return Commit(at=now, receipts=(receipt,), may_wait=may_wait)

        def done(outcome: Committed | Exception) -> None:
            courier.note(ReceiptStored(receipt, outcome))
            self.tell_delivered(receipt.delivery_id, courier)

        self._committer.submit(courier, make, done, "receipt")

    def tell_delivered(self, delivery_id: str, courier: Actor) -> None:
        """Tell the connector that a receipt is stored, or never will be."""
        delivered = Delivered(delivery_id)
        courier.tell(names.connector(self._connector), delivered)

    def drop(self, receipt: Receipt) -> None:
        """Forget a receipt that is stored, or never will be."""
        self._waiting.pop(receipt.delivery_id, None)
        if not self._waiting:
            self._waiting = {}  # an emptied dict is three times as large


# Chosen: two lost signals end no indicator.
MISSED = 3
"""Typing signals of an agent that may fail to come before it counts as stopped."""

MOST = 64
"""Most answers of one chat that show a typing indicator."""


class TypingDue(msgspec.Struct, frozen=True):
    """A courier's note to itself: end indicators that got no typing signal lately."""


class TypingIndicators:
    """The typing indicators of one chat; the courier passes itself in."""

    __slots__ = ("_known", "_services", "_timer", "_transport")

    def __init__(self, transport: Transport, services: Services) -> None:
        self._transport = transport
        self._services = services
        self._known: dict[str, tuple[Typing, float]] = {}
        self._timer: Timer | None = None

    @property
    def _patience(self) -> float:
        return MISSED * TYPING_EVERY

    @property
    def is_empty(self) -> bool:
        """Whether no indicator is shown."""
        return not self._known

    def take(self, typing: Typing, courier: Actor) -> None:
        """Take one typing signal: show an indicator, keep it, or end it."""
        is_new = typing.reply_id not in self._known
        if typing.is_over:
            self._end(typing)
            return
        if is_new and len(self._known) >= MOST:
            return
        self._known[typing.reply_id] = (typing, trio.current_time() + self._patience)
        if is_new or self._transport.abilities.typing_for:
            self._transport.show_typing(typing)
        if self._timer is None:
            self._timer = courier.after(self._patience, TypingDue())

    def wake(self, courier: Actor) -> None:
        """End the indicators that got no typing signal lately."""
        self._timer = None
        now = trio.current_time()
        for typing, until in tuple(self._known.values()):
            if until <= now:
                self._end(typing)
        if self._known:
            first = min(until for _, until in self._known.values())
            self._timer = courier.after(max(0.0, first - now), TypingDue())

    def _end(self, typing: Typing) -> None:
        if self._known.pop(typing.reply_id, None) is None:
            return
        if not self._known:
            self._known = {}  # an emptied dict is three times as large
        # A platform shows who writes, not what: another answer may go on.
        goes_on = any(each.agent == typing.agent for each, _ in self._known.values())
        if self._transport.abilities.ends_typing and not goes_on:
            over = msgspec.structs.replace(typing, is_over=True)
            self._transport.show_typing(over)


class HandedBack(msgspec.Struct, frozen=True):
    """A delivery that was handed back; when it comes again, it goes on from here."""

    delivery_id: str
    sending: rules.DeliveryProgress
    """Its state; also passed on to the next incarnation."""

    effect: rules.Effect
    """The next effect, which is still to be carried out."""

    until: float
    """Earliest time to go on, in `trio.current_time()` seconds."""


class CourierState(msgspec.Struct, frozen=True):
    """A note to the next incarnation: the state of the one that failed."""

    said: tuple[str, ...]
    """Ids of recent deliveries, oldest first."""

    in_doubt: str
    """The delivery that was being sent; empty if none was."""

    attempts: int
    """How often the platform was asked for that one."""

    handed_back: HandedBack | None
    line: tuple[str, ...]
    """Ids of deliveries that were handed back, the next one first."""

    drafts: dict[str, DraftedReply]
    """Replies that are being written."""


# Chosen: half a minute of a full disk; the connector looks again as often.
MOST_STORE_TRIES = 30
"""Tries to store a send attempt before the delivery is handed back."""

IN_PLACE = "being written into what stands in the chat"
"""Shown to operators as the reason of a delivery that waits and edits a draft."""


async def store_attempt(
    attempt: rules.StoreAttempt, delivery: Delivery, services: Services
) -> rules.AttemptStored | rules.AttemptRefused | None:
    """Store that the platform is about to be asked; None: the disk is full."""
    commit = _as_commit(attempt, delivery.id, services.clock.wall())
    try:
        await commit_until_decided(
            services.store, lambda: commit, "delivery", MOST_STORE_TRIES
        )
    except StoreUnavailableError:
        return None
    except DuplicateError as error:
        return rules.AttemptRefused(str(error))
    return rules.AttemptStored()


def _as_commit(attempt: rules.StoreAttempt, delivery_id: str, now: float) -> Commit:
    if attempt.is_edit:
        return Commit(at=now, not_said=(NotSaid(delivery_id, IN_PLACE),))
    return Commit(at=now, send_attempts=(SendAttempt(delivery_id, attempt.attempt),))


def store_not_sent(delivery: Delivery, why: str, services: Services) -> None:
    """Store that the platform did not take it, so that no restart finds it in doubt."""
    commit = Commit(at=services.clock.wall(), not_said=(NotSaid(delivery.id, why),))
    # If that fails, it stays in doubt, as if the platform had not answered.
    services.store.submit(commit, _note_put_back)


def _note_put_back(outcome: object) -> None:
    if isinstance(outcome, Exception):
        LOG.warning("not stored that a platform was busy", why=str(outcome))


LOG = EventLog("courier")

LONGEST_HOLD = rules.LONGEST_WAIT
"""Longest pause, in seconds, that the courier waits out instead of handing back."""

# Chosen: a third of the deadline; the rest is for the platform's last answer.
HAND_BACK_AFTER = 600.0
"""Seconds with one delivery after which its next pause is not waited out."""

# Chosen: the outbox is read twice a minute, unless the disk fails.
FORGET_AFTER = 3600.0
"""Seconds after which a delivery that does not come again was dropped by hand."""


class Courier(Actor):
    """Delivers to one chat.

    Takes: `Deliver`, `ShowDraft`, `ShowTyping`, `MessageSettled`, in the chat's order.
    Sends: receipts to the store; `Delivered` and `Undelivered` to its connector.
    Keeps: recent deliveries, receipts that are not stored yet, deliveries that it
        handed back, drafts and typing indicators.
    Fails: when a transport breaks; the delivery is tried again, three times in all,
        and stays in the outbox.
    Ends: when its chat has been silent for a while, all receipts are stored and no
        delivery that it handed back is to come again.
    """

    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=10_000)
    # Chosen: `HAND_BACK_AFTER`, and twice as long for a transport's own time-outs.
    deadline: ClassVar[float | None] = 1800.0
    passes_on: ClassVar[bool] = True

    def __init__(
        self, connector: str, transport: Transport, services: Services
    ) -> None:
        super().__init__()
        self._connector = connector
        self._transport = transport
        self._services = services
        self._receipts = Receipts(connector, services)
        self._in_hand = ""
        self._sending: rules.DeliveryProgress | None = None  # of the delivery in hand
        self._in_doubt = ""
        self._asked = 0  # for the delivery in doubt
        self._line = rules.DeliveryLine()
        self._handed_back: HandedBack | None = None  # the first in line, if any
        self._handed_back_at = 0.0
        self._drafting = Drafting(connector, transport, services)
        self._typing_indicators = TypingIndicators(transport, services)

    def may_passivate(self) -> bool:
        """Whether all receipts are stored and no delivery is to come again."""
        quiet = trio.current_time() - self._handed_back_at
        is_awaiting = len(self._line) > 0 and quiet < FORGET_AFTER
        is_seen = self._typing_indicators.is_empty and self._drafting.is_quiet
        return self._receipts.are_stored and is_seen and not is_awaiting

    def on_failure(self, *_: object, **__: object) -> None:
        """Pass state and unstored receipts on, so that nothing is sent twice."""
        for receipt in reversed(self._receipts.waiting):
            self.requeue(StoreReceipt(receipt))
        asked = self._sending.attempts if self._sending is not None else 0
        said, line = tuple(self._receipts.said), self._line.deliveries
        drafts = self._drafting.open
        self.requeue(
            CourierState(said, self._in_hand, asked, self._handed_back, line, drafts)
        )

    def pass_on(self, message: object) -> bool:
        """Hand words on at once to a transport that shows each of them itself."""
        transport = self._transport
        if type(message) is not ShowDraft or transport.presence is not None:
            return False
        transport.show_draft(message.draft)
        return True

    def on_receive(self, message: object) -> object:
        """Handle one message."""
        match message:
            case ReceiptStored():
                self._recorded(message)
            case StoreReceipt(receipt=receipt):
                self._receipts.store(receipt, self)
            case Deliver():
                return self._deliver(message)
            case CourierState():
                self._remember(message)
            case MessageSettled():
                return self._settle(message)
            case _:
                return self._show(message)
        return None

    def _show(self, message: object) -> object:
        """Show drafts and typing."""
        match message:
            case ShowDraft(draft=draft):
                return self._drafting.take(draft, self)
            case DraftsDue():
                return self._drafting.wake(self)
            case ShowTyping(typing=typing):
                self._typing_indicators.take(typing, self)
            case TypingDue():
                self._typing_indicators.wake(self)
            case _:
                return super().on_receive(message)
        return None

    async def _settle(self, settled: MessageSettled) -> None:
        inbound = settled.inbound
        await self._drafting.settle(inbound.id)
        await self._transport.settle(inbound, settled.reason)

    def _remember(self, before: CourierState) -> None:
        self._receipts.remember(before.said)
        self._in_doubt, self._asked = before.in_doubt, before.attempts
        self._handed_back, self._handed_back_at = (
            before.handed_back,
            trio.current_time(),
        )
        self._drafting.open = before.drafts
        for delivery_id in before.line:
            self._line.join(delivery_id)

    async def _deliver(self, message: Deliver) -> None:
        delivery_id, is_new = message.delivery.id, not message.is_again
        # Why the second: one that was just sent, with an unstored receipt, comes again.
        if message.is_by_hand and not self._receipts.is_waiting(delivery_id):
            self._receipts.forget(delivery_id)
        if delivery_id in self._receipts.said:
            # Handed over twice: by a session and, around a restart, from the outbox.
            if not self._receipts.is_waiting(delivery_id):
                self._receipts.tell_delivered(delivery_id, self)
        elif not self._line.may_go(delivery_id, is_new=is_new) or self._must_wait(
            delivery_id
        ):
            self._hand_back(delivery_id)
        elif self._drafting.waits > LONGEST_HOLD or not await self._is_known(message):
            self._line.join(delivery_id)
            self._hand_back(delivery_id)
        else:
            await self._drafting.keep_pace(message.delivery)
            await self._bring(message)

    async def _is_known(self, message: Deliver) -> bool:
        """Find the draft of a delivery; False: the disk does not give it now."""
        delivery = message.delivery
        if self._receipts.are_refused:
            return False  # else more than one would be sent twice after a crash
        try:
            await self._drafting.look(delivery)
        except StoreError as error:
            LOG.warning("delivery waits for the disk", why=str(error))
            return False
        if delivery.is_aside:
            await self._drafting.beside(delivery)
        elif message.was_sending and self._drafting.is_edited(delivery):
            self._drafting.let_go(delivery)  # it was being sent beside them
        return True

    def _must_wait(self, delivery_id: str) -> bool:
        handed_back = self._handed_back
        if handed_back is None or handed_back.delivery_id != delivery_id:
            return False
        return handed_back.until - trio.current_time() > LONGEST_HOLD

    def _hand_back(self, delivery_id: str) -> None:
        """Leave a delivery in the outbox; the connector will hand it over again."""
        self._handed_back_at = trio.current_time()
        self.tell(names.connector(self._connector), Undelivered(delivery_id))

    def _step(self, delivery: Delivery, seconds: float, state: str) -> TracedStep:
        return TracedStep(
            stage="send",
            correlation_id=delivery.correlation_id,
            seconds=seconds,
            name=self._connector,
            agent=delivery.agent,
            outcome="ok" if state == "sent" else state,
            is_to_asker=delivery.is_root,
        )

    async def _bring(self, message: Deliver) -> None:
        """Send a delivery, or hand it back."""
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
            self._note_shown(delivery)
        seconds = self._services.clock.monotonic() - began
        self._services.metrics.stages.observe(
            seconds, "deliver", example=delivery.correlation_id
        )
        if (trace := self._services.trace) is not None:
            trace(self._step(delivery, seconds, end.state))
        self._services.metrics.deliveries.add(1, self._connector, end.state)
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
        # Why after: drafts of a stored end are not looked for again.
        await self._drafting.conclude(delivery)

    def _note_shown(self, aside: Delivery) -> None:
        """Have a question count as read from now on, where its answer is awaited."""
        services, clock = self._services, self._services.clock
        at = services.arrival_at(self._connector, clock.monotonic(), clock.wall())
        services.board.note_shown(aside.id, at)
        if not services.duties.has_chat(self._connector, aside.address.chat):
            services.duties.show(self._connector, AsideShown(aside.id, at))

    async def _let_go(self, delivery: Delivery, why: str) -> None:
        """Stop with a delivery that somebody has settled."""
        LOG.info("delivery let go", delivery=delivery.id, why=why)
        # Why no receipt: if an operator retries it now, a receipt would end it.
        self._receipts.remember((delivery.id,))
        self._receipts.tell_delivered(delivery.id, self)
        await self._drafting.conclude(delivery)

    def _recorded(self, recorded: ReceiptStored) -> None:
        outcome = recorded.outcome
        # A receipt that cannot be stored leaves the row pending: after a restart the
        # message may be sent again, which the promise allows.
        if isinstance(outcome, Exception) and not isinstance(outcome, DuplicateError):
            LOG.warning("receipt not stored", why=str(outcome))
        self._receipts.drop(recorded.receipt)

    async def _send(self, message: Deliver) -> rules.StoreEnd | rules.LetGo | None:
        """Send a delivery until it ends; None: it has to be handed back."""
        delivery = message.delivery
        counts = self._transport.abilities.counts_answers
        if delivery.kind == "silence" and not counts:
            return rules.StoreEnd("sent", "", 0)
        hold_until = trio.current_time() + HAND_BACK_AFTER
        sending, effect = self._take_up(message)
        self._sending = sending
        while not isinstance(effect, rules.StoreEnd | rules.LetGo):
            event = await self._carry_out(effect, delivery, hold_until)
            if event is None:
                self._keep_handed_back(delivery, sending, effect)
                return None
            effect = sending.on(event, trio.current_time())
        return effect

    def _take_up(self, message: Deliver) -> tuple[rules.DeliveryProgress, rules.Effect]:
        """Begin with a delivery, or go on with it after it was handed back."""
        handed_back, self._handed_back = self._handed_back, None
        now = trio.current_time()
        if handed_back is None or handed_back.delivery_id != message.delivery.id:
            sending = self._begin(message)
            return sending, sending.on(rules.DeliveryBegins(), now)
        if isinstance(handed_back.effect, rules.Pause):
            return handed_back.sending, rules.Pause(max(handed_back.until - now, 0.0))
        return handed_back.sending, handed_back.effect

    def _begin(self, message: Deliver) -> rules.DeliveryProgress:
        is_in_doubt = self._in_doubt == message.delivery.id
        was_sending = message.was_sending or is_in_doubt
        if was_sending and not self._transport.abilities.is_idempotent:
            self._services.metrics.deliveries.add(1, self._connector, "in_doubt")
        waited = self._services.clock.monotonic() - message.handed_at
        return rules.DeliveryProgress(
            self._transport.abilities,
            self._services.accounts[self._connector].on_unknown,
            attempts=self._asked if is_in_doubt else message.attempts,
            was_sending=was_sending,
            is_edit=self._drafting.is_edited(message.delivery),
            has_waited=waited > rules.WAITED_AFTER,
        )

    def _keep_handed_back(
        self, delivery: Delivery, sending: rules.DeliveryProgress, effect: rules.Effect
    ) -> None:
        waits_for, seconds = "the disk", 0.0
        if isinstance(effect, rules.Pause):
            waits_for, seconds = "the platform", effect.seconds
        until = trio.current_time() + seconds
        self._handed_back = HandedBack(delivery.id, sending, effect, until)
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
        effect: rules.StoreAttempt | rules.Send | rules.LookUpDelivery | rules.Pause,
        delivery: Delivery,
        hold_until: float,
    ) -> rules.Event | None:
        """Carry out an effect; None: it takes longer than this handler may."""
        match effect:
            case rules.StoreAttempt():
                return await store_attempt(effect, delivery, self._services)
            case rules.Send():
                return await self._say(delivery)
            case rules.LookUpDelivery():
                return await self._look_up(delivery)
            case rules.Pause(seconds=seconds, unsaid=unsaid):
                if unsaid:
                    store_not_sent(delivery, unsaid, self._services)
                until = trio.current_time() + seconds
                if seconds > LONGEST_HOLD or until > hold_until:
                    return None
                await trio.sleep_until(until)
                return rules.PauseOver()
            case _:
                assert_never(effect)

    async def _say(self, delivery: Delivery) -> rules.Event:
        is_edit = self._drafting.is_edited(delivery)
        try:
            return rules.PlatformTook(await self._drafting.say(delivery))
        except DeliveryBusyError as error:
            self._drafting.busy(error.retry_after)
            return rules.PlatformBusy(str(error), error.retry_after)
        except DeliveryUnknownError as error:
            self._services.metrics.deliveries.add(1, self._connector, "in_doubt")
            return rules.AnswerLost(str(error))
        except DeliveryError as error:
            if is_edit:
                self._drafting.let_go(delivery)
                return rules.TargetGone()
            if delivery.file is not None:
                return await self._say_instead(delivery, str(error))
            return rules.PlatformRefused(str(error))

    async def _say_instead(self, delivery: Delivery, why: str) -> rules.Event:
        """Send words in place of a file that the platform refused."""
        self._services.metrics.deliveries.add(1, self._connector, "file_refused")
        LOG.warning("file refused", delivery=delivery.id, why=why)
        await trio.lowlevel.checkpoint()
        return await self._say(instead(delivery, why))

    async def _look_up(self, delivery: Delivery) -> rules.Event:
        try:
            return rules.DeliveryLookedUp(await self._transport.look_up(delivery))
        except DeliveryBusyError as error:
            return rules.PlatformBusy(str(error), error.retry_after)
