"""What people see while an answer is written is the answer's beginning, and no more."""

from __future__ import annotations

from itertools import pairwise

import trio
import trio.testing
from hypothesis import given, settings, strategies as st

from actors.messages.deliveries import Abilities, Delivery, Draft
from runtime.testing import seeded_order
from tests.fakes.company.company import (
    Cast,
    FakeModel,
    Says,
    at_rest,
    open_company,
    until,
)
from tests.support.tiers import examples

Clock = trio.testing.MockClock

TEXT = (
    "Hello [DELEGATE:ben] a secret task [/DELEGATE] and <tool_call>{}</tool_call>"
    " more [1] words. [DELEGATE:nobody]unclosed"
)
SEEN = "Hello and more [1] words."


def cut(text: str, places: list[int]) -> tuple[str, ...]:
    ends = [0, *sorted(place % len(text) for place in places), len(text)]
    return tuple(text[a:b] for a, b in pairwise(ends) if a < b)


@settings(max_examples=examples(80))
@given(
    places=st.lists(st.integers(0, 200), max_size=40),
    pause=st.sampled_from([0.0, 0.001, 0.019, 0.02, 0.05]),
    seed=st.integers(0, 19),
)
def test_no_marker_is_ever_visible_however_the_words_are_cut(
    places: list[int], pause: float, seed: int
) -> None:
    says = Says(TEXT, pieces=cut(TEXT, places), pause=pause)
    cast = Cast(model=FakeModel(lambda _: says))
    with seeded_order(seed):
        clock = trio.testing.MockClock(autojump_threshold=0)
        trio.run(ask_once, cast, clock, clock=clock)
    written = "".join(each.text for each in cast.platform.drafts)
    assert SEEN.startswith(written.rstrip())
    assert cast.platform.deliveries[0].text == SEEN
    kinds = [type(each) for each in cast.platform.shown]
    assert Draft not in kinds[kinds.index(Delivery) :]


async def ask_once(cast: Cast, clock: Clock) -> None:
    async with open_company(clock, cast):
        cast.platform.write("go")
        await at_rest(cast)
        await trio.sleep(1)


async def test_words_said_together_are_shown_together(autojump_clock: Clock) -> None:
    words = tuple(f"w{number} " for number in range(100))
    says = Says("".join(words), pieces=words, pause=0.001)
    cast = Cast(model=FakeModel(lambda _: says))
    async with open_company(autojump_clock, cast):
        cast.platform.write("go")
        await until(lambda: cast.platform.drafts)
        assert trio.current_time() < 0.01  # the first word at once
        await at_rest(cast)
    assert 4 <= len(cast.platform.drafts) <= 7
    assert "".join(each.text for each in cast.platform.drafts) in says.text


async def test_a_word_that_comes_alone_is_shown_soon(autojump_clock: Clock) -> None:
    says = Says("one two", pieces=("one", " two"), pause=0.5)
    cast = Cast(model=FakeModel(lambda _: says))
    async with open_company(autojump_clock, cast):
        cast.platform.write("go")
        await until(lambda: cast.platform.drafts)
        assert trio.current_time() < 0.1
        await until(lambda: len(cast.platform.drafts) == 2)
        assert 0.5 <= trio.current_time() < 0.6
        await at_rest(cast)


async def test_nothing_is_shown_of_a_stopped_answer_any_more(
    autojump_clock: Clock,
) -> None:
    words = tuple(f"w{number} " for number in range(100))
    says = Says("".join(words), pieces=words, pause=0.1)
    cast = Cast(model=FakeModel(lambda _: says))
    async with open_company(autojump_clock, cast):
        cast.platform.write("go")
        await until(lambda: len(cast.platform.drafts) == 3)
        cast.platform.write("/stop")
        await at_rest(cast)
        await trio.sleep(20)
    assert len(cast.platform.drafts) <= 4
    assert isinstance(cast.platform.shown[-1], Delivery)


async def test_a_platform_that_shows_typing_is_told_when_a_turn_begins(
    autojump_clock: Clock,
) -> None:
    cast = Cast(model=FakeModel(lambda _: Says("done", after=5)))
    cast.platform.can = Abilities(is_idempotent=True, shows_typing=True)
    async with open_company(autojump_clock, cast):
        inbound = cast.platform.write("one")
        await until(lambda: cast.platform.typing)
        assert not cast.platform.deliveries
        await at_rest(cast)
    (typing,) = cast.platform.typing
    assert (typing.reply_id, typing.agent) == (inbound.id, "anna")
    assert cast.platform.deliveries[0].reply_id == inbound.id


async def test_a_platform_that_cannot_show_typing_is_left_alone(
    autojump_clock: Clock,
) -> None:
    cast = Cast()
    async with open_company(autojump_clock, cast):
        cast.platform.write("one")
        await at_rest(cast)
    assert cast.platform.typing == []
