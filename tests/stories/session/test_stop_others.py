"""`/stop` ends what one's words caused, however many agents away, and nobody else's."""

from __future__ import annotations

from collections.abc import Callable

import trio
import trio.testing
from hypothesis import given, settings, strategies as st

from actors import names
from actors.config.agents import AgentConfig
from actors.messages.deliveries import Owed
from actors.messages.inbound import Inbound, ModelRequest
from runtime.testing import seeded_order
from tests.fakes.company.company import (
    Cast,
    FakeModel,
    Platform,
    Says,
    at_rest,
    heard,
    open_company,
    until,
)
from tests.fakes.store.refused_answers import RefusedAnswers
from tests.support.tiers import examples

Clock = trio.testing.MockClock

AGENTS = ("anna", "ben", "carl")
ELSEWHERE = (
    ": Nothing of yours runs here. If I handed something on for you, it is stopped."
)


def tag(agent: str, task: str) -> str:
    return f"[DELEGATE:{agent}] {task} [/DELEGATE]"


def chain(request: ModelRequest) -> str | Says:
    """Have anna ask ben at once, and ben think for a minute."""
    if request.agent == "anna":
        return f"Ben knows. {tag('ben', heard(request))}"
    return Says("the answer", after=60)


def three_agents(
    talk: Callable[[ModelRequest], str | Says] = chain, *, is_direct: bool = True
) -> Cast:
    agents = {
        name: AgentConfig(delegates=tuple(a for a in AGENTS if a != name))
        for name in AGENTS
    }
    platform = Platform(is_direct=is_direct)
    return Cast(agents=agents, model=FakeModel(talk), platform=platform)


def is_over(cast: Cast, inbound: Inbound) -> bool:
    """Tell whether an exchange is over with its last answer, and not before."""
    owed = Owed()
    of_it = [d for d in cast.platform.deliveries if d.correlation_id == inbound.id]
    return [owed.count(d) for d in of_it] == [False] * (len(of_it) - 1) + [True]


async def test_deleting_a_question_ends_the_work_of_a_delegate(
    autojump_clock: Clock,
) -> None:
    cast = three_agents()
    async with open_company(autojump_clock, cast):
        asked = cast.platform.write("what time is it?")
        await until(lambda: cast.model.running and cast.platform.deliveries)
        began = trio.current_time()
        await cast.platform.delete(asked)
        await at_rest(cast)
        assert trio.current_time() - began < 1
    assert is_over(cast, asked)


async def test_a_stop_ends_the_work_of_a_delegate(autojump_clock: Clock) -> None:
    cast = three_agents()
    async with open_company(autojump_clock, cast):
        asked = cast.platform.write("what time is it?")
        await until(lambda: cast.model.running and cast.platform.deliveries)
        began = trio.current_time()
        cast.platform.write("/stop")
        await at_rest(cast)
        assert trio.current_time() - began < 1
    assert sorted(cast.platform.said()) == [
        ": (stopped)",
        ELSEWHERE,
        "anna: Ben knows.",
    ]
    assert is_over(cast, asked)
    assert await cast.inbox() == {"replied": 2, "cancelled": 1}


async def test_a_stop_goes_as_far_as_the_work_has_gone(autojump_clock: Clock) -> None:
    def talk(request: ModelRequest) -> str | Says:
        further = {"anna": "ben", "ben": "carl"}.get(request.agent)
        return tag(further, "go on") if further else Says("late", after=60)

    cast = three_agents(talk)
    async with open_company(autojump_clock, cast):
        asked = cast.platform.write("go")
        await until(lambda: any(r.agent == "carl" for r in cast.model.requests))
        cast.platform.write("/stop")
        await at_rest(cast)
    assert len(cast.model.cancelled) == 1
    assert ": (stopped)" in cast.platform.said()
    assert is_over(cast, asked)


async def test_only_what_the_agent_asked_handed_on_is_stopped(
    autojump_clock: Clock,
) -> None:
    def talk(request: ModelRequest) -> str | Says:
        if request.agent == "ben":
            return Says(f"did {heard(request)}", after=60)
        return tag("ben", f"a task of {request.agent}")

    cast = three_agents(talk, is_direct=False)
    async with open_company(autojump_clock, cast):
        cast.platform.write("@anna go")
        cast.platform.write("@carl go")
        await until(lambda: len(cast.platform.deliveries) == 2 and cast.model.running)
        cast.platform.write("/stop @anna")
        await at_rest(cast)
    assert "ben: did a task of carl" in cast.platform.said()
    assert cast.platform.said().count(": (stopped)") == 1


async def test_a_stop_leaves_what_others_asked_in_the_same_group_alone(
    autojump_clock: Clock,
) -> None:
    cast = three_agents(is_direct=False)
    async with open_company(autojump_clock, cast):
        cast.platform.write("@anna what?", sender="mia")
        await until(lambda: cast.model.running and cast.platform.deliveries)
        cast.platform.write("@ben and?", sender="mia")
        cast.platform.write("@ben so?", sender="zoe")
        for agent in ("anna", "ben"):
            cast.platform.write(f"/stop @{agent}", sender="zoe")
        await at_rest(cast)
    assert cast.platform.said().count("ben: the answer") == 2
    assert cast.platform.said().count(": (stopped)") == 1
    assert cast.model.cancelled == []


