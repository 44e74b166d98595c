"""The operator of a run: `callboard queue retry` and `drop` at random moments.

Does to the rows in memory what `runtime.sqlite_mend` does to those in a file, beside a
process that runs or does not.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec
import trio

from actors import answers, commits
from actors.messages import Inbound
from actors.redaction import Keep
from runtime.rows import BY_HAND, Commit, Receipt, Settle
from runtime.sqlite_mend import DROPPED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from runtime.rows import StoredDelivery, StoredMessage
    from tests.simulation.world import World

Order = tuple[str, "Callable[[], None]"]
"""What is done, in words, and doing it."""

TOLD = "This message was dropped by the operator."


class Operator:
    """Somebody with a shell beside the company.

    Args:
        world: the company's.
    """

    def __init__(self, world: World) -> None:
        self._world = world

    def act(self, roll: float) -> None:
        """Give one of the orders that can be given now, if there is any."""
        world = self._world
        orders = [] if world.disk.is_full else list(self._orders())
        if orders:
            words, carry_out = orders[int(roll * len(orders))]
            world.trace.note("operator", "", words)
            carry_out()
            world.cast.store.changed_outside = True

    def _orders(self) -> Iterator[Order]:
        rows, now = self._world.cast.store._rows, self._world.clock.wall()
        for message in rows.inbox.values():
            is_waiting = message.state == "accepted" and message.due_at > now
            if message.state == "dead" or is_waiting:
                yield f"retry {message.id}", partial(self._retry, message)
            if message.state in {"dead", "accepted"}:
                yield f"drop {message.id}", partial(self._drop, message)
        for delivery in rows.outbox.values():
            if delivery.state in {"dead", "unknown"}:
                yield f"retry {delivery.id}", partial(self._say_again, delivery)
            if delivery.state in {"pending", "unknown"}:
                yield f"drop {delivery.id}", partial(self._leave_unsaid, delivery)

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
        self._commit(commits.as_unheard(answer, world.clock.wall(), Keep()))

    def _say_again(self, row: StoredDelivery) -> None:
        reopened = msgspec.structs.replace(
            row, state="pending", receipt="", settled_at=0.0
        )
        self._world.cast.store._rows.outbox[row.id] = reopened
        self._tell_ledger(row.id, is_reopened=True)

    def _leave_unsaid(self, row: StoredDelivery) -> None:
        if row.state == "unknown":
            self._say_again(row)
        self._tell_ledger(row.id, is_reopened=False)
        receipt = Receipt(row.id, "dead", DROPPED, row.attempts)
        self._commit(Commit(at=self._world.clock.wall(), receipts=(receipt,)))

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
