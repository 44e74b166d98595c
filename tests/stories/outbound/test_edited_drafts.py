"""An answer shown while it is written ends as the answer, once, whatever happens."""

from __future__ import annotations

import trio
import trio.testing
from hypothesis import example, given, settings, strategies as st
from msgspec import structs

from actors.config.presence import PresenceConfig
from actors.errors import DeliveryBusyError, DeliveryUnknownError, ModelBusyError
from actors.journal.splitting import split
from actors.messages.deliveries import Abilities
from actors.messages.inbound import ModelRequest
from actors.messages.state import RetryPolicy
from runtime.testing import seeded_order
from tests.fakes.chat.presence import EDITS, Screen
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
from tests.fakes.outbound.drafted import KINDS, PLAIN
from tests.fakes.store.crashes import Moment, MortalStore, run_through
from tests.stories.outbound.test_drafts import cut
from tests.support.tiers import examples

Clock = trio.testing.MockClock

CODE = "\n".join(f"    line = {number}" for number in range(12))
TEXT = f"Here it is:\n\n```python\n{CODE}\n```\n\nThat is all of it, as far as I know."
MOMENTS: st.SearchStrategy[Moment] = st.sampled_from(("before", "after"))
SHOWN = structs.replace(AT_ONCE, reactions=False)


def cast_of(says: Says, abilities: Abilities = EDITS) -> tuple[Cast, Screen]:
    screen = Screen()
    screen.can = abilities
    model = FakeModel(lambda _: says)
    return Cast(platform=screen, model=model, presence=SHOWN), screen


# A draft's edit that is put off, and comes due when the answer stands there.
@example(places=[28], pause=0.0, seed=0, faults=["busy"])
@settings(max_examples=examples(40))
@given(
    places=st.lists(st.integers(0, 300), max_size=20),
    pause=st.sampled_from([0.0, 0.02, 0.3, 1.1]),
    seed=st.integers(0, 9),
    faults=st.lists(st.sampled_from(["", "busy", "unknown", "done"]), max_size=6),
)
def test_what_people_read_at_the_end_is_the_answer_in_parts(
    places: list[int], pause: float, seed: int, faults: list[str]
) -> None:
    says = Says(TEXT, pieces=cut(TEXT, places), pause=pause)
    cast, screen = cast_of(says, structs.replace(EDITS, max_part_chars=150))
    errors = {
        "busy": DeliveryBusyError("x", retry_after=2),
        "unknown": DeliveryUnknownError("x"),
    }
    screen.hand.faults.extend(errors[each] for each in faults if each in errors)
    screen.hand.is_done_all_the_same = "done" in faults
    with seeded_order(seed):
        clock = trio.testing.MockClock(autojump_threshold=0)
        trio.run(ask_once, cast, clock, clock=clock)
    assert screen.seen == split(TEXT, 150)


async def ask_once(cast: Cast, clock: Clock) -> None:
    async with open_company(clock, cast):
        cast.platform.write("go")
        await at_rest(cast)
        await trio.sleep(5)


@KINDS
async def test_a_stopped_answer_says_that_it_was_stopped(
    abilities: Abilities, autojump_clock: Clock
) -> None:
    pieces = tuple(f"w{number} " for number in range(100))
    cast, screen = cast_of(Says("".join(pieces), pieces=pieces, pause=0.5), abilities)
    async with open_company(autojump_clock, cast):
        screen.write("go")
        await trio.sleep(5)
        screen.write("/stop")
        await at_rest(cast)
        await trio.sleep(5)
    assert screen.seen[0].startswith("w0 w1 ")
    assert screen.seen[0].endswith("\n\n(stopped)")
    assert screen.seen[1:] == ["Stopped."]


async def test_a_failed_answer_becomes_the_notice_and_the_next_begins_anew(
    autojump_clock: Clock,
) -> None:
    broken = Says("", pieces=("Hello, ",), pause=3, error=ModelBusyError("x"))
    cast, screen = cast_of(Says("Hello, Zoe", after=1))
    cast.retries = RetryPolicy(first_wait=100.0)
    good = Says("Hello, Zoe", after=1)

    def talk(_: ModelRequest) -> Says:
        return broken if trio.current_time() < 60 else good

    cast.model.talk = talk
    async with open_company(autojump_clock, cast):
        screen.write("go")
        await until(lambda: "again" in "".join(screen.seen))
        assert len(screen.seen) == 1
        await at_rest(cast)
        await trio.sleep(5)
    assert "again in" in screen.seen[0]
    assert screen.seen[1:] == ["Hello, Zoe"]


async def test_a_question_for_leave_stands_between_the_words_around_it(
    autojump_clock: Clock,
) -> None:
    screen = Screen()
    office = Office(autojump_clock, platform=screen, presence=SHOWN)
    async with open_company(autojump_clock, office.cast):
        screen.write("run ls")
        await office.asked()
        screen.write("yes", sender=OLGA.partition("/")[2])
        await at_rest(office.cast)
        await trio.sleep(5)
    first, question, *rest = screen.seen
    assert first == "Wait."
    assert "/approve" in question
    assert sorted(rest) == ["Approved: anna may run `shell`.", "It says: done"]


@settings(max_examples=examples(20, deep=240))
@given(
    death=st.integers(1, 16),
    moment=MOMENTS,
    is_idempotent=st.booleans(),
    pause=st.sampled_from([0.3, 1.5]),
)
def test_killed_anywhere_the_answer_stands_there_once(
    death: int, moment: Moment, pause: float, *, is_idempotent: bool
) -> None:
    pieces = ("Hello, ", "Zoe, ", "how ", "are ", "you?")
    says = Says("".join(pieces), pieces=pieces, pause=pause)
    cast, screen = cast_of(says, EDITS if is_idempotent else PLAIN)
    cast.store = MortalStore((death, moment))
    screen.write("go")
    clock = trio.testing.MockClock(autojump_threshold=0)
    trio.run(run_through, clock, cast, clock=clock)
    *left, last = screen.seen
    assert last == says.text
    if is_idempotent:
        assert left == []
    else:  # it may be said twice; a beginning that nobody knows of may be left
        assert len(left) <= 1
        assert all(says.text.startswith(x) or x == "..." for x in left)


async def test_where_the_settings_want_no_drafts_the_answer_comes_whole(
    autojump_clock: Clock,
) -> None:
    cast, screen = cast_of(Says("a b", pieces=("a ", "b"), pause=2))
    cast.presence = PresenceConfig(drafts=False)
    async with open_company(autojump_clock, cast):
        screen.write("go")
        await at_rest(cast)
    assert (screen.seen, screen.hand.edits) == (["a b"], [])
