"""What a courier has said of late, and receipts on their way to the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from runtime.errors import StoreUnavailableError
from runtime.rows import (
    Commit,
    Committed,
    Receipt,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.services import Services

# Chosen: more than one chat has under way around a restart.
REMEMBERED = 1000


class Recorded(msgspec.Struct, frozen=True):
    """A courier's note to itself: what became of a receipt's commit."""

    receipt: Receipt
    outcome: Committed | Exception


class RecordAgain(msgspec.Struct, frozen=True):
    """A courier's note to itself: try to store a receipt again."""

    receipt: Receipt


class Receipts:
    """The receipts of one chat.

    Args:
        services: where to store them.
        note: told what became of each.
        stored: told the delivery's id when its receipt is stored, or never will be;
            also if nobody takes notes any more.
    """

    def __init__(
        self,
        services: Services,
        note: Callable[[Recorded], object],
        stored: Callable[[str], object],
    ) -> None:
        self._services = services
        self._note = note
        self._stored = stored
        self._waiting: dict[str, Receipt] = {}
        # Why no deque: an empty one is 600 bytes, and there is one for each chat.
        self._said: list[str] = []

    @property
    def are_stored(self) -> bool:
        """Whether none waits for the disk."""
        return not self._waiting

    @property
    def waiting(self) -> tuple[Receipt, ...]:
        """Those not stored yet, oldest first."""
        return tuple(self._waiting.values())

    @property
    def said(self) -> tuple[str, ...]:
        """What was said or given up of late, oldest first."""
        return tuple(self._said)

    def remember(self, said: tuple[str, ...]) -> None:
        """Take up what an earlier incarnation said."""
        self._said.extend(said)
        del self._said[:-REMEMBERED]

    def has_said(self, delivery_id: str) -> bool:
        """Whether this was said, or given up, as far as that is remembered."""
        return delivery_id in self._said

    def forget(self, delivery_id: str) -> None:
        """Let this be said once more."""
        self._said = [each for each in self._said if each != delivery_id]

    def is_waiting(self, delivery_id: str) -> bool:
        """Whether the receipt of this is not stored yet."""
        return delivery_id in self._waiting

    def store(self, receipt: Receipt) -> None:
        """Store a receipt, for the first time or again."""
        if receipt.delivery_id not in self._waiting:
            self._waiting[receipt.delivery_id] = receipt
            self.remember((receipt.delivery_id,))
        note, stored = self._note, self._stored

        def done(outcome: Committed | Exception) -> None:
            note(Recorded(receipt, outcome))
            if not isinstance(outcome, StoreUnavailableError):
                stored(receipt.delivery_id)

        commit = Commit(at=self._services.clock.wall(), receipts=(receipt,))
        self._services.store.submit(commit, done)

    def drop(self, receipt: Receipt) -> None:
        """Forget a receipt that is stored, or never will be."""
        self._waiting.pop(receipt.delivery_id, None)
