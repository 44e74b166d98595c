"""Tokens that each agent has used today for scheduled turns.

Added up from the ledger, which every turn writes when it ends, and from nothing else:
after a restart it is the same. Read on from where the last look ended. What has begun
and not ended is reckoned with by what such turns took before: else all that is due at
nine would go by what was taken until nine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, timedelta, tzinfo

from actors.journal.records import USAGE, UsageRecord
from actors.journal.unsettled import read_open
from actors.messages.inbound import Inbound
from actors.models.spending import read_row
from actors.rules.text.durations import shown
from actors.rules.text.limits import RecentMap
from actors.services import Services
from runtime.store.rows import StoredRecord

PAGE = 1000

GUESS = 2_000
"""Tokens of a turn of an agent of which nobody knows yet what it takes. Chosen: a light
prompt, a short list, and an answer."""

STORED_WITHIN = 60.0
"""Seconds after which what is not in the store has not been begun after all."""

MOST_BEGUN = 10_000
"""Turns that are reckoned with; of more, the oldest are forgotten."""

OPEN = frozenset({"accepted", "running"})
"""States of a message whose turn has not ended."""

NOT_ALLOTTED = "webhook"
"""An occasion that has limits of its own, and nothing to do with the clock."""


class DailyTokens:
    """The token sums of one day."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._midnight = 0.0
        """Unix seconds at which the day begins whose sums these are."""

        self._after: tuple[float, int] = (0.0, 0)
        self._sums: Counter[str] = Counter()
        self._seen: set[str] = set()
        """Runs of the day that are counted: a row may be written anew."""

        self._runs: Counter[str] = Counter()
        """By agent, of today; of what they took, and of the mean of the days before."""

        self._took: Counter[str] = Counter()
        self._begun: RecentMap[tuple[str, str], tuple[str, float]] = RecentMap(
            MOST_BEGUN
        )
        """By how the store knows it: whose it is, and when it was begun (monotonic)."""

    async def of(self, agent: str) -> int:
        """Give the tokens of an agent, read and written, of all turns that have ended.

        Raises:
            StoreUnavailableError: the disk fails.
        """
        now = self._services.clock.wall()
        begin = midnight(now, zone_of_day(self._services))
        # Also when the clock went back: what is written now would be passed over. And
        # the zone may be another now.
        if begin != self._midnight or now < self._after[0]:
            self._midnight, self._after = begin, (begin, 0)
            self._sums.clear()
            self._seen.clear()
            self._took = Counter({x: self._took[x] // n for x, n in self._runs.items()})
            self._runs = Counter(dict.fromkeys(self._took, 1))
        await self._read_on()
        return self._sums[agent]

    def begin(self, inbounds: Iterable[Inbound]) -> None:
        """Reckon with turns that are about to begin; more than once does no harm."""
        now = self._services.clock.monotonic()
        for each in inbounds:
            known = each.address.connector, each.platform_id
            self._begun[known] = each.agent, now

    async def expected(self, agent: str) -> int:
        """Give the tokens that turns will take which have begun, and not ended.

        Raises:
            StoreUnavailableError: the disk fails.
        """
        now, store = self._services.clock.monotonic(), self._services.store
        mine = [(known, at) for known, (x, at) in self._begun.items() if x == agent]
        rows = await read_open(store) if mine else ()
        still_open = {(row.connector, row.platform_id) for row in rows}
        gone = [each for each in mine if each[0] not in still_open]
        young = [known for known, at in gone if now - at < STORED_WITHIN]
        over = {
            (row.connector, row.platform_id)
            for row in await store.messages(young)
            if row.state not in OPEN
        }
        # Why not all: one that is not stored yet may be so in a moment.
        kept = {known for known in young if known not in over}
        for known, _ in gone:
            if known not in kept:
                del self._begun[known]
        count = sum(whose == agent for whose, _ in self._begun.values())
        runs = self._runs[agent]
        return count * (self._took[agent] // runs if runs else GUESS)

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
        body = read_row(row, UsageRecord)
        if body is not None and is_allotted(body):
            self._seen.add(row.id)
            tokens = body.input_tokens + body.output_tokens
            self._sums[body.agent] += tokens
            self._took[body.agent] += tokens
            self._runs[body.agent] += 1


def is_allotted(body: UsageRecord) -> bool:
    """Whether a run counts as done by the clock; what a webhook asked for does not."""
    return bool(body.occasion) and body.occasion != NOT_ALLOTTED


def zone_of_day(services: Services) -> tzinfo:
    """Give the zone of `scheduler.time_zone`."""
    return services.find_zone(services.scheduler.time_zone) or UTC


def midnight(at: float, zone: tzinfo, days: int = 0) -> float:
    """Give when a day begins, in Unix seconds.

    Args:
        at: Unix seconds.
        days: 0 for the day of that moment, 1 for the one after.
    """
    local = shown(at, zone) + timedelta(days=days)
    begin = local.replace(hour=0, minute=0, second=0, microsecond=0)
    return begin.replace(tzinfo=zone).timestamp()
