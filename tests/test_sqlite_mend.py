"""Proves that people can change a queue by hand while a server is using it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from runtime.errors import MisuseError, StoreUnavailableError
from runtime.rows import (
    BY_HAND,
    Claim,
    Commit,
    Defer,
    Receipt,
    ReceivedState,
    SendAttempt,
    Settle,
    SettledState,
)
from runtime.sqlite_file import SqliteFile
from runtime.sqlite_mend import DROPPED, drop, drop_delivery, retry, retry_delivery
from runtime.sqlite_store import SqliteStore
from tests.store_rows import NOW, accepting, enqueueing

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from runtime.rows import StoredDelivery, StoredMessage

LATER = NOW + 100


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "callboard.db"


@pytest.fixture
async def store(path: Path) -> AsyncGenerator[SqliteStore]:
    """Open a store with one message and one delivery, and baseline its changes."""
    store = await SqliteStore.open(SqliteFile(path))
    await store.commit(accepting("m1"))
    await store.commit(enqueueing("d1", correlation_id="m1"))
    await store.was_changed_outside()
    yield store
    await store.aclose()


async def message(store: SqliteStore) -> StoredMessage:
    answered = await store.answered("cli", "m1")
    assert answered is not None
    return answered.message


async def delivery(store: SqliteStore) -> StoredDelivery:
    answered = await store.answered("cli", "m1")
    assert answered is not None
    return answered.deliveries[0]


def settling_it(row: StoredMessage) -> Commit:
    """Settle a message, as those who drop it do."""
    return Commit(at=LATER, settles=(Settle(row.id, "dropped", DROPPED),))


async def settle(store: SqliteStore, state: SettledState) -> None:
    await store.commit(
        Commit(at=NOW, claims=(Claim("m1", 3),), settles=(Settle("m1", state, "why"),))
    )


async def test_a_dead_message_is_tried_again_by_a_running_server(
    store: SqliteStore, path: Path
) -> None:
    await settle(store, "dead")
    mended = retry(path, "m", LATER)
    assert (mended.has_changed, mended.text) == (True, "message m1 is tried again")
    assert await store.was_changed_outside()
    (row,) = await store.unsettled()
    assert (row.state, row.attempts, row.due_at) == ("accepted", 3, 0.0)
    assert (row.settled_at, row.reason) == (0.0, BY_HAND)
    await store.commit(Commit(at=LATER, claims=(Claim("m1", 1),)))


async def test_a_message_that_waits_for_its_time_is_tried_at_once(
    store: SqliteStore, path: Path
) -> None:
    await store.commit(Commit(at=NOW, defers=(Defer("m1", 2, LATER, "busy"),)))
    assert retry(path, "m1", NOW).has_changed
    row = await message(store)
    assert (row.due_at, row.attempts) == (0.0, 2)
    mended = retry(path, "m1", NOW)
    assert not mended.has_changed
    assert "waiting for its turn already" in mended.text


@pytest.mark.parametrize("state", ["replied", "dropped", "cancelled"])
async def test_what_has_ended_well_is_not_tried_again(
    store: SqliteStore, path: Path, state: SettledState
) -> None:
    await settle(store, state)
    before = await message(store)
    mended = retry(path, "m1", LATER)
    assert (mended.has_changed, f"m1 is {state}" in mended.text) == (False, True)
    assert await message(store) == before
    assert not await store.was_changed_outside()


@pytest.mark.parametrize("is_dead", [True, False])
async def test_a_message_nobody_works_on_is_dropped(
    store: SqliteStore, path: Path, *, is_dead: bool
) -> None:
    if is_dead:
        await settle(store, "dead")
    assert drop(path, "m1", LATER, settling_it).has_changed
    row = await message(store)
    assert (row.state, row.reason, row.settled_at) == ("dropped", "by hand", LATER)
    assert await store.was_changed_outside()


async def test_a_running_message_is_left_alone(store: SqliteStore, path: Path) -> None:
    await store.commit(Commit(at=NOW, claims=(Claim("m1", 1),)))
    for mended in (drop(path, "m1", LATER, settling_it), retry(path, "m1", LATER)):
        assert not mended.has_changed
        assert "m1 is running" in mended.text
    assert "/stop" in drop(path, "m1", LATER, settling_it).text
    assert (await message(store)).state == "running"


async def test_what_was_running_when_the_last_process_ended_is_dropped(
    store: SqliteStore, path: Path
) -> None:
    await store.commit(Commit(at=NOW, claims=(Claim("m1", 1),)))
    await store.aclose()
    assert drop(path, "m1", LATER, settling_it).has_changed
    again = await SqliteStore.open(SqliteFile(path))
    row = await message(again)
    await again.aclose()
    assert (row.state, row.reason) == ("dropped", "by hand")


@pytest.mark.parametrize("state", ["dead", "unknown"])
async def test_a_delivery_that_failed_is_sent_again(
    store: SqliteStore, path: Path, state: ReceivedState
) -> None:
    receipt = Receipt("d1", state, "gone", attempts=5)
    await store.commit(Commit(at=NOW, receipts=(receipt,)))
    assert retry_delivery(path, "d1").has_changed
    row = await delivery(store)
    assert (row.state, row.attempts, row.receipt) == ("pending", 5, BY_HAND)
    assert row.settled_at == 0.0
    assert [row.id for row in await store.undelivered("cli")] == ["d1"]


async def test_a_delivery_on_its_way_is_left_alone(
    store: SqliteStore, path: Path
) -> None:
    assert "already" in retry_delivery(path, "d1").text
    await store.commit(Commit(at=NOW, send_attempts=(SendAttempt("d1", 1),)))
    for mended in (retry_delivery(path, "d1"), drop_delivery(path, "d1", LATER)):
        assert not mended.has_changed
        assert "being sent" in mended.text
    await store.commit(Commit(at=NOW, receipts=(Receipt("d1", "sent"),)))
    for mended in (retry_delivery(path, "d1"), drop_delivery(path, "d1", LATER)):
        assert not mended.has_changed
        assert "d1 is sent" in mended.text
    assert (await delivery(store)).state == "sent"


async def test_a_delivery_that_waits_is_dropped(store: SqliteStore, path: Path) -> None:
    assert drop_delivery(path, "d1", LATER).has_changed
    row = await delivery(store)
    assert (row.state, row.receipt, row.settled_at) == ("dead", "by hand", LATER)


async def test_people_are_told_what_may_be_sent_in_spite_of_a_drop(
    store: SqliteStore, path: Path
) -> None:
    waiting = drop_delivery(path, "d1", LATER)
    assert waiting.text.endswith("it is not sent, unless that was under way")
    assert retry_delivery(path, "d1").has_changed
    await store.commit(Commit(at=NOW, receipts=(Receipt("d1", "unknown", "gone"),)))
    in_doubt = drop_delivery(path, "d1", LATER)
    assert in_doubt.text.endswith("it is not sent again")


async def test_an_id_that_is_unknown_or_unclear_changes_nothing(
    store: SqliteStore, path: Path
) -> None:
    await store.commit(accepting("m2"))
    with pytest.raises(MisuseError, match="more than one message"):
        drop(path, "m", LATER, settling_it)
    with pytest.raises(MisuseError, match="no delivery"):
        drop_delivery(path, "d2", LATER)
    assert len(await store.unsettled()) == 2
    assert not await store.was_changed_outside()


def test_a_missing_database_is_not_made(path: Path) -> None:
    with pytest.raises(StoreUnavailableError, match="there is no database"):
        retry(path, "m1", NOW)
    assert not path.exists()


async def test_a_queue_can_be_changed_when_no_server_runs(path: Path) -> None:
    store = await SqliteStore.open(SqliteFile(path))
    await store.commit(accepting("m1"))
    await store.aclose()
    assert drop(path, "m1", LATER, settling_it).has_changed
    store = await SqliteStore.open(SqliteFile(path))
    assert await store.unsettled() == ()
    await store.aclose()
