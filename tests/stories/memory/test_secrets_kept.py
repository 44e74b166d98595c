"""What somebody tells reaches nobody else, whatever the order in which actors run.

Fifty people say twenty things each, in private, in groups and from linked accounts, to
a model that remembers, searches, hands on, schedules and sums up all it hears.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import trio
import trio.testing

from actors.messages.keys import parse_key
from runtime.testing import seeded_order
from tests.fakes.company.company import at_rest, open_company
from tests.fakes.company.crowd import (
    Written,
    catching,
    check_figures,
    check_talk,
    check_that_it_could_fail,
    live,
    make_cast,
    place_of,
    strangers,
)
from tests.fakes.company.gossip import secrets
from tests.fakes.company.minded import Minded

Clock = trio.testing.MockClock

SYSTEMS = pytest.mark.parametrize(
    ("order", "people", "rounds"),
    [
        pytest.param(0, 50, 20, marks=pytest.mark.deep),
        *((seed, 12, 11) for seed in range(1, 3)),
        *(pytest.param(x, 12, 11, marks=pytest.mark.deep) for x in range(3, 9)),
    ],
)


async def play_part(cast: Minded, people: int, rounds: range, clock: Clock) -> None:
    cast.equip()
    async with open_company(clock, cast) as system:
        await live(cast, people, rounds, system)
        await trio.sleep(1_300)  # what was scheduled is due
        await at_rest(cast)


def play(order: int, people: int, rounds: int) -> Minded:
    cast = make_cast()
    half = rounds // 2
    for part in (range(half), range(half, rounds)):
        with seeded_order(order):
            clock = Clock(autojump_threshold=0)
            trio.run(play_part, cast, people, part, clock, clock=clock)
        cast.restart()
    return cast


@pytest.fixture
def written() -> Iterator[Written]:
    with catching() as lines:
        yield lines


@SYSTEMS
def test_nobody_hears_what_others_told(
    order: int, people: int, rounds: int, written: Written
) -> None:
    cast = play(order, people, rounds)
    check_talk(cast)
    check_rows(cast)
    check_figures(cast, written)
    facts = cast.store._rows.facts._facts.values()
    check_that_it_could_fail(cast, {fact.kind for fact in facts})


def check_rows(cast: Minded) -> None:
    """Look at each row of the database."""
    rows = cast.store._rows
    for fact in rows.facts._facts.values():
        kind, _, name = fact.scope.partition(":")
        connector, chat, *_ = name.split("/")
        place = place_of(connector, chat)
        assert kind == ("chat" if connector == "group" else "person")
        assert not strangers(repr(fact), *place)
    for stream, events in rows.journal.items():
        key = parse_key("/".join(stream.split("/")[:5]))  # a turn's steps have six
        place = place_of(key.connector, key.chat, key.sender)
        assert not strangers(repr(events), *place)
    for delivery in rows.outbox.values():
        place = place_of(delivery.connector, delivery.chat)
        assert not strangers(repr(delivery), *place)
    for row in (*rows.inbox.values(), *rows.records.values(), *rows.entries.values()):
        told = secrets(repr(row))
        speakers = {each.speaker for each in told}
        assert len(speakers) <= 1 or len({each.place for each in told}) == 1
