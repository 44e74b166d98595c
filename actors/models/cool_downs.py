"""Cool-downs of accounts over the nodes of a company: each tells the others of its own.

There is a row for each backend, or account, that a provider has refused. It says for
how many seconds from then on nobody should ask; not until what time, for the clocks of
two machines are never compared. Who reads it counts those seconds from then, which is
later by what the row took to get there. How old a row is that was there before a node
looked first nobody knows: that node learns of it when it is refused itself.

A row is written when a cool-down begins, when it lasts longer than the others know, and
when a call has ended it; never by a process that is no node.
"""

from __future__ import annotations

import msgspec

from actors.errors import ModelFault
from actors.models.pool import Backend, Circuit, LearntFailure
from runtime.clock import Clock
from runtime.store.port import Store
from runtime.store.rows import Commit, Entry, StoredEntry
from runtime.telemetry.logs import EventLog

LOG = EventLog("models")

COOL_DOWN = "cool_down"
"""Kind of the rows."""

PAGE = 1000

SHARED: frozenset[ModelFault] = frozenset({"rate", "overload", "quota", "auth"})
"""Failures of which the others are told, besides those after which the provider said
when to come back. A network that fails may be this machine's alone."""

WORTH_TELLING = 1.0
"""Seconds of a cool-down that are worth telling, and by which it must have grown to be
told again: calls that fail together are told of once."""


class CoolDown(msgspec.Struct, frozen=True, kw_only=True):
    """How long a backend, or an account, is to be left alone from now on."""

    by: str
    """The node, in this life, that says so."""

    account: str
    model: str = ""
    """Which of `[models.<name>]`; empty: the account, whatever it is asked for."""

    failure: LearntFailure | None = None
    """None: it answers again."""

    @property
    def whose(self) -> Backend | str:
        """What `Pool` keeps its circuit by."""
        return Backend(self.account, self.model) if self.model else self.account


class CoolDowns:
    """What this node and the others know of each other's cool-downs.

    Args:
        me: this node in this life; unlike any other.
    """

    def __init__(self, me: str, store: Store) -> None:
        self._me = me
        self._store = store
        self._versions: dict[str, int] | None = None
        """Of the rows that were read, by id; None: they were never looked at."""

        self._known: dict[Backend | str, float] = {}
        """Until when the others keep away, on this machine's monotonic clock."""

    def changed(
        self, whose: Backend | str, circuit: Circuit | None, now: float
    ) -> CoolDown | None:
        """Give what the others are to be told after a call; None: they know it all.

        Args:
            whose: the backend, or the account.
            circuit: as the call left it; None: it is closed.
            now: seconds on this machine's monotonic clock.
        """
        account, model = (
            (whose, "") if isinstance(whose, str) else (whose.account, whose.model)
        )
        if circuit is None or circuit.is_closed:
            if self._known.pop(whose, None) is None:
                return None
            return CoolDown(by=self._me, account=account, model=model)
        is_asked_for = circuit.required_until > now
        if not (is_asked_for or circuit.kind in SHARED):
            return None
        known = max(now, self._known.get(whose, now))
        if circuit.until - known < WORTH_TELLING:
            return None
        self._known[whose] = circuit.until
        return CoolDown(
            by=self._me,
            account=account,
            model=model,
            failure=LearntFailure(
                required=max(0.0, circuit.required_until - now),
                guessed=circuit.until - now,
                kind=circuit.kind,
                why=circuit.why,
            ),
        )

    async def read(self, now: float) -> list[CoolDown]:
        """Give what other nodes have said since the last look; the first gives nothing.

        Args:
            now: seconds on this machine's monotonic clock.

        Raises:
            StoreError: the rows cannot be read.
        """
        found: list[CoolDown] = []
        versions: dict[str, int] = {}
        before = versions if self._versions is None else self._versions
        after = ""
        while True:
            rows = await self._store.entries(COOL_DOWN, after=after, limit=PAGE)
            for row in rows:
                versions[row.id] = row.version
                if before.get(row.id) != row.version:
                    found += told_by(row)
            if len(rows) < PAGE:
                break
            after = rows[-1].id
        self._versions = versions
        found = [each for each in found if each.by != self._me]
        for each in found:
            if each.failure is not None:
                self._known[each.whose] = now + each.failure.guessed
            else:
                self._known.pop(each.whose, None)
        return found


def told_by(row: StoredEntry) -> list[CoolDown]:
    """Read what a row says; nothing, if it cannot be read."""
    try:
        return [msgspec.json.decode(row.body, type=CoolDown)]
    except msgspec.DecodeError as error:
        LOG.fault("a cool-down cannot be read and is left out", error, row=row.id)
        return []


def commit_of(told: CoolDown, clock: Clock, since: float) -> Commit:
    """Make the row that tells the others.

    Args:
        since: the time that the seconds count from, on its monotonic clock; the row
            counts them from now on.
    """
    if told.failure is not None:
        passed = clock.monotonic() - since
        failure = told.failure
        failure = msgspec.structs.replace(
            failure,
            required=max(0.0, failure.required - passed),
            guessed=max(0.0, failure.guessed - passed),
        )
        told = msgspec.structs.replace(told, failure=failure)
    row = Entry(
        kind=COOL_DOWN,
        id=msgspec.json.encode((told.account, told.model)).decode(),
        part=0,
        body=msgspec.json.encode(told),
    )
    return Commit(at=clock.wall(), entries=(row,))
