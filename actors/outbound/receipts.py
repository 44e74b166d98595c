"""What a courier delivered lately, and the receipts that are not stored yet."""

from __future__ import annotations

import msgspec

from actors import names
from actors.protocol import Delivered
from actors.services import Services
from runtime.actor.actor import Actor
from runtime.actor.committer import Committer
from runtime.store.rows import Commit, Committed, Receipt

# Chosen: more than one chat has under way around a restart.
REMEMBERED = 1000


class ReceiptStored(msgspec.Struct, frozen=True):
    """A courier's note to itself: the outcome of a receipt's commit."""

    receipt: Receipt
    outcome: Committed | Exception


class StoreReceipt(msgspec.Struct, frozen=True):
    """A courier's note to its next incarnation: store a receipt."""

    receipt: Receipt


class Receipts:
    """The receipts of one chat.

    Args:
        connector: told `Delivered` about each receipt, also when the courier has ended.
        services: where to store them.
    """

    __slots__ = (
        "_committer",
        "_connector",
        "_said",
        "_services",
        "_waiting",
    )

    def __init__(self, connector: str, services: Services) -> None:
        self._connector = connector
        self._services = services
        self._committer = Committer(services.store)
        self._waiting: dict[str, Receipt] = {}
        # Oldest first. Why no deque: an empty one takes 600 bytes, for each chat; and
        # each message looks its id up here.
        self._said: dict[str, None] = {}

    @property
    def are_stored(self) -> bool:
        """Whether all receipts are stored."""
        return not self._waiting

    @property
    def are_refused(self) -> bool:
        """Whether the disk has refused a receipt that is not stored yet."""
        return self._committer.is_refused

    @property
    def waiting(self) -> tuple[Receipt, ...]:
        """The receipts that are not stored yet, oldest first."""
        return tuple(self._waiting.values())

    @property
    def said(self) -> tuple[str, ...]:
        """Ids of recent deliveries that were sent or given up, oldest first."""
        return tuple(self._said)

    def remember(self, said: tuple[str, ...]) -> None:
        """Add ids of recent deliveries, such as those of the incarnation before."""
        self._said.update(dict.fromkeys(said))
        while len(self._said) > REMEMBERED:
            del self._said[next(iter(self._said))]

    def has_said(self, delivery_id: str) -> bool:
        """Whether a delivery was sent or given up recently."""
        return delivery_id in self._said

    def forget(self, delivery_id: str) -> None:
        """Allow a delivery to be sent once more."""
        self._said.pop(delivery_id, None)

    def is_waiting(self, delivery_id: str) -> bool:
        """Whether a delivery's receipt is not stored yet."""
        return delivery_id in self._waiting

    def store(
        self, receipt: Receipt, courier: Actor, *, may_wait: bool = False
    ) -> None:
        """Store a receipt.

        Args:
            receipt: the receipt.
            courier: told `ReceiptStored`; kept here, it would be in a reference cycle.
            may_wait: whether the commit may wait for others. Should the process end
                before, the message is sent again, so only where that does no harm.
        """
        if receipt.delivery_id not in self._waiting:
            self._waiting[receipt.delivery_id] = receipt
            self.remember((receipt.delivery_id,))

        def make() -> Commit:
            now = self._services.clock.wall()
            return Commit(at=now, receipts=(receipt,), may_wait=may_wait)

        def done(outcome: Committed | Exception) -> None:
            courier.note(ReceiptStored(receipt, outcome))
            self.tell_delivered(receipt.delivery_id, courier)

        self._committer.submit(courier, make, done, "receipt")

    def tell_delivered(self, delivery_id: str, courier: Actor) -> None:
        """Tell the connector that a receipt is stored, or never will be."""
        delivered = Delivered(delivery_id)
        courier.tell(names.connector(self._connector), delivered)

    def drop(self, receipt: Receipt) -> None:
        """Forget a receipt that is stored, or never will be."""
        self._waiting.pop(receipt.delivery_id, None)
        if not self._waiting:
            self._waiting = {}  # an emptied dict is three times as large
