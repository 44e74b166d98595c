"""A database with every kind of message in it, written as the company writes them."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import msgspec
import trio

from actors.config.limits import LimitsConfig
from actors.config.sessions import SessionConfig
from actors.journal import commits, records
from actors.journal.answers import Answer
from actors.journal.history import History
from actors.messages import state as message_state
from actors.messages.deliveries import Delivery
from actors.messages.inbound import Address, Inbound, ToolCall, TranscriptLine, Usage
from actors.messages.keys import session_key
from actors.messages.usage import Run
from actors.metrics import LineMetrics
from actors.services import Furnishing, InForce, Services
from actors.turn.machine import ModelReplied, ToolReturned
from runtime.clock import SystemClock
from runtime.ids import IdSource
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.store import SqliteStore
from runtime.store.port import Store
from runtime.store.rows import Append, Claim, Commit, NewEvent, Receipt
from runtime.telemetry.metrics import Metrics

AGO = 3600.0
"""Seconds before now at which everything begins; each thing takes one."""

FAILED, WAITING, UNHEARD = "01FAILED", "01WAITING", "01UNHEARD"
HELLO, SUM, HELP = "01HELLO", "01SUM", "01HELP"

DUE_IN = 7200.0
SECRET = "sk-gold-and-round"  # noqa: S105  no real one
STREAM = "anna/cli/kitchen//sam"


class Ticking:
    """A clock that goes on by a second whenever it is asked."""

    def __init__(self) -> None:
        self._times = count(SystemClock().wall() - AGO)

    def monotonic(self) -> float:
        return 0.0

    def wall(self) -> float:
        return next(self._times)


class Desk:
    """Writes one conversation of anna's."""

    def __init__(self, store: Store) -> None:
        clock = Ticking()
        self.services = Services(
            store=store,
            clock=clock,
            ids=IdSource(clock),
            metrics=LineMetrics(Metrics()),
            in_force=InForce(
                Furnishing(limits=LimitsConfig(), sessions=SessionConfig())
            ),
            redact=lambda text: text.replace(SECRET, "***"),
        )
        self.store = store
        self.history = History(STREAM, 20)

    async def hear(self, name: str, text: str) -> Inbound:
        now = self.services.clock.wall()
        inbound = Inbound(
            id=name,
            platform="terminal",
            platform_id=name,
            address=Address("cli", "kitchen"),
            sender_id="sam",
            sender_name="Sam",
            text=text,
            received_at=now,
        )
        assert session_key(inbound, "anna", "chat").text == STREAM
        accept = commits.as_accept(inbound, now)
        await self.store.commit(Commit(at=now, accepts=(accept,)))
        return inbound

    async def conclude(self, answer: Answer) -> None:
        """Store an answer as `actors/session/outbox.py` does."""
        commit = commits.as_exchange(answer, self.history, self.services)
        committed = await self.store.commit(commit)
        event = commits.as_event(answer)
        self.history.take(committed.sequences[-1], event, commit.at)

    async def step(self, inbound: Inbound, number: int, step: msgspec.Struct) -> None:
        kind = "round" if isinstance(step, ModelReplied) else "tool"
        event = NewEvent(kind, msgspec.json.encode(step))
        stream = f"{STREAM}/{inbound.id}"
        journal = Append(stream=stream, expected=number, part=7, events=(event,))
        now = self.services.clock.wall()
        await self.store.commit(Commit(at=now, appends=(journal,)))

    async def receive(self, receipt: Receipt) -> None:
        now = self.services.clock.wall()
        await self.store.commit(Commit(at=now, receipts=(receipt,)))

    async def claim(self, inbound: Inbound, attempt: int) -> None:
        claim = Claim(inbound.id, attempt)
        now = self.services.clock.wall()
        await self.store.commit(Commit(at=now, claims=(claim,)))


def run_of(attempt: int = 1, tokens: int = 10) -> Run:
    return Run(
        provider="big",
        model="big-1",
        attempt=attempt,
        seconds=0.5,
        usage=Usage(tokens, 2),
        rounds=1,
        cost=0.25,
    )


