"""Shows answers while they are written, by editing messages of one chat.

It carries out what `draft_rules.py` decides, at the pace the platform allows
(`ChatPacing`). Each message gets an id of its own and is recorded in a journal stream
of its reply (`DraftRecord`), so after a crash the messages are found and edited instead
of sending the answer beside its own draft. The stream is forgotten with the message. A
courier holds one `Drafting` and passes itself to its methods: kept here, it would be a
reference cycle.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Sequence

import msgspec
import trio

from actors.errors import DeliveryBusyError, DeliveryError, DeliveryUnknownError
from actors.messages.deliveries import Delivery, Draft, Edit
from actors.messages.inbound import Address
from actors.messages.keys import chat_partition
from actors.outbound.draft_rules import (
    WITHDRAWN,
    DraftFinish,
    DraftMessage,
    DraftStart,
    EditDraft,
    Ending,
    PlaceDraft,
    ReplyDrafts,
)
from actors.services import Services
from actors.transport import Transport
from runtime.actor.actor import Actor
from runtime.actor.timers import Timer
from runtime.errors import StoreError
from runtime.store.rows import Append, Commit, NewEvent, StoredEvent
from runtime.telemetry.logs import EventLog

BEGUN = "draft_begun"
LEFT = "draft_left"
ENDED = "draft_ended"

PAGE = 1000
"""Events read at once."""


class DraftBegun(msgspec.Struct, frozen=True, omit_defaults=True):
    """Event `draft_begun`: a draft is in the chat; without receipt, it may be."""

    number: int
    agent: str
    receipt: str = ""


class DraftLeft(msgspec.Struct, frozen=True):
    """Event `draft_left`: something else was sent, and the answer goes on below it."""

    at: int
    tail: str


class DraftEnded(msgspec.Struct, frozen=True):
    """Event `draft_ended`: the messages are no drafts any more."""


DraftEvent = DraftBegun | DraftLeft | DraftEnded


class FoundDrafts(msgspec.Struct, frozen=True):
    """The state that the events of a reply add up to."""

    messages: list[DraftMessage]
    starts: list[DraftStart]
    next_number: int


class DraftRecord:
    """The journal stream of one reply's drafts.

    Args:
        reply_id: id of the reply, which is that of the message it answers.
    """

    __slots__ = ("_part", "_reply_id", "_services", "_version", "is_broken")

    def __init__(self, reply_id: str, address: Address, services: Services) -> None:
        self._reply_id = reply_id
        self._part = chat_partition(address.connector, address.chat)
        self._services = services
        self._version: int = 0
        self.is_broken = False
        """Whether an event could not be stored; then no further one is."""

    async def read(self) -> FoundDrafts:
        """Read the state.

        Raises:
            runtime.errors.StoreError: it cannot be read now.
        """
        messages: dict[int, DraftMessage] = {}
        starts: list[DraftStart] = []
        number = 0
        self._version = 0
        page: Sequence[StoredEvent] | None = None
        while page is None or len(page) == PAGE:
            page = await self._services.store.read(self._stream, self._version, PAGE)
            for event in page:
                self._version = event.sequence
                if event.kind == BEGUN:
                    begun = msgspec.json.decode(event.body, type=DraftBegun)
                    number = max(number, begun.number + 1)
                    messages[begun.number] = DraftMessage(
                        begun.number, begun.agent, begun.receipt
                    )
                elif event.kind == LEFT:
                    left = msgspec.json.decode(event.body, type=DraftLeft)
                    starts.append(DraftStart(left.at, left.tail))
                elif event.kind == ENDED:
                    messages, starts = {}, []
        return FoundDrafts(list(messages.values()), starts, number)

    async def put(self, noted: DraftEvent) -> bool:
        """Store an event and wait until it is durable; False: it is not."""
        if self.is_broken:
            return False
        try:
            await self._services.store.commit(self._commit(noted))
        except StoreError as error:
            self._breaks(error)
            return False
        self._version += 1
        return True

    def note(self, noted: DraftEvent) -> None:
        """Store an event without waiting; if that fails, a crash leaves a draft."""
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

    def _commit(self, noted: DraftEvent) -> Commit:
        kinds = {DraftBegun: BEGUN, DraftLeft: LEFT, DraftEnded: ENDED}
        event = NewEvent(kinds[type(noted)], msgspec.json.encode(noted))
        journal = Append(
            stream=self._stream,
            expected=self._version,
            part=self._part,
            events=(event,),
            inbox_id=self._reply_id,
        )
        return Commit(at=self._services.clock.wall(), appends=(journal,))


# Chosen: as a delivery's own waits (`retry.py`).
FIRST_WAIT = 1.0
LONGEST_WAIT = 60.0

MINUTE = 60.0

# Chosen: the last edits and further parts of one long answer.
KEPT = 4
"""Drafts leave one in this many calls of a minute to answers."""


class ChatPacing:
    """When the next call about one chat may go out; pure.

    A platform limits messages and edits of one chat together: there is a pause after
    each call, and a limit for each minute. Edits of drafts wait longer, give way when
    the platform is busy, and leave a part of each minute to answers. When the platform
    says how long it wants to be left alone, all calls wait, whichever of them it told.
    All times are seconds on the caller's monotonic clock.

    Args:
        pace: least seconds between two calls.
        draft_pace: least seconds between a draft's edit and the one before.
        per_minute: most messages and edits in any minute; 0: no limit.
    """

    __slots__ = (
        "_busy",
        "_draft_pace",
        "_drafted_at",
        "_free_at",
        "_held_until",
        "_pace",
        "_per_minute",
        "_times",
    )

    def __init__(self, pace: float, draft_pace: float, per_minute: int = 0) -> None:
        self._pace = pace
        self._per_minute = per_minute
        self._times: deque[float] = deque(maxlen=per_minute)
        """Times of the last calls, the oldest first."""

        self._draft_pace = draft_pace
        self._free_at = 0.0
        self._drafted_at = 0.0
        self._held_until = 0.0
        self._busy = 0

    @property
    def message_at(self) -> float:
        """Time at which a message, or the last edit of an answer, may be sent."""
        if not self._per_minute:
            return self._free_at
        return max(self._free_at, self._after_others(self._per_minute))

    @property
    def draft_at(self) -> float:
        """Time at which the next call for a draft may be made."""
        spare = self._per_minute - self._per_minute // KEPT
        return max(
            self.message_at,
            self._drafted_at,
            self._held_until,
            self._after_others(spare),
        )

    def said(self, now: float) -> None:
        """Count a message that is sent now."""
        self._free_at = now + self._pace
        self._times.append(now)

    def edited(self, now: float) -> None:
        """Count an edit, or the first message of a draft, that is sent now."""
        self.said(now)
        self._drafted_at = now + self._draft_pace

    def worked(self) -> None:
        """Take note that the platform took a call for a draft."""
        self._busy = 0

    def busy(self, now: float, retry_after: float | None) -> None:
        """Take note that the platform was too busy for a call.

        Args:
            retry_after: seconds after which it may be asked again; None: unknown, and
                only drafts give way, longer each time.
        """
        if retry_after is not None:
            self._free_at = max(self._free_at, now + retry_after)
            return
        self._busy += 1
        wait = min(FIRST_WAIT * 2.0 ** min(self._busy - 1, 6), LONGEST_WAIT)
        self._held_until = now + wait

    def _after_others(self, most: int) -> float:
        """Give the time from which fewer than `most` calls lie within a minute."""
        is_full = 0 < most <= len(self._times)
        return self._times[-most] + MINUTE if is_full else 0.0


UNWRITTEN = "..."
"""Text that is sent again to find a message, if the settings have no placeholder."""


class DraftWriter:
    """Makes the platform calls for the drafts of one chat."""

    __slots__ = ("_connector", "_services", "_transport", "pacing")

    def __init__(
        self, connector: str, transport: Transport, services: Services
    ) -> None:
        abilities = transport.abilities
        self._connector = connector
        self._transport = transport
        self._services = services
        self.pacing = ChatPacing(
            abilities.pace, abilities.draft_pace, abilities.per_minute
        )
        """Of all calls about the chat, answers included."""

    async def place(self, reply: DraftedReply, text: str) -> None:
        """Send a further message of an answer; give up if it may exist twice.

        Raises:
            DeliveryError: as the transport says.
        """
        drafts, is_safe = reply.drafts, self._transport.abilities.is_idempotent
        number, agent = drafts.next_number, reply.agent
        is_doubtful = reply.is_placing and not is_safe
        # Why before: after a crash the same call is made again and finds the message.
        if is_safe and reply.intended != number:
            is_doubtful = not await reply.record.put(DraftBegun(number, agent))
            reply.intended = number
        if is_doubtful:
            drafts.is_given_up = True
            return
        was_placing, reply.is_placing = reply.is_placing, True
        try:
            receipt = await self._transport.deliver(reply.first(number, agent, text))
        except DeliveryBusyError:
            reply.is_placing = was_placing
            raise
        reply.is_placing = False
        drafts.next_number = number + 1
        drafts.messages.append(DraftMessage(number, agent, receipt, text))
        reply.record.note(DraftBegun(number, agent, receipt))

    def look_for(self, reply: DraftedReply) -> None:
        """Assume that a message may exist; the same call, made again, finds it."""
        if not reply.is_placing:
            return
        reply.is_placing = False
        if self._transport.abilities.is_idempotent:
            drafts = reply.drafts
            drafts.messages.append(DraftMessage(drafts.next_number, reply.agent))
            drafts.next_number += 1

    async def change(
        self,
        reply: DraftedReply,
        message: DraftMessage,
        text: str,
        edit_id: str = "",
        *,
        is_last: bool = False,
    ) -> None:
        """Edit a message.

        Args:
            text: its new text; empty: delete it.
            edit_id: the same for the same text; empty: it is not repeated.
            is_last: whether it is the final answer.

        Raises:
            DeliveryError: as the transport and its `Presence` say.
        """
        presence = self._transport.presence
        if presence is None:
            return
        if not message.receipt:
            placeholder = self._services.presence.placeholder or UNWRITTEN
            first = reply.first(message.number, message.agent, placeholder)
            message.receipt = await self._transport.deliver(first)
        edit = reply.edit(message, edit_id or self._services.ids.new(), text)
        await presence.edit(msgspec.structs.replace(edit, is_last=is_last))
        message.shown = text

    async def try_to_change(
        self, reply: DraftedReply, message: DraftMessage, text: str
    ) -> None:
        """Edit a message once, as soon as the pace allows; failures are ignored.

        A busy platform's wait is kept by whatever is sent next.
        """
        await self.wait_to_edit()
        try:
            await self.change(reply, message, text)
        except DeliveryBusyError as error:
            self.pacing.busy(trio.current_time(), error.retry_after)
            self.count("left")
        except DeliveryError:
            self.count("left")
        else:
            self.count("withdrawn")

    async def wait_to_say(self) -> None:
        """Wait until another message may be sent into this chat."""
        await trio.sleep_until(self.pacing.message_at)
        self.pacing.said(trio.current_time())

    async def wait_to_edit(self) -> None:
        """Wait until the last edit of an answer may be made in this chat."""
        await trio.sleep_until(self.pacing.message_at)
        self.pacing.edited(trio.current_time())

    def count(self, outcome: str) -> None:
        """Count the outcome of a draft."""
        self._services.metrics.presence.add(1, self._connector, "draft", outcome)


class DraftedReply:
    """One answer that is being written.

    Args:
        of: its first words, or the delivery in its place.
    """

    __slots__ = (
        "_of",
        "began_at",
        "drafts",
        "intended",
        "is_placing",
        "record",
        "touched_at",
        "turn_id",
    )

    def __init__(
        self, of: Draft | Delivery, drafts: ReplyDrafts, record: DraftRecord
    ) -> None:
        self._of = of
        self.drafts = drafts
        self.record = record
        self.intended = -1
        """Number of the message of which it is durable that it may exist."""

        self.is_placing = False
        """Whether the platform was asked to send a message, with unknown outcome."""

        self.began_at = trio.current_time()
        """Time of its first words, in `trio.current_time()` seconds."""

        self.touched_at = 0.0
        """Time of its last words, likewise."""

        self.turn_id = ""

    @property
    def agent(self) -> str:
        """The agent that writes it."""
        return self._of.agent

    def take(self, draft: Draft) -> None:
        """Take the next words."""
        self._of, self.turn_id = draft, draft.turn_id
        self.drafts.take(draft.turn_id, draft.begins_at, draft.text)

    def first(self, number: int, agent: str, text: str) -> Delivery:
        """Give the delivery that places one of its messages."""
        of = self._of
        return Delivery(
            id=f"{of.reply_id}:draft:{number}",
            correlation_id=of.correlation_id,
            address=of.address,
            agent=agent,
            text=text,
            reply_id=of.reply_id,
            reply_to=of.reply_to,
            is_draft=True,
            is_root=False,
            answers_left=1,  # it replaces no answer
        )

    def edit(self, message: DraftMessage, edit_id: str, text: str) -> Edit:
        """Give the edit of one of its messages."""
        return Edit(
            id=edit_id,
            correlation_id=self._of.correlation_id,
            address=self._of.address,
            agent=message.agent,
            receipt=message.receipt,
            text=text,
        )


def is_beside(delivery: Delivery) -> bool:
    """Tell whether a delivery leaves the drafts of its reply as they are.

    A file comes after all words; where there are no words, it replaces the drafts.
    """
    return delivery.is_aside or (delivery.file is not None and delivery.part > 0)


def ending_of(delivery: Delivery) -> Ending:
    """Tell what a delivery is to the draft before it."""
    if delivery.kind == "silence" or delivery.file is not None:
        return "nothing"
    if delivery.after_draft:
        return "after"
    return "instead" if delivery.trouble else "whole"


LOG = EventLog("courier")

STOPPED = "(stopped)"

MOST_OPEN = 32
"""Most answers of one chat that are shown while they are written; above it, the one
that was silent longest is only sent when it is complete."""

# Chosen: above the longest turn of the default settings.
FORGOTTEN_AFTER = 1500.0
"""Seconds without words after which a draft is only remembered by the store."""


class DraftsDue(msgspec.Struct, frozen=True):
    """A courier's note to itself: the next draft call may be made now."""


