"""pykka's own `ThreadingActor`: a thread and an unbounded queue for each actor."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pykka

from benchmarks.stopwatch import now, now_ns, rate, spans

if TYPE_CHECKING:
    from benchmarks.figure import Figure, Plan, Round

SHARE = 0.5
SENDERS = 100
NODES = 1000

Ref = pykka.ActorRef[Any]


class Counter(pykka.ThreadingActor):
    """Counts messages and says when it has seen enough of them."""

    def __init__(self, expected: int, done: threading.Event) -> None:
        super().__init__()
        self._missing = expected
        self._done = done

    def on_receive(self, message: Any) -> None:  # noqa: ANN401, ARG002  pykka's
        """Count one message."""
        self._missing -= 1
        if self._missing == 0:
            self._done.set()


class Sender(pykka.ThreadingActor):
    """Tells one actor as many messages as it is told to."""

    def __init__(self, to: Ref) -> None:
        super().__init__()
        self._to = to

    def on_receive(self, message: Any) -> None:  # noqa: ANN401  pykka's
        """Tell `message` messages."""
        for number in range(message):
            self._to.tell(number)


class Node(pykka.ThreadingActor):
    """Hands a token on until its hops are used up."""

    def __init__(self, done: threading.Event) -> None:
        super().__init__()
        self._done = done
        self._next: Ref | None = None

    def on_receive(self, message: Any) -> None:  # noqa: ANN401  pykka's
        """Hand the token on, or end the round."""
        if isinstance(message, pykka.ActorRef):
            self._next = message
        elif message == 0 or self._next is None:
            self._done.set()
        else:
            self._next.tell(message - 1)


class Echo(pykka.ThreadingActor):
    """Answers with what it was asked."""

    def on_receive(self, message: Any) -> Any:  # noqa: ANN401  pykka's
        """Give the message back."""
        return message


def tell(plan: Plan) -> list[Figure]:
    """One thread tells one actor."""
    done = threading.Event()
    ref = Counter.start(plan.size, done)
    begin = now()
    for number in range(plan.size):
        ref.tell(number)
    done.wait()
    figures = [rate(plan.size, begin, "messages")]
    ref.stop()
    return figures


def fan_in(plan: Plan) -> list[Figure]:
    """A hundred actors tell one."""
    share = max(1, plan.size // SENDERS)
    done = threading.Event()
    sink = Counter.start(share * SENDERS, done)
    senders = [Sender.start(sink) for _ in range(SENDERS)]
    plan.dice().shuffle(senders)
    begin = now()
    for sender in senders:
        sender.tell(share)
    done.wait()
    figures = [rate(share * SENDERS, begin, "messages")]
    pykka.ActorRegistry.stop_all()
    return figures


def ring(plan: Plan) -> list[Figure]:
    """One token round a thousand actors."""
    done = threading.Event()
    nodes = [Node.start(done) for _ in range(NODES)]
    plan.dice().shuffle(nodes)
    for node, following in zip(nodes, [*nodes[1:], nodes[0]], strict=True):
        node.tell(following)
    begin = now()
    nodes[0].tell(plan.size)
    done.wait()
    figures = [rate(plan.size, begin, "hops")]
    pykka.ActorRegistry.stop_all()
    return figures


def ask(plan: Plan) -> list[Figure]:
    """A thread asks; pykka knows no other way."""
    ref = Echo.start()
    taken: list[int] = []
    for number in range(plan.size):
        begin = now_ns()
        answer = ref.ask(number)
        taken.append(now_ns() - begin)
        assert answer == number
    ref.stop()
    return spans(taken)


ROUNDS: dict[str, Round] = {
    "tell": tell,
    "fan_in": fan_in,
    "ring": ring,
    "ask": ask,
    "ask_thread": ask,
}
