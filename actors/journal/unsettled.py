"""Messages that are stored and not settled yet: reading them back, and counting them.

`OpenMessages` counts a connector's unanswered messages as they come and go, and now and
then anew from the store: at the start, and to forget what was answered in other ways
(by hand, for one). A message that still waits stays counted, however long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence

import msgspec

from actors.journal.records import AUDIT
from actors.messages.inbound import Inbound
from actors.messages.state import AttemptHistory
from runtime.errors import StoreError
from runtime.fairness import Owner, PlacesHeld
from runtime.ids import LENGTH, millisecond_of
from runtime.store.port import Store
from runtime.store.rows import MessageKey, StoredMessage
from runtime.telemetry.logs import EventLog

LOG = EventLog("router")

PAGE = 1000
UNTRIED = AttemptHistory()


class UnroutedMessage(msgspec.Struct, frozen=True):
    """A stored message that no session has yet."""

    inbound: Inbound
    number: int = 0
    """Its number in the inbox; 0 if it is not known."""

    past: AttemptHistory = UNTRIED
    arrived_at: float = 0.0
    """Monotonic seconds of arrival; 0 if it arrived in an earlier process."""

    at: float = 0.0
    """Unix seconds at which it was stored; 0: just now."""

    copied: frozenset[str] = frozenset()
    """Agents that are known to have a stored copy of it."""


class MessagePlace(msgspec.Struct, frozen=True):
    """The fields of a stored message that say whose it is and where it stands.

    Decoding only these takes a tenth of the time, where ten thousand are read.
    """

    correlation_id: str = ""
    sender_id: str = ""
    caller: str = ""
    copy_of: int = 0


STANDING = msgspec.json.Decoder(MessagePlace)


def read_place(row: StoredMessage) -> MessagePlace | None:
    """Decode these fields; None if they cannot be read."""
    try:
        return STANDING.decode(row.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None  # whoever routes it logs that


def place(row: StoredMessage) -> tuple[int, int]:
    """Give a message's place among all; a copy stands where its original stands."""
    found = read_place(row)
    return (found and found.copy_of) or row.number, row.number


async def read_open(store: Store) -> list[StoredMessage]:
    """Read all messages that are not settled, in the order of their numbers.

    Raises:
        StoreError: the disk fails.
    """
    found: list[StoredMessage] = []
    while True:
        rows = await store.unsettled(found[-1].number if found else 0, PAGE)
        found.extend(rows)
        if len(rows) < PAGE:
            return found


async def read_keys(store: Store) -> list[MessageKey]:
    """Read the keys of all messages that are not settled, in their order.

    Raises:
        StoreError: the disk fails.
    """
    found: list[MessageKey] = []
    while True:
        keys = await store.unsettled_keys(found[-1].number if found else 0, PAGE)
        found.extend(keys)
        if len(keys) < PAGE:
            return found


async def read_among(store: Store, keys: Sequence[MessageKey]) -> list[StoredMessage]:
    """Read those of some messages that are still not settled, in no promised order.

    Raises:
        StoreError: the disk fails.
    """
    found: list[StoredMessage] = []
    for start in range(0, len(keys), PAGE):
        page = keys[start : start + PAGE]
        rows = await store.messages([(key.connector, key.platform_id) for key in page])
        found.extend(row for row in rows if not row.settled_at)
    return found


async def newest_id(store: Store) -> str:
    """Give the greatest id of messages: new ones go on after it, whatever clocks say.

    Ids are made in their order, so it is among what is open or was audited last.

    Raises:
        StoreError: the disk fails.
    """
    names = [key.id for key in await read_keys(store)]
    names += [row.id[:LENGTH] for row in await store.records(AUDIT, limit=PAGE)]
    return max((each for each in names if millisecond_of(each) >= 0), default="")


def read_back(row: StoredMessage) -> tuple[UnroutedMessage, ...]:
    """Decode a stored message; empty if it cannot be read."""
    try:
        inbound = msgspec.json.decode(row.body, type=Inbound)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        # Left as it is: a later release may read it, and it delays no other.
        LOG.fault("message cannot be read", error, message=row.id)
        return ()
    return (UnroutedMessage(inbound, row.number, as_past(row), at=row.at),)


