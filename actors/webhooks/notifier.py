"""The notifier: sends the events of one outgoing webhook until its receiver took each.

It carries out what `retry.py` decides. The oldest event goes first. A failed one waits
for its own time; when the receiver itself is failing, all wait. An event whose row
could not be removed in time is sent again, under the same id.
"""

from __future__ import annotations

from typing import ClassVar, assert_never

import msgspec
import trio

from actors.journal.notices import DEAD, DUE, NewNotices, Notice, as_entry
from actors.services import Services
from actors.webhooks.messages import Receiver, SendNotices
from actors.webhooks.retry import SPREAD, NoticeDecision, PostResult, judge, wait_after
from runtime.actor.actor import Actor
from runtime.actor.mailbox import MailboxConfig
from runtime.actor.timers import Timer
from runtime.errors import SequenceConflictError, StoreError
from runtime.store.rows import Commit, Entry, StoredEntry, decoded
from runtime.telemetry.logs import EventLog

LOG = EventLog("webhooks")

PAGE = 1000

# Chosen: events are announced when they are stored; this finds those whose actor was
# killed right after the commit.
SWEEP_EVERY = 300.0
"""Seconds between looks for events that were stored and not announced."""

FORGET_EVERY = 3600.0
"""Seconds between looks for old given-up events."""

# Chosen: a receiver that works again is found within a quarter of an hour.
LONGEST_REST = 900.0
"""Longest pause in seconds for a failing receiver that does not ask for more."""

RETRY = 5.0
"""Seconds until a failed read or write of the store is tried again."""

TOO_MANY = "too many waited"
PARTS_OF_CHANCE = 256


class SendDue(msgspec.Struct, frozen=True):
    """A note to itself: an event is due."""


class SweepNotices(msgspec.Struct, frozen=True):
    """A note to itself: read all rows."""


class ForgetGivenUp(msgspec.Struct, frozen=True):
    """A note to itself: delete old given-up events."""


class TriedNotice(msgspec.Struct, frozen=True):
    """An event that was tried, and the result."""

    row: StoredEntry
    notice: Notice
    posted: PostResult


