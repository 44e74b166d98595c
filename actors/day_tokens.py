"""How many tokens each agent has taken today for what it does by the clock.

Added up from the ledger, which every turn writes when it ends, and from nothing else:
after a restart it is the same. Read on from where the last look ended.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from datetime import UTC, timedelta
from typing import TYPE_CHECKING

import msgspec

from actors.purse import remember
from actors.records import USAGE, UsageRecord
from actors.rules.local_time import shown
from runtime.logs import EventLog

if TYPE_CHECKING:
    from datetime import date, tzinfo

    from actors.services import Services
    from runtime.rows import StoredRecord

LOG = EventLog("schedule")

PAGE = 1000


class DayTokens:
    """The sums of one day.

    Args:
        services: the store, the clock, the time zone of the day.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._day: date | None = None
        self._after: tuple[float, int] = (0.0, 0)
        self._sums: Counter[str] = Counter()
        self._seen: OrderedDict[str, None] = OrderedDict()
        """Runs that are counted: a row may be written anew."""

    @property
    def zone(self) -> tzinfo:
        """Give the zone in which a day begins at midnight."""
        return zone_of_day(self._services)

    async def of(self, agent: str) -> int:
        """Give the tokens of an agent, read and written, of all turns that have ended.

        Raises:
            StoreUnavailableError: the disk fails.
        """
        now = self._services.clock.wall()
        day = shown(now, self.zone).date()
        # Also when the clock went back: what is written now would be passed over.
        if day != self._day or now < self._after[0]:
            self._day, self._after = day, (midnight(now, self.zone), 0)
            self._sums.clear()
            self._seen.clear()
        await self._read_on()
        return self._sums[agent]

    async def _read_on(self) -> None:
        while True:
            rows = await self._services.store.records_since(USAGE, *self._after, PAGE)
            for row in rows:
                self._after = (row.at, row.number)
                self._take(row)
            if len(rows) < PAGE:
                return

    def _take(self, row: StoredRecord) -> None:
        if row.id in self._seen:
            return
        try:
            body = msgspec.json.decode(row.body, type=UsageRecord)
        except msgspec.MsgspecError as error:
            LOG.fault("a row of the ledger cannot be read", error, row=row.id)
            return
        if body.occasion:
            remember(self._seen, row.id, None)
            self._sums[body.agent] += body.input_tokens + body.output_tokens


def zone_of_day(services: Services) -> tzinfo:
    """Give the zone of `scheduler.time_zone`."""
    return services.find_zone(services.scheduler.time_zone) or UTC


def midnight(at: float, zone: tzinfo, days: int = 0) -> float:
    """Give when a day begins, in Unix seconds.

    Args:
        at: Unix seconds.
        zone: by whose clocks.
        days: 0 for the day of that moment, 1 for the one after.
    """
    local = shown(at, zone) + timedelta(days=days)
    begin = local.replace(hour=0, minute=0, second=0, microsecond=0)
    return begin.replace(tzinfo=zone).timestamp()
