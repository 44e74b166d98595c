"""The connector: one actor for each account, through which all messages come and go.

A message that comes in is stored before it is routed; a delivery that goes out is
handed to the courier of its chat. `ConnectorIngress` is the side that the transport
holds.
"""

from __future__ import annotations

import contextlib
from collections import deque
from functools import partial
from typing import ClassVar

import msgspec

from actors import names
from actors.errors import (
    MessageRefusedError,
    OverloadedError,
    StoppingError,
    UnconfirmedError,
)
from actors.journal import commits, records
from actors.journal.unsettled import (
    COUNT_AGAIN,
    COUNT_EVERY,
    OpenMessages,
    owner_of,
    unanswered,
)
from actors.messages import priority
from actors.messages.deliveries import Delivery
from actors.messages.inbound import Address, Inbound
from actors.messages.tracing import TracedStep
from actors.people import admission as gatekeeper, lookup as knowing
from actors.people.access import Admit
from actors.people.owners import note_owner
from actors.protocol import (
    Deliver,
    Delivered,
    DrainOutbox,
    MessageSettled,
    MessageWithdrawn,
    Receive,
    RecordRefusal,
    Route,
    RouteUnanswered,
    ShowDraft,
    ShowTyping,
    StopAccepting,
    StopDelegated,
    Undelivered,
)
from actors.rules.text import secrets
from actors.services import Services
from actors.transport import CheckSender, Earlier, RefusedAttempt
from runtime.actor.actor import Actor
from runtime.actor.mailbox import MailboxConfig
from runtime.actor.messages import Keyed
from runtime.actor.ref import UNANSWERED, ActorRef
from runtime.actor.reply import Reply
from runtime.errors import DuplicateError, MailboxFullError, StoreError
from runtime.store.port import Store
from runtime.store.rows import BY_HAND, Commit, Committed, StoredDelivery
from runtime.telemetry.logs import EventLog, QuotedLater


class ConnectorIngress:
    """The transport's side of a connector; see `actors.transport.Ingress`."""

    def __init__(self, connector: ActorRef, store: Store) -> None:
        self._connector = connector
        self._store = store

    async def is_admitted(self, inbound: Inbound) -> bool:
        """Tell whether a person may write; see the port."""
        return await self._ask(CheckSender(inbound))

    async def accept(self, inbound: Inbound) -> bool:
        """Store a message; see the port."""
        return await self._ask(Receive(inbound))

    async def _ask(self, question: CheckSender | Receive) -> bool:
        try:
            return bool(await self._connector.ask(question))
        except MailboxFullError as error:
            raise OverloadedError(
                "too many messages at once; try again in a moment"
            ) from error
        except UNANSWERED as error:
            raise UnconfirmedError(
                "the message was not confirmed; try again in a moment"
            ) from error

    async def earlier(self, connector: str, platform_id: str) -> Earlier | None:
        """Tell what became of a message; see the port."""
        found = await self._store.answered(connector, platform_id)
        if found is None:
            return None
        row = found.message
        is_settled = row.state not in {"accepted", "running"}
        said = (read_delivery(each) for each in found.deliveries)
        return Earlier(
            inbound=msgspec.json.decode(row.body, type=Inbound),
            outcome=f"{row.state}:{row.reason}" if is_settled else "",
            deliveries=tuple(each for each in said if each is not None),
            ended=frozenset(x.id for x in found.deliveries if x.state in ENDED),
        )

    async def withdraw(self, connector: str, platform_id: str) -> None:
        """Stop the work on a message; see the port."""
        found = await self.earlier(connector, platform_id)
        if found is not None:  # settled, too: others may still work because of it
            # One that is lost is answered, as if it had been deleted later.
            with contextlib.suppress(MailboxFullError, *UNANSWERED):
                self._connector.tell(MessageWithdrawn(found.inbound))

    def refuse(self, attempt: RefusedAttempt) -> None:
        """Record a refused attempt; see the port."""
        # A full mailbox makes it a dead letter, which is counted.
        with contextlib.suppress(MailboxFullError, *UNANSWERED):
            self._connector.tell(RecordRefusal(attempt))


ENDED = frozenset({"sent", "unknown", "dead"})
"""States of a delivery that nobody will try again by itself."""


def read_delivery(row: StoredDelivery) -> Delivery | None:
    """Decode an outbox row; None if it cannot be read."""
    try:
        return msgspec.json.decode(row.body, type=Delivery)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        # Left as it is: a later release may read it, and it delays no other.
        LOG.fault("delivery cannot be read", error, delivery=row.id)
        return None


LOG = EventLog("connector")

# Chosen: messages that are being stored at once; a group commit takes a thousand.
MOST_STORING = PAGE = 1000

STOPPING = "Callboard is being stopped; try again in a moment"

