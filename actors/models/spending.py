"""The sums of all budgets: rows of calls by period, read from the ledger.

`models` writes one row for each call that cost something, under the call's own id. So
whatever is read again or written again, each call counts once. What a run of many calls
took stands in `journal/records.py`, for people; no budget goes by it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, TypeVar

import msgspec

from actors.messages.usage import Spent
from actors.models.budget import Amount, Budget, BudgetCheck, Budgets, Spender
from runtime.errors import StoreError
from runtime.store.rows import Commit, Record, StoredRecord
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from actors.models.catalogue import Catalogue
    from actors.services import Services

LOG = EventLog("models")

T = TypeVar("T")

CALL = "call"
"""Kind of the records; one for each call."""

PAGE = 1000

OVERLAP = 1000
"""Numbers of records that are read again: of two nodes' rows, the one with the lower
number may be stored later. Chosen: a hundred times what is under way at once."""

MOST_COUNTED = 10_000
"""Calls that are known to be counted, the newest; far more than `OVERLAP`."""


class CallRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What one call has cost, and whom."""

    who: Spender
    spent: Spent

    @property
    def amount(self) -> Amount:
        """What it counts for in budgets."""
        usage = self.spent.usage
        return Amount(self.spent.cost, usage.input_tokens + usage.output_tokens)


class PaidCall(msgspec.Struct, frozen=True):
    """A call that has ended; the store may not have its row yet."""

    id: str
    at: float
    """When it ended, in Unix seconds."""

    body: CallRecord

    def commit(self) -> Commit:
        """Make its row; stored again, it replaces itself."""
        row = Record(
            kind=CALL,
            id=self.id,
            owner=self.body.who.agent,
            part=0,
            body=msgspec.json.encode(self.body),
        )
        return Commit(at=self.at, records=(row,), may_wait=True)


class Spending:
    """The sums of all budgets.

    Args:
        unstored: calls, by id, whose rows the store has not confirmed.
    """

    def __init__(
        self, services: Services, catalogue: Catalogue, unstored: dict[str, PaidCall]
    ) -> None:
        self._services = services
        self.budgets = Budgets(catalogue.budgets, catalogue.zone)
        self._has_budgets = bool(catalogue.budgets)
        self._is_read = not catalogue.budgets
        self.unstored = unstored
        self._counted: deque[str] = deque(maxlen=MOST_COUNTED)
        self._last = 0
        """The highest number of a row that was counted."""

    @property
    def is_ready(self) -> bool:
        """Whether the sums of the present periods are known.

        They are not at first, and when the clock was set back to a period before.
        """
        return self._is_read and self.budgets.knows(self._services.clock.wall())

    async def read(self) -> None:
        """Add up the ledger; without the disk they stay unknown."""
        try:
            await self._read(self._services.clock.wall())
        except StoreError as error:
            LOG.warning("ledger not read; no model is asked", why=str(error))

    async def _read(self, now: float) -> None:
        self._is_read = False
        after = (self.budgets.begin(now), 0)
        while not self._is_read:
            rows = await self._services.store.records_since(CALL, *after, PAGE)
            for row in rows:
                self._count(row)
                after = (row.at, row.number)
            self._is_read = len(rows) < PAGE
        for call in self.unstored.values():
            self.budgets.enter(call.body.who, call.body.amount, call.at)
            self._counted.append(call.id)

    async def read_on(self) -> None:
        """Count the calls of other nodes, by the numbers of their rows.

        Why not by their times: the clocks of two machines are never compared.
        """
        if not (self._is_read and self._has_budgets):
            return
        oldest, before = self._last - OVERLAP, 0
        found: list[StoredRecord] = []
        try:
            while True:
                rows = await self._services.store.records(CALL, None, before, PAGE)
                found += [row for row in rows if row.number > oldest]
                if len(rows) < PAGE or rows[-1].number <= oldest:
                    break
                before = rows[-1].number
        except StoreError as error:
            LOG.warning("calls of other nodes not read yet", why=str(error))
            return
        counted = set(self._counted)
        for row in reversed(found):
            if row.id not in counted:
                self._count(row)

    def _count(self, row: StoredRecord) -> None:
        self._last = max(self._last, row.number)
        if row.id in self.unstored:
            return
        self._counted.append(row.id)
        body = read_row(row, CallRecord)
        if body is not None:
            self.budgets.enter(body.who, body.amount, row.at)
        else:
            self._services.metrics.budgets.add(1, "unread")

    def verdict(self, who: Spender) -> BudgetCheck:
        """Say whether a call may begin."""
        return self.budgets.verdict(who, self._services.clock.wall())

    def left(self) -> tuple[tuple[str, str, str, float], ...]:
        """Give what is left of each budget, as `BudgetsLeft` is answered."""
        found = self.budgets.left(self._services.clock.wall())
        return tuple((x.scope, x.who, x.period, part) for x, part in found)

    def own(self, user: str) -> tuple[tuple[Budget, Amount], ...]:
        """Give the budgets of a person, as `OwnBudgets` is answered."""
        return tuple(self.budgets.own(user, self._services.clock.wall()))

    def enter(self, call: str, who: Spender, spent: Spent) -> PaidCall:
        """Count a call that has ended; give what is to be stored of it."""
        body = CallRecord(who=who, spent=spent)
        paid = PaidCall(call, self._services.clock.wall(), body)
        # Without budgets, too: the next settings may have some.
        self.unstored[call] = paid
        self._counted.append(call)
        if self._is_read:
            self.budgets.enter(who, body.amount, paid.at)
        return paid


def read_row(row: StoredRecord, kind: type[T]) -> T | None:
    """Decode a row of the ledger; None, and an error in the log, if it cannot be."""
    try:
        return msgspec.json.decode(row.body, type=kind)
    except ValueError as error:
        LOG.fault(
            "a row of the ledger cannot be read and is left out", error, row=row.id
        )
        return None
