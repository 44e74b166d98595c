"""Proves that every store knows what is under way: claimed, deferred, attempted."""

from __future__ import annotations

import pytest

from runtime.errors import DuplicateError, MisuseError
from runtime.store.port import Store
from runtime.store.rows import (
    MAX_ROWS,
    Amend,
    Claim,
    Commit,
    Defer,
    NotSaid,
    Receipt,
    ReceivedState,
    SendAttempt,
    Settle,
    SettledState,
)
from tests.support.store.engines import (
    Engine,
    names_undelivered,
    names_unsettled,
)
from tests.support.store.rows import (
    NOW,
    accepting,
    enqueueing,
    heard,
    saying,
    settling,
    stored,
    stored_delivery,
)


async def test_a_message_reads_otherwise_once_it_was_amended(store: Store) -> None:
    await store.commit(accepting("m1", "m2"))
    await store.commit(Commit(at=NOW + 1, amends=(Amend("m1", b"other words"),)))
    first, second = await store.unsettled(0, 10)
    assert (first.body, first.state, first.at) == (b"other words", "accepted", NOW)
    assert second.body != b"other words"


async def test_a_claimed_message_is_running(store: Store) -> None:
    await store.commit(accepting("m1", "m2"))
    await store.commit(Commit(at=NOW + 1, claims=(Claim("m1", 1),)))
    await store.commit(Commit(at=NOW + 2, claims=(Claim("m1", 2),)))
    assert await store.unsettled() == (
        stored(1, "m1", body=b"'m1'", state="running", attempts=2, started_at=NOW + 2),
        stored(2, "m2", body=b"'m2'"),
    )
    assert {k: v for k, v in (await store.counts()).inbox.items() if v} == {
        "running": 1,
        "accepted": 1,
    }


async def test_a_deferred_message_waits_and_says_why(store: Store) -> None:
    await store.commit(accepting("m1"))
    await store.commit(Commit(at=NOW + 1, claims=(Claim("m1", 1),)))
    defer = Defer("m1", 1, NOW + 60, "the model is busy")
    await store.commit(Commit(at=NOW + 2, defers=(defer,)))
    (row,) = await store.unsettled()
    assert (row.state, row.attempts, row.started_at) == ("accepted", 1, NOW + 2)
    assert (row.due_at, row.reason) == (NOW + 60, "the model is busy")
    assert row.settled_at == 0.0


async def test_a_message_is_accepted_with_its_priority(store: Store) -> None:
    urgent = heard("m1", priority=1)
    await store.commit(Commit(at=NOW, accepts=(urgent, heard("m2"))))
    assert [row.priority for row in await store.unsettled()] == [1, 5]


@pytest.mark.parametrize("state", ["replied", "dropped", "cancelled", "dead"])
async def test_a_running_message_can_be_settled(
    store: Store, state: SettledState
) -> None:
    await store.commit(accepting("m1"))
    await store.commit(Commit(at=NOW, claims=(Claim("m1", 1),)))
    await store.commit(Commit(at=NOW + 5, settles=(Settle("m1", state, "why"),)))
    answered = await store.answered("cli", "m1")
    assert answered is not None
    assert answered.message == stored(
        1,
        "m1",
        body=b"'m1'",
        state=state,
        attempts=1,
        started_at=NOW,
        reason="why",
        settled_at=NOW + 5,
    )
    assert await names_unsettled(store) == []


@pytest.mark.parametrize(
    "change",
    [
        Commit(at=NOW, claims=(Claim("m1", 2),)),
        Commit(at=NOW, defers=(Defer("m1", 1, NOW),)),
        Commit(at=NOW, amends=(Amend("m1", b"other"),)),
    ],
)
async def test_a_settled_message_is_not_worked_on(store: Store, change: Commit) -> None:
    with pytest.raises(MisuseError, match="no message 'm1'"):
        await store.commit(change)
    await store.commit(accepting("m1"))
    await store.commit(settling("m1"))
    with pytest.raises(DuplicateError, match="replied already"):
        await store.commit(change)


