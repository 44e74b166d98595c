"""One homeserver for all live tests of Matrix."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import trio

from tests.live.matrix.crew import Crew
from tests.live.matrix.synapse import Synapse


@pytest.fixture(scope="session")
def crew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crew]:
    """Run Synapse, with three agents' accounts and two people on it."""
    synapse = Synapse(tmp_path_factory.mktemp("synapse"))
    try:
        synapse.start()
        made = Crew(synapse)
        trio.run(made.lift_limits)
        yield made
    finally:
        synapse.stop()
