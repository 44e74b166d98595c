"""Proves that settings that change under load lose nothing, and answer once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.reload_bed import reload_often
from tests.support.tiers import examples

TIMES = examples(10)
"""Reloads; `python -m tests.support.reload_bed 1000` does more."""


# httpx leaves the body of a request as it is when its connection breaks off.
@pytest.mark.filterwarnings("ignore:Async generator 'httpx._content.*:ResourceWarning")
@pytest.mark.property
async def test_reloads_under_load_lose_nothing_and_answer_nothing_twice(
    tmp_path: Path,
) -> None:
    told = await reload_often(tmp_path, TIMES)
    assert told.wrong == []
    assert (told.unsettled, told.twice, told.again, told.unheard) == (0, 0, 0, 0)
    assert told.unanswered == told.answers["not here now: 200"]
    assert told.answers["right"] > TIMES
    assert told.outcomes["applied"] > TIMES / 2
    assert told.outcomes["refused"]
