"""Which messages share a turn is read back as it was stored."""

from __future__ import annotations

import msgspec
import trio
from hypothesis import given, strategies as st

from actors.journal.answers import PendingMessage
from actors.journal.commits import as_accept
from actors.messages.state import AttemptHistory, MessageState, Postpone, RetryPolicy
from actors.session.shared_turns import (
    Composition,
    as_append,
    as_claim,
    as_put_off,
    read_composition,
)
from actors.turn.machine import MessageInjected
from actors.turn.steps import JOINED
from runtime.store.rows import Append, Claim, Commit, Defer, NewEvent, Settle
from tests.fakes.actors.neighbours import words
from tests.fakes.store.in_memory import MemoryStore

STREAM = "steps/m0"
FIRST = words("first", 0)


def pending(also: int, injected: int = 0, *short: int) -> PendingMessage:
    """Make a turn of several messages: some from its beginning, some put into it."""
    others = [words(f"w{n}", n, others=n) for n in range(1, also + injected + 1)]
    return PendingMessage(
        FIRST,
        MessageState(RetryPolicy(), AttemptHistory(attempts=2)),
        also=tuple(others[:also]),
        injected=tuple(others[also:]),
        style="lines",
        short=tuple(f"m{n}" for n in short),
    )


async def read_back(
    turn: PendingMessage,
    *,
    joined_before: int = 0,
    settled: set[str] = frozenset(),  # type: ignore[assignment]
) -> Composition:
    store = MemoryStore()
    each = (turn.inbound, *turn.others)
    await store.commit(Commit(at=1.0, accepts=tuple(as_accept(x, 1.0) for x in each)))
    await store.commit(
        Commit(
            at=2.0,
            appends=(as_append(turn, STREAM),) if turn.also else (),
            settles=tuple(Settle(name, "dropped") for name in sorted(settled)),
        )
    )
    events = [
        NewEvent(
            JOINED,
            msgspec.json.encode(
                MessageInjected(x.id, x.platform_id, x.text, others=x.others)
            ),
        )
        for x in turn.injected
    ]
    filler = [NewEvent("other", b"{}")] * joined_before
    if events or filler:
        expected = int(bool(turn.also))
        await store.commit(
            Commit(
                at=3.0,
                appends=(
                    Append(
                        stream=STREAM,
                        expected=expected,
                        part=0,
                        events=(*filler, *events),
                    ),
                ),
            )
        )
    return await read_composition(store, STREAM, FIRST)


@given(
    also=st.integers(0, 4),
    injected=st.integers(0, 4),
    short=st.sets(st.integers(0, 4)),
    settled=st.sets(st.integers(1, 8)),
)
def test_a_turn_is_read_back_as_it_was_without_what_is_settled(
    also: int, injected: int, short: set[int], settled: set[int]
) -> None:
    turn = pending(also, injected, *sorted(x for x in short if x <= also))
    gone = {f"m{n}" for n in settled if n <= also + injected}
    found = trio.run(lambda: read_back(turn, settled=gone))
    assert found.has_steps == bool(also or injected)
    assert found.also == tuple(x for x in turn.also if x.id not in gone)
    assert found.injected == tuple(x for x in turn.injected if x.id not in gone)
    assert {*found.settled} == gone
    assert found.style == ("lines" if also else "alone")
    assert found.short == (turn.short if also else ())


async def test_words_that_joined_after_a_thousand_steps_are_found() -> None:
    turn = pending(1, 2)
    found = await read_back(turn, joined_before=1500)
    assert (found.also, found.injected) == (turn.also, turn.injected)
    steps_alone = await read_back(pending(0), joined_before=1)
    assert steps_alone == Composition(has_steps=True)
    assert await read_back(pending(0)) == Composition()


def test_all_of_a_turn_are_claimed_and_put_off_and_who_shares_it_is_stored_once() -> (
    None
):
    turn = pending(2, 1)
    names = ["m0", "m1", "m2", "m3"]
    claim = as_claim(turn, STREAM, 5.0, may_wait=True)
    assert claim.claims == tuple(Claim(name, 2) for name in names)
    assert (claim.at, claim.may_wait) == (5.0, True)
    assert claim.appends == (as_append(turn, STREAM),)
    (append,) = claim.appends
    assert (append.inbox_id, append.expected) == ("m0", 0)
    known = msgspec.structs.replace(turn, is_recorded=True)
    assert as_claim(known, STREAM, 5.0, may_wait=False).appends == ()
    assert as_claim(pending(0, 1), STREAM, 5.0, may_wait=False).appends == ()
    back = as_put_off(turn, Postpone(1, 9.0), 6.0)
    assert back.defers == tuple(Defer(name, 1, 9.0, "stopped") for name in names)
    assert back.at == 6.0
