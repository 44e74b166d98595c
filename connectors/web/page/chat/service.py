"""Accepts, stores and announces the messages of the page; on the kernel's side.

A person's message is handed in first, then stored and announced: every message on the
page will be answered. Under the same id it counts once, so a repeated request loses and
doubles nothing. Each change is on the disk before it is announced. It is announced with
the time of the change before it (`after`), so that a tab notices if it missed one, and
reads that here. A request that is cancelled while the disk writes announces nothing:
then the next change makes all tabs read what they missed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec
import trio

from actors.errors import StoppingError
from actors.journal.attachments import kind_of
from actors.messages.deliveries import Delivery, Edit, Reaction, Typing
from actors.messages.inbound import Address, Attachment, Inbound, SentFile
from actors.transport import Ingress
from connectors.chat.server_transport import hand_in
from connectors.fetch.messages import media_type
from connectors.files.blobs import PEOPLE, BlobFolder
from connectors.web.page.chat.chats import PageChat
from connectors.web.page.chat.files import PageUpload
from connectors.web.page.chat.messages import (
    PageHistory,
    PageMessage,
    answer_id,
    answer_of,
    own_id,
    with_sign,
)
from runtime.clock import Clock
from runtime.errors import SequenceConflictError
from runtime.ids import IdSource

PLATFORM = "web"
"""The platform's name in prompts."""

MOST_CHATS = 4_096
"""Chats whose state is kept in memory; the state of idle ones is read again."""

MOST_WRITING = 1_000
"""Answers being written; of more, the oldest is shown as if it were whole."""

MOST_LOOKED_AT = 10_000
"""Messages of a chat that are searched, the newest."""

MOST_FOUND = 50

CAUGHT_UP = 200
"""Most changes sent to a tab at once; one that missed more reloads the page."""


class MessageChanged(msgspec.Struct, frozen=True):
    """Sent to tabs: a message is new, or has changed."""

    message: PageMessage
    after: int
    """The time of the change before it in the chat (ms)."""

    is_writing: bool = False
    """Whether it is still being written."""


class WritingChanged(msgspec.Struct, frozen=True):
    """Sent to tabs: an agent is typing, or has stopped."""

    chat: str
    agent: str
    is_over: bool


class ChatPage(msgspec.Struct, frozen=True):
    """Messages of a chat, the oldest first."""

    messages: tuple[PageMessage, ...]
    changed: int
    """The time (ms) up to which they have all changes."""

    has_more: bool
    """Whether there are older ones."""

    writing: frozenset[str]
    """The ids of those that are still being written."""


Tell = Callable[[MessageChanged | WritingChanged], None]


class ChatOrder:
    """Keeps the changes of one chat in order.

    Attributes:
        lock: held while a change is stored and announced.
        changed: the time of the last change (ms); None: not read yet.
        is_unsure: whether a change may be stored, or soon be, that was not announced.
        stamped: the last time (ms) that was given to a change.
    """

    __slots__ = ("changed", "is_unsure", "lock", "stamped")

    def __init__(self) -> None:
        self.lock = trio.Lock()
        self.changed: int | None = None
        self.is_unsure = False
        self.stamped = 0


def no_approval(_delivery: str) -> str:
    """Give nothing: no delivery asks for an approval."""
    return ""


def as_attachment(file: SentFile, upload: PageUpload) -> Attachment:
    """Describe a person's file for the domain."""
    kind: Literal["image", "audio", "document"] = "document"
    if file.kind in {"image", "audio"}:
        kind = "image" if file.kind == "image" else "audio"
    return Attachment(kind, file.name, file.media_type, content=upload.content)


