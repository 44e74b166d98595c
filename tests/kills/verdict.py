"""Whether all that was acknowledged is there, once, and in order.

Judged from the database at rest and from what people saw. *Lost*: acknowledged, and
not answered in the end. *Out of order*: answered before what came in before it in
the same conversation. *Said again*: people had the whole answer, but the process
died before its receipt was stored, so the next one sent it again. That is the only
window, and nobody here notices: who asks again under the same key is given the same
answer, and one that was given twice to the same person is a fault.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import msgspec

from tests.kills.people import Said
from tests.kills.servers import Life
from tests.processes.running import rows

MENTION = re.compile(rb'"inbound_id":"([^"]+)"')

INBOX = "SELECT id, state, body FROM inbox ORDER BY number"
OUTBOX = """SELECT inbox.body, outbox.id, outbox.state, outbox.settled_at
    FROM outbox JOIN inbox ON inbox.id = outbox.correlation_id ORDER BY outbox.number"""
JOURNAL = "SELECT stream, body FROM journal ORDER BY stream, sequence"
GAPS = "SELECT stream FROM journal GROUP BY 1 HAVING max(sequence) <> count(*)"


class Address(msgspec.Struct):
    """What is read of where a message came from."""

    chat: str


class Body(msgspec.Struct):
    """What is read of a stored message."""

    text: str
    address: Address


def name_of(body: object) -> str:
    """Name a stored message as its writer would."""
    assert isinstance(body, bytes)
    message = msgspec.json.decode(body, type=Body)
    return f"{message.address.chat}: {message.text}"


def name_as_said(message: Said) -> str:
    """Name a message by what was written where: no two are the same."""
    return f"{message.chat}: {message.words}"


COUNTS = (
    "acknowledged",
    "answered",
    "lost",
    "out_of_order",
    "said_again",
    "said_twice",
)


class Verdict(msgspec.Struct):
    """What was found; of several databases together, too."""

    acknowledged: int = 0
    answered: int = 0
    lost: int = 0
    out_of_order: int = 0
    said_again: int = 0
    """Inside the window that is promised, to a program that keeps one of them."""

    said_twice: int = 0
    """Inside that window, to people who read both; see `twice.py`."""

    faults: list[str] = []
    """Everything that must not be, in words."""

    def add(self, other: Verdict) -> None:
        """Count another database in."""
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.faults = [*self.faults, *other.faults]


def judge(folder: Path, said: Iterable[Said], lives: list[Life]) -> Verdict:
    """Look at a database at rest."""
    verdict = Verdict(faults=[])
    said = list(said)
    if rows(folder, "PRAGMA integrity_check") != [("ok",)]:
        verdict.faults.append("the database is damaged")
    verdict.faults += [f"gap in {stream}" for (stream,) in rows(folder, GAPS)]
    _judge_inbox(folder, said, verdict)
    _judge_order(folder, verdict)
    _judge_outbox(folder, said, lives, verdict)
    for message in said:
        name = name_as_said(message)
        if len(message.answers) > 1:
            verdict.faults.append(f"{name}: answered twice")
        for _, words in message.answers:
            if not message.is_right(words):
                verdict.faults.append(f"{name}: answered with {words!r}")
        # Not ready, overloaded, stopping: try again. Anything else is a fault.
        strange = set(message.refusals) - {429, 503}
        verdict.faults += [f"{name}: refused with {status}" for status in strange]
    return verdict


def _judge_inbox(folder: Path, said: list[Said], verdict: Verdict) -> None:
    found = [(name_of(body), str(state)) for _, state, body in rows(folder, INBOX)]
    states = dict(found)
    if len(states) < len(found):
        verdict.faults.append("a message was taken twice")
    verdict.answered = sum(state == "replied" for state in states.values())
    for message in said:
        verdict.acknowledged += message.is_acknowledged
        state = states.get(name_as_said(message), "missing")
        if message.is_acknowledged and state != "replied":
            verdict.lost += 1
            verdict.faults.append(f"{name_as_said(message)}: {state}")


def _judge_order(folder: Path, verdict: Verdict) -> None:
    """Compare the order of acceptance with that of the journal and of the outbox."""
    accepted = {
        str(name): place for place, (name, *_) in enumerate(rows(folder, INBOX))
    }
    streams: dict[str, dict[str, int]] = {}
    for place, (stream, body) in enumerate(rows(folder, JOURNAL)):
        assert isinstance(body, bytes)
        for found in MENTION.findall(body):
            streams.setdefault(str(stream), {})[found.decode()] = place
    for stream, last in streams.items():
        order = sorted(last.keys() & accepted.keys(), key=lambda name: last[name])
        wrong = inversions([accepted[name] for name in order])
        verdict.out_of_order += wrong
        if wrong:
            verdict.faults.append(f"{stream}: out of order")
    journalled = {name for last in streams.values() for name in last}
    for name in accepted.keys() - journalled:
        verdict.faults.append(f"{name}: not in any journal")


def inversions(places: list[int]) -> int:
    """Count those that stand before one that should come earlier."""
    return sum(after < before for before, after in pairwise(places))


def _judge_outbox(
    folder: Path, said: list[Said], lives: list[Life], verdict: Verdict
) -> None:
    heard = {
        name_as_said(each): process for each in said for process, _ in each.answers
    }
    parts: Counter[str] = Counter()
    for body, delivery, state, settled_at in rows(folder, OUTBOX):
        assert isinstance(settled_at, float)
        name = name_of(body)
        parts[name] += 1
        if name not in heard:
            continue
        life = lives[heard[name]]
        # Its receipt was stored by the process that said it, or by one before.
        if settled_at <= life.ended:
            continue
        verdict.said_again += 1
        if not life.ended:
            verdict.faults.append(f"{delivery}: {state}, and nobody had died")
    verdict.faults += [f"{name}: {n} answers" for name, n in parts.items() if n > 1]