async def test_one_commit_may_carry_a_message_through_its_whole_life(
    store: Store,
) -> None:
    await store.commit(
        Commit(
            at=NOW,
            accepts=(heard("m1"),),
            claims=(Claim("m1", 1),),
            defers=(Defer("m1", 1, 0.0),),
            deliveries=(saying("d1"),),
            settles=(Settle("m1", "replied"),),
            send_attempts=(SendAttempt("d1", 1),),
            receipts=(Receipt("d1", "sent"),),
        )
    )
    assert await names_unsettled(store) == []
    assert await names_undelivered(store) == []


async def test_an_attempted_delivery_is_still_undelivered(store: Store) -> None:
    await store.commit(enqueueing("d1", "d2"))
    await store.commit(Commit(at=NOW + 1, send_attempts=(SendAttempt("d1", 1),)))
    await store.commit(Commit(at=NOW + 1, send_attempts=(SendAttempt("d1", 2),)))
    assert await store.undelivered("cli") == (
        stored_delivery(1, "d1", body=b"'d1'", state="sending", attempts=2),
        stored_delivery(2, "d2", body=b"'d2'"),
    )
    assert {k: v for k, v in (await store.counts()).outbox.items() if v} == {
        "sending": 1,
        "pending": 1,
    }


async def test_a_delivery_its_platform_did_not_take_is_pending_and_says_why(
    store: Store,
) -> None:
    await store.commit(enqueueing("d1"))
    await store.commit(Commit(at=NOW, send_attempts=(SendAttempt("d1", 2),)))
    unsaid = Commit(at=NOW, not_said=(NotSaid("d1", "busy"),))
    await store.commit(unsaid)
    (row,) = await store.undelivered("cli")
    assert (row.state, row.attempts, row.receipt) == ("pending", 2, "busy")
    await store.commit(Commit(at=NOW, send_attempts=(SendAttempt("d1", 3),)))
    (row,) = await store.undelivered("cli")
    assert (row.state, row.attempts, row.receipt) == ("sending", 3, "")
    await store.commit(Commit(at=NOW, receipts=(Receipt("d1", "sent"),)))
    with pytest.raises(DuplicateError, match="sent already"):
        await store.commit(unsaid)
    with pytest.raises(MisuseError, match="no delivery 'd2'"):
        await store.commit(Commit(at=NOW, not_said=(NotSaid("d2", "busy"),)))
    with pytest.raises(MisuseError):
        await store.commit(Commit(at=NOW, not_said=(NotSaid("d1", "half \ud83d"),)))


@pytest.mark.parametrize("state", ["sent", "unknown", "dead"])
async def test_an_attempted_delivery_gets_its_receipt(
    store: Store, state: ReceivedState
) -> None:
    await store.commit(accepting("m1"))
    await store.commit(enqueueing("d1", correlation_id="m1"))
    await store.commit(Commit(at=NOW, send_attempts=(SendAttempt("d1", 1),)))
    receipt = Receipt("d1", state, "42", attempts=3)
    await store.commit(Commit(at=NOW + 5, receipts=(receipt,)))
    answered = await store.answered("cli", "m1")
    assert answered is not None
    assert answered.deliveries == (
        stored_delivery(
            1,
            "d1",
            correlation_id="m1",
            body=b"'d1'",
            state=state,
            attempts=3,
            receipt="42",
            settled_at=NOW + 5,
        ),
    )
    assert await names_undelivered(store) == []


async def test_a_delivery_with_a_receipt_is_not_attempted(store: Store) -> None:
    change = Commit(at=NOW, send_attempts=(SendAttempt("d1", 2),))
    with pytest.raises(MisuseError, match="no delivery 'd1'"):
        await store.commit(change)
    await store.commit(enqueueing("d1"))
    await store.commit(Commit(at=NOW, receipts=(Receipt("d1", "sent"),)))
    with pytest.raises(DuplicateError, match="sent already"):
        await store.commit(change)


async def test_messages_are_found_by_their_keys_in_one_read(store: Store) -> None:
    await store.commit(
        Commit(
            at=NOW,
            accepts=(
                heard("m1", platform_id="p1"),
                heard("m2", connector="web", platform_id="p1"),
                heard("m3", platform_id="p1+ben"),
            ),
        )
    )
    await store.commit(Commit(at=NOW + 1, settles=(Settle("m1", "replied"),)))
    keys = [("cli", "p1"), ("cli", "p2"), ("cli", "p1"), ("web", "p1"), ("web", "p")]
    found = {row.id: row.state for row in await store.messages(keys)}
    assert found == {"m1": "replied", "m2": "accepted"}
    assert len(await store.messages(keys)) == 2
    assert await store.messages(()) == ()
    assert await store.messages([("cli", "p1+ben")]) == ((await store.unsettled())[-1],)


