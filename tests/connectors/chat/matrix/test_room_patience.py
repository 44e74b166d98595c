"""A room that the server cannot tell of holds up no other."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from connectors.chat.matrix.rooms import ROOM_WITHIN
from tests.fakes.matrix.homeserver import refusal
from tests.support.chat.matrix_bed import ANNA, ROOM, SAM, ZOE, MatrixBed

SICK = "!sick:hs.test"
FAULT = refusal(502, "M_UNKNOWN")
STATE, PAGES = f"{SICK}/state", f"{SICK}/messages"


def texts(bed: MatrixBed, room_id: str) -> list[str]:
    """Give what was handed in of a room."""
    accepted = bed.ingress.accepted
    return [each.text for each in accepted if each.address.chat == room_id]


def left_open(bed: MatrixBed) -> float:
    """Count the gaps that were not filled."""
    where = {"account": "anna", "connector": "matrix"}
    return bed.counted("gaps_total", outcome="open", **where)


def two_rooms() -> MatrixBed:
    """Make a room that is well, and one that a test makes sick."""
    bed = MatrixBed("anna")
    bed.server.room(ROOM, ZOE, ANNA)
    bed.server.room(SICK, SAM, ANNA)
    return bed


async def test_a_sick_room_keeps_nobody_waiting_for_ever(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = two_rooms()
    async with bed.listening() as server:
        server.faults += [(STATE, FAULT)] * 1_000
        server.say(SICK, SAM, "hello?")
        server.say(ROOM, ZOE, "one")
        await bed.wait(lambda: texts(bed, ROOM) == ["one"], within=ROOM_WITHIN)
        server.say(ROOM, ZOE, "two")
        await bed.wait(lambda: texts(bed, ROOM) == ["one", "two"], within=5)
        await bed.wait(lambda: left_open(bed) == 1, within=ROOM_WITHIN + 5)
        server.say(SICK, SAM, "hello??")
        await bed.wait(lambda: left_open(bed) == 2, within=1)
        server.faults.clear()
        server.say(SICK, SAM, "hello???")
        await bed.wait(lambda: texts(bed, SICK) == ["hello???"], within=1)
        server.say(SICK, SAM, "at last")
        await bed.wait(lambda: texts(bed, SICK)[1:] == ["at last"], within=1)
    assert left_open(bed) == 2


async def test_a_gap_that_cannot_be_fetched_is_left_open_in_time(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = two_rooms()
    async with bed.listening():
        pass
    for number in range(60):
        bed.server.say(SICK, SAM, f"{number}")
    bed.server.faults += [(PAGES, FAULT)] * 1_000
    bed.transport = bed.make()
    async with bed.listening() as server:
        server.say(ROOM, ZOE, "one")
        await bed.wait(lambda: texts(bed, ROOM) == ["one"], within=5)
        await bed.wait(lambda: left_open(bed) == 1, within=ROOM_WITHIN + 5)
        await bed.wait(lambda: len(texts(bed, SICK)) == 50, within=5)
    assert texts(bed, SICK) == [f"{number}" for number in range(10, 60)]


@pytest.mark.parametrize("path", [STATE, PAGES])
async def test_a_server_that_is_away_costs_no_message(
    path: str, autojump_clock: MockClock
) -> None:
    del autojump_clock
    bed = two_rooms()
    async with bed.listening() as server:
        # It goes away with a batch on its way in, and is no better at once.
        server.faults += [(path, FAULT)] * 8 + [("whoami", FAULT)] * 20
        began_at = trio.current_time()
        for number in range(60):
            server.say(SICK, SAM, f"{number}")
        await bed.wait(lambda: len(texts(bed, SICK)) == 60, within=3_600)
        assert trio.current_time() - began_at > 10 * ROOM_WITHIN
        assert not server.faults
    assert texts(bed, SICK) == [f"{number}" for number in range(60)]
    assert left_open(bed) == 0
