"""What a courier has said of late, and receipts on their way to the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from runtime.errors import StoreUnavailableError
from runtime.rows import (
    Commit,
    Committed,
    Receipt,
)

if TYPE_CHECKING:
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


class Owner(Protocol):
    """The part of a courier that this needs."""

    def note(self, message: Recorded) -> None:
        """Tell it what became of a receipt."""
        ...

    def tell_delivered(self, delivery_id: str) -> None:
        """Say that a delivery's receipt is stored, or never will be."""
        ...


class Receipts:
    """The receipts of one chat; its courier comes with the calls, as in `outgoing.py`.

    Args:
        services: where to store them.
    """

    __slots__ = ("_refused", "_said", "_services", "_waiting")

    def __init__(self, services: Services) -> None:
        self._services = services
        self._waiting: dict[str, Receipt] = {}
        self._refused: frozenset[str] = frozenset()
        # Oldest first. Why no deque: an empty one is 600 bytes, and there is one for
        # each chat; and each message asks whether it was said.
        self._said: dict[str, None] = {}

    @property
    def are_stored(self) -> bool:
        """Whether none waits for the disk."""
        return not self._waiting

    @property
    def are_refused(self) -> bool:
        """Whether one waits that the disk did not take when it was asked first."""
        return bool(self._refused)

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
        self._said.update(dict.fromkeys(said))
        while len(self._said) > REMEMBERED:
            del self._said[next(iter(self._said))]

    def has_said(self, delivery_id: str) -> bool:
        """Whether this was said, or given up, as far as that is remembered."""
        return delivery_id in self._said

    def forget(self, delivery_id: str) -> None:
        """Let this be said once more."""
        self._said.pop(delivery_id, None)

    def is_waiting(self, delivery_id: str) -> bool:
        """Whether the receipt of this is not stored yet."""
        return delivery_id in self._waiting

    def store(self, receipt: Receipt, owner: Owner, *, may_wait: bool = False) -> None:
        """Store a receipt, for the first time or again.

        Args:
            receipt: what is stored.
            owner: told what became of it; that it is stored, or never will be, also if
                it takes no notes any more.
            may_wait: whether it does no harm to say it again, should the process end
                meanwhile.
        """
        if receipt.delivery_id not in self._waiting:
            self._waiting[receipt.delivery_id] = receipt
            self.remember((receipt.delivery_id,))

        def done(outcome: Committed | Exception) -> None:
            owner.note(Recorded(receipt, outcome))
            if not isinstance(outcome, StoreUnavailableError):
                owner.tell_delivered(receipt.delivery_id)

        now = self._services.clock.wall()
        commit = Commit(at=now, receipts=(receipt,), may_wait=may_wait)
        self._services.store.submit(commit, done)

    def refuse(self, receipt: Receipt) -> None:
        """Note that the disk did not take it; it is to be stored again."""
        self._refused |= {receipt.delivery_id}

    def drop(self, receipt: Receipt) -> None:
        """Forget a receipt that is stored, or never will be."""
        self._waiting.pop(receipt.delivery_id, None)
        if self._refused:
            self._refused -= {receipt.delivery_id}
        if not self._waiting:
            self._waiting = {}  # an emptied one is three times as large
