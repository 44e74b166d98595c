"""The tokens of a day are those since its midnight, by the zone of now."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import msgspec
import trio.testing

from actors.config.schedule import SchedulerConfig
from actors.journal.commits import as_accept
from actors.journal.records import USAGE, UsageRecord
from actors.models.daily_tokens import GUESS, STORED_WITHIN, DailyTokens
from connectors.config.checks import find_zone
from runtime.store.port import Store
from runtime.store.rows import Commit, Record, Settle, StoredMessage
from tests.fakes.actors.neighbours import make_services, words
from tests.fakes.company.furnished import changed
from tests.fakes.store.in_memory import MemoryStore

HOUR = 3600.0


async def spend(store: Store, at: float, tokens: int) -> None:
    usage = UsageRecord(
        agent="anna",
        connector="fake",
        sender_id="zoe",
        provider="fake",
        model="fake-1",
        input_tokens=tokens,
        output_tokens=0,
        cost=0.0,
        seconds=1.0,
        rounds=1,
        attempt=1,
        status="ok",
        occasion="task",
    )
    body = msgspec.json.encode(usage)
    row = Record(kind=USAGE, id=f"run{at}", owner="anna", part=0, body=body)
    await store.commit(Commit(at=at, records=(row,)))


async def test_another_zone_is_another_day_though_its_date_is_the_same(
    autojump_clock: trio.testing.MockClock,
) -> None:
    autojump_clock.jump(12 * HOUR)
    services = changed(make_services(), find_zone=find_zone)
    noon = services.clock.wall()
    midnight = noon - (noon % (24 * HOUR))
    await spend(services.store, midnight - 0.5 * HOUR, 7)
    tokens, place = DailyTokens(services), services.in_force
    assert await tokens.of("anna") == 0
    for zone, used in (("Europe/Berlin", 7), ("UTC", 0)):
        config = SchedulerConfig(time_zone=zone)
        place.current = replace(place.current, scheduler=config)
        assert await tokens.of("anna") == used


class Counting(MemoryStore):
    """Counts the messages that somebody asks for by their keys."""

    asked = 0

    async def messages(
        self, keys: Collection[tuple[str, str]]
    ) -> tuple[StoredMessage, ...]:
        self.asked += len(keys)
        return await super().messages(keys)


async def test_turns_that_have_begun_are_reckoned_with_by_one_read(
    autojump_clock: trio.testing.MockClock,
) -> None:
    store = Counting()
    begun = [words("look", number) for number in range(300)]
    tokens = DailyTokens(make_services(store))
    tokens.begin(each for each in begun[:-1])
    for each in begun[:-2]:
        await store.commit(Commit(at=1.0, accepts=(as_accept(each, 1.0),)))
    assert await tokens.expected("") == 299 * GUESS  # the last is still being stored
    settled = tuple(Settle(each.id, "replied") for each in begun[:100])
    await store.commit(Commit(at=2.0, settles=settled))
    for _ in range(3):
        assert await tokens.expected("") == 199 * GUESS
    assert store.asked <= 100 + 4
    autojump_clock.jump(STORED_WITHIN)
    assert await tokens.expected("") == 198 * GUESS
    assert await tokens.expected("anna") == 0