async def test_only_so_many_messages_are_read_at_once(store: Store) -> None:
    keys = [("cli", f"p{number}") for number in range(MAX_ROWS + 1)]
    assert await store.messages(keys[:-1]) == ()
    with pytest.raises(MisuseError, match="keys"):
        await store.messages(keys)


async def test_what_was_answered_is_found_by_the_platforms_id(store: Store) -> None:
    await store.commit(
        Commit(
            at=NOW,
            accepts=(heard("m1", platform_id="p1"), heard("m2", platform_id="p2")),
            deliveries=(
                saying("d1", correlation_id="m1"),
                saying("d2", correlation_id="m2"),
                saying("d3", correlation_id="m1"),
            ),
        )
    )
    answered = await store.answered("cli", "p1")
    assert answered is not None
    assert answered.message.id == "m1"
    assert [row.id for row in answered.deliveries] == ["d1", "d3"]
    assert await store.answered("web", "p1") is None
    assert await store.answered("cli", "m1") is None


@pytest.mark.parametrize(
    "commit",
    [
        Commit(at=NOW, accepts=(heard("m", priority=0),)),
        Commit(at=NOW, accepts=(heard("m", priority=11),)),
        Commit(at=NOW, claims=(Claim("old", -1),)),
        Commit(at=NOW, defers=(Defer("old", -1, NOW),)),
        Commit(at=NOW, send_attempts=(SendAttempt("old", -1),)),
        Commit(at=NOW, receipts=(Receipt("old", "sent", attempts=-1),)),
        Commit(at=NOW, defers=(Defer("old", 1, float("nan")),)),
        Commit(at=NOW, claims=(Claim("half \ud83d", 1),)),
        Commit(at=NOW, defers=(Defer("old", 1, NOW, "half \ud83d"),)),
        Commit(at=NOW, send_attempts=(SendAttempt("half \ud83d", 1),)),
    ],
)
async def test_what_cannot_be_is_refused(store: Store, commit: Commit) -> None:
    await store.commit(accepting("old"))
    await store.commit(enqueueing("old"))
    with pytest.raises(MisuseError):
        await store.commit(commit)
    assert await names_unsettled(store) == ["old"]


async def test_what_was_under_way_is_so_after_a_restart(engine: Engine) -> None:
    first = await engine.open()
    await first.commit(accepting("m1"))
    await first.commit(enqueueing("d1"))
    await first.commit(
        Commit(at=NOW, claims=(Claim("m1", 2),), send_attempts=(SendAttempt("d1", 3),))
    )
    second = await engine.reopen(first)
    assert [(row.state, row.attempts) for row in await second.unsettled()] == [
        ("running", 2)
    ]
    assert [(row.state, row.attempts) for row in await second.undelivered()] == [
        ("sending", 3)
    ]
    await second.aclose()


async def test_messages_of_a_stream_come_newest_first_with_what_became_of_them(
    store: Store,
) -> None:
    rows = [heard(f"m{number}", stream="cli/room") for number in range(1, 4)]
    other = heard("other", stream="cli/hall")
    await store.commit(Commit(at=NOW, accepts=(*rows, other)))
    said = (saying("d1", correlation_id="m2"), saying("d2", correlation_id="m2"))
    await store.commit(Commit(at=NOW, deliveries=said))
    found = await store.exchanges("cli/room")
    assert [each.message.id for each in found] == ["m3", "m2", "m1"]
    assert [row.id for each in found for row in each.deliveries] == ["d1", "d2"]
    assert found[1].message.body == b"'m2'"
    older = await store.exchanges("cli/room", before=3, limit=1)
    assert [each.message.id for each in older] == ["m2"]
    assert await store.exchanges("nowhere") == ()
    with pytest.raises(MisuseError):
        await store.exchanges("cli/room", limit=0)
