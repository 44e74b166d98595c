"""Proves what a turn makes of tools that come and go while it runs."""

from __future__ import annotations

import pytest
from trio.testing import MockClock

from actors.config.agents import AgentConfig
from actors.messages.inbound import (
    ModelRequest,
    ToolCall,
    ToolContext,
    ToolResult,
    ToolSpec,
)
from actors.ports import Offer
from tests.fakes.company.company import (
    Cast,
    FakeModel,
    Says,
    at_rest,
    call,
    heard,
    open_company,
)


class Named:
    """A tool that says its name."""

    def __init__(self, name: str, text: str = "") -> None:
        schema = b'{"type":"object"}'
        self.spec = ToolSpec(name, "does it", schema, effect="read", is_own_words=True)
        self.text = text or f"{name} was here"

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        del call, context
        return ToolResult(self.text)


class Coming:
    """Has one tool more each time somebody looks."""

    def __init__(self) -> None:
        self.looks: list[str] = []

    async def offer(self, context: ToolContext, words: str) -> Offer:
        self.looks.append(f"{context.agent}: {words}")
        names = [f"t{number}" for number in range(len(self.looks))]
        return Offer(tuple(map(Named, names)), (f"note {len(self.looks)}",))


def asking_for(*names: str) -> FakeModel:
    """Make a model that calls these, one in each round, then says what it heard."""

    def talk(request: ModelRequest) -> str | Says:
        done = sum(line.role == "tool" for line in request.lines)
        if done < len(names):
            return Says(calls=(call(names[done], done),))
        return f"so {heard(request)}"

    return FakeModel(talk)


async def test_each_round_has_the_tools_there_are_then(
    autojump_clock: MockClock,
) -> None:
    source = Coming()
    cast = Cast(model=asking_for("t0", "t1"), sources=(source,))
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await at_rest(cast)
    assert cast.platform.said() == ["anna: so t1 was here"]
    offered = [[tool.name for tool in each.tools] for each in cast.model.requests]
    assert offered == [["t0"], ["t0", "t1"], ["t0", "t1", "t2"]]
    assert source.looks == ["anna: hello"] * 3


async def test_notes_stand_among_what_is_fresh(autojump_clock: MockClock) -> None:
    cast = Cast(model=asking_for(), sources=(Coming(),))
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await at_rest(cast)
    (request,) = cast.model.requests
    note, date = request.notes
    assert note == "note 1"
    assert request.system.endswith(f"\n\n{note}\n\n{date}")


async def test_no_source_takes_the_place_of_an_agents_own_tool(
    autojump_clock: MockClock,
) -> None:
    own = Named("t0", "my own")
    agents = {"anna": AgentConfig(tools=("t0",))}
    cast = Cast(
        agents=agents, tools=(own,), model=asking_for("t0"), sources=(Coming(),)
    )
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await at_rest(cast)
    assert cast.platform.said() == ["anna: so my own"]


@pytest.mark.parametrize("name", ["t5", "delegate", ""])
async def test_a_tool_that_is_not_there_is_refused(
    name: str, autojump_clock: MockClock
) -> None:
    cast = Cast(model=asking_for(name), sources=(Coming(),))
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await at_rest(cast)
    assert "there is no tool" in cast.platform.said()[0]
