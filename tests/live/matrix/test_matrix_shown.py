"""What people on a real Synapse see while an answer is made: edits and signs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.live.matrix.crew import Crew
from tests.live.matrix.synapse import wait_until

pytestmark = pytest.mark.live

SHOWN = """
[presence]
draft_after = 0.0
draft_chars = 1

[presence.connectors.matrix]
drafts = true
reactions = true
"""


async def test_an_answer_grows_by_edits_and_its_question_gets_a_sign(
    crew: Crew, tmp_path: Path
) -> None:
    room = await crew.zoe.room(crew.anna, is_direct=True)
    with crew.served(tmp_path, shown=SHOWN) as running:
        await room.wait_joined(crew.anna)
        asked = await room.say("slowly " + "and on " * 40)
        path = f"/_matrix/client/v1/rooms/{room.id}/relations/{asked}/m.annotation"

        async def signs() -> list[str]:
            found = (await crew.zoe.ask("GET", path))["chunk"]
            related = (each["content"].get("m.relates_to", {}) for each in found)
            return [each["key"] for each in related if each]

        await wait_until(signs, lambda found: found == ["👀"])
        await wait_until(signs, lambda found: found == ["✅"])
        await running.end()
    (answer,) = await room.said(crew.anna)
    assert answer["body"].split() == ["and", "on"] * 40
    edits = [each for each in await room.events() if "m.new_content" in each["content"]]
    assert 2 <= len(edits) <= 6
