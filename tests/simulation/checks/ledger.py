"""What was committed in one run, by the commits themselves.

The checkers' own memory: it outlives every process of the run, and does not ask the
store what the store did.
"""

from __future__ import annotations

from collections import defaultdict

import msgspec

from actors.messages.deliveries import Delivery
from actors.messages.inbound import Inbound
from runtime.store.rows import Commit

SETTLED = frozenset({"replied", "dropped", "cancelled", "dead"})
"""Terminal states of a message; any other is unsettled."""

RECEIVED = frozenset({"sent", "unknown", "dead"})
"""Terminal states of a delivery."""


class Message(msgspec.Struct):
    """One row of the inbox."""

    number: int
    """In the order of acceptance."""

    at: float
    """Seconds of virtual time at which it was accepted."""

    inbound: Inbound
    ends: list[tuple[str, str]]
    """Terminal states and reasons, as often as it was settled."""

    ended_before: list[tuple[str, str]] = msgspec.field(default_factory=list)
    """The same, until it was tried again by hand."""


class Said(msgspec.Struct):
    """One row of the outbox."""

    number: int
    """In the order of enqueueing."""

    at: float
    """Seconds of virtual time at which it was enqueued."""

    delivery: Delivery
    receipts: list[str]
    """Terminal states, as often as one was stored."""


class Ledger:
    """All rows that were ever committed."""

    def __init__(self) -> None:
        self.messages: dict[str, Message] = {}
        self.by_platform_id: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        """(connector, platform id) → ids of the rows accepted under it."""

        self.said: dict[str, Said] = {}
        self.commits = 0
        self.by_hand: set[str] = set()
        """Exchanges and deliveries that the operator had in hand: these go on out of
        order, and may be said twice."""

        self.left_unsaid: dict[str, float] = {}
        """Deliveries that the operator dropped, and has not retried; when."""

    def write(self, commit: Commit, now: float) -> None:
        """Take in a commit that became durable at `now`, virtual time."""
        self.commits += 1
        for row in commit.accepts:
            inbound = msgspec.json.decode(row.body, type=Inbound)
            self.messages[row.id] = Message(len(self.messages) + 1, now, inbound, [])
            self.by_platform_id[row.connector, inbound.platform_id].append(row.id)
        for enqueue in commit.deliveries:
            delivery = msgspec.json.decode(enqueue.body, type=Delivery)
            said = Said(len(self.said) + 1, now, delivery, [])
            self.said[enqueue.delivery_id] = said
        for settle in commit.settles:
            if str(settle.state) in SETTLED:
                end = (str(settle.state), settle.reason)
                self.messages[settle.inbox_id].ends.append(end)
        for receipt in commit.receipts:
            if str(receipt.state) in RECEIVED:
                self.said[receipt.delivery_id].receipts.append(str(receipt.state))

    def take_in_hand(self, name: str, is_reopened: bool) -> None:  # noqa: FBT001
        """Learn that the operator decided about a message or a delivery."""
        self.by_hand.add(name)
        if name in self.said:
            if is_reopened:
                self.said[name].receipts.clear()
            return
        message = self.messages[name]
        self.by_hand.add(message.inbound.correlation_id)
        if is_reopened:
            message.ended_before += message.ends
            message.ends.clear()

    def akin(self, subject: str) -> set[str]:
        """Give the ids under which a message or delivery shows in a trace."""
        message = self.messages.get(subject.partition(":")[0])
        if message is None:
            return {subject}
        inbound = message.inbound
        return {subject, inbound.id, inbound.platform_id, inbound.correlation_id}

    def inbox(self) -> dict[str, int]:
        """Count messages by terminal state; "open" are those without one."""
        counts: defaultdict[str, int] = defaultdict(int)
        for message in self.messages.values():
            counts[message.ends[-1][0] if message.ends else "open"] += 1
        return dict(counts)


def words_of(commit: Commit) -> tuple[str, str]:
    """Say in one line what a commit holds; gives (subject, text)."""
    words = [f"accept {row.id}" for row in commit.accepts]
    words += [f"journal {row.stream}" for row in commit.appends]
    words += [f"enqueue {row.delivery_id}" for row in commit.deliveries]
    words += [f"settle {row.inbox_id} {row.state}" for row in commit.settles]
    words += [f"not said {row.delivery_id}" for row in commit.not_said]
    words += [f"receipt {row.delivery_id} {row.state}" for row in commit.receipts]
    ids = [row.inbox_id for row in commit.settles]
    ids += [row.delivery_id for row in commit.receipts]
    ids += [row.delivery_id for row in commit.not_said]
    ids += [row.id for row in commit.accepts]
    return ids[0] if ids else "", ", ".join(words)
