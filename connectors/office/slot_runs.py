"""What became of appointments' slots: the rows of the scheduler, joined with the rest.

A slot's row says when it was due and begun. How its message ended stands in the inbox,
and once that is forgotten in the audit; what its calls took stands in the ledger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from actors.records import AUDIT, USAGE, AuditRecord, UsageRecord
from actors.slot_records import SLOT, SUCCEEDED, SlotRecord
from connectors.office.job import STATUSES
from connectors.office.moments import moment
from connectors.office.record import read_record
from runtime.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from connectors.office.record import Complain
    from runtime.rows import InboxState, StoredRecord
    from runtime.sqlite_browse import Browser
    from runtime.sqlite_survey import Survey

FORGOTTEN = "forgotten"
"""Status of what was carried out so long ago that nothing tells how it ended."""

MOST_ATTEMPTS = 20
"""Attempts of one message whose calls are added up."""


class SlotRun(msgspec.Struct, frozen=True, kw_only=True):
    """One slot; times in ISO 8601, local with offset, null if there is none."""

    appointment: str
    kind: str
    agent: str
    connector: str
    chat: str
    text: str
    due_at: str | None
    began_at: str | None
    """When it was given to the agent, or left out."""

    ended_at: str | None
    status: str
    """Of a message as in `queue list`; `skipped`, `put_off`, `paused`, `forgotten`."""

    reason: str
    count: int
    """Slots that were left out together."""

    late: float
    """Seconds from its time until it was begun."""

    message: str
    attempts: int
    input_tokens: int
    output_tokens: int
    cost: float
    """US dollars."""


class End(NamedTuple):
    """How a message ended, if it has."""

    status: str
    reason: str
    at: float
    attempts: int


class Reader:
    """Reads slots and all that is known of them.

    Args:
        rows: the database as of one moment.
        browser: the same, for messages by their id.
        complain: told of rows that cannot be read.
    """

    def __init__(self, rows: Survey, browser: Browser, complain: Complain) -> None:
        self._rows = rows
        self._browser = browser
        self._complain = complain

    def runs(
        self, appointment: str = "", agent: str | None = None, since: float = 0.0
    ) -> Iterator[SlotRun]:
        """Give slots, those last begun first.

        Args:
            appointment: how its id begins; empty: of all, also of those long over.
            agent: only this one's; None: all.
            since: Unix seconds before which nothing is wanted.
        """
        wanted = appointment.upper()
        for row in self._rows.recent(SLOT, since):
            if not row.owner.startswith(wanted):
                continue
            body = read_record(row, SlotRecord, self._complain)
            if body is not None and agent in {None, body.agent}:
                yield self._run(row, body)

    def _run(self, row: StoredRecord, body: SlotRecord) -> SlotRun:
        end = End(body.outcome, body.reason, row.at, 0)
        if body.message:
            end = self._end(body.message)
        took = self._took(body.message, end.attempts)
        return SlotRun(
            appointment=body.appointment,
            kind=body.kind,
            agent=body.agent,
            connector=body.connector,
            chat=body.chat,
            text=body.text,
            due_at=moment(body.due),
            began_at=moment(row.at),
            ended_at=moment(end.at),
            status=end.status,
            reason="" if end.reason in SUCCEEDED else end.reason,
            count=body.count,
            late=round(max(0.0, row.at - body.due), 3),
            message=body.message,
            attempts=end.attempts,
            input_tokens=sum(each.input_tokens for each in took),
            output_tokens=sum(each.output_tokens for each in took),
            cost=sum(each.cost for each in took),
        )

    def _end(self, message: str) -> End:
        try:
            row = self._browser.message(message)
        except MisuseError:  # forgotten; the audit is kept for longer
            return self._end_on_record(message)
        status = status_of(row.state, row.reason)
        return End(status, row.reason, row.settled_at, row.attempts)

    def _end_on_record(self, message: str) -> End:
        names = [message, *(f"{message}#{n}" for n in range(MOST_ATTEMPTS, 0, -1))]
        for name in names:
            row = self._rows.record(AUDIT, name)
            body = None if row is None else self._audited(row)
            if row is not None and body is not None:
                return End(
                    status_of(body.status, body.reason),
                    body.reason,
                    row.at,
                    body.attempt,
                )
        return End(FORGOTTEN, "", 0.0, MOST_ATTEMPTS)

    def _audited(self, row: StoredRecord) -> AuditRecord | None:
        return read_record(row, AuditRecord, self._complain)

    def _spent(self, row: StoredRecord) -> UsageRecord | None:
        return read_record(row, UsageRecord, self._complain)

    def _took(self, message: str, attempts: int) -> list[UsageRecord]:
        """Read what each attempt's calls took."""
        found: list[UsageRecord] = []
        for number in range(1, min(attempts, MOST_ATTEMPTS) + 1):
            row = self._rows.record(USAGE, f"{message}#{number}")
            body = None if row is None else self._spent(row)
            if body is not None:
                found.append(body)
        return found


def status_of(state: str, reason: str) -> str:
    """Name how a message ended as `queue list` does; an excuse is a failure here."""
    if state == "replied" and reason not in SUCCEEDED:
        return STATUSES["dead"]
    return next((STATUSES[each] for each in STATUSES if each == state), state)


def is_open(status: str) -> bool:
    """Whether somebody is to work on it yet, or does so."""
    open_states: tuple[InboxState, ...] = ("accepted", "running")
    return status in {STATUSES[state] for state in open_states}
