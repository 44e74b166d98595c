"""Proves that every store stays right at its edges: limits, odd input, its end."""

from __future__ import annotations

import math

import pytest
import trio

from runtime.errors import DuplicateError, MisuseError, StoreUnavailableError
from runtime.store.port import Store
from runtime.store.rows import (
    MAX_ROWS,
    Accept,
    Append,
    Commit,
    Committed,
    Counts,
    NewEvent,
    Pruned,
    Receipt,
    Settle,
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
    events,
    heard,
    saying,
    settling,
    stored,
    turn,
)


async def test_odd_text_and_empty_bodies_are_kept_as_they_are(store: Store) -> None:
    odd = "a\x00b 'c' ☎ 👪"
    row = Accept(
        id=odd, connector=odd, platform_id=odd, part=0, stream=odd, body=b"", at=0.5
    )
    await store.commit(
        Commit(at=NOW, accepts=(row,), appends=(events(odd, 0, body=b""),))
    )
    assert await store.unsettled() == (
        stored(1, odd, connector=odd, platform_id=odd, part=0, stream=odd, at=0.5),
    )
    assert [event.stream for event in await store.read(odd)] == [odd]


async def test_pruning_forgets_only_what_was_settled_long_ago(store: Store) -> None:
    for number in range(4):
        await store.commit(turn(number, "a"))
    await store.commit(accepting("open"))
    await store.commit(enqueueing("open"))
    await store.commit(accepting("later"))
    await store.commit(settling("later", at=NOW + 10))
    assert await store.prune(NOW, 3) == Pruned(0, 0)
    assert await store.prune(NOW + 10, 3) == Pruned(3, 3)
    assert await store.prune(NOW + 10, 3) == Pruned(1, 1)
    assert await names_unsettled(store) == ["open"]
    assert await names_undelivered(store) == ["open"]
    assert (await store.counts()).inbox.get("replied") == 1
    assert len(await store.read("a")) == 4
    await store.commit(accepting("a-0"))


async def test_the_events_that_are_a_message_s_own_are_forgotten_with_it(
    store: Store,
) -> None:
    for number in range(3):
        await store.commit(turn(number, "a"))
        for step in range(2):
            await store.commit(steps_of(f"a-{number}", step))
    await store.commit(accepting("open"))
    await store.commit(steps_of("open", 0))
    assert await store.prune(NOW, 3) == Pruned(0, 0, 0)
    # More than one message's events at a time only if they are no more than the limit.
    assert await store.prune(NOW + 1, 3) == Pruned(1, 3, 2)
    assert await store.read("steps/a-0") == ()
    assert len(await store.read("steps/a-1")) == 2
    assert await store.prune(NOW + 1, 4) == Pruned(2, 0, 4)
    assert await store.prune(NOW + 1, 4) == Pruned(0, 0, 0)
    assert len(await store.read("a")) == 3
    assert len(await store.read("steps/open")) == 1


async def test_more_events_than_the_limit_go_with_their_message(store: Store) -> None:
    await store.commit(turn(0, "a"))
    await store.commit(steps_of("a-0", 0, count=5))
    assert await store.prune(NOW + 1, 2) == Pruned(1, 1, 5)
    assert await store.read("steps/a-0") == ()


def steps_of(name: str, expected: int, count: int = 1) -> Commit:
    """Make a commit with events that are a message's own."""
    new = tuple(NewEvent("step", b"") for _ in range(count))
    row = Append(
        stream=f"steps/{name}", expected=expected, part=7, events=new, inbox_id=name
    )
    return Commit(at=NOW, appends=(row,))


async def test_a_pruned_number_is_never_given_again(store: Store) -> None:
    await store.commit(turn(0, "a"))
    await store.prune(NOW + 1)
    committed = await store.commit(
        Commit(at=NOW, accepts=(heard("m"),), deliveries=(saying("d"),))
    )
    assert committed == Committed((2,), (), (2,))


