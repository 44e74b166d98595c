"""What contracts of the store are proved on: each engine there is."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from runtime.store.port import Store
from tests.support.store.engines import NAMES, Engine, make_engine


@pytest.fixture(params=NAMES)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    return make_engine(request.param, tmp_path)


@pytest.fixture
async def store(engine: Engine) -> AsyncGenerator[Store]:
    store = await engine.open()
    yield store
    await store.aclose()
