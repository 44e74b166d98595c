"""A session on one side of a courier, and on the other people who watch it write."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import trio.testing
from msgspec import structs

from actors.config.presence import PresenceConfig
from actors.journal.commits import as_enqueue
from actors.messages.deliveries import Abilities, Delivery, Draft
from actors.protocol import Deliver, ShowDraft
from actors.services import Duties
from runtime.store.rows import Commit
from tests.fakes.actors.neighbours import ROOM
from tests.fakes.chat.presence import EDITS, Screen
from tests.fakes.company.company import AT_ONCE, until
from tests.fakes.outbound.road import Road, open_road
from tests.fakes.store.in_memory import MemoryStore

Clock = trio.testing.MockClock

PLAIN = Abilities(draft_pace=1.0, takes_back=True)
KINDS = pytest.mark.parametrize("abilities", [EDITS, PLAIN], ids=["knows ids", "plain"])


def reply(text: str, part: int = 0, **fields: Any) -> Delivery:
    given: dict[str, Any] = {
        "id": f"m1:{part}",
        "correlation_id": "m1",
        "reply_id": "m1",
        "address": ROOM,
        "agent": "anna",
        "text": text,
        "part": part,
    }
    return Delivery(**(given | fields))


def notice(text: str, key: str = "", **fields: Any) -> Delivery:
    said = reply(text, agent="", kind="notice", **fields)
    return structs.replace(said, id=f"m1:{key}") if key else said


def aside(text: str, key: str = "aside:a") -> Delivery:
    return notice(text, key, is_aside=True)


@dataclass
class Chat:
    """A session on one side of a courier, and people on the other."""

    road: Road
    screen: Screen
    turn: str = "t"
    said: int = field(default=0)

    def write(self, *pieces: str) -> None:
        for text in pieces:
            draft = Draft(
                correlation_id="m1",
                reply_id="m1",
                turn_id=self.turn,
                address=ROOM,
                agent="anna",
                text=text,
                begins_at=self.said,
            )
            self.said += len(text)
            self.road.tell(ShowDraft(draft))

    def begin_again(self) -> None:
        self.turn, self.said = f"{self.turn}+", 0

    async def say(self, *deliveries: Delivery) -> None:
        rows = tuple(as_enqueue(each, 0) for each in deliveries)
        await self.road.store.commit(Commit(at=1.0, deliveries=rows))
        for each in deliveries:
            self.road.tell(Deliver(each))
        await self.until_done(*deliveries)

    async def until_done(self, *deliveries: Delivery) -> None:
        wanted = {each.id for each in deliveries}
        await until(lambda: wanted <= set(self.road.done()), within=1000)

    def receipt(self, delivery_id: str = "m1:0") -> str:
        return self.road.store._rows.outbox[delivery_id].receipt


@asynccontextmanager
async def open_chat(
    clock: Clock,
    abilities: Abilities = EDITS,
    store: MemoryStore | None = None,
    screen: Screen | None = None,
    presence: PresenceConfig = AT_ONCE,
    *,
    duties: Duties | None = None,
) -> AsyncGenerator[Chat]:
    screen = screen or Screen()
    road_of = open_road(
        clock, store, abilities, platform=screen, presence=presence, duties=duties
    )
    async with road_of as road:
        yield Chat(road, screen)
