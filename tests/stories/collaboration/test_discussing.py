"""An agent carries a consultation on by itself, and no agents go on for ever."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import trio
import trio.testing
from hypothesis import given, settings, strategies as st

from actors.collaboration import questions as asking_round
from actors.config.agents import AgentConfig
from actors.config.collaboration import CollaborationConfig
from actors.config.limits import LimitsConfig
from actors.errors import ModelRefusedError
from actors.messages.inbound import ModelRequest
from actors.rules.prompt.untrusted import unframe
from runtime.testing import seeded_order
from tests.fakes.company.company import (
    Cast,
    FakeModel,
    Says,
    at_rest,
    call,
    heard,
    open_company,
)
from tests.support.tiers import examples

Clock = trio.testing.MockClock
Talk = Callable[[ModelRequest], str | Says]


def pair(talk: Talk, **config: Any) -> Cast:
    """Two agents who may ask each other."""
    return Cast(
        agents={
            "anna": AgentConfig(delegates=("ben",)),
            "ben": AgentConfig(delegates=("anna",)),
        },
        model=FakeModel(talk),
        collaboration=CollaborationConfig(**config),
    )


def is_asked_aside(request: ModelRequest) -> bool:
    return "behind the scenes" in request.system


def discussing(
    turns: int, judge: Callable[[int], str], answer: Callable[[int], str]
) -> Talk:
    """Have anna discuss with ben; both say what they say by the number of the turn."""
    counts = {"anna": 0, "ben": 0}

    def talk(request: ModelRequest) -> str | Says:
        if is_asked_aside(request):
            counts[request.agent] += 1
            made = judge if request.agent == "anna" else answer
            return made(counts[request.agent])
        if request.lines[-1].role == "tool":
            return unframe(request.lines[-1].text)
        asked = call("collaborate", agent="ben", message="a plan?", turns=turns)
        return Says(calls=(asked,))

    return talk


async def discuss(clock: Clock, cast: Cast) -> asking_round.Discussion:
    async with open_company(clock, cast):
        cast.platform.write("go")
        await at_rest(cast)
    (said,) = cast.platform.deliveries
    return msgspec.json.decode(said.text, type=asking_round.Discussion)


def texts(told: asking_round.Discussion) -> list[str]:
    return [f"{each.agent}: {each.text}" for each in told.transcript]


async def test_the_whole_transcript_is_the_result(autojump_clock: Clock) -> None:
    talk = discussing(3, lambda n: f"and {n}?", lambda n: f"plan {n}")
    cast = pair(talk)
    told = await discuss(autojump_clock, cast)
    assert texts(told) == [
        "anna: a plan?",
        "ben: plan 1",
        "anna: and 1?",
        "ben: plan 2",
        "anna: and 2?",
        "ben: plan 3",
    ]
    assert (told.ended, told.questions) == ("turns", 3)
    asked = [len(x.lines) for x in cast.model.requests if x.agent == "ben"]
    assert asked == [1, 3, 5]  # he remembers what was said


async def test_who_asks_is_content(autojump_clock: Clock) -> None:
    talk = discussing(5, lambda n: "[DONE]" if n == 2 else "more", lambda n: f"{n}")
    told = await discuss(autojump_clock, pair(talk))
    assert (told.ended, len(told.transcript)) == ("done", 4)


async def test_who_answers_has_no_more_to_say(autojump_clock: Clock) -> None:
    talk = discussing(5, lambda _: "more", lambda _: "that is all [DONE]")
    told = await discuss(autojump_clock, pair(talk))
    assert texts(told) == ["anna: a plan?", "ben: that is all"]
    assert told.ended == "done"


async def test_what_is_judged_is_data_and_the_goal_is_told_once(
    autojump_clock: Clock,
) -> None:
    cast = pair(discussing(3, lambda _: "more", lambda n: f"plan {n}"))
    await discuss(autojump_clock, cast)
    judged = [
        heard(each)
        for each in cast.model.requests
        if each.agent == "anna" and is_asked_aside(each)
    ]
    assert ["You asked ben: a plan?" in each for each in judged] == [True, False]
    assert all("It is data" in each for each in judged)


async def test_the_settings_limit_the_turns_and_so_does_the_pair(
    autojump_clock: Clock,
) -> None:
    talk = discussing(9, lambda _: "more", str)
    told = await discuss(autojump_clock, pair(talk, max_turns=2))
    assert (told.ended, told.questions) == ("turns", 2)
    talk = discussing(9, lambda _: "more", str)
    told = await discuss(autojump_clock, pair(talk, max_rounds=2))
    assert told.questions == 3
    assert "anna and ben are to pause for a moment" in told.ended


async def test_what_was_said_before_it_failed_is_told(autojump_clock: Clock) -> None:
    def talk(request: ModelRequest) -> str | Says:
        if request.agent == "ben" and len(request.lines) > 1:
            return Says(error=ModelRefusedError("no", kind="content"))
        return discussing(4, lambda _: "more", lambda _: "well")(request)

    told = await discuss(autojump_clock, pair(talk))
    assert len(told.transcript) == 2
    assert told.ended.startswith("no answer of ben: The model refused")


async def test_time_ends_it(autojump_clock: Clock) -> None:
    def talk(request: ModelRequest) -> str | Says:
        if is_asked_aside(request):
            return Says("more", after=10)
        return discussing(5, str, str)(request)

    told = await discuss(autojump_clock, pair(talk, timeout=35.0))
    assert told.ended == "no answer of anna (late): it did not answer in time"
    assert (len(told.transcript), trio.current_time() < 40) == (4, True)


async def test_a_message_causes_no_more_questions_than_its_budget(
    autojump_clock: Clock,
) -> None:
    cast = pair(discussing(5, lambda _: "more", str))
    cast.limits = LimitsConfig(max_delegations=2)
    told = await discuss(autojump_clock, cast)
    assert told.questions == 2
    assert "one message may cause 2 delegations" in told.ended


async def test_what_was_asked_leaves_less_to_be_handed_on(
    autojump_clock: Clock,
) -> None:
    def talk(request: ModelRequest) -> str | Says:
        if request.agent == "ben":
            return "done"
        if request.lines[-1].role == "tool":
            return "so [DELEGATE:ben] one [/DELEGATE]"
        return Says(calls=(call("collaborate", agent="ben", message="a"),))

    cast = pair(talk)
    cast.limits = LimitsConfig(max_delegations=1)
    async with open_company(autojump_clock, cast):
        cast.platform.write("go")
        await at_rest(cast)
    assert cast.platform.said() == [
        "anna: so",
        ": Delegation stopped: one message may cause 1 delegations.",
    ]


@settings(max_examples=examples(40))
@given(
    habits=st.fixed_dictionaries(
        {
            name: st.lists(
                st.sampled_from(["tag", "delegate", "collaborate", "turns", "consult"]),
                min_size=1,
                max_size=3,
            )
            for name in ("anna", "ben")
        }
    ),
    hops=st.integers(0, 5),
    most=st.integers(0, 10),
    rounds=st.integers(0, 5),
    seed=st.integers(0, 19),
)
def test_agents_that_always_want_more_come_to_an_end(
    habits: dict[str, list[str]], hops: int, most: int, rounds: int, seed: int
) -> None:
    cast = pair(lambda r: wanting(r, habits[r.agent]), max_rounds=rounds)
    cast.limits = LimitsConfig(max_hops=hops, max_delegations=most, max_in_flight=1)
    with seeded_order(seed):
        clock = trio.testing.MockClock(autojump_threshold=0)
        trio.run(ask_once, cast, clock, clock=clock)
    asked_aside = [x for x in cast.model.requests if is_asked_aside(x)]
    first = [x for x in cast.model.requests if x.lines[-1].role == "user"]
    heard_people = len(first) - len(asked_aside)
    assert heard_people <= 1 + most
    assert len(asked_aside) <= 2 * most  # each question, and what is made of it
    assert all(each.text.strip() for each in cast.platform.deliveries)


def wanting(request: ModelRequest, habits: list[str]) -> str | Says:
    """Ask the other for more, in every way there is."""
    other = "ben" if request.agent == "anna" else "anna"
    tag = f"[DELEGATE:{other}] more [/DELEGATE]"
    if is_asked_aside(request):
        return f"more {tag}"
    if request.lines[-1].role == "tool":
        return f"so {tag}" if "tag" in habits else "so"
    ways: dict[str, tuple[str, dict[str, Any]]] = {
        "delegate": ("delegate", {"agent": other, "task": "more"}),
        "collaborate": ("collaborate", {"agent": other, "message": "more"}),
        "turns": ("collaborate", {"agent": other, "message": "more", "turns": 9}),
        "consult": ("consult", {"agents": [other, other], "message": "more"}),
    }
    calls = [ways[each] for each in habits if each in ways]
    if not calls or not request.tools:
        return f"so {tag}"
    return Says(calls=tuple(call(n, i, **a) for i, (n, a) in enumerate(calls)))


async def ask_once(cast: Cast, clock: Clock) -> None:
    async with open_company(clock, cast):
        cast.platform.write("go")
        await at_rest(cast)
