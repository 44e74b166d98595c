"""The tokens of a day are those since its midnight, by the zone of now."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from actors.config.schedule import SchedulerConfig
from actors.journal.records import USAGE, UsageRecord
from actors.models.daily_tokens import DailyTokens
from connectors.config.checks import find_zone
from runtime.store.rows import Commit, Record
from tests.fakes.actors.neighbours import make_services
from tests.fakes.company.furnished import changed

if TYPE_CHECKING:
    import trio.testing

    from runtime.store.port import Store

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
