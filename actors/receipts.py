"""What a courier has said of late, and receipts on their way to the disk."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import msgspec

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
    """

    def __init__(self, services: Services, note: Callable[[Recorded], object]) -> None:
        self._services = services
        self._note = note
        self._waiting: dict[str, Receipt] = {}
        self._said: deque[str] = deque(maxlen=REMEMBERED)

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

    def has_said(self, delivery_id: str) -> bool:
        """Whether this was said, or given up, as far as that is remembered."""
        return delivery_id in self._said

    def is_waiting(self, delivery_id: str) -> bool:
        """Whether the receipt of this is not stored yet."""
        return delivery_id in self._waiting

    def store(self, receipt: Receipt) -> None:
        """Store a receipt, for the first time or again."""
        if receipt.delivery_id not in self._waiting:
            self._waiting[receipt.delivery_id] = receipt
            self._said.append(receipt.delivery_id)
        note = self._note
        commit = Commit(at=self._services.clock.wall(), receipts=(receipt,))
        self._services.store.submit(
            commit, lambda outcome: note(Recorded(receipt, outcome))
        )

    def drop(self, receipt: Receipt) -> None:
        """Forget a receipt that is stored, or never will be."""
        self._waiting.pop(receipt.delivery_id, None)
