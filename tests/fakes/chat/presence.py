"""A chat platform in memory whose messages can be edited, and get signs."""

from __future__ import annotations

from collections import deque

import trio

from actors.errors import DeliveryRefusedError
from actors.messages.deliveries import Abilities, Delivery, Edit, Reaction
from tests.fakes.company.company import Platform

EDITS = Abilities(
    is_idempotent=True,
    shows_typing=True,
    typing_for=10.0,
    ends_typing=True,
    draft_pace=1.0,
    takes_back=True,
)


class FakePresence:
    """Implements `actors.transport.Presence` for a fake platform.

    Args:
        platform: whose messages they are.
    """

    def __init__(self, platform: Screen) -> None:
        self._screen = platform
        self.faults: deque[Exception] = deque()
        """What the next edits raise."""

        self.busy: deque[Exception] = deque()
        """What the next reactions raise."""

        self.is_done_all_the_same = False
        """Whether an edit that raises was done."""

        self.edits: list[Edit] = []
        """All that were asked for."""

        self.edited_at: list[float] = []
        """When an edit was taken, on trio's clock."""

        self.reactions: list[Reaction] = []
        """All that were taken."""

        self.signs: dict[tuple[str, str], str] = {}
        """What stands at a message, by its id and by whose sign it is."""

        self.delay = 0.0
        """Seconds that each call takes."""

    async def edit(self, edit: Edit) -> None:
        """Let a message read otherwise."""
        await trio.sleep(self.delay)
        self.edits.append(edit)
        if not self.faults:
            self._edit(edit)
            return
        error = self.faults.popleft()
        if self.is_done_all_the_same:
            self._edit(edit)
        raise error

    def _edit(self, edit: Edit) -> None:
        texts = self._screen.texts
        if edit.receipt not in texts:
            raise DeliveryRefusedError("there is no such message")
        self.edited_at.append(trio.current_time())
        if edit.text:
            texts[edit.receipt] = edit.text
        else:
            del texts[edit.receipt]
        self._screen.note_change()

    async def react(self, reaction: Reaction) -> None:
        """Put a sign at a message."""
        await trio.sleep(self.delay)
        if self.busy:
            raise self.busy.popleft()
        self.reactions.append(reaction)
        key = (reaction.message, reaction.agent)
        if reaction.instead_of and self.signs.get(key) == reaction.instead_of:
            del self.signs[key]
        if reaction.sign:
            self.signs[key] = reaction.sign
        self._screen.note_change()


class Screen(Platform):
    """A platform whose messages can be edited; knows what people see.

    Args:
        name: of the connector account.
        is_direct: False: all its chats are groups.
    """

    def __init__(self, name: str = "fake", *, is_direct: bool = True) -> None:
        super().__init__(name, is_direct=is_direct)
        self.can = EDITS
        self.hand = FakePresence(self)
        self.texts: dict[str, str] = {}
        """What stands in its chats, by receipt, oldest first."""

        self.lost: deque[Exception] = deque()
        """What is raised about the next messages, all the same said."""

    @property
    def presence(self) -> FakePresence:
        """Edit and react."""
        return self.hand

    async def deliver(self, delivery: Delivery) -> str:
        before = len(self.deliveries)
        receipt = await super().deliver(delivery)
        is_new = len(self.deliveries) > before
        if not (is_new or self.can.is_idempotent):
            receipt, is_new = f"{receipt}-{len(self.texts)}", True
        if is_new:
            self.texts[receipt] = delivery.text
        if self.lost:
            raise self.lost.popleft()
        return receipt

    @property
    def seen(self) -> list[str]:
        """What people read, oldest first."""
        return list(self.texts.values())

    def note_change(self) -> None:
        """Wake whoever waits for something to happen."""
        self._note_change()
