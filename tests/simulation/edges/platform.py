"""A chat platform that hands a message in until it is acknowledged, as real ones do.

What was not acknowledged comes again after a restart of the listener or the process,
under the same platform id but a new id of our own. Each showing of a reply is kept,
because people see duplicates even where the runtime does not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

import msgspec
import trio

from actors.errors import (
    ChatError,
    DeliveryBusyError,
    DeliveryRefusedError,
    DeliveryUnknownError,
    MessageRefusedError,
)
from actors.messages.deliveries import Delivery, Draft
from actors.messages.inbound import Address, Inbound, Quoted
from actors.transport import Ingress
from runtime.errors import KernelError
from tests.fakes.company.company import BrokenPlatformError, Platform
from tests.simulation.checks.checkers import Checkers
from tests.simulation.faults import Faults
from tests.simulation.trace import Trace
from tests.simulation.workload import Act

# Chosen: hands a message in that often before it tells the sender that it failed.
HANDED_IN = 4


class Event(msgspec.Struct):
    """One message as the platform keeps it until it is acknowledged."""

    act: Act
    tries: int = 0

    @property
    def platform_id(self) -> str:
        """The platform's own id of the message."""
        return f"{self.act.platform}:{self.act.number}"


class SimulatedPlatform(Platform):
    """One account.

    Args:
        name: of the account.
        faults: the dice.
        checkers: shown what people see, and what was acknowledged.
        trace: told of everything.
    """

    is_hooked = False
    present: Mapping[str, tuple[str, ...]] = {}
    """By chat: which agents are in it; the world sets it."""

    def __init__(
        self, name: str, faults: Faults, checkers: Checkers, trace: Trace
    ) -> None:
        super().__init__(name)
        self._faults = faults
        self._checkers = checkers
        self._trace = trace
        self._events: deque[Event] = deque()
        self._in_flight: list[Event] = []
        self._handed_in = 0
        self._is_to_break = False
        self._posted: set[str] = set()
        self._seen: set[str] = set()
        self._last: dict[str, Delivery] = {}
        """By conversation: what people saw last of an agent."""

        self._replied: dict[int, Delivery | None] = {}
        """By number of an act: to what it replies, the same each time."""

        self.crash: Callable[[str], object] = str
        """Ends the process at once; the world sets it."""

        self.put_off: Callable[[], object] = str
        """Told that something will have to wait; the world sets it."""

        self.is_cut_off = False
        """Whether that has happened and no new process is up."""

    # --- in -----------------------------------------------------------------------

    def post(self, act: Act, *, again: bool = False) -> None:
        """Have a person write, or the platform hand in once more what one wrote."""
        event = Event(act)
        kind = "again" if again else "wrote"
        self._posted.add(event.platform_id)
        words = f"{act.chat}/{act.sender} {act.text}"
        if act.is_reply:
            words = f"{words} (a reply)"
        self._trace.note(kind, event.platform_id, words)
        self._events.append(event)
        self._note_change()

    def break_listener(self) -> None:
        """Make `listen` raise soon."""
        self._is_to_break = True
        self._note_change()

    def lose_connection(self) -> None:
        """Take back what was being handed in: the listener or the process died."""
        self._events.extendleft(reversed(self._in_flight))
        self._in_flight.clear()
        self._is_listening = False

    @property
    def is_heard(self) -> bool:
        """Whether all that people wrote was acknowledged or refused."""
        return not self._events and not self._in_flight

    async def listen(self, ingress: Ingress) -> None:
        """Hand in what people write, side by side or one after the other."""
        self._is_listening = True
        self._is_to_break = False
        try:
            async with trio.open_nursery() as nursery:
                while True:
                    await self._wait_event()
                    event = self._events.popleft()
                    self._in_flight.append(event)
                    if self.is_hooked:
                        nursery.start_soon(self._hand_in, event, ingress)
                    else:
                        await self._hand_in(event, ingress)
        finally:
            self.lose_connection()

    async def _wait_event(self) -> None:
        while not self._events:
            if self._is_to_break:
                raise BrokenPlatformError(self.name)
            await self._changed.wait()

    async def _hand_in(self, event: Event, ingress: Ingress) -> None:
        inbound = self._inbound(event)
        try:
            await ingress.accept(inbound)
        except (ChatError, KernelError) as error:
            await self._not_taken(event, error)
        else:
            self._trace.note("acked", event.platform_id, inbound.id)
            self._checkers.acknowledged(self.name, event.platform_id)
            self.acknowledged.append(event.platform_id)
        # By itself, and not by value: a repeat looks the same.
        self._in_flight = [each for each in self._in_flight if each is not event]
        self._note_change()

    async def _not_taken(self, event: Event, error: Exception) -> None:
        event.tries += 1
        why = type(error).__name__
        self._trace.note("unacked", event.platform_id, why)
        if isinstance(error, MessageRefusedError) or event.tries == HANDED_IN:
            self.refused.append((event.platform_id, error))
            return
        await trio.sleep(event.tries * 1.0)
        self._events.append(event)

    def _inbound(self, event: Event) -> Inbound:
        act = event.act
        self._handed_in += 1
        new_id = f"{self.name}-{act.number:06}.{self._handed_in:06}"
        inbound = Inbound(
            id=new_id,
            platform="simulated",
            platform_id=event.platform_id,
            address=Address(self.name, act.chat),
            sender_id=act.sender,
            sender_name=act.sender,
            text=act.text,
            received_at=act.at,
            is_direct=act.is_direct,
            present=self.present.get(act.chat, ()),
        )
        self._checkers.handed_in(inbound)
        return self._as_reply(act, inbound) if act.is_reply else inbound

    def _as_reply(self, act: Act, inbound: Inbound) -> Inbound:
        """Have it reply to what an agent said last in the same conversation."""
        last = self._last.get(self._checkers.owner(inbound.id))
        said = self._replied.setdefault(act.number, last)
        if said is None:
            return inbound
        quoted = Quoted(text=said.text, sender_name=said.agent, agent=said.agent)
        return msgspec.structs.replace(
            inbound, reply_to=f"receipt-{said.id}", quoted=quoted
        )

    # --- out ----------------------------------------------------------------------

    async def deliver(self, delivery: Delivery) -> str:
        """Show a message, unless a fault strikes before or after."""
        await trio.lowlevel.checkpoint()
        self._trace.note("send", delivery.id, delivery.address.chat)
        self._checkers.tried(delivery.id)
        if not self._is_listening:
            raise DeliveryBusyError("the platform is not connected")
        faults, dice = self._faults, self._faults.dice
        if faults.hit("send_slow", 0.2):
            await trio.sleep(dice.choice((0.1, 2.0, 40.0)))
        if faults.hit("send_error", 0.2):
            self.put_off()
            raise self._error()
        if faults.hit("send_bug", 0.1):
            raise BrokenPlatformError(delivery.id)
        if self.is_cut_off:  # woken in the very moment in which its process died
            await trio.sleep_forever()
        self._show(delivery)
        if faults.hit("crash_in_send", 0.05):
            self.crash("between sending and receipt")
            await trio.sleep_forever()
        if faults.hit("send_lost", 0.1):
            self._checkers.answer_lost(delivery.id)
            raise DeliveryUnknownError("no answer came back")
        return f"receipt-{delivery.id}"

    async def look_up(self, delivery: Delivery) -> str | None:
        """Tell whether people have seen a delivery."""
        await trio.lowlevel.checkpoint()
        if self._faults.hit("send_error", 0.2):
            raise DeliveryBusyError("too fast", retry_after=1.0)
        self._trace.note("looked up", delivery.id)
        return f"receipt-{delivery.id}" if delivery.id in self._seen else None

    def show_draft(self, draft: Draft) -> None:
        """Show a piece of an answer."""
        self._checkers.draft_shown(draft)

    async def settle(self, inbound: Inbound, reason: str) -> None:
        """Learn that nothing more will be said."""
        await trio.lowlevel.checkpoint()
        self._trace.note("settle", inbound.correlation_id, reason)

    def _show(self, delivery: Delivery) -> None:
        if self.can.is_idempotent and delivery.id in self._seen:
            self._trace.note("known", delivery.id, "shown before, not again")
            return
        self._seen.add(delivery.id)
        if delivery.reply_to and delivery.reply_to not in self._posted:
            raise AssertionError(f"{delivery.reply_to} is no message of {self.name}")
        text = delivery.text[:60]
        chat = delivery.address.chat
        self._trace.note("shown", delivery.id, f"{chat} {delivery.agent}: {text!r}")
        self._checkers.shown(self.name, delivery)
        if delivery.agent:
            self._last[self._checkers.owner(delivery.correlation_id)] = delivery

    def _error(self) -> Exception:
        if self._faults.dice.random() < 0.2:
            return DeliveryRefusedError("the chat is gone")
        seconds = self._faults.dice.choice((None, 0.0, 5.0, 100.0))
        return DeliveryBusyError("too fast", retry_after=seconds)
