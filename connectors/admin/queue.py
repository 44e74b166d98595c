"""The queue: messages as jobs, failures, and retrying and dropping by hand.

`overview` says how the company is doing: sums of its metrics, and rows that wait.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from actors.journal import answers, commits
from actors.messages.deliveries import GONE, Delivery
from actors.messages.inbound import Inbound
from actors.messages.keys import SessionKey
from actors.rules.text.secrets import AuditRedaction
from connectors.admin.conversations import StoryEvent, Storyteller
from connectors.admin.display import OVER, STATES, Complain, QueueJob, job_of, moment
from runtime.clock import SystemClock
from runtime.errors import MisuseError
from runtime.ids import IdSource
from runtime.store.database import DROPPED, Database, Inspection, RepairResult
from runtime.store.rows import (
    Commit,
    DeliveryState,
    InboxState,
    Settle,
    StoredDelivery,
    StoredMessage,
    decoded,
)

if TYPE_CHECKING:
    from runtime.telemetry.metrics import Figure


FindStreams = Callable[[str], tuple[str, ...]]
"""Gives the streams whose names end so."""

TOLD = "This message was dropped by the operator; nobody will answer it."


def dropping(row: StoredMessage) -> Commit:
    """Make the commit that drops a message: settle it, tell its writer, audit that.

    The record has no words: without the settings nobody knows which are secret.
    """
    clock = SystemClock()
    settled = Settle(row.id, "dropped", DROPPED)
    inbound = decoded(row, Inbound)
    if inbound is None:  # nobody can be told
        return Commit(at=clock.wall(), settles=(settled,))
    answer = answers.notice(inbound, TOLD, ("dropped", DROPPED), "dropped")
    answer = answers.with_new_ids(answer, IdSource(clock))
    return commits.as_unanswered(answer, clock.wall(), AuditRedaction(has_texts=False))


RETRIED: tuple[DeliveryState, ...] = ("dead", "unknown")
"""Deliveries that can be sent again, unless nobody wants or can take them."""

NOBODY = (
    "nobody is there to take it any more. Over HTTP, who asks again with the same"
    " Idempotency-Key gets it"
)

USUAL = ("pending", "running", "failed")
"""What is listed unless somebody asks for something else."""

# Chosen: time to the millisecond and 15 random bits; what was made in the same
# millisecond is told apart by the whole id.
SHORT = 13


class JobPage(msgspec.Struct, frozen=True):
    """Some messages, the newest first."""

    jobs: list[QueueJob]
    rows: tuple[StoredMessage, ...]
    """What they were read from, in the same order."""

    short: dict[str, str]
    """By id its beginning, if that means no other message."""

    next: int
    """Where the next page begins; 0: there is none."""


class ShownDelivery(msgspec.Struct, frozen=True):
    """One delivery of a message; times in ISO 8601, local with offset."""

    id: str
    state: str
    attempts: int
    enqueued_at: str | None
    settled_at: str | None
    receipt: str
    text: str

    @property
    def is_gone(self) -> bool:
        """Whether nobody is there to take it, now or later."""
        return self.state == "dead" and self.receipt.startswith(GONE)


class WholeMessage(msgspec.Struct, frozen=True):
    """A message with its conversation, deliveries and steps."""

    message: QueueJob
    conversation: str
    """Its stream, for `callboard replay`; empty before its first event."""

    deliveries: list[ShownDelivery]
    steps: list[StoryEvent]


def read_jobs(
    rows: Inspection,
    statuses: Iterable[str],
    limit: int,
    complain: Complain,
    past: int = 0,
    *,
    with_short: bool = True,
) -> JobPage:
    """List messages, the newest first.

    Args:
        statuses: which; see `STATES`.
        limit: most messages to give, below `MAX_ROWS`.
        past: where the page begins; 0: with the newest.
        with_short: whether to look up the beginnings of ids.
    """
    states: list[InboxState] = [each for name in statuses for each in STATES[name]]
    found = rows.messages(states, past=past, limit=limit + 1)
    kept = found[:limit]
    jobs = [job_of(row, rows, complain) for row in kept]
    short = {each.id: shortened(rows, each.id) for each in jobs if with_short}
    more = kept[-1].number if len(found) > limit else 0
    return JobPage(jobs, kept, short, more)


def shortened(rows: Inspection, name: str) -> str:
    """Give the beginning of a message's id, if that means no other one."""
    try:
        rows.message(name[:SHORT])
    except MisuseError:
        return name
    return name[:SHORT]


def read_unsent(rows: Inspection, limit: int) -> list[ShownDelivery]:
    """List deliveries that were given up, or may not have been sent; newest first."""
    found = rows.deliveries(RETRIED, besides=OVER, limit=limit)
    return [shown_delivery(row) for row in found]


def count_unsent(rows: Inspection) -> int:
    """Count the deliveries that `read_unsent` lists."""
    return rows.count_deliveries(RETRIED, OVER)


def collect(
    rows: Inspection,
    name: str,
    key: bytes,
    complain: Complain,
    find: FindStreams | None = None,
) -> WholeMessage:
    """Look up a message with its conversation, deliveries and steps.

    Args:
        name: the message's id, or its beginning.
        key: checks receipts of tool calls; empty: none is checked.
        find: gives the streams whose names end so; None: `rows` does, which reads all
            names there are.

    Raises:
        runtime.errors.MisuseError: there is none, or more than one.
    """
    row = rows.message(name)
    inbound = decoded(row, Inbound)
    correlation_id = row.id if inbound is None else inbound.correlation_id
    deliveries = [
        shown_delivery(each)
        for each in rows.deliveries_of(correlation_id)
        if each.id.startswith(f"{row.id}:")
    ]
    streams = (find or rows.streams_ending)(f"/{row.id}")
    steps = [scene for stream in streams for scene in steps_of(rows, stream, key)]
    job = job_of(row, rows, complain)
    return WholeMessage(job, conversation_of(rows, job), deliveries, steps)