async def test_with_only_the_work_of_others_to_stop_that_is_said(
    autojump_clock: Clock,
) -> None:
    cast = three_agents(lambda _: Says("done", after=9), is_direct=False)
    cast.agents = {"anna": AgentConfig()}
    async with open_company(autojump_clock, cast):
        cast.platform.write("@anna what?", sender="mia")
        await until(lambda: cast.model.running)
        cast.platform.write("/stop @anna", sender="zoe")
        await at_rest(cast)
    assert cast.platform.said() == [
        ": There is nothing of yours to stop.",
        "anna: done",
    ]


async def test_who_waited_behind_a_stopped_answer_is_next(
    autojump_clock: Clock,
) -> None:
    cast = three_agents(lambda _: Says("done", after=9), is_direct=False)
    async with open_company(autojump_clock, cast):
        cast.platform.write("@anna what?", sender="mia")
        cast.platform.write("@anna and?", sender="zoe")
        await until(lambda: cast.model.running)
        began = trio.current_time()
        cast.platform.write("/stop @anna", sender="mia")
        await at_rest(cast)
        assert trio.current_time() - began < 10
    said = cast.platform.said()
    assert (said[:2], said[2:]) == ([": (stopped)", ": Stopped."], ["anna: done"])


async def test_a_stop_wakes_nobody(autojump_clock: Clock) -> None:
    cast = three_agents()
    async with open_company(autojump_clock, cast) as system:
        cast.platform.write("/stop")
        await at_rest(cast)
        awake = [each.name for each in system.actors()]
        for agent in ("ben", "carl"):
            prefix = f"{names.sessions(agent)}/"
            assert not any(each.startswith(prefix) for each in awake)
    assert cast.platform.said() == [ELSEWHERE]


async def test_what_is_handed_on_while_the_answer_is_stored_is_stopped_too(
    autojump_clock: Clock,
) -> None:
    cast = three_agents()
    cast.store = store = RefusedAnswers()  # tried again a second later
    async with open_company(autojump_clock, cast):
        asked = cast.platform.write("what time is it?")
        await until(lambda: store.refused)
        cast.platform.write("/stop")
        await at_rest(cast)
    late = ": Too late: the answer is on its way."
    assert sorted(cast.platform.said()) == [": (stopped)", late, "anna: Ben knows."]
    assert is_over(cast, asked)


def thinking() -> Cast:
    return three_agents(lambda r: Says(heard(r), after=60), is_direct=False)


async def test_a_stop_in_a_group_that_names_nobody_ends_what_its_sender_asked(
    autojump_clock: Clock,
) -> None:
    cast = thinking()
    async with open_company(autojump_clock, cast):
        cast.platform.write("@anna one", sender="mia")
        cast.platform.write("@ben two", sender="mia")
        cast.platform.write("@carl three", sender="zoe")
        cast.platform.write("@carl four", sender="mia")
        await until(lambda: cast.model.running == 3)
        cast.platform.write("/stop", sender="mia")
        await until(lambda: cast.model.running == 1)
        cast.platform.write("@anna five", sender="mia")
        await at_rest(cast)
    said = cast.platform.said()
    assert said[:3] == [": (stopped)"] * 3
    assert sorted(said[3:]) == ["anna: five", "carl: three"]
    assert await cast.inbox() == {"cancelled": 3, "dropped": 1, "replied": 2}


async def test_only_an_owner_stops_all_in_a_group(autojump_clock: Clock) -> None:
    cast = thinking()
    async with open_company(autojump_clock, cast):
        cast.platform.write("@anna one", sender="mia")
        await until(lambda: cast.model.running)
        cast.platform.write("/stop", sender="zoe")
        cast.platform.write("/stop all", sender="zoe")
        await at_rest(cast)
    assert cast.platform.said() == ["anna: one"]


@settings(max_examples=examples(15, deep=160))
@given(
    moment=st.floats(0, 4),
    thinks=st.floats(0, 2),
    stopped=st.sampled_from(AGENTS),
    seed=st.integers(0, 19),
)
def test_whenever_somebody_stops_all_exchanges_end_and_others_have_their_answers(
    moment: float, thinks: float, stopped: str, seed: int
) -> None:
    def talk(request: ModelRequest) -> Says:
        further = {"anna": "ben", "ben": "carl"}.get(request.agent)
        text = f"ok {tag(further, heard(request))}" if further else "done"
        return Says(text, after=thinks)

    cast = three_agents(talk, is_direct=False)
    with seeded_order(seed):
        clock = trio.testing.MockClock(autojump_threshold=0)
        mia, zoe = trio.run(stop_once, cast, clock, moment, stopped, clock=clock)
    assert is_over(cast, mia)
    assert is_over(cast, zoe)
    of_zoe = [d for d in cast.platform.deliveries if d.correlation_id == zoe.id]
    assert [d.agent for d in of_zoe] == list(AGENTS)


async def stop_once(
    cast: Cast, clock: Clock, moment: float, stopped: str
) -> tuple[Inbound, Inbound]:
    async with open_company(clock, cast):
        mia = cast.platform.write("@anna go", sender="mia")
        zoe = cast.platform.write("@anna go", sender="zoe")
        await trio.sleep(moment)
        cast.platform.write(f"/stop @{stopped}", sender="mia")
        await at_rest(cast)
    return mia, zoe