# Chosen: one a second fills no disk; further ones are only counted.
MOST_REFUSALS = 60
"""Most refused attempts that are recorded in a minute."""

# Chosen: long enough for a transport or a disk to come back, short enough for people.
SWEEP_EVERY = 30.0
"""Seconds between looks for stored deliveries that were never handed over: the actor
that stored them may have been killed before it could."""

LOST_AFTER = 2400.0
"""Seconds after which a courier has reported or never will; above its deadline."""

DRAIN_AGAIN = 15.0
"""Seconds until the outbox is read again for deliveries that were lost on the way."""

# Chosen: of a long outbox, a tenth of a second's work in each second.
READ_A_SECOND = 1000
"""Rows of the outbox that are read in a second for what other nodes say: each answer of
theirs has it read, and it is long while a platform is slow."""


class DrainDue(msgspec.Struct, frozen=True):
    """A note to itself: read the outbox for deliveries that were lost on the way."""


class DrainNext(msgspec.Struct, frozen=True):
    """A note to itself: the outbox may be read again for what other nodes say."""


class CountOpen(msgspec.Struct, frozen=True):
    """A note to itself: count the unanswered messages anew."""


class Accepting(msgspec.Struct, frozen=True):
    """A note to itself: the outcome of an inbound message's commit."""

    inbound: Inbound
    reply: Reply | None
    began_at: float
    outcome: Committed | Exception