@pytest.mark.parametrize("limit", [-1, 0, MAX_ROWS + 1])
async def test_a_limit_without_sense_is_refused(store: Store, limit: int) -> None:
    for call in (
        lambda: store.read("a", 0, limit),
        lambda: store.unsettled(0, limit),
        lambda: store.unsettled_keys(0, limit),
        lambda: store.exchanges("a", 0, limit),
        lambda: store.undelivered(None, 0, limit),
        lambda: store.prune(NOW, limit),
        lambda: store.records("audit", None, 0, limit),
        lambda: store.records_since("audit", NOW, 0, limit),
        lambda: store.prune_records("audit", NOW, limit),
        lambda: store.entries("page", None, "", limit),
        lambda: store.facts.unembedded("bot", "space", 0, limit),
        lambda: store.facts.prune(NOW, limit),
    ):
        with pytest.raises(MisuseError, match="limit"):
            await call()


@pytest.mark.parametrize(
    "commit",
    [
        Commit(at=math.nan),
        Commit(at=math.inf),
        Commit(at=NOW, accepts=(heard("half \ud83d"),)),
        Commit(at=NOW, appends=(events("half \ud83d", 0),)),
        Commit(at=NOW, deliveries=(saying("half \ud83d"),)),
        Commit(at=NOW, settles=(Settle("m", "dropped", "half \ud83d"),)),
        Commit(at=NOW, receipts=(Receipt("d", "sent", "half \ud83d"),)),
    ],
)
async def test_what_no_disk_can_hold_is_refused(store: Store, commit: Commit) -> None:
    with pytest.raises(MisuseError):
        await store.commit(commit)
    assert store.healthy


@pytest.mark.parametrize("part", [-1, 256])
async def test_a_part_outside_the_256_is_refused(store: Store, part: int) -> None:
    row = Accept(
        id="m", connector="c", platform_id="p", part=part, stream="s", body=b"", at=NOW
    )
    with pytest.raises(MisuseError, match="part"):
        await store.commit(Commit(at=NOW, accepts=(row,)))


async def test_reading_a_name_with_half_a_character_is_refused(store: Store) -> None:
    with pytest.raises(MisuseError):
        await store.read("half \ud83d")
    with pytest.raises(MisuseError):
        await store.undelivered("half \ud83d")


async def test_an_empty_commit_is_no_trouble(store: Store) -> None:
    assert await store.commit(Commit(at=NOW)) == Committed()
    counts = await store.counts()
    assert not any(counts.inbox.values())
    assert not any(counts.outbox.values())


async def test_a_probe_leaves_nothing_behind(store: Store) -> None:
    before: Counts = await store.counts()
    await store.probe()
    assert store.healthy
    assert await store.counts() == before


async def test_a_restart_finds_everything_and_counts_on(engine: Engine) -> None:
    first = await engine.open()
    await first.commit(accepting("m1", "m2"))
    await first.commit(enqueueing("d1"))
    await first.commit(Commit(at=NOW, appends=(events("a", 0, 2),)))
    await first.commit(settling("m1"))
    second = await engine.reopen(first)
    assert await names_unsettled(second) == ["m2"]
    assert await names_undelivered(second) == ["d1"]
    assert len(await second.read("a")) == 2
    with pytest.raises(DuplicateError):
        await second.commit(accepting("m1"))
    ((number,)) = (await second.commit(accepting("m3"))).accepted
    assert number > 2
    await second.aclose()


async def test_a_closed_store_says_so(engine: Engine) -> None:
    store = await engine.open()
    await store.aclose()
    await store.aclose()
    for call in (
        lambda: store.commit(accepting("m1")),
        lambda: store.read("a"),
        store.unsettled,
        store.undelivered,
        store.counts,
        lambda: store.snapshot("a"),
        lambda: store.answered("cli", "p1"),
        lambda: store.messages([("cli", "p1")]),
        lambda: store.records("audit"),
        lambda: store.prune(NOW),
        lambda: store.prune_records("audit", NOW),
        store.changes_outside,
        store.probe,
    ):
        with pytest.raises(StoreUnavailableError, match="closed"):
            await call()


async def test_a_caller_already_cancelled_writes_nothing(store: Store) -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        await store.commit(accepting("m1"))
    assert scope.cancelled_caught
    await store.probe()
    assert await names_unsettled(store) == []


async def test_every_row_carries_the_epoch_of_its_store(store: Store) -> None:
    assert store.epoch == 3
    await store.commit(accepting("m1"))
    assert [row.epoch for row in await store.unsettled()] == [3]