def delivery(inbound: Inbound, text: str, agent: str = "anna") -> Delivery:
    return Delivery(
        id=f"{inbound.id}:0",
        correlation_id=inbound.correlation_id,
        address=inbound.address,
        agent=agent,
        text=text,
    )


def spoken(inbound: Inbound, text: str) -> tuple[TranscriptLine, TranscriptLine]:
    return TranscriptLine("user", inbound.text, name="Sam"), TranscriptLine(
        "assistant", text, name="anna"
    )


async def greet(desk: Desk) -> None:
    """One message that is answered, one with a tool, one command."""
    hello = await desk.hear(HELLO, f"hello, the key is {SECRET}")
    said = "Hello Sam.\nWhat can I do?"
    await desk.conclude(
        Answer(
            inbound=hello,
            settled=("replied", "ok"),
            lines=spoken(hello, said),
            run=run_of(),
            deliveries=(delivery(hello, said),),
        )
    )
    await desk.receive(Receipt(f"{HELLO}:0", "sent", "receipt-1"))
    sum_ = await desk.hear(SUM, "what is 12 * 7")
    call = ToolCall("call-1", "calculate", b'{"expression":"12*7"}')
    await desk.step(sum_, 0, ModelReplied("", (call,), Usage(1, 1)))
    await desk.step(sum_, 1, ToolReturned("call-1", "84"))
    await desk.conclude(
        Answer(
            inbound=sum_,
            settled=("replied", "ok"),
            lines=spoken(sum_, "84"),
            run=run_of(tokens=20),
            deliveries=(delivery(sum_, "84"),),
        )
    )
    await desk.receive(Receipt(f"{SUM}:0", "unknown", "nobody knows"))
    help_ = await desk.hear(HELP, "/help")
    await desk.conclude(
        Answer(
            inbound=help_,
            settled=("replied", "command"),
            deliveries=(delivery(help_, "the commands", agent=""),),
        )
    )


async def fail(desk: Desk) -> None:
    """One message that is given up, one that waits, one that nobody took up."""
    failed = await desk.hear(FAILED, "break\x1b[31m it")
    await desk.claim(failed, 3)
    await desk.conclude(
        Answer(
            inbound=failed,
            settled=("dead", "model"),
            lines=spoken(failed, "[Task failed]"),
            run=run_of(attempt=3),
            deliveries=(delivery(failed, "I could not", agent=""),),
        )
    )
    waiting = await desk.hear(WAITING, "be patient")
    await desk.claim(waiting, 1)
    due_at = SystemClock().wall() + DUE_IN
    await desk.conclude(
        Answer(
            inbound=waiting,
            settled=("replied", "model"),
            put_off=message_state.Postpone(1, due_at),
            run=run_of(),
            deliveries=(delivery(waiting, "I will try again", agent=""),),
        )
    )
    await desk.hear(UNHEARD, "anybody there?")


async def write_all(path: Path) -> None:
    """Make a database with all of this in it."""
    store = await SqliteStore.open(SqliteFile(path))
    desk = Desk(store)
    await greet(desk)
    await fail(desk)
    refused = records.AuditRecord(
        channel="http",
        chat="",
        sender_id="10.0.0.9",
        sender_name="",
        status="unauthorised",
        reason="bad_key",
    )
    row = records.audit_row("01REFUSED", refused, desk.services.keep)
    now = desk.services.clock.wall()
    await store.commit(Commit(at=now, records=(row,)))
    await store.aclose()


def write_database(path: Path) -> Path:
    """Make a database with all of this in it, and give its path."""
    trio.run(write_all, path)
    return path


async def _commit(path: Path, commit: Commit) -> None:
    store = await SqliteStore.open(SqliteFile(path))
    await store.commit(commit)
    await store.aclose()


def commit_to(path: Path, commit: Commit) -> None:
    """Add something to a database, as a server would."""
    trio.run(_commit, path, commit)
