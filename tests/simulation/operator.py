"""The operator of a run: `callboard queue retry` and `drop` at random moments.

Does to the rows in memory what `runtime.sqlite.database` does to those in a file,
beside a process that runs or does not.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec
import trio

from actors.journal import answers, commits
from actors.messages.inbound import Inbound
from actors.rules.text.secrets import AuditRedaction
from runtime.store.database import DROPPED
from runtime.store.rows import BY_HAND, Commit, Receipt, Settle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from runtime.store.rows import StoredDelivery, StoredMessage
    from tests.simulation.world import World

Order = tuple[str, "Callable[[], None]", bool]
"""What is done, in words; doing it; whether it is about what waits, or was dropped."""

TOLD = "This message was dropped by the operator."

# Chosen: at a random moment little is on its way.
KEEN = 0.5
"""Share of the orders after which the next thing that waits to be said is dropped, or
one that was dropped is retried then."""


class Operator:
    """Somebody with a shell beside the company.

    Args:
        world: the company's.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._lurks = False

    def act(self, roll: float) -> None:
        """Give one of the orders that can be given now, if there is any."""
        self._lurks = self._lurks or roll < KEEN
        orders = list(self._orders())
        self._give(orders, roll)

    def seize(self) -> None:
        """Meddle with what waits to be said, if that was the intention."""
        keen = [order for order in self._orders() if order[2]]
        if self._lurks and keen:
            self._lurks = False
            self._give(keen, self._world.dice.random())

    def _give(self, orders: list[Order], roll: float) -> None:
        world = self._world
        if orders and not world.disk.is_full:
            words, carry_out, _ = orders[int(roll * len(orders))]
            world.trace.note("operator", "", words)
            carry_out()
            world.cast.store.changed_outside = True

    def _orders(self) -> Iterator[Order]:
        rows, now = self._world.cast.store._rows, self._world.clock.wall()
        for message in rows.inbox.values():
            is_waiting = message.state == "accepted" and message.due_at > now
            if message.state == "dead" or is_waiting:
                yield f"retry {message.id}", partial(self._retry, message), False
            if message.state in {"dead", "accepted"}:
                yield f"drop {message.id}", partial(self._drop, message), False
        for delivery in rows.outbox.values():
            if delivery.state in {"dead", "unknown"}:
                is_dropped = delivery.receipt == DROPPED
                say = partial(self._say_again, delivery)
                yield f"retry {delivery.id}", say, is_dropped
            if delivery.state in {"pending", "unknown"}:
                waits = delivery.state == "pending"
                leave = partial(self._leave_unsaid, delivery)
                yield f"drop {delivery.id}", leave, waits

    def _retry(self, row: StoredMessage) -> None:
        reopened = msgspec.structs.replace(
            row, state="accepted", reason=BY_HAND, due_at=0.0, settled_at=0.0
        )
        self._world.cast.store._rows.inbox[row.id] = reopened
        self._tell_ledger(row.id, is_reopened=row.state == "dead")

    def _drop(self, row: StoredMessage) -> None:
        world = self._world
        if row.state == "dead":
            self._retry(row)
            self._commit(Commit(at=world.clock.wall(), settles=(dropped(row),)))
            return
        inbound = msgspec.json.decode(row.body, type=Inbound)
        answer = answers.notice(inbound, TOLD, ("dropped", DROPPED), "dropped")
        answer = answers.with_new_ids(answer, world.cast.ids)
        self._tell_ledger(row.id, is_reopened=False)
        self._commit(
            commits.as_unanswered(answer, world.clock.wall(), AuditRedaction())
        )

    def _say_again(self, row: StoredDelivery) -> None:
        reopened = msgspec.structs.replace(
            row, state="pending", receipt=BY_HAND, settled_at=0.0
        )
        self._world.cast.store._rows.outbox[row.id] = reopened
        self._world.checkers.ledger.left_unsaid.pop(row.id, None)
        self._tell_ledger(row.id, is_reopened=True)

    def _leave_unsaid(self, row: StoredDelivery) -> None:
        if row.state == "unknown":
            self._say_again(row)
        self._tell_ledger(row.id, is_reopened=False)
        receipt = Receipt(row.id, "dead", DROPPED, row.attempts)
        self._commit(Commit(at=self._world.clock.wall(), receipts=(receipt,)))
        self._world.checkers.ledger.left_unsaid[row.id] = trio.current_time()

    def _commit(self, commit: Commit) -> None:
        self._world.disk_store.write_outside(commit)

    def _tell_ledger(self, name: str, *, is_reopened: bool) -> None:
        """Tell of it behind the commits that were made before."""
        ledger = self._world.checkers.ledger
        token = trio.lowlevel.current_trio_token()
        token.run_sync_soon(ledger.take_in_hand, name, is_reopened)


def dropped(row: StoredMessage) -> Settle:
    """Settle a message as the operator does."""
    return Settle(row.id, "dropped", DROPPED)