def conversation_of(rows: Inspection, job: QueueJob) -> str:
    """Name the stream of the conversation that a message belongs to, if it has one."""
    for sender in ("", job.sender_id):
        key = SessionKey(job.agent, job.connector, job.chat, job.thread, sender)
        if rows.events(key.text, limit=1):
            return key.text
    return ""


def steps_of(rows: Inspection, stream: str, key: bytes) -> Iterator[StoryEvent]:
    """Give the recorded steps of a message's turn."""
    teller = Storyteller(rows, key)
    for entry in rows.events(stream):
        yield from (each for each in teller.tell(entry.event) if each.what != "heard")


def shown_delivery(row: StoredDelivery) -> ShownDelivery:
    """Describe a delivery."""
    delivery = decoded(row, Delivery)
    text = "(cannot be read by this release)" if delivery is None else delivery.text
    return ShownDelivery(
        row.id,
        row.state,
        row.attempts,
        moment(row.at),
        moment(row.settled_at),
        row.receipt,
        text,
    )


def retry_one(database: Database, name: str, now: float) -> RepairResult:
    """Try one message, or one delivery, again."""
    if ":" in name:
        with database.inspect() as rows:
            found = shown_delivery(rows.delivery(name))
        if found.is_gone:
            text = f"delivery {found.id} is {found.state}: {found.receipt}; {NOBODY}"
            return RepairResult(has_changed=False, text=text)
        return database.retry_delivery(found.id)
    return database.retry_message(name, now)


def drop_one(database: Database, name: str, now: float) -> RepairResult:
    """Drop one message, or one delivery."""
    if ":" in name:
        return database.drop_delivery(name, now)
    return database.drop_message(name, now, dropping)


DEAD: tuple[DeliveryState, ...] = ("dead",)

ACCEPTED = "accepted"
"""What becomes of a message that is taken in, before all else."""


class MetricSums(msgspec.Struct, frozen=True):
    """Sums of metrics since the start."""

    messages: dict[str, int]
    """By what became of them."""

    connectors: dict[str, int]
    """Messages that were taken in, by connector."""

    turns: dict[str, int]
    """By how they ended."""

    model_calls: dict[str, int]
    """By how they ended."""

    tokens: dict[str, int]
    """By direction."""

    cost: float
    """US dollars."""

    restarts: dict[str, int]
    """Of actors, by what made them necessary."""

    killed: int
    """Actors killed by hand."""

    letters: dict[str, int]
    """Messages between actors that nobody handled, by reason."""

    watchdog: dict[str, int]
    """What the watchdog did."""

    lag: float
    """Seconds the kernel's loop took for its last sign of life."""

    started_at: float
    """Unix seconds; 0: the system does not say."""


class WaitingCounts(msgspec.Struct, frozen=True):
    """How many messages and deliveries are in each state."""

    inbox: dict[str, int]
    outbox: dict[str, int]
    """Of the dead, those that have not failed are `over`; see `display.OVER`."""

    @property
    def open(self) -> int:
        """Messages that wait, or are worked on."""
        return self.inbox.get("accepted", 0) + self.inbox.get("running", 0)

    @property
    def unsaid(self) -> int:
        """Deliveries that are still to be said."""
        return self.outbox.get("pending", 0) + self.outbox.get("sending", 0)

    @property
    def dead(self) -> int:
        """Messages and deliveries that were given up."""
        return self.inbox.get("dead", 0) + self.outbox.get("dead", 0)


def read_waiting(rows: Inspection) -> WaitingCounts:
    """Count what stands in the database."""
    counts, failed = rows.counts(), rows.count_deliveries(DEAD, OVER)
    outbox = {str(state): count for state, count in counts.outbox.items()}
    if over := outbox.get("dead", 0) - failed:
        outbox |= {"dead": failed, "over": over}
    return WaitingCounts(
        {str(state): count for state, count in counts.inbox.items()}, outbox
    )


def sum_figures(figures: Iterable[Figure]) -> MetricSums:
    """Sum up figures of `runtime.telemetry.metrics.Metrics`."""
    kept: dict[str, list[Figure]] = {}
    for each in figures:
        kept.setdefault(each.name, []).append(each)

    def by(name: str, label: str, outcome: str = "") -> dict[str, int]:
        counted: Counter[str] = Counter()
        for each in kept.get(name, ()):
            if outcome in {"", each.labels.get("outcome")}:
                counted[each.labels.get(label, "")] += int(each.value)
        return dict(counted.most_common())

    def total(name: str) -> float:
        return sum(each.value for each in kept.get(name, ()))

    return MetricSums(
        messages=by("callboard_messages_total", "outcome"),
        connectors=by("callboard_messages_total", "connector", ACCEPTED),
        turns=by("callboard_turns_total", "outcome"),
        model_calls=by("callboard_model_call_seconds_count", "outcome"),
        tokens=by("callboard_model_tokens_total", "direction"),
        cost=total("callboard_cost_dollars_total"),
        restarts=by("callboard_actor_restarts_total", "reason"),
        killed=int(total("callboard_actors_killed_total")),
        letters=by("callboard_dead_letters_total", "reason"),
        watchdog=by("callboard_watchdog_actions_total", "action"),
        lag=total("callboard_loop_lag_seconds"),
        started_at=total("process_start_time_seconds"),
    )
