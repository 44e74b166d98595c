"""Which messages share a turn, written down, and read back when it is resumed.

It stands in the journal of that turn's steps: those that it began with are stored with
its first claim, before a model is asked; those that were put into it, with the rounds
between which they were. So a turn that was cut off answers the same messages again,
and the message of each is settled once, with its answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.messages import Inbound
from actors.rules.busy_policies import Style
from actors.rules.keys import chat_partition
from actors.rules.turn import Joined
from actors.steps import JOINED, TOGETHER
from runtime.rows import Append, Claim, Commit, Defer, NewEvent

if TYPE_CHECKING:
    from actors.held import Held
    from actors.rules.message_state import PutOff
    from runtime.store import Store

PAGE = 1000


class Member(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message that shares another one's turn."""

    id: str
    platform_id: str
    is_short: bool = False
    others: int = 0
    """As in `Inbound`: of a message that several agents heard its row does not say."""


class Together(msgspec.Struct, frozen=True, omit_defaults=True):
    """Event `together`: further messages that a turn was begun for."""

    style: Style
    members: tuple[Member, ...]
    first_is_short: bool = False


class Composition(msgspec.Struct, frozen=True):
    """What the journal says of one turn."""

    has_steps: bool = False
    also: tuple[Inbound, ...] = ()
    style: Style = "alone"
    short: tuple[str, ...] = ()
    injected: tuple[Inbound, ...] = ()
    settled: tuple[str, ...] = ()
    """Members that were settled otherwise meanwhile, by hand for one."""


def as_append(held: Held, stream: str) -> Append:
    """Write down, as the first step, which messages a turn is begun for."""
    inbound = held.inbound
    members = tuple(
        Member(x.id, x.platform_id, x.id in held.short, x.others) for x in held.also
    )
    body = Together(held.style, members, inbound.id in held.short)
    return Append(
        stream=stream,
        expected=0,
        part=chat_partition(inbound.address.connector, inbound.address.chat),
        events=(NewEvent(TOGETHER, msgspec.json.encode(body)),),
        inbox_id=inbound.id,
    )


def as_claim(held: Held, stream: str, now: float, *, may_wait: bool) -> Commit:
    """Write down that a turn begins, and which messages it is for.

    Args:
        held: the first of them, and the others.
        stream: of the turn's steps.
        now: Unix seconds.
        may_wait: whether it need not be durable at once.
    """
    attempt = held.state.attempts
    is_new = bool(held.also) and not held.is_recorded
    return Commit(
        at=now,
        claims=tuple(Claim(x.id, attempt) for x in (held.inbound, *held.others)),
        appends=(as_append(held, stream),) if is_new else (),
        may_wait=may_wait,
    )


def as_put_back(held: Held, put_off: PutOff, now: float) -> Commit:
    """Write down that a turn was called off, and none of its messages to blame.

    Args:
        held: the first of them, and the others.
        put_off: how often it was begun, and when it is begun again.
        now: Unix seconds.
    """
    back = tuple(
        Defer(each.id, put_off.attempts, put_off.due_at, "stopped")
        for each in (held.inbound, *held.others)
    )
    return Commit(at=now, defers=back)


async def read_back(store: Store, stream: str, inbound: Inbound) -> Composition:
    """Read which messages a turn answered when it was cut off.

    Args:
        store: where to look.
        stream: of the turn's steps.
        inbound: whose turn it is.

    Raises:
        runtime.errors.StoreUnavailableError: not now; begun all the same, the turn
            would leave the others out.
        runtime.errors.StoreError: it is damaged.
    """
    together, joined, has_steps = None, list[Member](), False
    after = 0
    while True:
        events = await store.read(stream, after, PAGE)
        for event in events:
            after, has_steps = event.sequence, True
            if event.kind == TOGETHER:
                together = msgspec.json.decode(event.body, type=Together)
            elif event.kind == JOINED:
                read = msgspec.json.decode(event.body, type=Joined)
                joined.append(Member(read.id, read.platform_id, others=read.others))
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


async def _find(store: Store, connector: str, member: Member) -> Inbound | None:
    """Read a message that is not settled; None: it is, or cannot be read."""
    found = await store.answered(connector, member.platform_id)
    if found is None or found.message.settled_at:
        return None
    try:
        inbound = msgspec.json.decode(found.message.body, type=Inbound)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return msgspec.structs.replace(inbound, others=member.others)
