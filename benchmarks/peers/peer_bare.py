"""The bare loop: only what must be done for a message, on our own kernel and store.

One commit accepts the message and one stores its answer, each durable before the next
step; a model is called with the lines so far; the answer is sent, and its receipt
stored. An actor of its own holds each conversation. There are no routes, people,
commands, prompts, tools, budgets, drafts, retries, metrics or log lines: what Callboard
takes beyond this is what those cost, and no change of the line can go below it.
"""

from __future__ import annotations

import tempfile
from collections import deque
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

import msgspec
import trio

from actors.messages.deliveries import Delivery
from actors.messages.inbound import Inbound, ModelRequest, TranscriptLine
from benchmarks.company.bench_line import AGENT, CHATS, SCRIPT, overheads
from benchmarks.stage.people import People, TimedModel
from benchmarks.stopwatch import now, rate
from connectors.models.scripted import Script, ScriptedModel
from runtime.actor.actor import Actor
from runtime.clock import SystemClock
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.store import SqliteStore
from runtime.store.rows import (
    Accept,
    Append,
    Commit,
    Enqueue,
    NewEvent,
    Receipt,
    Settle,
)
from runtime.system import open_system

if TYPE_CHECKING:
    from actors.ports import Model
    from actors.transport import Ingress, Transport
    from benchmarks.figure import Figure, Plan, Round
    from runtime.actor.ref import ActorRef
    from runtime.clock import Clock
    from runtime.store.port import Store
    from runtime.system import ActorSystem

SHARE = 1.0
MOST_LINES = 50
"""Lines of the conversation that the model is given: an agent's default."""

SYSTEM = "You are Anna, and answer what you are asked."


class BareConversation(Actor):
    """Answers the messages of one chat, one after the other.

    Args:
        line: model, store and transport.
        stream: its journal.
    """

    deadline: ClassVar[float | None] = None

    def __init__(self, line: BareLine, stream: str) -> None:
        super().__init__()
        self._line = line
        self._stream = stream
        self._sequence = 0
        self._lines: deque[TranscriptLine] = deque(maxlen=MOST_LINES)

    async def on_receive(self, message: Inbound) -> None:
        """Ask the model, store its answer, send it, and store the receipt."""
        line = self._line
        words: list[str] = []
        asked = TranscriptLine("user", message.text, name=message.sender_name)
        request = ModelRequest(
            model="",
            agent=AGENT,
            correlation_id=message.id,
            system=SYSTEM,
            lines=(*self._lines, asked),
        )
        answer = await line.model.answer(request, words.append)
        self._lines += (asked, TranscriptLine("assistant", answer.text))
        delivery = Delivery(
            id=f"{message.id}/1",
            correlation_id=message.id,
            address=message.address,
            agent=AGENT,
            text=answer.text,
        )
        chat = message.address.chat
        event = NewEvent("exchange", line.encode((message.text, answer)))
        answered = Commit(
            at=line.clock.wall(),
            appends=(
                Append(
                    stream=self._stream,
                    expected=self._sequence,
                    part=0,
                    events=(event,),
                    inbox_id=message.id,
                ),
            ),
            settles=(Settle(message.id, "replied"),),
            deliveries=(
                Enqueue(
                    delivery_id=delivery.id,
                    connector=message.platform,
                    chat=chat,
                    correlation_id=message.id,
                    part=0,
                    body=line.encode(delivery),
                ),
            ),
        )
        await line.store.commit(answered)
        self._sequence += 1
        receipt = Receipt(delivery.id, "sent", await line.transport.deliver(delivery))
        sent = Commit(at=line.clock.wall(), receipts=(receipt,), may_wait=True)
        line.store.submit(sent, refuse)


def refuse(outcome: object) -> None:
    """Refuse a receipt that was not stored.

    Raises:
        Exception: why not.
    """
    if isinstance(outcome, Exception):
        raise outcome


class BareLine:
    """Implements what transports use of `actors.transport.Ingress`.

    Args:
        system: where the conversations live.
        store: where messages and answers are durable.
        model: what answers.
        transport: where the answers go.
        clock: for the rows.
    """

    def __init__(
        self,
        system: ActorSystem,
        store: Store,
        model: Model,
        transport: Transport,
        clock: Clock,
    ) -> None:
        self._system = system
        self.store = store
        self.model = model
        self.transport = transport
        self.clock = clock
        self.encode = msgspec.json.Encoder().encode
        self._chats: dict[str, ActorRef] = {}

    async def accept(self, inbound: Inbound) -> bool:
        """Store a message, and hand it to its conversation."""
        chat = inbound.address.chat
        row = Accept(
            id=inbound.id,
            connector=inbound.platform,
            platform_id=inbound.platform_id,
            part=0,
            stream=chat,
            body=self.encode(inbound),
            at=inbound.received_at,
        )
        await self.store.commit(Commit(at=self.clock.wall(), accepts=(row,)))
        ref = self._chats.get(chat)
        if ref is None:
            ref = self._chats[chat] = self._system.spawn(BareConversation(self, chat))
        ref.tell(inbound)
        return True


def line(plan: Plan) -> list[Figure]:
    """Let one, sixteen and sixty-four people write, as the benchmark `line` does."""
    figures: list[Figure] = []
    for chats in CHATS:
        share = max(1, plan.size // max(chats, 8))
        with tempfile.TemporaryDirectory() as folder:
            figures += trio.run(converse, Path(folder) / "bare.db", chats, share)
    return figures


async def converse(path: Path, chats: int, share: int) -> list[Figure]:
    """Run the loop until everybody has had all answers."""
    clock = SystemClock()
    people = People(chats, share, AGENT, clock)
    model = TimedModel(ScriptedModel(Script(SCRIPT)), people.ways)
    async with AsyncExitStack() as stack:
        store = await SqliteStore.open(SqliteFile(path))
        stack.push_async_callback(store.aclose)
        system = await stack.enter_async_context(open_system())
        begin = now()
        bare = BareLine(system, store, model, people, clock)
        await people.listen(cast("Ingress", bare))
        answered = rate(len(people.ways), begin, "messages", f"rate, {chats}")
    return [answered, *overheads(people.ways.values(), chats)]


ROUNDS: dict[str, Round] = {"line": line}