class Notifier(Actor):
    """Sends events to one receiver.

    Takes: `NewNotices`, `SendNotices`. Sends: nothing to actors. Keeps: the ids of
    waiting events and their times; their bodies stay in the store. Fails: never by an
    event or a receiver. Ends: with the system; events under way are sent again after
    the next start.
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
        """By id, so the oldest first: the earliest try, in monotonic seconds."""

        self._failures = 0
        """Rounds in a row in which the receiver was failing."""

        self._rests_until = 0.0
        """Monotonic seconds before which nothing is tried."""

        self._timer: Timer | None = None

    def on_start(self) -> None:
        """Read what an earlier process left."""
        self.note(SweepNotices())
        self.every(SWEEP_EVERY, SweepNotices())
        self.every(FORGET_EVERY, ForgetGivenUp())

    async def on_receive(self, message: object) -> object:
        """Add events, or send those that are due."""
        if not self._services.duties.has_rest:
            self._due.clear()  # another node sends them
            return None
        return await self._take(message)

    async def _take(self, message: object) -> object:
        try:
            match message:
                case NewNotices(ids=ids):
                    for name in ids:  # a known event keeps its time
                        self._due.setdefault(name, 0.0)
                case SendNotices():
                    self._rests_until = 0.0  # an operator may have asked for a retry
                    await self._sweep()
                case SweepNotices():
                    await self._sweep()
                case ForgetGivenUp():
                    await self._forget_dead()
                case SendDue():
                    await self._send_due()
                case _:
                    return super().on_receive(message)
        except StoreError as error:
            LOG.warning("events not sent yet", webhook=self._name, why=str(error))
            self._rests_until = self._services.clock.monotonic() + RETRY
        self._metrics.waiting.set(len(self._due), self._name)
        self._arm()
        return None

    @property
    def _name(self) -> str:
        return self._receiver.name

    def _arm(self) -> None:
        """Set the timer for the next event."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._due:
            at = max(min(self._due.values()), self._rests_until)
            wait = max(0.0, at - self._services.clock.monotonic())
            self._timer = self.after(wait, SendDue())

    # --- waiting events ---------------------------------------------------------------

    async def _sweep(self) -> None:
        """Read all rows; give up what is above the limit, and delete what is old."""
        due: dict[str, float] = {}
        after = ""
        while True:
            rows = await self._services.store.entries(DUE, self._name, after, PAGE)
            for row in rows:
                after = row.id
                if (notice := decoded(row, Notice)) is not None:
                    # Never later than is known: the wall clock may be changed.
                    at = self._soon(notice.due_at)
                    due[row.id] = min(at, self._due.get(row.id, at))
            if len(rows) < PAGE:
                break
        self._due = due
        await self._give_up_overflow()

    def _soon(self, at: float) -> float:
        """Give a time in Unix seconds as monotonic seconds, but none too far off."""
        clock = self._services.sure_clock
        longest = self._receiver.policy.longest_wait * (1.0 + SPREAD)
        return clock.monotonic() + min(at - clock.wall(), longest)

    async def _give_up_overflow(self) -> None:
        """Give up the oldest events above the limit."""
        over = list(self._due)[: max(0, len(self._due) - self._receiver.most)]
        for name in over:
            row = await self._row(name)
            notice = None if row is None else decoded(row, Notice)
            if row is not None and notice is not None:
                self._metrics.sent.add(1, self._name, "overflow")
                await self._commit(self._given_up(row, notice, TOO_MANY))
                del self._due[name]

    async def _forget_dead(self) -> None:
        """Delete old given-up events, and the oldest above the limit."""
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
                self._metrics.sent.add(1, self._name, "forgotten")

    # --- sending ----------------------------------------------------------------------

    async def _send_due(self) -> None:
        """Send some of the events that are due, and store the results."""
        now = self._services.clock.monotonic()
        if now < self._rests_until:
            return
        if self._services.store.damaged:
            # Why: it still gives rows, and would not keep that one was taken, so the
            # receiver would be sent it again and again.
            self._rests_until = now + LONGEST_REST
            return
        names = [name for name, at in self._due.items() if at <= now]
        rows = [
            row
            for name in names[: self._at_once]
            if (row := await self._row(name)) is not None
        ]
        tried: list[TriedNotice] = []
        async with trio.open_nursery() as nursery:
            for row in rows:
                nursery.start_soon(self._try, row, tried)
        verdicts = [(each, self._judge(each)) for each in tried]
        self._rest(verdicts)
        for each, verdict in verdicts:
            await self._settle(each, verdict)

    @property
    def _at_once(self) -> int:
        """How many events to send at once; one probe while the receiver is failing."""
        return 1 if self._failures else self._receiver.at_once

    async def _row(self, name: str) -> StoredEntry | None:
        row = await self._services.store.entry(DUE, name)
        if row is None:  # an operator dropped it
            self._due.pop(name, None)
        return row

    async def _try(self, row: StoredEntry, tried: list[TriedNotice]) -> None:
        notice = decoded(row, Notice)
        if notice is None:  # left as it is: a later release may read it
            LOG.error("event cannot be read", webhook=self._name, id=row.id)
            self._due.pop(row.id, None)
            return
        posted = await self._receiver.post(
            row.id, notice.body.encode(), notice.traceparent
        )
        tried.append(TriedNotice(row, notice, posted))

    def _judge(self, tried: TriedNotice) -> NoticeDecision:
        services = self._services
        return judge(
            tried.posted,
            tried.notice.attempts + 1,
            tried.notice.made_at,
            self._receiver.policy,
            now=services.sure_clock.wall(),
            chance=services.random_bytes(1)[0] / PARTS_OF_CHANCE,
        )

    def _rest(self, verdicts: list[tuple[TriedNotice, NoticeDecision]]) -> None:
        """Pause if the receiver is failing."""
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
        self._rests_until = self._services.clock.monotonic() + wait
        why = troubled[0].posted.why or f"HTTP {troubled[0].posted.status}"
        LOG.warning(
            "webhook not taken; its receiver is left alone for a while",
            webhook=self._name,
            why=why,
            seconds=round(wait),
        )

    async def _settle(self, tried: TriedNotice, verdict: NoticeDecision) -> None:
        row = tried.row
        self._metrics.sent.add(1, self._name, verdict.kind)
        if not await self._commit(self._entries(tried, verdict)):
            return  # another program changed it; it is read again
        if verdict.kind == "later":
            self._due[row.id] = self._soon(verdict.due_at)
        else:
            self._due.pop(row.id, None)

    def _entries(self, tried: TriedNotice, verdict: NoticeDecision) -> list[Entry]:
        """Give the row changes for a decision."""
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
        """Store row changes; False: another program changed the rows first."""
        at = self._services.clock.wall()
        try:
            await self._services.store.commit(Commit(at=at, entries=tuple(entries)))
        except SequenceConflictError:
            self.note(SweepNotices())
            return False
        return True
