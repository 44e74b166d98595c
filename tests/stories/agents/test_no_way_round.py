"""Nobody reaches through one agent another that they may not use."""

from __future__ import annotations

import trio.testing

from actors.config.access import AgentAccessConfig
from actors.config.agents import AgentConfig
from actors.config.collaboration import CollaborationConfig
from actors.messages.inbound import ModelRequest
from tests.fakes.company.company import (
    FakeModel,
    Platform,
    Says,
    at_rest,
    call,
    heard,
    open_company,
)
from tests.fakes.company.guarded import Guarded

Clock = trio.testing.MockClock


def office(*, is_direct: bool) -> Guarded:
    """Anna may ask ben, whom only zoe may use."""
    rules = (
        AgentAccessConfig(may_use=True, agent="ben", sender="zoe"),
        AgentAccessConfig(may_use=False, agent="ben"),
    )

    def talk(request: ModelRequest) -> str | Says:
        if request.agent == "ben":
            return "the figures"
        if request.lines[-1].role == "tool":
            return f"so: {heard(request)}"
        if request.tools and is_direct:
            return Says(calls=(call("collaborate", agent="ben", message="figures?"),))
        return "figures, @ben?"

    return Guarded(
        agents={"anna": AgentConfig(delegates=("ben",)), "ben": AgentConfig()},
        model=FakeModel(talk),
        platform=Platform(is_direct=is_direct),
        collaboration=CollaborationConfig(visible=True),
        rules=rules,
    )


async def test_behind_the_scenes_it_is_asked_only_for_who_may_use_it(
    autojump_clock: Clock,
) -> None:
    cast = office(is_direct=True)
    async with open_company(autojump_clock, cast):
        cast.platform.write("figures?", sender="mia")
        await at_rest(cast)
        assert "whoever wrote may not use ben" in cast.platform.said()[0]
        assert [each.agent for each in cast.model.requests] == ["anna", "anna"]
        cast.platform.write("figures?", sender="zoe")
        await at_rest(cast)
    assert "the figures" in cast.platform.said()[1]


async def test_in_a_group_it_hears_only_what_goes_back_to_who_may_use_it(
    autojump_clock: Clock,
) -> None:
    cast = office(is_direct=False)
    async with open_company(autojump_clock, cast):
        cast.platform.write("@anna figures?", sender="mia")
        await at_rest(cast)
        assert cast.platform.said() == ["anna: figures, @ben?"]
        cast.platform.write("@anna figures?", sender="zoe")
        await at_rest(cast)
    assert cast.platform.said()[2:] == ["ben: the figures"]