class Connector(Actor):
    """Stores what people write before anything else happens; has answers delivered.

    Takes: `Receive` and `CheckSender` (asked), `Deliver`, `ShowDraft`, `Delivered`,
        `MessageSettled`, `MessageWithdrawn`, `Undelivered`.
    Sends: `Route` and `StopDelegated` to the router; everything outbound to the
        courier of its chat.
    Keeps: the deliveries under way, so that none is sent twice; the unanswered
        messages, counted in the store.
    Fails: never by a message; restarted, it reads the outbox.
    Ends: with the system.
    """

    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=20_000)
    passes_on: ClassVar[bool] = True

    def __init__(
        self, name: str, services: Services, *, paces_threads: bool = False
    ) -> None:
        super().__init__()
        self._name = name
        self._paces_threads = paces_threads
        self._services = services
        self._storing = 0
        self._under_way: dict[str, float] = {}
        """Deliveries that a courier has, and since when, in monotonic seconds."""

        self._is_drain_due = False
        self._is_next_due = False
        self._read_again_at = 0.0  # monotonic seconds, of several nodes
        self._is_closed = False
        self._open = OpenMessages(lambda: services.limits.max_open)
        self._refusals: deque[float] = deque(maxlen=MOST_REFUSALS)

    def on_start(self) -> None:
        """Look for messages and deliveries that an earlier process left."""
        # Why a note: it comes before any message, and a failing disk fails no start.
        self.note(CountOpen())
        self.every(COUNT_EVERY, CountOpen())
        self.note(DrainOutbox())
        self.every(SWEEP_EVERY, DrainOutbox())

    def on_failure(self, *_: object, **__: object) -> None:
        """Have the router find messages that were stored and not handed to it."""
        self.tell(names.ROUTER, RouteUnanswered())

    def pass_on(self, message: object) -> bool:
        """Give the courier of a chat what is for it; note what it has delivered."""
        match message:
            case ShowDraft(draft=shown) | ShowTyping(typing=shown):
                self._to_courier(shown.address, message)
            case Deliver():
                self._deliver(message)
            case MessageSettled(inbound=inbound):
                self._open.discard(inbound.correlation_id)
                self._to_courier(inbound.address, message)
            case Delivered(delivery_id=delivery_id):
                self._under_way.pop(delivery_id, None)
            case _:
                return False
        return True

    def on_receive(self, message: object) -> object:
        """Take a message in, or hand one out."""
        match message:
            case Receive(inbound=inbound):
                return self._receive(inbound)
            case CheckSender(inbound=inbound):
                return self._is_admitted(inbound)
            case Accepting():
                self._accepted(message)
            case (
                Deliver() | ShowDraft() | ShowTyping() | MessageSettled() | Delivered()
            ):
                self.pass_on(message)
            case CountOpen():
                return self._count_open()
            case _:
                return self._on_outbox(message)
        return None

    def _on_outbox(self, message: object) -> object:
        """Handle the outcome of a delivery, or read the outbox."""
        match message:
            case Undelivered(delivery_id=delivery_id):
                self._under_way.pop(delivery_id, None)
                self._drain_later()
            case RecordRefusal(attempt=attempt):
                self._refuse(attempt)
            case MessageWithdrawn(inbound=inbound):
                self._withdraw(inbound)
            case StopAccepting():
                self._is_closed = True
            case DrainDue():
                self._is_drain_due = False
                return self._drain_outbox()
            case DrainNext():
                self._is_next_due = False
                return self._drain_outbox()
            case DrainOutbox():
                return self._drain_outbox() if self._may_read() else None
            case _:
                return super().on_receive(message)
        return None

    # --- in -----------------------------------------------------------------------

    def _is_admitted(self, inbound: Inbound) -> bool:
        """Tell whether a message would be taken in; nothing is kept or counted."""
        if self._is_closed:
            raise StoppingError(STOPPING)
        return gatekeeper.is_admitted(inbound, self._services)

    def _receive(self, inbound: Inbound) -> bool | None:
        """Store a message; the asker is answered when it is durable.

        Returns:
            False if the sender is not let in: nothing is kept, and the platform may be
            acknowledged. Else the answer comes later.
        """
        if self._is_closed:
            self._services.metrics.messages.add(1, self._name, "stopping")
            raise StoppingError(STOPPING)
        decision = gatekeeper.decide(inbound, self._services)
        if isinstance(decision, Admit):
            self._store(inbound)
            return None
        self._refuse(gatekeeper.turn_away(self, inbound, decision, self._services))
        gatekeeper.refuse_aloud(decision)
        return False

    def _store(self, inbound: Inbound) -> None:
        services = self._services
        began_at = services.clock.monotonic()
        if self._storing >= MOST_STORING or not self._open.may_add(owner_of(inbound)):
            services.metrics.messages.add(1, self._name, "overloaded")
            raise OverloadedError("too many messages at once; try again in a moment")
        if len(inbound.text) > services.limits.max_message_chars:
            services.metrics.messages.add(1, self._name, "too_long")
            most = services.limits.max_message_chars
            raise MessageRefusedError(
                f"the message has {len(inbound.text)} characters, {most} are allowed;"
                " shorten it"
            )
        self._storing += 1
        reply = self.defer_reply()
        now = services.clock.wall()
        rank = priority.of_person(self._name, inbound.sender_id, services.owners)
        if rank != inbound.priority:
            inbound = msgspec.structs.replace(inbound, priority=rank)
        commit = Commit(at=now, accepts=(commits.as_accept(inbound, now),))
        note, tell, name = self.note, self.tell, self._name

        def done(outcome: Committed | Exception) -> None:
            accepting = Accepting(inbound, reply, began_at, outcome)
            note(accepting)
            # Why here: this actor may be killed before it gets the note, and later
            # messages of the chat must not be answered before this one.
            if isinstance(outcome, Committed):
                if (trace := services.trace) is not None:
                    trace(
                        TracedStep(
                            stage="accept",
                            correlation_id=inbound.correlation_id,
                            seconds=services.clock.monotonic() - began_at,
                            name=name,
                            traceparent=inbound.traceparent,
                        )
                    )
                arrived = began_at
                if services.duties.parts is not None:
                    arrived = services.arrival_at(name, began_at, now)
                tell(names.ROUTER, Route(inbound, outcome.accepted[0], arrived))

        services.store.submit(commit, done)

    def _accepted(self, accepting: Accepting) -> None:
        """Answer the transport; the message is on its way if it is new."""
        # Why not below 0: commits of an earlier incarnation report here, too.
        self._storing = max(0, self._storing - 1)
        outcome, reply = accepting.outcome, accepting.reply
        is_new = isinstance(outcome, Committed)
        if isinstance(outcome, Exception) and not isinstance(outcome, DuplicateError):
            self._services.metrics.messages.add(1, self._name, "not_stored")
            if reply is not None:
                reply.offer_error(outcome)
            return
        if reply is not None:
            reply.offer(is_new)
        if is_new:
            self._note_accepted(accepting)
        else:
            self._services.metrics.messages.add(1, self._name, "duplicate")

    def _note_accepted(self, accepting: Accepting) -> None:
        inbound = accepting.inbound
        self._open.add(inbound.correlation_id, owner_of(inbound))
        services = self._services
        knowing.introduce(self, services, inbound)
        note_owner(self, services, inbound)
        seconds = services.clock.monotonic() - accepting.began_at
        services.metrics.stages.observe(
            seconds, "accept", example=inbound.correlation_id
        )
        services.metrics.messages.add(1, self._name, "accepted")
        # What a hook may take out of it is not in the log either.
        words = "" if services.hooks.receiving(inbound) else inbound.text
        LOG.info(
            "message received",
            correlation_id=inbound.correlation_id,
            channel=self._name,
            chat=inbound.address.chat,
            sender=inbound.sender_id,
            characters=len(inbound.text),
            files=len(inbound.attachments),
            text=QuotedLater(partial(secrets.excerpt, words)),
        )

    def _withdraw(self, inbound: Inbound) -> None:
        """Have all stop that work on a message, or because of it."""
        now = self._services.clock.wall()
        by = msgspec.structs.replace(inbound, received_at=now)
        stop = StopDelegated(by, "", correlation_id=inbound.correlation_id)
        if self._services.duties.has_chat(self._name, inbound.address.chat):
            self.tell(names.ROUTER, stop)
        else:
            self._services.duties.show(self._name, stop)

    async def _count_open(self) -> None:
        """Count the unanswered messages: a restart makes room for nobody."""
        try:
            store, duties = self._services.store, self._services.duties
            is_mine = None if duties.parts is None else duties.sends
            found = await unanswered(store, self._name, is_mine)
        except StoreError as error:
            LOG.warning("not counted yet", connector=self._name, why=str(error))
            self.after(COUNT_AGAIN, CountOpen())
        else:
            # Messages stored since the read report later, by the notes in the mailbox.
            self._open.count_anew(found)

    def _refuse(self, attempt: RefusedAttempt) -> None:
        """Record that a sender was not let in, unless too many were recorded lately."""
        services, now = self._services, self._services.clock.monotonic()
        services.metrics.messages.add(1, self._name, "unauthorised")
        services.metrics.refusals.add(1, self._name, attempt.reason)
        is_flood = len(self._refusals) == MOST_REFUSALS and self._refusals[0] > now - 60
        if is_flood:
            return  # counted
        self._refusals.append(now)
        LOG.info(
            "message refused",
            channel=self._name,
            chat=attempt.chat,
            sender=attempt.sender_id,
            reason=attempt.reason,
        )
        body = records.AuditRecord(
            channel=self._name,
            chat=attempt.chat,
            sender_id=attempt.sender_id,
            sender_name="",
            status="unauthorised",
            reason=attempt.reason,
        )
        row = records.audit_row(services.ids.new(), body, services.keep)
        commit = Commit(at=services.clock.wall(), records=(row,))
        services.store.submit(commit, _note_refusal)

    # --- out ----------------------------------------------------------------------

    def _deliver(self, message: Deliver) -> None:
        delivery = message.delivery
        if delivery.is_root:
            self._open.discard(delivery.correlation_id)
        if delivery.id in self._under_way:
            return
        now = self._under_way[delivery.id] = self._services.clock.monotonic()
        message = msgspec.structs.replace(message, handed_at=now)
        if not self._to_courier(delivery.address, message):
            self._under_way.pop(delivery.id, None)
            self._drain_later()

    def _forget_lost(self) -> None:
        """Forget deliveries whose courier was given up before it could report."""
        before = self._services.clock.monotonic() - LOST_AFTER
        for delivery_id in [key for key, at in self._under_way.items() if at < before]:
            del self._under_way[delivery_id]

    def _may_read(self) -> bool:
        """Whether the outbox may be read now; else it is, as soon as it may."""
        wait = self._read_again_at - self._services.clock.monotonic()
        if wait <= 0:
            return True
        if not self._is_next_due:
            self._is_next_due = True
            self.after(wait, DrainNext())
        return False

    async def _drain_outbox(self) -> None:
        self._forget_lost()
        after, found, duties = 0, 0, self._services.duties
        while True:
            try:
                rows = await self._services.store.undelivered(self._name, after, PAGE)
            except StoreError as error:
                LOG.warning("outbox not read yet", connector=self._name, why=str(error))
                self._drain_later()
                return
            for row in rows:
                after, found = row.number, found + 1
                is_new = row.id not in self._under_way
                is_mine = is_new and duties.sends(self._name, row.part)
                delivery = read_delivery(row) if is_mine else None
                if delivery is not None:
                    self._deliver(read_deliver(delivery, row))
            if len(rows) < PAGE:
                break
        if duties.parts is not None:
            wait = found / READ_A_SECOND
            self._read_again_at = self._services.clock.monotonic() + wait

    def _drain_later(self) -> None:
        """Read the outbox again soon, once for all deliveries that wait for it."""
        if not self._is_drain_due:
            self._is_drain_due = True
            self.after(DRAIN_AGAIN, DrainDue())

    def _to_courier(self, address: Address, message: object) -> bool:
        thread = "" if self._paces_threads else address.thread
        key = f"{address.chat}/{thread}"
        return self.tell(names.couriers(self._name), Keyed(key, message))


def read_deliver(delivery: Delivery, row: StoredDelivery) -> Deliver:
    """Make the message that hands a stored delivery over."""
    is_by_hand = row.state == "pending" and row.receipt == BY_HAND
    return Deliver(
        delivery, row.attempts, row.state == "sending", is_by_hand, is_again=True
    )


def _note_refusal(outcome: object) -> None:
    if isinstance(outcome, Exception):
        LOG.warning("refused attempt not on record", why=str(outcome))
