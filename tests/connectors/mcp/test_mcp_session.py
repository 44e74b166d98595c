"""Proves in virtual time how a server's two actors see to calls, waits and ends."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import trio
import trio.testing
from trio.testing import MockClock

from actors.errors import ToolError
from actors.messages.inbound import ToolCall, ToolResult
from actors.ports import Offer
from connectors.config.mcp import McpServerConfig
from connectors.mcp.session import McpFigures
from connectors.mcp.source import PATIENCE, Known, McpSource
from connectors.mcp.tree import actor_of, server_spec
from runtime.supervision.supervisor import Supervisor
from runtime.system import ActorSystem
from runtime.telemetry.metrics import Metrics
from runtime.testing import Reports, open_test_system
from tests.fakes.mcp.connection import FakeConnection
from tests.support.mcp_bed import CONTEXT


class Stand:
    """One server in memory, and an agent that has all its tools."""

    def __init__(self, system: ActorSystem, config: McpServerConfig) -> None:
        known = Known("files", config, actor_of("tools", "files"))
        self.source = McpSource([known], {"ben": ("mcp:files",)}, system.find)

    async def offer(self) -> Offer:
        return await self.source.offer(CONTEXT, "")

    async def call(
        self, name: str = "files__a", person: str = "sam", **arguments: Any
    ) -> ToolResult:
        tools = {tool.spec.name: tool for tool in (await self.offer()).tools}
        asked = ToolCall("id", name, msgspec.json.encode(arguments))
        context = msgspec.structs.replace(CONTEXT, sender_id=person)
        return await tools[name].run(asked, context)


@asynccontextmanager
async def standing(
    clock: MockClock, connection: FakeConnection, **settings: Any
) -> AsyncGenerator[Stand]:
    assert clock.autojump_threshold == 0
    config = McpServerConfig(command="x", **settings)
    spec = server_spec("files", config, connection.connect, McpFigures(Metrics()))
    async with open_test_system(Reports()) as system:
        await system.start_root(Supervisor([spec]), "tools")
        yield Stand(system, config)


async def test_a_call_is_carried_out(autojump_clock: MockClock) -> None:
    async with standing(autojump_clock, FakeConnection("a")) as stand:
        assert await stand.call(x=1) == ToolResult("a 1")


async def test_a_call_that_takes_too_long_fails_and_the_server_lives(
    autojump_clock: MockClock,
) -> None:
    connection = FakeConnection("a", delay=100.0)
    async with standing(autojump_clock, connection, call_timeout=60.0) as stand:
        began = trio.current_time()
        with pytest.raises(ToolError, match="within 60 seconds; nobody knows"):
            await stand.call()
        assert trio.current_time() - began == pytest.approx(60.0)
        assert connection.cancelled == ["a"]
        await trio.sleep(10)
        assert connection.opened == 1


async def test_a_server_that_answers_nothing_any_more_is_started_again(
    autojump_clock: MockClock,
) -> None:
    connection = FakeConnection("a", delay=100.0)
    async with standing(autojump_clock, connection, call_timeout=60.0) as stand:
        await stand.offer()
        connection.is_mute = True
        with pytest.raises(ToolError, match="within 60 seconds"):
            await stand.call()
        connection.is_mute = False
        await trio.sleep(10)
        assert connection.opened == 2


async def test_a_turn_that_is_given_up_cancels_its_call(
    autojump_clock: MockClock,
) -> None:
    connection = FakeConnection("a", delay=30.0)
    async with standing(autojump_clock, connection) as stand:
        with trio.move_on_after(1):
            await stand.call()
        await trio.sleep(0.1)
        assert connection.cancelled == ["a"]
        connection.delay = 0.0
        assert (await stand.call()).text == "a 0"


async def test_a_turn_waits_for_the_first_start_and_not_for_ever(
    autojump_clock: MockClock,
) -> None:
    connection = FakeConnection("a", is_mute=True)
    async with standing(autojump_clock, connection, start_timeout=60.0) as stand:
        offer = await stand.offer()
        assert trio.current_time() == pytest.approx(PATIENCE, abs=0.5)
        assert (offer.tools, len(offer.notes)) == ((), 1)
        connection.is_mute = False
        await trio.sleep(100)
        assert len((await stand.offer()).tools) == 1


async def test_a_first_wait_may_be_longer_than_those_that_grow(
    autojump_clock: MockClock,
) -> None:
    connection = FakeConnection("a", is_mute=True)
    async with standing(
        autojump_clock, connection, start_timeout=1.0, restart_first=600.0
    ):
        await trio.sleep(300)
        assert connection.opened == 1
        await trio.sleep(400)
        assert connection.opened == 2


async def test_restarts_come_slower_and_slower(autojump_clock: MockClock) -> None:
    connection = FakeConnection("a", is_mute=True)
    async with standing(autojump_clock, connection, start_timeout=1.0):
        await trio.sleep(60)
        in_the_first_minute = connection.opened
        await trio.sleep(600)
        later = connection.opened - in_the_first_minute
    assert in_the_first_minute in {5, 6, 7}
    assert 9 <= later <= 14


async def test_calls_run_side_by_side_up_to_a_bound(autojump_clock: MockClock) -> None:
    connection = FakeConnection("a", delay=1.0)
    async with standing(autojump_clock, connection, max_calls=4) as stand:
        await stand.offer()
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            for number in range(8):
                nursery.start_soon(stand.call, "files__a", f"p{number % 2}")
        assert trio.current_time() - began == pytest.approx(2.0, abs=0.1)


async def test_of_a_server_that_takes_one_call_at_a_time_two_people_have_turns(
    autojump_clock: MockClock,
) -> None:
    connection = FakeConnection("a", delay=1.0)
    ended: list[str] = []
    async with standing(autojump_clock, connection, max_calls=1) as stand:
        await stand.offer()

        async def call(person: str) -> None:
            await stand.call(person=person)
            ended.append(person)

        async with trio.open_nursery() as nursery:
            for person in ("sam", "sam", "sam", "kim"):
                nursery.start_soon(call, person)
                await trio.testing.wait_all_tasks_blocked()
    assert ended == ["sam", "kim", "sam", "sam"]


async def test_one_person_leaves_room_for_another(autojump_clock: MockClock) -> None:
    connection = FakeConnection("a", delay=1.0)
    refused: list[ToolError] = []
    async with standing(autojump_clock, connection, max_calls=4) as stand:
        await stand.offer()
        began = trio.current_time()

        async def call() -> None:
            try:
                await stand.call(person="sam")
            except ToolError as error:
                refused.append(error)

        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(call)
            await trio.testing.wait_all_tasks_blocked()
            await stand.call(person="kim")
            assert trio.current_time() - began == pytest.approx(1.0, abs=0.1)
    assert len(refused) == 2


async def test_a_call_that_is_given_up_while_it_waits_makes_room_and_is_never_made(
    autojump_clock: MockClock,
) -> None:
    connection = FakeConnection("a", delay=5.0)
    async with standing(autojump_clock, connection, max_calls=1) as stand:
        await stand.offer()
        answers: list[str] = []
        patience = trio.CancelScope()

        async def call(scope: trio.CancelScope) -> None:
            with scope:
                answers.append((await stand.call(person="sam")).text)

        async with trio.open_nursery() as nursery:
            for scope in (trio.CancelScope(), patience, trio.CancelScope()):
                nursery.start_soon(call, scope)
                await trio.testing.wait_all_tasks_blocked()
            with pytest.raises(ToolError, match="too much to do"):
                await stand.call(person="sam")
            patience.cancel()
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(call, trio.CancelScope())
        assert answers == ["a 0"] * 3
        assert connection.calls == ["a"] * 3


@pytest.mark.parametrize("arguments", [b"[]", b"3", b"{", b"\xff", b'"x"'])
async def test_arguments_that_are_no_object_are_told_to_the_model(
    arguments: bytes, autojump_clock: MockClock
) -> None:
    async with standing(autojump_clock, FakeConnection("a")) as stand:
        (tool,) = (await stand.offer()).tools
        result = await tool.run(ToolCall("1", "files__a", arguments), CONTEXT)
        assert result.is_error


async def test_who_waits_at_the_end_is_told(autojump_clock: MockClock) -> None:
    failed: list[str] = []
    connection = FakeConnection("a", delay=100.0)
    async with trio.open_nursery() as nursery:
        async with standing(autojump_clock, connection) as stand:

            async def call() -> None:
                try:
                    await stand.call()
                except ToolError as error:
                    failed.append(str(error))

            nursery.start_soon(call)
            await trio.sleep(1)
        await trio.sleep(1)
    assert len(failed) == 1


async def test_the_effect_is_what_the_settings_say(autojump_clock: MockClock) -> None:
    settings: dict[str, Any] = {"effect": "write", "effects": {"read_*": "read"}}
    async with standing(
        autojump_clock, FakeConnection("read_a", "b"), **settings
    ) as stand:
        specs = {tool.spec.name: tool.spec for tool in (await stand.offer()).tools}
    read, write = specs["files__read_a"], specs["files__b"]
    assert (read.effect, read.is_repeatable) == ("read", True)
    assert (write.effect, write.is_repeatable) == ("write", False)


async def test_only_the_tools_of_the_settings_are_there(
    autojump_clock: MockClock,
) -> None:
    async with standing(
        autojump_clock, FakeConnection("a", "b"), tools=("a*",)
    ) as stand:
        assert [t.spec.name for t in (await stand.offer()).tools] == ["files__a"]


async def test_tools_that_change_are_offered_anew(autojump_clock: MockClock) -> None:
    connection = FakeConnection("a")
    async with standing(autojump_clock, connection) as stand:
        await stand.offer()
        for number in range(50):
            connection.change("a", f"b{number}")
        await trio.sleep(2)
        names = [tool.spec.name for tool in (await stand.offer()).tools]
    assert names == ["files__a", "files__b49"]
