"""Every story also proves that its commits touch one part each."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.support.store.one_part import guarded


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
        if name.startswith("actors.") and hasattr(module, "PAGE"):
            monkeypatch.setattr(module, "PAGE", 2)
