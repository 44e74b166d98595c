"""Sends the events of one webhook, each until its receiver has taken it.

The shell of `rules/notifying.py`. The oldest goes first; what failed waits for its own
time, and when the receiver itself is in trouble, all wait. An event that was sent and
whose row could not be taken away in time is sent again, under the same id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, assert_never

import msgspec
import trio

from actors.notices import DEAD, DUE, Notice, as_entry, read
from actors.notifying import LookForNotices, NewNotices
from actors.rules.notifying import Posted, Verdict, judge, wait_after
from runtime.actor import Actor
from runtime.entries import StoredEntry
from runtime.errors import SequenceConflictError, StoreError
from runtime.logs import EventLog
from runtime.mailbox import MailboxConfig
from runtime.rows import Commit

if TYPE_CHECKING:
    from actors.notifying import Receiver
    from actors.services import Services
    from runtime.entries import Entry
    from runtime.timers import Timer

LOG = EventLog("webhooks")

PAGE = 1000

# Chosen: whoever stored an event tells at once; this finds what was stored by somebody
# who was killed right after it.
SWEEP_EVERY = 300.0
"""Seconds between looks for events that nobody told of."""

FORGET_EVERY = 3600.0
"""Seconds between looks for what was given up long ago."""

# Chosen: a receiver that comes back is found within a quarter of an hour.
LONGEST_REST = 900.0
"""Most seconds for which a receiver is left alone that does not ask for more."""

RETRY = 5.0
"""Seconds until something is tried again that the disk did not do."""

TOO_MANY = "too many waited"
PARTS_OF_CHANCE = 256


class Tick(msgspec.Struct, frozen=True):
    """A note to itself: something is due."""


class Sweep(msgspec.Struct, frozen=True):
    """A note to itself: look at all rows."""


class Forget(msgspec.Struct, frozen=True):
    """A note to itself: look at what was given up."""


class Tried(msgspec.Struct, frozen=True):
    """One event that was tried, and what came of it."""

    row: StoredEntry
    notice: Notice
    posted: Posted


class Notifier(Actor):
    """Sends events to one receiver.

    Takes: `NewNotices`, `LookForNotices`.
    Sends: nothing to actors.
    Keeps: which events wait, and until when; their bodies stay in the store.
    Fails: never by an event or a receiver.
    Ends: with the system; what was under way is sent again after the next start.

    Args:
        receiver: where to, how patiently.
        services: store, clock, dice.
    """

    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=10_000)
    deadline: ClassVar[float | None] = 180.0
    ends_by_interrupt: ClassVar[bool] = True

    def __init__(self, receiver: Receiver, services: Services) -> None:
        super().__init__()
        self._receiver = receiver
        self._services = services
        self._metrics = receiver.metrics
        self._due: dict[str, float] = {}
        """By id, so the oldest first: Unix seconds before which it is not tried."""

        self._failures = 0
        """Rounds in a row in which the receiver itself was in trouble."""

        self._rests_until = 0.0
        """Unix seconds before which nothing is tried."""

        self._timer: Timer | None = None

    def on_start(self) -> None:
        """Look for what an earlier process left."""
        self.note(Sweep())
        self.every(SWEEP_EVERY, Sweep())
        self.every(FORGET_EVERY, Forget())

    async def on_receive(self, message: object) -> object:
        """Take events up, or send what is due."""
        try:
            match message:
                case NewNotices(ids=ids):
                    for name in ids:  # one that was found before keeps its time
                        self._due.setdefault(name, 0.0)
                case LookForNotices():
                    self._rests_until = 0.0  # perhaps somebody said: try again
                    await self._sweep()
                case Sweep():
                    await self._sweep()
                case Forget():
                    await self._forget_dead()
                case Tick():
                    await self._send_due()
                case _:
                    return super().on_receive(message)
        except StoreError as error:
            LOG.warning("events not sent yet", webhook=self._name, why=str(error))
            self._rests_until = self._services.clock.wall() + RETRY
        self._metrics.waiting(self._name, len(self._due))
        self._arm()
        return None

    @property
    def _name(self) -> str:
        return self._receiver.name

    def _arm(self) -> None:
        """Sleep until the next event."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._due:
            at = max(min(self._due.values()), self._rests_until)
            wait = max(0.0, at - self._services.clock.wall())
            # Never longer: the clock on the wall may be set.
            self._timer = self.after(min(wait, SWEEP_EVERY), Tick())

    # --- what there is ----------------------------------------------------------------

    async def _sweep(self) -> None:
        """Read all rows anew; give up what is too much, and forget what is old."""
        due: dict[str, float] = {}
        after = ""
        while True:
            rows = await self._services.store.entries(DUE, self._name, after, PAGE)
            for row in rows:
                after = row.id
                if (notice := read(row)) is not None:
                    due[row.id] = notice.due_at
            if len(rows) < PAGE:
                break
        self._due = due
        await self._give_up_overflow()

    async def _give_up_overflow(self) -> None:
        """Give up the oldest of more events than may wait."""
        over = list(self._due)[: max(0, len(self._due) - self._receiver.most)]
        for name in over:
            row = await self._row(name)
            notice = None if row is None else read(row)
            if row is not None and notice is not None:
                self._metrics.sent(self._name, "overflow")
                await self._commit(self._given_up(row, notice, TOO_MANY))
                del self._due[name]

    async def _forget_dead(self) -> None:
        """Forget what was given up long ago, and the oldest of what is too much."""
        before = self._services.sure_clock.wall() - self._receiver.keep_dead
        found: list[StoredEntry] = []
        after = ""
        while True:
            rows = await self._services.store.entries(DEAD, self._name, after, PAGE)
            found.extend(msgspec.structs.replace(each, body=b"") for each in rows)
            if len(rows) < PAGE:
                break
            after = rows[-1].id
        over = max(0, len(found) - self._receiver.most)
        gone = [row for at, row in enumerate(found) if at < over or row.at < before]
        for start in range(0, len(gone), PAGE):
            some = gone[start : start + PAGE]
            await self._commit([self._gone(DEAD, row) for row in some])
            for _ in some:
                self._metrics.sent(self._name, "forgotten")

    # --- sending ----------------------------------------------------------------------

    async def _send_due(self) -> None:
        """Send some of what is due, and store what came of it."""
        now = self._services.clock.wall()
        if now < self._rests_until:
            return
        names = [name for name, at in self._due.items() if at <= now]
        rows = [
            row
            for name in names[: self._at_once]
            if (row := await self._row(name)) is not None
        ]
        tried: list[Tried] = []
        async with trio.open_nursery() as nursery:
            for row in rows:
                nursery.start_soon(self._try, row, tried)
        verdicts = [(each, self._judge(each)) for each in tried]
        self._rest(verdicts)
        for each, verdict in verdicts:
            await self._settle(each, verdict)

    @property
    def _at_once(self) -> int:
        """Feel the way with one event where the last ones were not taken."""
        return 1 if self._failures else self._receiver.at_once

    async def _row(self, name: str) -> StoredEntry | None:
        row = await self._services.store.entry(DUE, name)
        if row is None:  # somebody dropped it
            self._due.pop(name, None)
        return row

    async def _try(self, row: StoredEntry, tried: list[Tried]) -> None:
        notice = read(row)
        if notice is None:  # left as it is: a later release may read it
            LOG.error("event cannot be read", webhook=self._name, id=row.id)
            self._due.pop(row.id, None)
            return
        posted = await self._receiver.post(row.id, notice.body.encode())
        tried.append(Tried(row, notice, posted))

    def _judge(self, tried: Tried) -> Verdict:
        services = self._services
        return judge(
            tried.posted,
            tried.notice.attempts + 1,
            tried.notice.made_at,
            self._receiver.policy,
            now=services.clock.wall(),
            chance=services.random_bytes(1)[0] / PARTS_OF_CHANCE,
        )

    def _rest(self, verdicts: list[tuple[Tried, Verdict]]) -> None:
        """Leave the receiver alone for a while if it is in trouble."""
        troubled = [each for each, verdict in verdicts if verdict.is_receivers]
        if not troubled:
            if verdicts:
                self._failures = 0
            return
        self._failures += 1
        policy = self._receiver.policy
        asked = max(each.posted.retry_after for each in troubled)
        wait = min(wait_after(self._failures, policy, 0.0), LONGEST_REST)
        wait = max(wait, min(asked, policy.longest_wait))
        self._rests_until = self._services.clock.wall() + wait
        why = troubled[0].posted.why or f"HTTP {troubled[0].posted.status}"
        LOG.warning(
            "webhook not taken; its receiver is left alone for a while",
            webhook=self._name,
            why=why,
            seconds=round(wait),
        )

    async def _settle(self, tried: Tried, verdict: Verdict) -> None:
        row = tried.row
        self._metrics.sent(self._name, verdict.kind)
        if not await self._commit(self._entries(tried, verdict)):
            return  # somebody changed it meanwhile, and it is looked at again
        if verdict.kind == "later":
            self._due[row.id] = verdict.due_at
        else:
            self._due.pop(row.id, None)

    def _entries(self, tried: Tried, verdict: Verdict) -> list[Entry]:
        """Write down what becomes of an event."""
        row = tried.row
        notice = msgspec.structs.replace(
            tried.notice,
            attempts=tried.notice.attempts + 1,
            due_at=verdict.due_at,
            why=verdict.why,
        )
        match verdict.kind:
            case "sent":
                LOG.info(
                    "webhook sent", webhook=self._name, what=notice.event, id=row.id
                )
                return [self._gone(DUE, row)]
            case "later":
                return [as_entry(DUE, row.id, self._name, notice, row.version)]
            case "dead":
                return self._given_up(row, notice, verdict.why)
            case _:
                assert_never(verdict.kind)

    def _given_up(self, row: StoredEntry, notice: Notice, why: str) -> list[Entry]:
        LOG.error(
            "webhook given up",
            webhook=self._name,
            what=notice.event,
            id=row.id,
            why=why,
            hint="callboard webhooks retry",
        )
        dead = msgspec.structs.replace(notice, why=why, due_at=0.0)
        return [
            self._gone(DUE, row),
            as_entry(DEAD, row.id, self._name, dead, None),
        ]

    def _gone(self, kind: str, row: StoredEntry) -> Entry:
        return as_entry(kind, row.id, self._name, None, row.version)

    async def _commit(self, entries: list[Entry]) -> bool:
        """Store; tell whether nobody else was first.

        Raises:
            StoreError: the disk fails.
        """
        at = self._services.clock.wall()
        try:
            await self._services.store.commit(Commit(at=at, entries=tuple(entries)))
        except SequenceConflictError:
            self.note(Sweep())
            return False
        return True
