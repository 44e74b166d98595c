"""What is said on the page, by people and by agents; on the kernel's side.

A person's message is handed in first, then kept and told: whoever is shown it can rely
on its being answered. Handed in again under its own id it counts once, so that nothing
is lost or doubled by asking again. Each change is on the disk before it is told, and
is told with the time (`changed`) of the one before it, so that a tab sees if it has
missed one, and reads that here. Who is cut off while the disk writes never learns that
it did, nor tells it: then the next change has all tabs read what they have missed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec
import trio

from actors.errors import SenderRefusedError, StoppingError
from actors.messages import Address, Inbound
from connectors.web.page.messages import (
    Message,
    answer,
    answer_id,
    own_id,
    with_sign,
)
from runtime.errors import SequenceConflictError

if TYPE_CHECKING:
    from actors.deliveries import Delivery, Edit, Reaction, Typing
    from actors.transport import Ingress
    from connectors.web.page.chat_log import ChatLog
    from connectors.web.page.places import Place
    from runtime.clock import Clock
    from runtime.ids import IdSource

PLATFORM = "web"
"""What models are told they write on."""

MOST_CHATS = 4_096
"""Chats whose order is remembered; those nobody speaks in are read anew."""

MOST_WRITING = 1_000
"""Answers that are being written; of more, the first is shown as if it were whole."""

CAUGHT_UP = 200
"""Most changes that a tab is told at once; one that has missed more loads anew."""


class News(msgspec.Struct, frozen=True):
    """What tabs are told: a message that is new, or reads otherwise."""

    message: Message
    after: int
    """When the change before it was (ms)."""

    is_writing: bool = False
    """Whether it goes on."""


class Writes(msgspec.Struct, frozen=True):
    """What tabs are told: an agent writes, or has stopped."""

    chat: str
    agent: str
    is_over: bool


class Shown(msgspec.Struct, frozen=True):
    """Some messages of a chat, the oldest first."""

    messages: tuple[Message, ...]
    changed: int
    """Up to which change all is in them (ms)."""

    has_more: bool
    """Whether there are older ones."""

    writing: frozenset[str]
    """Which of them go on."""


Tell = Callable[[News | Writes], None]


class Order:
    """The order of one chat.

    Attributes:
        lock: held while something is kept and told.
        changed: when the last change was (ms); None: not read yet.
        is_unsure: whether a change may be on the disk, or be there soon, that nobody
            was told of.
        stamped: the last time (ms) that a change was given.
    """

    __slots__ = ("changed", "is_unsure", "lock", "stamped")

    def __init__(self) -> None:
        self.lock = trio.Lock()
        self.changed: int | None = None
        self.is_unsure = False
        self.stamped = 0


class Talk:
    """The messages of one connector.

    Args:
        connector: its name.
        log: where they are kept.
        clock: gives Unix seconds.
        ids: makes ids.
        tell: tells the tabs.
    """

    def __init__(
        self, connector: str, log: ChatLog, clock: Clock, ids: IdSource, tell: Tell
    ) -> None:
        self._connector = connector
        self._clock = clock
        self._ids = ids
        self._tell = tell
        self._orders: dict[str, Order] = {}
        self._writing: dict[str, str] = {}
        """Answers that are being written, with whom they answer (correlation)."""

        self.log = log
        self.ingress: Ingress | None = None
        """Where messages are handed in, while anybody listens."""

        self.touched: set[str] = set()
        """Chats in which something was said since they were last tidied."""

    # --- people -------------------------------------------------------------------

    async def say(self, person: str, place: Place, text: str, key: str) -> Message:
        """Hand in what somebody writes, keep it and tell it.

        Args:
            person: who.
            place: where.
            text: what.
            key: made up by their browser; again, it is the same message.

        Raises:
            ChatError: it was not taken; see `Ingress.accept`.
            StoreError: the disk fails; asked again with the same key, it counts once.
        """
        name = own_id(person, place.chat, key)
        async with self._order(place.chat).lock:
            known = await self.log.get(name)
            if known is not None:
                self._tell_again(known)
                return known
            at = await self._stamp(place.chat)
            message = Message(
                id=name, chat=place.chat, at=at, changed=at, author=person, text=text
            )
            await self._hand_in(message, place)
            await self._add(message)
            return message

    async def _hand_in(self, message: Message, place: Place) -> None:
        if self.ingress is None:
            raise StoppingError("the page ends, or is being restarted; try again")
        inbound = Inbound(
            id=self._ids.new(),
            platform=PLATFORM,
            platform_id=message.id,
            address=Address(self._connector, message.chat),
            sender_id=message.author,
            sender_name=message.author,
            text=message.text,
            received_at=message.at / 1000,
            is_direct=not place.is_room,
            agent="" if place.is_room else place.agents[0],
            present=place.agents,
        )
        if await self.ingress.accept(inbound):
            return
        # Taken before, and then cut off before it was kept here; or not let in.
        if await self.ingress.earlier(self._connector, message.id) is None:
            raise SenderRefusedError("you may not write here")

    # --- agents -------------------------------------------------------------------

    async def deliver(self, delivery: Delivery) -> str:
        """Keep and tell what is delivered; gives its id.

        Raises:
            StoreError: the disk fails; try again later.
        """
        chat = delivery.address.chat
        async with self._order(chat).lock:
            known = await self.log.get(answer_id(delivery))
            if known is not None:
                self._tell_again(known)
                return known.id
            message = answer(delivery, await self._stamp(chat))
            if delivery.is_draft:
                self._begin(message.id, delivery.correlation_id)
            await self._add(message)
            return message.id

    async def edit(self, edit: Edit) -> bool:
        """Let a message read otherwise; False: there is none of this id.

        Raises:
            StoreError: the disk fails; nothing has changed.
        """
        chat = edit.address.chat
        async with self._order(chat).lock:
            known = await self.log.get(edit.receipt)
            if known is None or known.chat != chat:
                return False
            if edit.is_last:
                self._writing.pop(known.id, None)
            else:
                self._begin(known.id, edit.correlation_id)
            changed = msgspec.structs.replace(
                known, text=edit.text, is_gone=not edit.text
            )
            await self._change(changed)
            return True

    async def react(self, reaction: Reaction) -> bool:
        """Put a sign at a message; False: there is none of this id.

        Raises:
            StoreError: the disk fails; nothing has changed.
        """
        chat = reaction.address.chat
        async with self._order(chat).lock:
            known = await self.log.get(reaction.message)
            if known is None or known.chat != chat:
                return False
            changed = with_sign(known, reaction)
            if changed != known:
                await self._change(changed)
            return True

    def typing(self, typing: Typing) -> None:
        """Tell that an agent writes, or has stopped."""
        self._tell(Writes(typing.address.chat, typing.agent, typing.is_over))

    async def settle(self, correlation_id: str) -> None:
        """Learn that nothing more is written in answer to a message.

        Raises:
            StoreError: the disk fails; the tabs learn of it when they load anew.
        """
        over = [key for key, of in self._writing.items() if of == correlation_id]
        for message_id in over:
            self._writing.pop(message_id, None)
            found = await self.log.get(message_id)
            if found is None:
                continue
            async with self._order(found.chat).lock:
                # Read anew: it may have come to read otherwise until now.
                known = await self.log.get(message_id)
                if known is not None:
                    await self._change(known)

    def _begin(self, message_id: str, correlation_id: str) -> None:
        self._writing.pop(message_id, None)
        self._writing[message_id] = correlation_id
        if len(self._writing) > MOST_WRITING:
            del self._writing[next(iter(self._writing))]

    # --- readers ------------------------------------------------------------------

    async def shown(self, chat: str, before: int, limit: int) -> Shown:
        """Give messages of a chat.

        Args:
            chat: which.
            before: only those of before this time (ms); 0: the newest.
            limit: most of them.

        Raises:
            StoreError: the disk fails.
        """
        async with self._order(chat).lock:
            # First: what is not on the disk yet must not count as shown.
            changed = await self._changed(chat)
            found = await self.log.page(chat, before=before, limit=limit + 1)
        messages = tuple(reversed(found[:limit]))
        return Shown(messages, changed, len(found) > limit, self._of(messages))

    async def since(self, chat: str, changed: int) -> Shown | None:
        """Give what has changed since a change; None: more than is told at once.

        Raises:
            StoreError: the disk fails.
        """
        async with self._order(chat).lock:
            last = await self._changed(chat)
            if last == changed:
                return Shown((), last, has_more=False, writing=frozenset())
            found = await self.log.page(chat, limit=CAUGHT_UP)
        if len(found) == CAUGHT_UP and found[-1].changed > changed:
            return None
        missed = [each for each in found if each.changed > changed]
        messages = tuple(sorted(missed, key=lambda each: each.changed))
        return Shown(messages, last, has_more=False, writing=self._of(messages))

    async def forget(self, chat: str, seconds: float) -> int:
        """Forget what was said in a chat longer ago than that; count it.

        Raises:
            StoreError: the disk fails; some may be forgotten.
        """
        cutoff = int((self._clock.wall() - seconds) * 1000)
        return await self.log.clear(chat, max(1, cutoff))

    def _of(self, messages: tuple[Message, ...]) -> frozenset[str]:
        return frozenset(each.id for each in messages if each.id in self._writing)

    # --- order --------------------------------------------------------------------

    async def _add(self, message: Message) -> None:
        try:
            await self._keep(message, self.log.add)
        except SequenceConflictError:
            # Kept already: whoever said it was cut off before it was told.
            self._tell_again(message)

    async def _change(self, message: Message) -> None:
        stamp = await self._stamp(message.chat)
        changed = msgspec.structs.replace(message, changed=stamp)
        await self._keep(changed, self.log.change)

    async def _keep(
        self, message: Message, write: Callable[[Message], Awaitable[None]]
    ) -> None:
        """Have a change written, and tell it."""
        order = self._order(message.chat)
        after = await self._changed(message.chat)
        was_unsure, order.is_unsure = order.is_unsure, True
        await write(message)
        # Written behind all that others were cut off from, so that tabs find that, too.
        order.is_unsure = False
        order.changed = message.changed
        self._announce(message, message.changed if was_unsure else after)

    def _tell_again(self, message: Message) -> None:
        """Tell what is kept already, if it may be that nobody was told."""
        if self._order(message.chat).is_unsure:
            self._announce(message, message.changed)

    def _announce(self, message: Message, after: int) -> None:
        """Tell a change; with its own time as `after`, tabs read what they missed."""
        self.touched.add(message.chat)
        self._tell(News(message, after, is_writing=message.id in self._writing))

    async def _stamp(self, chat: str) -> int:
        """Give a time (ms) that no change in a chat has had."""
        order = self._order(chat)
        before = max(await self._changed(chat), order.stamped)
        order.stamped = max(int(self._clock.wall() * 1000), before + 1)
        return order.stamped

    async def _changed(self, chat: str) -> int:
        """Give the time of the last change in a chat; 0: there was none."""
        order = self._order(chat)
        if order.changed is None or order.is_unsure:
            found = await self.log.page(chat)
            order.changed = max((each.changed for each in found), default=0)
        return order.changed

    def _order(self, chat: str) -> Order:
        """Give the lock that keeps a chat's messages in their order."""
        order = self._orders.get(chat)
        if order is None:
            if len(self._orders) >= MOST_CHATS:
                self._orders = {
                    key: each
                    for key, each in self._orders.items()
                    if each.lock.locked() or each.is_unsure
                }
            order = self._orders[chat] = Order()
        return order
