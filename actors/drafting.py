"""Answers that are shown while they are written, by editing messages of one chat.

The shell of `rules/drafts.py` and `rules/pacing.py`; a courier has one. Each message is
placed under an id of its own, and recorded (`draft_record.py`), so that nobody says it
twice. The courier comes with the calls: kept here, it would be circular.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import trio

from actors.draft_record import DraftRecord, Ended, Left
from actors.drafted import Reply, ending_of, is_beside
from actors.errors import DeliveryBusyError, DeliveryError, DeliveryUnknownError
from actors.pen import Pen
from actors.rules.drafts import WITHDRAWN, Change, Drafts, Message, Place, Plan
from actors.rules.measures import MEASURES
from runtime.errors import StoreError
from runtime.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from actors.deliveries import Delivery, Draft
    from actors.services import Services
    from actors.transport import Transport
    from runtime.actor import Actor
    from runtime.timers import Timer

LOG = EventLog("courier")

STOPPED = "(stopped)"

MOST_OPEN = 32
"""Answers of one chat that are shown while they are written; of more, the one that
was silent longest is only said when it is whole."""

# Chosen: above the longest turn of the default settings.
FORGOTTEN_AFTER = 1500.0
"""Seconds without a word after which a draft is only remembered by the store."""


class DraftsDue(msgspec.Struct, frozen=True):
    """A courier's note to itself: a draft may be brought up to date now."""


