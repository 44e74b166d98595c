"""People do not wait for each other, and nobody reads another chat's words."""

from __future__ import annotations

import re
from collections import defaultdict

import msgspec
import trio
import trio.testing
from hypothesis import given, settings, strategies as st

from actors.config.agents import AgentConfig
from actors.config.limits import LimitsConfig
from actors.messages.inbound import ModelRequest
from runtime.testing import seeded_order
from tests.fakes.company.company import (
    Cast,
    FakeModel,
    Says,
    at_rest,
    heard,
    open_company,
    until,
)
from tests.support.tiers import examples

Clock = trio.testing.MockClock


class Written(msgspec.Struct, frozen=True):
    """One message of the property below."""

    chat: int
    sender: int
    pause: float
    takes: float


messages = st.lists(
    st.builds(
        Written,
        st.integers(0, 2),
        st.integers(0, 2),
        st.sampled_from([0.0, 0.001, 0.3]),
        st.sampled_from([0.0, 0.001, 0.2, 1.5]),
    ),
    max_size=25,
)


async def test_a_second_message_of_a_chat_waits_for_the_first(
    autojump_clock: Clock,
) -> None:
    cast = Cast(model=FakeModel(lambda r: Says(f"to {heard(r)}", after=1)))
    async with open_company(autojump_clock, cast):
        cast.platform.write("one")
        cast.platform.write("two")
        await at_rest(cast)
    assert cast.platform.said() == ["anna: to one", "anna: to two"]
    assert cast.model.most_running == 1


async def test_another_person_and_another_chat_do_not_wait(
    autojump_clock: Clock,
) -> None:
    cast = Cast(model=FakeModel(lambda _: Says("yes", after=1)))
    async with open_company(autojump_clock, cast):
        began = trio.current_time()
        cast.platform.write("one")
        cast.platform.write("two", sender="yan")
        cast.platform.write("three", chat="other")
        await at_rest(cast)
        assert trio.current_time() - began < 1.5
    assert cast.model.most_running == 3


async def test_one_turn_too_many_waits_until_another_ends(
    autojump_clock: Clock,
) -> None:
    limits = LimitsConfig(max_in_flight=64)
    cast = Cast(model=FakeModel(lambda _: Says("yes", after=1)), limits=limits)
    async with open_company(autojump_clock, cast):
        for number in range(65):
            cast.platform.write("hello", chat=f"room{number}", sender=f"p{number}")
        await until(lambda: len(cast.model.requests) == 64)
        await trio.sleep(0.5)
        assert len(cast.model.requests) == 64
        await at_rest(cast)
    assert len(cast.platform.deliveries) == 65
    assert cast.model.most_running == 64


async def test_a_message_behind_too_many_is_refused_with_a_note(
    autojump_clock: Clock,
) -> None:
    limits = LimitsConfig(max_waiting=2)
    cast = Cast(model=FakeModel(lambda _: Says("yes", after=9)), limits=limits)
    async with open_company(autojump_clock, cast):
        for number in range(4):
            cast.platform.write(f"{number}")
        await at_rest(cast)
    assert "I have too much to answer" in cast.platform.said()[0]
    assert await cast.inbox() == {"replied": 3, "dropped": 1}


@settings(max_examples=examples(15, deep=160))
@given(written=messages, seed=st.integers(0, 19), most=st.integers(1, 4))
def test_each_conversation_keeps_its_order_and_its_secrets(
    written: list[Written], seed: int, most: int
) -> None:
    cast = Cast(
        agents={"anna": AgentConfig(max_history=1000)},
        model=FakeModel(take_time),
        limits=LimitsConfig(max_in_flight=most, max_waiting=100),
    )
    with seeded_order(seed):
        clock = trio.testing.MockClock(autojump_threshold=0)
        trio.run(converse, cast, written, clock, clock=clock)
    expected: dict[tuple[str, str], list[str]] = defaultdict(list)
    for number, each in enumerate(written):
        expected[f"c{each.chat}", f"s{each.sender}"].append(f"canary{number}.")
    said: dict[tuple[str, str], list[str]] = defaultdict(list)
    for delivery in cast.platform.deliveries:
        chat, sender, canary = delivery.text.split()
        assert chat == delivery.address.chat
        said[chat, sender].append(canary)
    assert said == expected
    for request in cast.model.requests:
        chats = {
            (chat, sender)
            for line in request.lines
            for chat, sender in re.findall(r"(c\d) (s\d)", line.text)
        }
        assert len(chats) == 1
    assert cast.model.most_running <= most


def take_time(request: ModelRequest) -> Says:
    chat, sender, canary, seconds = heard(request).split()
    return Says(f"{chat} {sender} {canary}", after=float(seconds))


async def converse(cast: Cast, written: list[Written], clock: Clock) -> None:
    async with open_company(clock, cast):
        for number, each in enumerate(written):
            chat, sender = f"c{each.chat}", f"s{each.sender}"
            text = f"{chat} {sender} canary{number}. {each.takes}"
            cast.platform.write(text, chat=chat, sender=sender)
            await trio.sleep(each.pause)
        await at_rest(cast)
    assert await cast.inbox() == ({"replied": len(written)} if written else {})
