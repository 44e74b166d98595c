"""Every story also proves that its commits touch one part each."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
import trio

from tests.fakes.store.in_memory import MemoryStore
from tests.support.store.one_part import guarded

# Chosen: the most of any story is some hundreds.
MOST_AT_ONCE = 20_000
"""Calls of the store in one instant of virtual time."""

READERS = ("actors.", "connectors.")


@pytest.fixture(autouse=True)
def one_part() -> Iterator[None]:
    """Fail a story in which a commit touches several parts, and is no exception."""
    with guarded() as broken:
        yield
    assert not broken, f"rows of one commit lie in several parts: {broken}"


@pytest.fixture(autouse=True)
def few_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the keeper look each minute whether another program has changed the store.

    None does in a story, and stories last for days: each look costs as much as a turn.
    """
    monkeypatch.setattr("actors.operations.keeper.LOOK_EVERY", 60.0)


@pytest.fixture(autouse=True)
def short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have all that is read in pages be read in pages of two rows.

    No story has a thousand rows of anything: the second page would never be read.
    """
    for name, module in [*sys.modules.items()]:
        if name.startswith(READERS) and hasattr(module, "PAGE"):
            monkeypatch.setattr(module, "PAGE", 2)


@pytest.fixture(autouse=True)
def no_endless_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail who asks the store without end, which would else hang: no time passes."""
    enter, calls, at = MemoryStore._enter, 0, -1.0

    async def bounded(store: MemoryStore) -> None:
        nonlocal calls, at
        now = trio.current_time()
        calls, at = (calls + 1 if now == at else 0), now
        assert calls < MOST_AT_ONCE, "the store is asked without end"
        await enter(store)

    monkeypatch.setattr(MemoryStore, "_enter", bounded)
