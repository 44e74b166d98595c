"""Which messages share a turn: stored when it begins, read when it is resumed.

The journal of the turn's steps says it. The messages that a turn began with are stored
with its first claim, before a model is asked. Messages that were put into the running
turn are stored between its rounds. So a turn that was cut off answers the same messages
again, and each message is settled once, with the answer.
"""

from __future__ import annotations

import msgspec

from actors.journal.answers import PendingMessage
from actors.messages.busy_policies import Style
from actors.messages.inbound import Inbound
from actors.messages.keys import chat_partition
from actors.messages.state import Postpone
from actors.turn.machine import MessageInjected
from actors.turn.steps import JOINED, TOGETHER
from runtime.store.port import Store
from runtime.store.rows import Append, Claim, Commit, Defer, NewEvent

PAGE = 1000


class TurnMember(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message that shares another one's turn."""

    id: str
    platform_id: str
    is_short: bool = False
    others: int = 0
    """As in `Inbound`; the row of a message that several agents got does not say it."""


class Together(msgspec.Struct, frozen=True, omit_defaults=True):
    """Event `together`: the further messages that a turn began with."""

    style: Style
    members: tuple[TurnMember, ...]
    first_is_short: bool = False


class Composition(msgspec.Struct, frozen=True):
    """The messages of one turn, by its journal."""

    has_steps: bool = False
    also: tuple[Inbound, ...] = ()
    style: Style = "alone"
    short: tuple[str, ...] = ()
    injected: tuple[Inbound, ...] = ()
    settled: tuple[str, ...] = ()
    """Ids of members that were settled by now, for example by hand."""


def as_append(pending: PendingMessage, stream: str) -> Append:
    """Make the first step of a turn: which messages it begins with."""
    inbound = pending.inbound
    members = tuple(
        TurnMember(x.id, x.platform_id, x.id in pending.short, x.others)
        for x in pending.also
    )
    body = Together(pending.style, members, inbound.id in pending.short)
    return Append(
        stream=stream,
        expected=0,
        part=chat_partition(inbound.address.connector, inbound.address.chat),
        events=(NewEvent(TOGETHER, msgspec.json.encode(body)),),
        inbox_id=inbound.id,
    )


def as_claim(
    pending: PendingMessage, stream: str, now: float, *, may_wait: bool
) -> Commit:
    """Make the commit of an attempt that begins.

    Args:
        stream: the journal stream of the turn's steps.
        now: Unix seconds.
        may_wait: whether the commit need not be durable at once.
    """
    attempt = pending.state.attempts
    is_new = bool(pending.also) and not pending.is_recorded
    return Commit(
        at=now,
        claims=tuple(
            [Claim(x.id, attempt) for x in (pending.inbound, *pending.others)]
        ),
        appends=(as_append(pending, stream),) if is_new else (),
        may_wait=may_wait,
    )


def as_put_off(pending: PendingMessage, put_off: Postpone, now: float) -> Commit:
    """Make the commit of an attempt that was called off and does not count.

    Args:
        put_off: how often the turn was begun, and when it is begun again.
        now: Unix seconds.
    """
    back = tuple(
        Defer(each.id, put_off.attempts, put_off.due_at, "stopped")
        for each in (pending.inbound, *pending.others)
    )
    return Commit(at=now, defers=back)


async def read_composition(store: Store, stream: str, inbound: Inbound) -> Composition:
    """Read which messages shared a turn that was cut off.

    Args:
        stream: the journal stream of the turn's steps.
        inbound: the first message of the turn.

    Raises:
        runtime.errors.StoreUnavailableError: the disk cannot be read now. The turn must
            not begin: it would leave the other messages out.
        runtime.errors.StoreError: the database is damaged.
    """
    together, joined, has_steps = None, list[TurnMember](), False
    after = 0
    while True:
        events = await store.read(stream, after, PAGE)
        for event in events:
            after, has_steps = event.sequence, True
            if event.kind == TOGETHER:
                together = msgspec.json.decode(event.body, type=Together)
            elif event.kind == JOINED:
                read = msgspec.json.decode(event.body, type=MessageInjected)
                joined.append(TurnMember(read.id, read.platform_id, others=read.others))
        if len(events) < PAGE:
            break
    if together is None and not joined:
        return Composition(has_steps)
    began = () if together is None else together.members
    connector = inbound.address.connector
    found = {x.id: await _find(store, connector, x) for x in (*began, *joined)}
    short = tuple(x.id for x in began if x.is_short)
    if together is not None and together.first_is_short:
        short = (inbound.id, *short)
    return Composition(
        has_steps,
        also=tuple(x for m in began if (x := found[m.id]) is not None),
        style="alone" if together is None else together.style,
        short=short,
        injected=tuple(x for m in joined if (x := found[m.id]) is not None),
        settled=tuple(name for name, x in found.items() if x is None),
    )


async def _find(store: Store, connector: str, member: TurnMember) -> Inbound | None:
    """Read a message; None: it is settled, or cannot be read."""
    found = await store.answered(connector, member.platform_id)
    if found is None or found.message.settled_at:
        return None
    try:
        inbound = msgspec.json.decode(found.message.body, type=Inbound)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return msgspec.structs.replace(inbound, others=member.others)
