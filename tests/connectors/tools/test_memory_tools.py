"""Proves that the tools search and keep what the call's context allows, no more."""

from __future__ import annotations

import msgspec
import pytest
import trio.testing

from actors.errors import ToolError
from actors.memory.messages import KeepFact
from actors.messages.inbound import Address, ToolCall, ToolContext, ToolResult
from runtime.store.facts import FactListing
from tests.fakes.company.company import TrioClock
from tests.fakes.company.minded import memory_tools
from tests.fakes.memory.memory import ROOM, SAM, ZOE, Bed, remembering_bed

Clock = trio.testing.MockClock


def context(sender: str = "zoe", *, is_direct: bool = True) -> ToolContext:
    return ToolContext(
        agent="bot",
        correlation_id="c1",
        address=Address("fake", "room"),
        sender_id=sender,
        is_direct=is_direct,
    )


async def use(
    bed: Bed, name: str, asker: ToolContext, **arguments: object
) -> ToolResult:
    tools = memory_tools(bed.find, TrioClock(), bed.store)
    call = ToolCall("1", name, msgspec.json.encode(arguments))
    return await tools[name].run(call, asker)


async def test_what_is_kept_is_found_by_the_same_person_only(
    autojump_clock: Clock,
) -> None:
    async with remembering_bed(autojump_clock) as bed:
        kept = await use(bed, "save_memory", context(), text="Zoe likes green tea")
        assert kept == ToolResult("Kept: Zoe likes green tea")
        found = await use(bed, "memory_search", context(), query="who likes tea?")
        assert "Zoe likes green tea" in found.text
        for other in (context("sam"), context(is_direct=False)):
            nothing = await use(bed, "memory_search", other, query="who likes tea?")
            assert nothing == ToolResult("Nothing is known of that.")


async def test_no_more_is_found_than_is_asked_for(autojump_clock: Clock) -> None:
    async with remembering_bed(autojump_clock) as bed:
        for each in (
            "Zoe drinks tea at noon",
            "Her tea cup is blue",
            "No tea on trains",
        ):
            await use(bed, "save_memory", context(), text=each)
        for most in (1, 2, 3):
            found = await use(bed, "memory_search", context(), query="tea", limit=most)
            assert len(found.text.splitlines()) == most


async def test_in_a_group_facts_are_the_groups(autojump_clock: Clock) -> None:
    async with remembering_bed(autojump_clock) as bed:
        group = context(is_direct=False)
        await use(bed, "save_memory", group, text="The meeting is on Monday")
        for scope, count in ((ROOM, 1), (ZOE, 0), (SAM, 0)):
            listing = FactListing(agent="bot", scopes=(scope,), now=bed.now())
            rows = await bed.store.facts.listed(listing)
            assert len(rows) == count
            assert all('"by":"tool"' in row.provenance for row in rows)


async def test_the_result_says_what_is_really_kept(autojump_clock: Clock) -> None:
    async with remembering_bed(autojump_clock) as bed:
        text = "The door key is sk-abcdefghijklmnopqrst"
        kept = await use(bed, "save_memory", context(), text=text)
        assert kept.text == "Kept: The door key is [key]"
        again = await use(bed, "save_memory", context(), text=text)
        assert again.text == "Known already: The door key is [key]"
        blank = await use(bed, "save_memory", context(), text="   ")
        assert blank.is_error


async def test_without_a_memory_the_model_is_told(autojump_clock: Clock) -> None:
    async with remembering_bed(autojump_clock) as bed:
        tools = memory_tools(lambda _: None, TrioClock(), bed.store)
        call = ToolCall("1", "memory_search", b'{"query": "tea"}')
        with pytest.raises(ToolError, match="no memory"):
            await tools["memory_search"].run(call, context())
        await bed.store.aclose()
        with pytest.raises(ToolError, match="closed"):
            await use(bed, "save_memory", context(), text="Likes tea")


async def test_what_a_tool_keeps_reaches_the_next_recall(autojump_clock: Clock) -> None:
    async with remembering_bed(autojump_clock) as bed:
        await use(
            bed, "save_memory", context(), text="Is called Zoe", category="profile"
        )
        assert [fact.text for fact in (await bed.recall("hi")).profile] == [
            "Is called Zoe"
        ]
        await bed.remember(KeepFact(category="sticky", text="Has a cat"))
        assert len((await bed.recall("hi")).sticky) == 1
