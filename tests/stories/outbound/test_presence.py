"""People see that somebody is at it: typing, late notices."""

from __future__ import annotations

from collections.abc import Sized
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
import trio
import trio.testing
from msgspec import structs

from actors import names
from actors.config.limits import LimitsConfig
from actors.config.presence import PresenceConfig, Statuses
from actors.config.routes import RoutingConfig
from actors.errors import DeliveryBusyError, ModelBusyError
from actors.journal.commits import as_accept
from actors.messages.deliveries import Abilities
from actors.messages.inbound import ModelRequest
from actors.protocol import Route
from runtime.store.rows import Commit
from tests.fakes.actors.neighbours import words
from tests.fakes.chat.presence import Screen
from tests.fakes.company.company import (
    AT_ONCE,
    Cast,
    FakeModel,
    Says,
    at_rest,
    open_company,
    until,
)
from tests.fakes.company.shell import OLGA, Office
from tests.stories.models.test_routing import PLAN, ROUTING, make_cast

Clock = trio.testing.MockClock

QUIET = PresenceConfig(drafts=False)


def cast_of(says: Says | str | None = None, **fields: Any) -> tuple[Cast, Screen]:
    screen = Screen()
    model = FakeModel() if says is None else FakeModel(lambda _: says)
    given: dict[str, Any] = {"platform": screen, "model": model, "presence": QUIET}
    return Cast(**(given | fields)), screen


def is_longer(found: Sized, than: int) -> bool:
    return len(found) > than


def is_typing(screen: Screen) -> bool:
    return bool(screen.typing) and not screen.typing[-1].is_over


# --- typing -------------------------------------------------------------------------


async def test_typing_begins_at_once_and_is_shown_again_until_the_answer(
    autojump_clock: Clock,
) -> None:
    cast, screen = cast_of(Says("done", after=21))
    async with open_company(autojump_clock, cast):
        screen.write("one")
        await until(lambda: screen.typing)
        assert trio.current_time() < 0.1
        await at_rest(cast)
        said_at = len(screen.typing)
        await trio.sleep(60)
    assert len([each for each in screen.typing if not each.is_over]) == 6
    assert not is_typing(screen)
    assert len(screen.typing) == said_at, "nothing comes after the answer"


async def test_typing_is_shown_before_there_is_room_for_the_turn(
    autojump_clock: Clock,
) -> None:
    limits = LimitsConfig(max_in_flight=1)
    cast, screen = cast_of(Says("done", after=20), limits=limits)
    async with open_company(autojump_clock, cast):
        screen.write("one", chat="a")
        screen.write("two", chat="b")
        await until(lambda: len({each.address.chat for each in screen.typing}) == 2)
        assert trio.current_time() < 0.1


async def test_a_platform_that_stops_sooner_is_told_sooner(
    autojump_clock: Clock,
) -> None:
    cast, screen = cast_of(Says("done", after=10))
    screen.can = structs.replace(screen.can, typing_for=2.5)
    times: list[float] = []
    async with open_company(autojump_clock, cast):
        screen.write("one")
        while trio.current_time() < 9:
            known = len(screen.typing)
            await until(partial(is_longer, screen.typing, known))
            times.append(trio.current_time())
    assert all(after - before < 2.5 for before, after in pairwise(times))


def failing(_: ModelRequest) -> Says:
    return Says(after=5, error=ModelBusyError("no", kind="overload"))


@pytest.mark.parametrize("how", ["failure", "silence", "stop", "timeout", "crash"])
async def test_typing_ends_whatever_becomes_of_the_turn(
    how: str, autojump_clock: Clock
) -> None:
    says = Says("NO_REPLY" if how == "silence" else "late", after=20)
    limits = LimitsConfig(turn_timeout=10.0) if how == "timeout" else LimitsConfig()
    cast, screen = cast_of(says, limits=limits)
    if how == "failure":
        cast.model.talk = failing
    async with open_company(autojump_clock, cast) as system:
        screen.write("one")
        await trio.sleep(3)
        assert is_typing(screen)
        if how == "stop":
            screen.write("/stop")
        if how == "crash":  # of the whole branch; another incarnation answers
            agents = system.find(f"{names.ROOT}/agents")
            assert agents is not None
            agents.kill()
        await at_rest(cast)
        await trio.sleep(15)
        assert not is_typing(screen)
        count = len(screen.typing)
        await trio.sleep(60)
        assert len(screen.typing) == count


async def test_nobody_types_while_only_people_are_waited_for(
    autojump_clock: Clock,
) -> None:
    screen = Screen()
    office = Office(autojump_clock, platform=screen, presence=QUIET)
    office.shell.takes = 10.0
    async with open_company(autojump_clock, office.cast):
        screen.write("run ls")
        await office.asked()
        await trio.sleep(1)
        assert not is_typing(screen)
        count = len(screen.typing)
        await trio.sleep(30)
        assert len(screen.typing) == count
        screen.write("yes", sender=OLGA.partition("/")[2])
        await trio.sleep(3)
        assert is_typing(screen)
        await at_rest(office.cast)
        assert not is_typing(screen)


