"""Who is on their way in one connector: what was taken in and not answered yet.

Counted as it comes and goes, and now and then anew from the store. That is where the
count begins after a restart, and how it forgets what was answered by other ways (by
hand, for one); whatever still waits stays counted, however long it waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.unheard import standing
from runtime.errors import StoreError
from runtime.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from actors.messages import Inbound
    from runtime.rows import StoredMessage
    from runtime.store import Store

LOG = EventLog("session")

PAGE = 1000

# Chosen: seldom beside a look through the store, often beside an operator who settles
# by hand what then takes up room for nobody.
COUNT_EVERY = 600.0
"""Seconds between counts of who is on their way, from what the store says."""

COUNT_AGAIN = 15.0
"""Seconds until they are counted again if the disk did not say."""


class OpenMessages:
    """The messages of one connector that wait for their answer.

    Args:
        most: how many there may be; called each time if it may change.
    """

    def __init__(self, most: int | Callable[[], int]) -> None:
        self._most = most if callable(most) else lambda: most
        self._ids: set[str] = set()

    def __len__(self) -> int:
        """Say how many there are; after a restart that may be more than `most`."""
        return len(self._ids)

    @property
    def is_full(self) -> bool:
        """Whether one more is too many."""
        return len(self._ids) >= self._most()

    def add(self, correlation_id: str) -> None:
        """Take one in."""
        self._ids.add(correlation_id)

    def discard(self, correlation_id: str) -> None:
        """Learn that one was answered, or never will be."""
        self._ids.discard(correlation_id)

    def count_anew(self, correlation_ids: Collection[str]) -> None:
        """Learn from the store which ones there are, and no others."""
        self._ids = set(correlation_ids)


async def unanswered(store: Store, connector: str) -> set[str]:
    """Look up which messages of a connector wait for their own answer.

    Args:
        store: where to look.
        connector: name of the account.

    Returns:
        Their correlation ids. Copies for further agents and delegations are left out:
        an exchange makes room when the person's own message is answered.

    Raises:
        StoreError: the disk fails.
    """
    after = 0
    found: set[str] = set()
    while True:
        rows = await store.unsettled(after, PAGE)
        for row in rows:
            after = row.number
            if row.connector == connector and _is_own(row):
                found.add(row.id)
        if len(rows) < PAGE:
            return found


async def is_settled(store: Store, inbound: Inbound) -> bool:
    """Tell whether somebody has settled a message; False if the disk does not say."""
    try:
        found = await store.answered(inbound.address.connector, inbound.platform_id)
    except StoreError as error:
        LOG.warning("not seen whether it still waits", why=str(error))
        return False
    return found is None or bool(found.message.settled_at)


async def settled_among(store: Store, asked: Iterable[Inbound]) -> frozenset[str]:
    """Tell which of some messages somebody has settled; those the disk says."""
    return frozenset([each.id for each in asked if await is_settled(store, each)])


def _is_own(row: StoredMessage) -> bool:
    """Whether it is what a person wrote, and can be read."""
    found = standing(row)
    return found is not None and found.correlation_id in {"", row.id}
