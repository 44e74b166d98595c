"""How agents behave in the rooms of a real Synapse, beside what they say there."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.live.matrix.crew import Crew
from tests.live.matrix.synapse import Room, wait_until
from tests.live.matrix.test_matrix_shown import SHOWN

pytestmark = pytest.mark.live


async def test_a_sign_that_was_left_behind_is_taken_away_after_a_start(
    crew: Crew, tmp_path: Path
) -> None:
    room = await crew.zoe.room(crew.anna, is_direct=True)
    with crew.served(tmp_path, shown=SHOWN) as running:
        await room.wait_joined(crew.anna)
        asked = await room.say("echo hello")
        await room.wait_said(1, crew.anna)
        await running.end()
    left = {"rel_type": "m.annotation", "event_id": asked, "key": "👀"}
    path = f"/rooms/{room.id}/send/m.reaction/left"
    await crew.anna.client("PUT", path, {"m.relates_to": left})
    path = f"/_matrix/client/v1/rooms/{room.id}/relations/{asked}/m.annotation"

    async def signs() -> list[str]:
        found = (await crew.zoe.ask("GET", path))["chunk"]
        related = (each["content"].get("m.relates_to", {}) for each in found)
        return [each["key"] for each in related if each]

    assert "👀" in await signs()
    with crew.served(tmp_path, shown=SHOWN) as running:
        await wait_until(signs, lambda found: "👀" not in found)
        await running.end()


async def test_a_question_is_read_and_no_longer_worked_on_when_it_is_redacted(
    crew: Crew, tmp_path: Path
) -> None:
    room = await crew.zoe.room(crew.anna, is_direct=True)
    numbers = count()

    async def read() -> list[str]:
        # Synapse keeps its answer to the same question for a while.
        said = await crew.zoe.client("GET", f"/sync?timeout={next(numbers)}")
        rooms = said.get("rooms", {}).get("join", {})  # none has news
        events = rooms.get(room.id, {}).get("ephemeral", {}).get("events", [])
        receipts: list[dict[str, Any]] = [
            each["content"] for each in events if each["type"] == "m.receipt"
        ]
        return [
            event_id
            for each in receipts
            for event_id, kinds in each.items()
            if crew.anna.user in kinds.get("m.read", {})
        ]

    with crew.served(tmp_path) as running:
        await room.wait_joined(crew.anna)
        asked = await room.say("slowly " + "and on " * 400)
        await wait_until(read, lambda found: found == [asked])
        await crew.zoe.client("PUT", f"/rooms/{room.id}/redact/{asked}/r", {})
        assert await room.wait_said(1, crew.anna) == ["(stopped)"]
        await running.end()


async def test_an_agent_goes_along_when_its_room_is_upgraded(
    crew: Crew, tmp_path: Path
) -> None:
    room = await crew.zoe.room(crew.anna, crew.sam)
    await crew.sam.client("POST", f"/rooms/{room.id}/join", {})
    path = f"/rooms/{room.id}/state/m.room.power_levels"
    levels = await crew.zoe.client("GET", path)
    users = {**levels["users"], crew.sam.user: 150}
    await crew.zoe.client("PUT", path, {**levels, "users": users})
    with crew.served(tmp_path) as running:
        await room.wait_joined(crew.anna)
        path = f"/rooms/{room.id}/upgrade"
        moved = await crew.sam.client("POST", path, {"new_version": "11"})
        new = Room(moved["replacement_room"], crew.sam)
        path = f"/rooms/{new.id}/invite"
        await crew.sam.client("POST", path, {"user_id": crew.anna.user})
        await new.wait_joined(crew.anna)
        await running.end()