# --- late notices, steps, and what people never see ---------------------------------

FIRST = ": ⏳ This takes a little longer. I am still at it."


async def test_who_waits_is_told_after_a_while_and_now_and_then(
    autojump_clock: Clock,
) -> None:
    cast, screen = cast_of(Says("done", after=270), notice_after=15.0)
    async with open_company(autojump_clock, cast):
        screen.write("one")
        for count, seconds in ((1, 15), (2, 135), (3, 255)):
            await until(partial(is_longer, screen.deliveries, count - 1))
            assert seconds <= trio.current_time() < seconds + 1
        await at_rest(cast)
    assert screen.said() == [
        FIRST,
        ": ⏳ I am still at it, for 2 minutes now.",
        ": ⏳ I am still at it, for 4 minutes now.",
        "anna: done",
    ]
    assert {each.status for each in screen.deliveries[:3]} == {"slow"}


@pytest.mark.parametrize(("is_read", "count"), [(True, 0), (False, 1)])
async def test_words_that_people_read_put_the_notice_off(
    is_read: bool,  # noqa: FBT001
    count: int,
    autojump_clock: Clock,
) -> None:
    pieces = tuple(f"w{number} " for number in range(10))
    says = Says("".join(pieces), pieces=pieces, pause=13)
    cast, screen = cast_of(says, notice_after=15.0)
    cast.presence = AT_ONCE
    screen.can = Abilities(is_idempotent=True, shows_drafts=is_read)
    async with open_company(autojump_clock, cast):
        screen.write("one")
        await until(lambda: screen.acknowledged)
        await at_rest(cast)
    assert len([each for each in screen.deliveries if each.status == "slow"]) == count


async def test_nobody_is_told_of_what_only_waits_for_people(
    autojump_clock: Clock,
) -> None:
    screen = Screen()
    office = Office(autojump_clock, platform=screen, presence=QUIET, notice_after=15.0)
    async with open_company(autojump_clock, office.cast):
        screen.write("run ls")
        await office.asked()
        await at_rest(office.cast)
    assert not [each for each in screen.deliveries if each.status]


@pytest.mark.parametrize(
    ("status", "told"),
    [("all", ["slow", "step"]), ("slow", ["slow"]), ("none", [])],
)
async def test_people_are_told_as_much_of_the_making_as_the_settings_want(
    status: Statuses, told: list[str], autojump_clock: Clock
) -> None:
    cast = make_cast(ROUTING, PLAN)
    cast.platform = Screen()
    cast.presence = PresenceConfig(status=status, drafts=False)
    cast.notice_after = 15.0
    cast.platform.can = Abilities(is_idempotent=True, shows_drafts=False)
    cast.work.faults += [Says("I read it.", after=20), Says("I wrote it.", after=1)]
    async with open_company(autojump_clock, cast):
        cast.platform.write("do it")
        await at_rest(cast)
    *notes, answer = cast.platform.deliveries
    assert [each.status for each in notes] == told
    assert answer.text == "I read it.\n\nI wrote it."


async def test_what_a_beat_does_is_shown_to_nobody(autojump_clock: Clock) -> None:
    cast, screen = cast_of(Says("done", after=60), notice_after=15.0)
    async with open_company(autojump_clock, cast) as system:
        beat = structs.replace(words("look"), occasion="heartbeat")
        row = as_accept(beat, 1.0)
        await cast.store.commit(Commit(at=1.0, accepts=(row,)))
        system.find(names.ROUTER).tell(Route(beat))  # type: ignore[union-attr]
        await at_rest(cast)
    assert screen.said() == ["anna: done"]
    assert (screen.typing, screen.hand.reactions) == ([], [])


async def test_a_turn_that_takes_too_long_says_so(autojump_clock: Clock) -> None:
    limits = LimitsConfig(turn_timeout=10.0)
    cast, screen = cast_of(Says("late", after=60), limits=limits)
    async with open_company(autojump_clock, cast):
        screen.write("one")
        await at_rest(cast)
    assert screen.said() == [": ⚠️ Request timed out. Please try again."]
    assert trio.current_time() < 12


async def test_that_a_platform_or_a_model_wants_less_is_never_shown(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(RoutingConfig())
    screen = Screen()
    cast.platform, cast.presence = screen, AT_ONCE
    limit = ModelBusyError("429: rate limit of work", kind="rate", retry_after=3)
    cast.work.faults.append(limit)
    screen.faults["room"].append(DeliveryBusyError("429: rate limit", retry_after=3))
    screen.hand.faults.append(DeliveryBusyError("429: rate limit", retry_after=3))
    screen.hand.busy.append(DeliveryBusyError("429: rate limit", retry_after=3))
    async with open_company(autojump_clock, cast):
        screen.write("one")
        await at_rest(cast)
        await trio.sleep(10)
    assert screen.seen == ["smart-1@home: one"]