class PageChats:
    """The messages of one connector.

    Methods that read or write rows raise `StoreError` if the disk fails.

    Args:
        blobs: keeps the bytes of people's files; None: they are not shown.
        asks: gives the id of the approval that a delivery asks for, or nothing.
    """

    def __init__(  # noqa: PLR0913, PLR0917  what it is made from
        self,
        connector: str,
        history: PageHistory,
        clock: Clock,
        ids: IdSource,
        tell: Tell,
        blobs: BlobFolder | None = None,
        asks: Callable[[str], str] = no_approval,
    ) -> None:
        self.name = connector
        self._clock = clock
        self._ids = ids
        self._tell = tell
        self._blobs = blobs
        self._asks = asks
        self._orders: dict[str, ChatOrder] = {}
        self._writing: dict[str, str] = {}
        """Messages that are being written, with their correlation ids."""

        self.history = history
        self.ingress: Ingress | None = None
        """Where messages are handed in; None: the page is not listening."""

    # --- people -------------------------------------------------------------------

    async def say(
        self,
        person: str,
        place: PageChat,
        text: str,
        key: str,
        uploads: tuple[PageUpload, ...] = (),
    ) -> PageMessage:
        """Hand in a person's message, store and announce it.

        Args:
            key: chosen by the browser; the same key is the same message.

        Raises:
            BlobError: there is no room for a file.
            ChatError: it was not accepted; see `Ingress.accept`.
            StoreError: the disk fails; repeated with the same key, it counts once.
        """
        name = own_id(person, place.chat, key)
        async with self._order(place.chat).lock:
            known = await self.history.get(name)
            if known is not None:
                self._tell_again(known)
                return known
            at = await self._stamp(place.chat)
            message = PageMessage(
                id=name,
                chat=place.chat,
                at=at,
                changed=at,
                author=person,
                text=text,
                inbound=self._ids.new(),
                files=tuple([await self._kept(each) for each in uploads]),
            )
            await self._hand_in(message, place, uploads)
            await self._add(message)
            return message

    async def _kept(self, upload: PageUpload) -> SentFile:
        """Keep a file's bytes, so that the chat can show it."""
        content = upload.content
        kind = media_type(content, upload.declared)
        if self._blobs is None:
            digest, size = hashlib.sha256(content).hexdigest(), len(content)
        else:
            kept = await self._blobs.keep(lambda take: take(content), PEOPLE)
            digest, size = kept.digest, kept.size
        return SentFile(digest, upload.name, kind, size, kind_of(kind))

    async def _hand_in(
        self, message: PageMessage, place: PageChat, uploads: tuple[PageUpload, ...]
    ) -> None:
        if self.ingress is None:
            raise StoppingError("the page ends, or is being restarted; try again")
        inbound = Inbound(
            id=message.inbound,
            platform=PLATFORM,
            platform_id=message.id,
            address=Address(self.name, message.chat),
            sender_id=message.author,
            sender_name=message.author,
            text=message.text,
            received_at=message.at / 1000,
            is_direct=not place.is_room,
            agent="" if place.is_room else place.agents[0],
            present=place.agents,
            attachments=tuple(
                as_attachment(file, upload)
                for file, upload in zip(message.files, uploads, strict=True)
            ),
        )
        # False: handed in before, by a request cancelled before it was stored.
        await hand_in(self.ingress, inbound)

    # --- agents -------------------------------------------------------------------

    async def deliver(self, delivery: Delivery) -> str:
        """Store and announce a delivery; give the message's id.

        Raises:
            StoreError: the disk fails; try again later.
        """
        chat = delivery.address.chat
        async with self._order(chat).lock:
            known = await self.history.get(answer_id(delivery))
            if known is not None:
                self._tell_again(known)
                return known.id
            approval = self._asks(delivery.id) if delivery.is_aside else ""
            message = answer_of(delivery, await self._stamp(chat), approval)
            if delivery.is_draft:
                self._begin(message.id, delivery.correlation_id)
            await self._add(message)
            return message.id

    async def edit(self, edit: Edit) -> bool:
        """Change the text of a message; False: it does not exist.

        Raises:
            StoreError: the disk fails; nothing has changed.
        """
        chat = edit.address.chat
        async with self._order(chat).lock:
            known = await self.history.get(edit.receipt)
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
        """Set a reaction at a message; False: it does not exist.

        Raises:
            StoreError: the disk fails; nothing has changed.
        """
        chat = reaction.address.chat
        async with self._order(chat).lock:
            known = await self.history.get(reaction.message)
            if known is None or known.chat != chat:
                return False
            changed = with_sign(known, reaction)
            if changed != known:
                await self._change(changed)
            return True

    def typing(self, typing: Typing) -> None:
        """Announce that an agent is typing, or has stopped."""
        self._tell(WritingChanged(typing.address.chat, typing.agent, typing.is_over))

    async def settle(self, correlation_id: str) -> None:
        """Show all answers to a message as complete.

        Raises:
            StoreError: the disk fails; tabs see it when they reload the page.
        """
        over = [key for key, of in self._writing.items() if of == correlation_id]
        for message_id in over:
            self._writing.pop(message_id, None)
            found = await self.history.get(message_id)
            if found is None:
                continue
            async with self._order(found.chat).lock:
                # Read again: it may have changed until now.
                known = await self.history.get(message_id)
                if known is not None:
                    await self._change(known)

    def _begin(self, message_id: str, correlation_id: str) -> None:
        self._writing.pop(message_id, None)
        self._writing[message_id] = correlation_id
        if len(self._writing) > MOST_WRITING:
            del self._writing[next(iter(self._writing))]

    # --- readers ------------------------------------------------------------------

    async def shown(self, chat: str, before: int, limit: int) -> ChatPage:
        """Give messages of a chat.

        Args:
            before: only messages older than this time (ms); 0: the newest.
            limit: most of them.
        """
        async with self._order(chat).lock:
            # First: a change that is stored meanwhile must not count as shown.
            changed = await self._changed(chat)
            found = await self.history.page(chat, before=before, limit=limit + 1)
        messages = tuple(reversed(found[:limit]))
        return ChatPage(messages, changed, len(found) > limit, self._of(messages))

    async def since(self, chat: str, changed: int) -> ChatPage | None:
        """Give the messages that changed since a time; None: too many."""
        async with self._order(chat).lock:
            last = await self._changed(chat)
            if last == changed:
                return ChatPage((), last, has_more=False, writing=frozenset())
            found = await self.history.page(chat, limit=CAUGHT_UP)
        if len(found) == CAUGHT_UP and found[-1].changed > changed:
            return None
        missed = [each for each in found if each.changed > changed]
        messages = tuple(sorted(missed, key=lambda each: each.changed))
        return ChatPage(messages, last, has_more=False, writing=self._of(messages))

    def _of(self, messages: tuple[PageMessage, ...]) -> frozenset[str]:
        return frozenset(each.id for each in messages if each.id in self._writing)

    async def found(self, chat: str, words: str) -> tuple[PageMessage, ...]:
        """Find the newest messages of a chat that have some words."""
        wanted, before = words.casefold(), 0
        found: list[PageMessage] = []
        for _ in range(MOST_LOOKED_AT // CAUGHT_UP):
            page = await self.history.page(chat, before=before, limit=CAUGHT_UP)
            found += [x for x in page if wanted in x.text.casefold() and not x.is_gone]
            if len(page) < CAUGHT_UP or len(found) >= MOST_FOUND:
                break
            before = page[-1].at
        return tuple(found[:MOST_FOUND])

    async def latest(self, chats: tuple[str, ...]) -> dict[str, int]:
        """Give when each chat changed last (ms); 0: nothing was said there."""
        return {chat: await self._changed(chat) for chat in chats}

    # --- order --------------------------------------------------------------------

    async def _add(self, message: PageMessage) -> None:
        try:
            await self._keep(message, self.history.add)
        except SequenceConflictError:
            # Stored already: its request was cancelled before it was announced.
            self._tell_again(message)

    async def _change(self, message: PageMessage) -> None:
        stamp = await self._stamp(message.chat)
        changed = msgspec.structs.replace(message, changed=stamp)
        await self._keep(changed, self.history.change)

    async def _keep(
        self, message: PageMessage, write: Callable[[PageMessage], Awaitable[None]]
    ) -> None:
        """Store a change, and announce it."""
        order = self._order(message.chat)
        after = await self._changed(message.chat)
        was_unsure, order.is_unsure = order.is_unsure, True
        await write(message)
        # Stored after all unannounced changes, so that tabs find those, too.
        order.is_unsure = False
        order.changed = message.changed
        self._announce(message, message.changed if was_unsure else after)

    def _tell_again(self, message: PageMessage) -> None:
        """Announce a stored message, if it may not have been announced."""
        if self._order(message.chat).is_unsure:
            self._announce(message, message.changed)

    def _announce(self, message: PageMessage, after: int) -> None:
        """Announce a change; with `after` its own time, tabs read what they missed."""
        self._tell(
            MessageChanged(message, after, is_writing=message.id in self._writing)
        )

    async def _stamp(self, chat: str) -> int:
        """Give a new time (ms), later than all changes of a chat."""
        order = self._order(chat)
        before = max(await self._changed(chat), order.stamped)
        order.stamped = max(int(self._clock.wall() * 1000), before + 1)
        return order.stamped

    async def _changed(self, chat: str) -> int:
        """Give the time of the last change in a chat (ms); 0: none."""
        order = self._order(chat)
        if order.changed is None or order.is_unsure:
            found = await self.history.page(chat)
            order.changed = max((each.changed for each in found), default=0)
        return order.changed

    def _order(self, chat: str) -> ChatOrder:
        """Give the state that keeps a chat's changes in order."""
        order = self._orders.get(chat)
        if order is None:
            if len(self._orders) >= MOST_CHATS:
                self._orders = {
                    key: each
                    for key, each in self._orders.items()
                    if each.lock.locked() or each.is_unsure
                }
            order = self._orders[chat] = ChatOrder()
        return order