class Drafting:
    """The drafts of one chat, and its pace.

    Args:
        connector: name of the account.
        transport: the way out.
        services: store, counts, settings.
    """

    __slots__ = (
        "_is_shown",
        "_over",
        "_pen",
        "_services",
        "_timer",
        "_transport",
        "_undrafted",
        "open",
    )

    def __init__(
        self, connector: str, transport: Transport, services: Services
    ) -> None:
        self._transport = transport
        self._services = services
        is_wanted = services.presence.shows_drafts(connector)
        self._is_shown = is_wanted and transport.abilities.shows_drafts
        self._pen = Pen(connector, transport, services)
        self._timer: Timer | None = None
        self._over: tuple[str, ...] = ()
        """Turns whose answers are said; their last drafts may come late."""

        self._undrafted = ""  # the reply last looked for, and not found
        self.open: dict[str, Reply] = {}
        """By the id of the reply, the one silent longest first."""

    @property
    def is_quiet(self) -> bool:
        """Whether no answer is being written, as far as is known."""
        self._forget_old()
        return not self.open

    # --- while it is written ------------------------------------------------------

    def take(self, draft: Draft, courier: Actor) -> Awaitable[None] | None:
        """Take the next words of an answer; show them now, or soon."""
        if self._transport.presence is None:
            self._transport.show_draft(draft)
            return None
        if not (self._is_shown and draft.reply_id) or draft.turn_id in self._over:
            return None
        reply = self.open.get(draft.reply_id)
        if reply is None:
            return self._begin(draft, courier)
        self._add(reply, draft)
        return self.go_on(courier)

    def go_on(self, courier: Actor) -> Awaitable[None] | None:
        """Make the next call for a draft, if it is time; see again when it next is."""
        if self._timer is not None:
            return None
        due = self._due()
        wait = self._pen.pacing.draft_at - trio.current_time()
        if due is None or wait > 0:
            if due is not None:
                self._timer = courier.after(wait, DraftsDue())
            return None
        return self._go_on(due, courier)

    def wake(self, courier: Actor) -> Awaitable[None] | None:
        """Go on when it is time."""
        self._timer = None
        return self.go_on(courier)

    async def _go_on(self, due: tuple[Reply, Place | Change], courier: Actor) -> None:
        await self._show(*due)
        if self._timer is None and self._due() is not None:
            wait = max(0.0, self._pen.pacing.draft_at - trio.current_time())
            self._timer = courier.after(wait, DraftsDue())

    async def beside(self, aside: Delivery) -> None:
        """Have an answer go on below what is said beside it now."""
        reply = self.open.get(aside.reply_id)
        if reply is None:
            return
        call = reply.drafts.next()
        if isinstance(call, Place):  # its words were said first
            await trio.sleep_until(self._pen.pacing.edit_at)
            await self._show(reply, call)
        start = reply.drafts.close()
        if start is not None and reply.drafts.messages:
            reply.record.note(Left(start.at, start.tail))

    async def _begin(self, draft: Draft, courier: Actor) -> None:
        try:
            reply = await self._find(draft)
        except StoreError as error:
            LOG.warning("draft not shown", why=str(error))
            self._pen.count("not_stored")
            return
        self._add(reply, draft)
        going_on = self.go_on(courier)
        if going_on is not None:
            await going_on

    def _add(self, reply: Reply, draft: Draft) -> None:
        reply.take(draft)
        self._keep(draft.reply_id, reply)

    def _keep(self, reply_id: str, reply: Reply) -> None:
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
            self._pen.count("forgotten")

    def _due(self) -> tuple[Reply, Place | Change] | None:
        for reply in self.open.values():
            call = reply.drafts.next()
            if call is not None:
                return reply, call
        return None

    async def _show(self, reply: Reply, call: Place | Change) -> None:
        """Make one call for a draft; nobody waits for it, and it is not repeated."""
        drafts, now = reply.drafts, trio.current_time()
        self._pen.pacing.edited(now)
        try:
            if isinstance(call, Place):
                await self._pen.place(reply, call.text)
            else:
                message = drafts.messages[call.index]
                await self._pen.change(reply, message, call.text)
        except DeliveryBusyError as error:
            self._pen.pacing.busy(trio.current_time(), error.retry_after)
            self._pen.count("busy")
        except DeliveryUnknownError:
            self._lost(reply, call)
        except DeliveryError:
            drafts.is_given_up = True
            self._pen.count("refused")
        else:
            self._pen.pacing.worked()
            self._pen.count("shown")

    def _lost(self, reply: Reply, call: Place | Change) -> None:
        if isinstance(call, Change):
            reply.drafts.messages[call.index].shown = ""
        elif not self._transport.abilities.is_idempotent:
            reply.drafts.is_given_up = True  # it may stand there, and nobody can tell
        self._pen.pacing.busy(trio.current_time(), None)
        self._pen.count("unknown")

    # --- when it is whole ---------------------------------------------------------

    async def look(self, delivery: Delivery) -> None:
        """Find the draft of what is to be said now, if somebody else began with it.

        Raises:
            runtime.errors.StoreError: it cannot be read now.
        """
        reply_id = delivery.reply_id
        is_answer = bool(reply_id) and not is_beside(delivery)
        if self._transport.presence is None or not is_answer:
            return
        reply = self.open.get(reply_id)
        if reply is not None:
            self._pen.look_for(reply)
            reply.drafts.is_given_up = True  # the answer has come, it is no draft now
        if reply is not None or reply_id == self._undrafted:
            return
        reply = await self._find(delivery)
        if reply.drafts.messages:
            self._keep(reply_id, reply)
        else:
            self._undrafted = reply_id

    def is_edited(self, delivery: Delivery) -> bool:
        """Whether it is said by editing what stands in the chat, and nothing else."""
        plan = self._plan(delivery)
        return plan is not None and bool(plan.changes) and not plan.rest

    async def keep_pace(self, delivery: Delivery) -> None:
        """Wait until the platform takes the next call about this chat."""
        if self.is_edited(delivery):
            await self._pen.wait_to_edit()
        else:
            await self._pen.wait_to_say()

    async def say(self, delivery: Delivery) -> str:
        """Say it: in the messages that stand there, or in one of its own.

        Returns:
            The receipt.

        Raises:
            DeliveryError: as the transport and its `Presence` say.
        """
        reply, plan = self.open.get(delivery.reply_id), self._plan(delivery)
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

    async def _change_all(self, reply: Reply, plan: Plan, delivery: Delivery) -> str:
        receipt = ""
        for place, change in enumerate(plan.changes, 1):
            message = reply.drafts.messages[change.index]
            is_own = place == len(plan.changes) and not plan.rest
            if not is_own and message.shown == change.text:
                continue
            if not is_own:
                await self._pen.wait_to_edit()
            edit_id = f"{delivery.id}:edit:{message.number}"
            await self._pen.change(reply, message, change.text, edit_id, is_last=True)
            receipt = message.receipt
        return receipt

    def let_go(self, delivery: Delivery) -> None:
        """Give up the messages that stand there: the answer is said beside them."""
        reply = self.open.pop(delivery.reply_id, None)
        if reply is not None:
            self._pen.count("gone")
            self._close(delivery.reply_id, reply)

    async def conclude(self, delivery: Delivery) -> None:
        """Take away what is left of a draft when its answer has been said."""
        reply = None if is_beside(delivery) else self.open.get(delivery.reply_id)
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
        """Mark the draft of what nobody answers any more; that is tried once."""
        reply = self.open.pop(reply_id, None)
        if reply is None:
            return
        stopped = self._services.voices.retell()(STOPPED)
        plan = reply.drafts.finish(stopped, 0, 1, "after")
        for change in plan.changes if plan is not None else ():
            message = reply.drafts.messages[change.index]
            await self._pen.try_to_change(reply, message, change.text)
        self._close(reply_id, reply)

    async def _withdraw(self, reply: Reply, message: Message) -> None:
        """Take a message away; that is tried once."""
        takes_back = self._transport.abilities.takes_back
        text = "" if takes_back else self._services.voices.retell()(WITHDRAWN)
        await self._pen.try_to_change(reply, message, text)

    def _close(self, reply_id: str, reply: Reply) -> None:
        self._over = (*self._over, reply.turn_id)[-MOST_OPEN:]
        self._undrafted = reply_id
        reply.record.note(Ended())

    async def _find(self, of: Draft | Delivery) -> Reply:
        """Give what is known of a reply that is not open.

        Raises:
            runtime.errors.StoreError: it cannot be read now.
        """
        record = DraftRecord(of.reply_id, of.address, self._services)
        found = await record.read()
        placeholder = self._services.presence.placeholder
        can = self._transport.abilities
        drafts = Drafts(can.max_part_chars, placeholder, MEASURES[can.markup])
        drafts.restore(found.messages, found.starts, found.next_number)
        return Reply(of, drafts, record)

    def _plan(self, delivery: Delivery) -> Plan | None:
        reply = None if is_beside(delivery) else self.open.get(delivery.reply_id)
        if reply is None:
            return None
        ending = ending_of(delivery)
        return reply.drafts.finish(delivery.text, delivery.part, delivery.parts, ending)
