"""Proves that every store tells the outcome of a commit nobody waits for."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec
import pytest
import trio

from runtime.errors import (
    DuplicateError,
    MisuseError,
    SequenceConflictError,
    StoreUnavailableError,
)
from runtime.store.port import Store
from runtime.store.rows import Commit, Committed, Settle
from tests.support.store.engines import NAMES, make_engine, names_unsettled
from tests.support.store.rows import NOW, accepting, events, turn

Outcome = Committed | Exception


@pytest.fixture(params=NAMES)
async def store(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncGenerator[Store]:
    store = await make_engine(request.param, tmp_path).open()
    yield store
    await store.aclose()


async def submit_all(store: Store, *commits: Commit) -> list[Outcome]:
    """Submit commits one after the other and give the outcomes as they are told."""
    told: list[Outcome] = []
    all_told = trio.Event()

    def done(outcome: Outcome) -> None:
        told.append(outcome)
        if len(told) == len(commits):
            all_told.set()

    for commit in commits:
        store.submit(commit, done)
    assert not told, "nobody may be told before `submit` returns"
    with trio.fail_after(30):
        await all_told.wait()
    return told


async def test_a_submitted_commit_is_told_its_numbers(store: Store) -> None:
    assert await submit_all(store, turn(0, "a")) == [Committed((1,), (1,), (1,))]
    assert len(await store.read("a")) == 1


async def test_commits_are_stored_and_told_of_in_their_order(store: Store) -> None:
    told = await submit_all(store, *(turn(number, "a") for number in range(50)))
    assert told == [Committed((n,), (n,), (n,)) for n in range(1, 51)]
    assert [event.sequence for event in await store.read("a")] == list(range(1, 51))


@pytest.mark.parametrize(
    ("commit", "error"),
    [
        (accepting("old"), DuplicateError),
        (Commit(at=NOW, appends=(events("a", 7),)), SequenceConflictError),
        (Commit(at=NOW, settles=(Settle("none", "dead"),)), MisuseError),
        (accepting("half \ud83d"), MisuseError),
    ],
)
async def test_a_refusal_is_told_and_never_raised(
    store: Store, commit: Commit, error: type[Exception]
) -> None:
    await store.commit(accepting("old"))
    (told,) = await submit_all(store, commit)
    assert isinstance(told, error)
    assert await names_unsettled(store) == ["old"]


async def test_a_commit_that_fails_leaves_those_around_it_alone(store: Store) -> None:
    told = await submit_all(store, turn(0, "a"), turn(7, "a"), turn(1, "a"))
    assert [type(outcome) for outcome in told] == [
        Committed,
        SequenceConflictError,
        Committed,
    ]
    assert len(await store.read("a")) == 2


async def test_a_closed_store_tells_that_it_is(store: Store) -> None:
    await store.aclose()
    (told,) = await submit_all(store, accepting("m1"))
    assert isinstance(told, StoreUnavailableError)


async def test_a_commit_that_may_wait_keeps_its_place(store: Store) -> None:
    may_wait = msgspec.structs.replace(turn(0, "a"), may_wait=True)
    told = await submit_all(store, may_wait, turn(1, "a"), turn(2, "a"))
    assert told == [Committed((n,), (n,), (n,)) for n in range(1, 4)]


async def test_a_commit_that_may_wait_does_not_wait_for_ever(store: Store) -> None:
    for name in ("m1", "m2"):
        may_wait = msgspec.structs.replace(accepting(name), may_wait=True)
        (told,) = await submit_all(store, may_wait)
        assert isinstance(told, Committed)
    assert await names_unsettled(store) == ["m1", "m2"]


async def test_a_commit_that_may_wait_is_stored_before_the_store_closes(
    store: Store,
) -> None:
    told: list[Outcome] = []
    store.submit(msgspec.structs.replace(accepting("m1"), may_wait=True), told.append)
    await store.aclose()
    with trio.fail_after(30):
        while not told:
            await trio.lowlevel.checkpoint()
    assert isinstance(told[0], Committed)
