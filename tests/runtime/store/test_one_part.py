"""Proves that the guard of parts sees what breaks its rule, on the stories' engines."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from runtime.store.rows import Accept, Commit, Handover, Record, Settle
from tests.support.store.engines import make_engine
from tests.support.store.one_part import EXCEPTIONS, guarded

MOST_EXCEPTIONS = 0
"""May only fall."""

ACCEPT = Accept(
    id="m", connector="c", platform_id="p", part=1, stream="s", body=b"{}", at=1.0
)
SETTLED = (Settle("m", "dropped"),)
RECORD = Record(kind="audit", id="r", owner="", part=2, body=b"{}")


@pytest.mark.parametrize("name", ["memory", "sqlite"])  # what stories run on
@pytest.mark.parametrize(
    ("commit", "is_broken"),
    [
        (Commit(at=1.0, records=(msgspec.structs.replace(RECORD, part=1),)), False),
        (Commit(at=1.0, records=(RECORD,)), True),
    ],
)
async def test_a_row_changed_by_its_id_counts_with_the_part_it_has(
    name: str, commit: Commit, tmp_path: Path, *, is_broken: bool
) -> None:
    store = await make_engine(name, tmp_path).open()
    with guarded() as broken:
        await store.commit(Commit(at=1.0, accepts=(ACCEPT,)))
        await store.commit(msgspec.structs.replace(commit, settles=SETTLED))
        await store.aclose()
    assert bool(broken) == is_broken


@pytest.mark.parametrize("name", ["memory", "sqlite"])
async def test_what_is_handed_over_is_judged_by_itself(
    name: str, tmp_path: Path
) -> None:
    store = await make_engine(name, tmp_path).open()
    handed = Handover(part=2, source=1, key="m", rows=Commit(at=1.0, records=(RECORD,)))
    with guarded() as broken:
        await store.commit(Commit(at=1.0, accepts=(ACCEPT,), handovers=(handed,)))
        assert not broken
        await store.commit(Commit(at=1.0, records=(RECORD,), settles=SETTLED))
    assert broken == [{("inbox", 1), ("record audit", 2)}]
    await store.aclose()


def test_the_exceptions_only_get_fewer() -> None:
    assert len(EXCEPTIONS) <= MOST_EXCEPTIONS