class Drafting:
    """The drafts of one chat, and its pacing."""

    __slots__ = (
        "_answered",
        "_is_shown",
        "_over",
        "_services",
        "_timer",
        "_transport",
        "_undrafted",
        "_writer",
        "open",
    )

    def __init__(
        self, connector: str, transport: Transport, services: Services
    ) -> None:
        self._transport = transport
        self._services = services
        self._is_shown = services.shows_drafts(connector)
        self._writer = DraftWriter(connector, transport, services)
        self._timer: Timer | None = None
        self._over: tuple[str, ...] = ()
        """Turns whose answers were sent; their last drafts may still come."""

        self._answered: tuple[str, ...] = ()
        """Replies that were sent; drafts by another node may come behind them."""

        self._undrafted = ""  # id of the last reply that has no draft
        self.open: dict[str, DraftedReply] = {}
        """By reply id, the one that was silent longest first."""

    @property
    def is_quiet(self) -> bool:
        """Whether no answer is known to be written."""
        self._forget_old()
        return not self.open

    # --- while an answer is written ---------------------------------------------------

    def take(self, draft: Draft, courier: Actor) -> Awaitable[None] | None:
        """Take the next words of an answer; show them now or soon."""
        if self._transport.presence is None:
            self._transport.show_draft(draft)
            return None
        if not (self._is_shown and draft.reply_id) or draft.turn_id in self._over:
            return None
        if draft.reply_id in self._answered:
            return None
        reply = self.open.get(draft.reply_id)
        if reply is None:
            return self._begin(draft, courier)
        self._add(reply, draft)
        return self.go_on(courier)

    def go_on(self, courier: Actor) -> Awaitable[None] | None:
        """Make the next draft call if it is due, and set the timer for the next one."""
        if self._timer is not None:
            return None
        due = self._due()
        if due is None or self._wait(due[0]) > 0:
            self._set_timer(courier, due)
            return None
        return self._go_on(due, courier)

    def wake(self, courier: Actor) -> Awaitable[None] | None:
        """Go on when the timer fires."""
        self._timer = None
        return self.go_on(courier)

    async def _go_on(
        self, due: tuple[DraftedReply, PlaceDraft | EditDraft], courier: Actor
    ) -> None:
        await self._show(*due)
        if self._timer is None:
            self._set_timer(courier, self._due())

    def _set_timer(
        self,
        courier: Actor,
        due: tuple[DraftedReply, PlaceDraft | EditDraft] | None,
    ) -> None:
        if due is not None:
            wait = max(0.0, self._wait(due[0]))
            self._timer = courier.after(wait, DraftsDue())

    def _wait(self, reply: DraftedReply) -> float:
        """Give the seconds until the next call for an answer's draft may be made."""
        return max(self._begins_at(reply), self._writer.pacing.draft_at) - (
            trio.current_time()
        )

    def _begins_at(self, reply: DraftedReply) -> float:
        """Give the time at which an answer may be shown unfinished."""
        if reply.drafts.messages or self._transport.abilities.has_free_drafts:
            return 0.0
        return reply.began_at + self._services.presence.draft_after

    async def beside(self, aside: Delivery) -> None:
        """Let an answer go on below the delivery that is sent now."""
        reply = self.open.get(aside.reply_id)
        if reply is None:
            return
        call = reply.drafts.next()
        if isinstance(call, PlaceDraft):  # new words go before edits
            await trio.sleep_until(self._writer.pacing.message_at)
            await self._show(reply, call)
        start = reply.drafts.close()
        if start is not None and reply.drafts.messages:
            reply.record.note(DraftLeft(start.at, start.tail))

    async def _begin(self, draft: Draft, courier: Actor) -> None:
        try:
            reply = await self._find(draft)
        except StoreError as error:
            LOG.warning("draft not shown", why=str(error))
            self._writer.count("not_stored")
            return
        self._add(reply, draft)
        going_on = self.go_on(courier)
        if going_on is not None:
            await going_on

    def _add(self, reply: DraftedReply, draft: Draft) -> None:
        reply.take(draft)
        self._keep(draft.reply_id, reply)

    def _keep(self, reply_id: str, reply: DraftedReply) -> None:
        reply.touched_at = trio.current_time()
        self.open.pop(reply_id, None)
        self.open[reply_id] = reply
        self._forget_old()

    def _forget_old(self) -> None:
        before = trio.current_time() - FORGOTTEN_AFTER
        while self.open:
            first = next(iter(self.open))
            if len(self.open) <= MOST_OPEN and self.open[first].touched_at >= before:
                return
            del self.open[first]
            self._writer.count("forgotten")

    def _due(self) -> tuple[DraftedReply, PlaceDraft | EditDraft] | None:
        """Give the next call, of the answer that may be shown first."""
        is_free = self._transport.abilities.has_free_drafts
        least = 0 if is_free else self._services.presence.draft_chars
        for reply in sorted(self.open.values(), key=self._begins_at):
            call = reply.drafts.next(least)
            if call is not None:
                return reply, call
        return None

    async def _show(self, reply: DraftedReply, call: PlaceDraft | EditDraft) -> None:
        """Make one draft call; it is not repeated."""
        drafts, now = reply.drafts, trio.current_time()
        self._writer.pacing.edited(now)
        try:
            if isinstance(call, PlaceDraft):
                await self._writer.place(reply, call.text)
            else:
                message = drafts.messages[call.index]
                await self._writer.change(reply, message, call.text)
        except DeliveryBusyError as error:
            self._writer.pacing.busy(trio.current_time(), error.retry_after)
            self._writer.count("busy")
        except DeliveryUnknownError:
            self._lost(reply, call)
        except DeliveryError:
            drafts.is_given_up = True
            self._writer.count("refused")
        else:
            self._writer.pacing.worked()
            self._writer.count("shown")

    def _lost(self, reply: DraftedReply, call: PlaceDraft | EditDraft) -> None:
        if isinstance(call, EditDraft):
            reply.drafts.messages[call.index].shown = ""
        elif not self._transport.abilities.is_idempotent:
            reply.drafts.is_given_up = True  # it may exist, but cannot be found
        self._writer.pacing.busy(trio.current_time(), None)
        self._writer.count("unknown")

    # --- when it is complete ----------------------------------------------------------

    async def look(self, delivery: Delivery) -> None:
        """Find the draft of a delivery, if an earlier incarnation or process began it.

        Raises:
            runtime.errors.StoreError: it cannot be read now.
        """
        reply_id = delivery.reply_id
        if self._transport.presence is None or not reply_id or is_beside(delivery):
            return
        reply = self.open.get(reply_id)
        if reply is not None:
            self._writer.look_for(reply)
            reply.drafts.is_given_up = True  # it is no draft any more
        if reply is not None or reply_id == self._undrafted:
            return
        reply = await self._find(delivery)
        if reply.drafts.messages:
            self._keep(reply_id, reply)
        else:
            self._undrafted = reply_id

    def is_edited(self, delivery: Delivery) -> bool:
        """Whether a delivery is sent by editing drafts alone."""
        if not self.open:
            return False
        plan = self._plan(delivery)
        return plan is not None and bool(plan.changes) and not plan.rest

    def busy(self, retry_after: float | None) -> None:
        """Take note that the platform was too busy for an answer."""
        if retry_after is not None:
            self._writer.pacing.busy(trio.current_time(), retry_after)

    @property
    def waits(self) -> float:
        """Seconds until the next call about this chat may be made."""
        return max(0.0, self._writer.pacing.message_at - trio.current_time())

    async def keep_pace(self, delivery: Delivery) -> None:
        """Wait until the next call about this chat may be made."""
        if self.open and self.is_edited(delivery):
            await self._writer.wait_to_edit()
        else:
            await self._writer.wait_to_say()

    async def say(self, delivery: Delivery) -> str:
        """Send a delivery: by editing its drafts, or in a message of its own.

        Returns:
            The receipt.

        Raises:
            DeliveryError: as the transport and its `Presence` say.
        """
        reply = self.open.get(delivery.reply_id)
        plan = None if reply is None else self._plan(delivery)
        if reply is None or plan is None or not plan.changes:
            return await self._transport.deliver(delivery)
        if not plan.rest:
            return await self._change_all(reply, plan, delivery)
        try:
            await self._change_all(reply, plan, delivery)
        except (DeliveryBusyError, DeliveryUnknownError):
            raise
        except DeliveryError:
            self.let_go(delivery)
            return await self._transport.deliver(delivery)
        rest = msgspec.structs.replace(delivery, text=plan.rest)
        return await self._transport.deliver(rest)

    async def _change_all(
        self, reply: DraftedReply, plan: DraftFinish, delivery: Delivery
    ) -> str:
        receipt = ""
        for place, change in enumerate(plan.changes, 1):
            message = reply.drafts.messages[change.index]
            is_own = place == len(plan.changes) and not plan.rest
            if not is_own and message.shown == change.text:
                continue
            if not is_own:
                await self._writer.wait_to_edit()
            edit_id = f"{delivery.id}:edit:{message.number}"
            await self._writer.change(
                reply, message, change.text, edit_id, is_last=True
            )
            receipt = message.receipt
        return receipt

    def let_go(self, delivery: Delivery) -> None:
        """Give up the drafts of a delivery: it is sent beside them."""
        reply = self.open.pop(delivery.reply_id, None)
        if reply is not None:
            self._writer.count("gone")
            self._close(delivery.reply_id, reply)

    async def conclude(self, delivery: Delivery) -> None:
        """Delete what is left of a draft when its answer was sent."""
        is_of_nodes = self._services.duties.parts is not None
        reply = self.open.get(delivery.reply_id)
        if (reply is None and not is_of_nodes) or is_beside(delivery):
            return
        if is_of_nodes and delivery.reply_id and delivery.trouble != "waiting":
            self._answered = (*self._answered, delivery.reply_id)[-MOST_OPEN:]
        if reply is None:
            return
        ending = ending_of(delivery)
        if ending == "whole" and delivery.part + 1 < delivery.parts:
            return
        del self.open[delivery.reply_id]
        drafts = reply.drafts
        for index in drafts.surplus(ending, delivery.parts, delivery.text):
            await self._withdraw(reply, drafts.messages[index])
        self._close(delivery.reply_id, reply)

    async def settle(self, reply_id: str) -> None:
        """Mark the draft of a message that nobody answers any more; tried once."""
        reply = self.open.pop(reply_id, None)
        if reply is None:
            return
        stopped = self._services.voices.retell()(STOPPED)
        plan = reply.drafts.finish(stopped, 0, 1, "after")
        for change in plan.changes if plan is not None else ():
            message = reply.drafts.messages[change.index]
            await self._writer.try_to_change(reply, message, change.text)
        self._close(reply_id, reply)

    async def _withdraw(self, reply: DraftedReply, message: DraftMessage) -> None:
        """Delete a message; tried once."""
        takes_back = self._transport.abilities.takes_back
        text = "" if takes_back else self._services.voices.retell()(WITHDRAWN)
        await self._writer.try_to_change(reply, message, text)

    def _close(self, reply_id: str, reply: DraftedReply) -> None:
        self._over = (*self._over, reply.turn_id)[-MOST_OPEN:]
        self._undrafted = reply_id
        reply.record.note(DraftEnded())

    async def _find(self, of: Draft | Delivery) -> DraftedReply:
        """Give the known state of a reply that is not open."""
        record = DraftRecord(of.reply_id, of.address, self._services)
        found = await record.read()
        placeholder = self._services.presence.placeholder
        can = self._transport.abilities
        drafts = ReplyDrafts(can.max_part_chars, placeholder, can.measure)
        drafts.restore(found.messages, found.starts, found.next_number)
        return DraftedReply(of, drafts, record)

    def _plan(self, delivery: Delivery) -> DraftFinish | None:
        reply = self.open.get(delivery.reply_id)
        if reply is None or is_beside(delivery):
            return None
        ending = ending_of(delivery)
        return reply.drafts.finish(delivery.text, delivery.part, delivery.parts, ending)
