"""Proves that the guard of parts sees what breaks its rule, on the stories' engines."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from runtime.store.rows import Accept, Commit, Enqueue, Entry, Record, Settle
from tests.support.store.engines import make_engine
from tests.support.store.one_part import EXCEPTIONS, guarded

MOST_EXCEPTIONS = 8
"""May only fall."""

ACCEPT = Accept(
    id="m", connector="c", platform_id="p", part=1, stream="s", body=b"{}", at=1.0
)
RECORD = Record(kind="audit", id="r", owner="", part=2, body=b"{}")


@pytest.mark.parametrize("name", ["memory", "sqlite"])  # what stories run on
@pytest.mark.parametrize(
    ("commit", "is_broken"),
    [
        (Commit(at=1.0, records=(msgspec.structs.replace(RECORD, part=1),)), False),
        (Commit(at=1.0, records=(RECORD,)), True),
        (
            Commit(
                at=1.0,
                records=(RECORD,),
                entries=(Entry(kind="webhook_due", id="w", part=3, body=b"{}"),),
            ),
            False,
        ),
    ],
)
async def test_a_row_changed_by_its_id_counts_with_the_part_it_has(
    name: str, commit: Commit, tmp_path: Path, *, is_broken: bool
) -> None:
    store = await make_engine(name, tmp_path).open()
    with guarded() as broken:
        await store.commit(Commit(at=1.0, accepts=(ACCEPT,)))
        settle = (Settle("m", "dropped"),)
        await store.commit(msgspec.structs.replace(commit, settles=settle))
        await store.aclose()
    assert bool(broken) == is_broken


async def test_a_notice_to_owners_is_an_exception_and_no_other_deliveries(
    tmp_path: Path,
) -> None:
    store = await make_engine("memory", tmp_path).open()
    said = [
        Enqueue(
            delivery_id=f"d{part}",
            connector="c",
            chat=str(part),
            correlation_id="",
            part=part,
            body=b"{}",
        )
        for part in (1, 2)
    ]
    with guarded() as broken:
        await store.commit(Commit(at=1.0, deliveries=tuple(said)))
        assert not broken
        other = msgspec.structs.replace(said[1], delivery_id="d3")
        await store.commit(Commit(at=1.0, accepts=(ACCEPT,), deliveries=(other,)))
    assert broken == [{("inbox", 1), ("outbox", 2)}]
    await store.aclose()


def test_the_exceptions_only_get_fewer() -> None:
    assert len(EXCEPTIONS) <= MOST_EXCEPTIONS