def as_past(row: StoredMessage) -> AttemptHistory:
    """Give what the store knows of earlier attempts at a message."""
    return AttemptHistory(
        attempts=row.attempts,
        was_running=row.state == "running",
        started_at=row.started_at,
        due_at=row.due_at,
        was_read=True,
    )


def tell_found(found: Counter[str], running: Container[str]) -> None:
    """Log what an earlier process left, and what of it is left alone."""
    for connector, count in found.items():
        if connector in running:
            LOG.info("messages taken up again", connector=connector, count=count)
        else:
            LOG.warning(
                "messages left alone: their connector is not running",
                connector=connector,
                count=count,
            )


SESSION_LOG = EventLog("session")


# Chosen: the read is cheap at this rate, and messages that an operator settles by hand
# soon stop taking up room.
COUNT_EVERY = 600.0
"""Seconds between counts of the unanswered messages in the store."""

COUNT_AGAIN = 15.0
"""Seconds until the next count if the disk failed."""


class OpenMessages:
    """The unanswered messages of one connector.

    Args:
        most: how many there may be; called each time if it may change.
    """

    def __init__(self, most: int | Callable[[], int]) -> None:
        self._most = most if callable(most) else lambda: most
        self._owners: dict[str, Owner] = {}
        """By correlation id: caller and sender."""

        self._held = PlacesHeld()

    def __len__(self) -> int:
        """Count them; after a restart there may be more than `most`."""
        return len(self._owners)

    def may_add(self, owner: Owner) -> bool:
        """Tell whether an owner may have one more open message, within their share."""
        most = self._most()
        return len(self._owners) < most and self._held.may_add(owner, most)

    def add(self, correlation_id: str, owner: Owner) -> None:
        """Add a message."""
        self.discard(correlation_id)
        self._owners[correlation_id] = owner
        self._held.add(owner)

    def discard(self, correlation_id: str) -> None:
        """Remove a message that was answered, or never will be."""
        owner = self._owners.pop(correlation_id, None)
        if owner is not None:
            self._held.remove(owner)

    def count_anew(self, owners: Mapping[str, Owner]) -> None:
        """Replace them by those that the store has: owner by correlation id."""
        self._owners = dict(owners)
        self._held = PlacesHeld()
        for owner in owners.values():
            self._held.add(owner)


def owner_of(inbound: Inbound | MessagePlace) -> Owner:
    """Tell whose place among a connector's open messages a message takes."""
    return inbound.caller, inbound.sender_id


async def unanswered(
    store: Store, connector: str, is_mine: Callable[[str, int], bool] | None = None
) -> dict[str, Owner]:
    """Read which messages of a connector wait for their own answer.

    Args:
        is_mine: whether a chat of a connector and a part is worked on here; None: all
            are. See `Duties`.

    Returns:
        Whose they are (see `owner_of`) by correlation id, without copies for further
        agents and delegated messages: an exchange makes room when the person's own
        message is answered.

    Raises:
        StoreError: the disk fails.
    """
    after = 0
    found: dict[str, Owner] = {}
    while True:
        rows = await store.unsettled(after, PAGE)
        for row in rows:
            after = row.number
            is_meant = row.connector == connector
            if is_meant and is_mine is not None:
                is_meant = is_mine(connector, row.part)
            its = read_place(row) if is_meant else None
            if its is not None and its.correlation_id in {"", row.id}:
                found[row.id] = owner_of(its)
        if len(rows) < PAGE:
            return found


async def is_settled(store: Store, inbound: Inbound) -> bool:
    """Tell whether somebody has settled a message; False if the disk does not say."""
    return inbound.id in await settled_among(store, (inbound,))


async def settled_among(store: Store, asked: Iterable[Inbound]) -> frozenset[str]:
    """Tell which of some messages somebody has settled, as far as the disk says."""
    keys = {(each.address.connector, each.platform_id): each.id for each in asked}
    try:
        found = await store.messages(keys)
    except StoreError as error:
        SESSION_LOG.warning("not seen whether it still waits", why=str(error))
        return frozenset()
    waits = {
        (each.connector, each.platform_id) for each in found if not each.settled_at
    }
    return frozenset(name for key, name in keys.items() if key not in waits)
