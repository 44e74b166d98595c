"""What people have forgotten stays forgotten, whatever goes through it again later."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from actors.config.agents import UNLESS_TOLD, AgentConfig
from actors.config.memory import MemoryConfig
from actors.config.sessions import CompactionConfig
from actors.journal.unsettled import newest_id
from actors.messages.inbound import ModelRequest
from runtime.ids import IdSource
from tests.fakes.company.company import (
    FakeModel,
    Platform,
    Says,
    at_rest,
    heard,
    open_company,
)
from tests.fakes.company.minded import Minded
from tests.fakes.models.summing import task_of

Clock = trio.testing.MockClock

ZOE = "person:fake/zoe"
WORDS = ("nuts", "cats", "tea")
PURGING = AgentConfig(max_history=50, markers=(*UNLESS_TOLD, "purge"))


class Diligent(FakeModel):
    """Notes all it is shown of what it knows to be worth noting."""

    def __init__(self, after: float = 0.0) -> None:
        super().__init__(self._say)
        self.after = after

    def _say(self, request: ModelRequest) -> str | Says:
        text = request.lines[-1].text
        seen = [word for word in WORDS if word in text]
        match task_of(request):
            case "facts":
                notes = [f"[MEMORY:sticky] {word} [/MEMORY]" for word in seen]
                return Says("\n".join(notes), after=self.after)
            case "summary":
                return f"They spoke of {' and '.join(seen)}"
            case _:
                return "PURGE_FACTS" if "purge" in heard(request) else "yes"


def make_cast(flush_after: int = 0, **fields: Any) -> Minded:
    cast = Minded(
        model=fields.pop("model", None) or Diligent(),
        agents={"anna": fields.pop("anna", PURGING)},
        compaction=CompactionConfig(flush_after=flush_after),
        **fields,
    )
    for platform in (cast.platform, *cast.others):
        platform.new_id = cast.ids.new
    return cast


async def write(cast: Minded, *texts: str, platform: Platform | None = None) -> None:
    for text in texts:
        (platform or cast.platform).write(text)
        await at_rest(cast)


@pytest.mark.parametrize("asked", ["/forget facts", "/memory forget {id}", "purge"])
async def test_a_later_reset_finds_only_what_was_said_since(
    asked: str, autojump_clock: Clock
) -> None:
    cast = make_cast(4)
    async with open_company(autojump_clock, cast):
        await write(cast, "I may eat no nuts", "and no eggs")
        assert await cast.known(ZOE) == ["nuts"]
        shown = ""
        if "{id}" in asked:
            await write(cast, "/memory")
            line = cast.platform.deliveries[-1].text.splitlines()[-1]
            shown = line.partition(":")[0]
        await write(cast, asked.format(id=shown))
        assert await cast.known(ZOE) == []
        await write(cast, "I have cats", "/new")
        assert await cast.known(ZOE) == ["cats"]
    cast.restart()
    async with open_company(autojump_clock, cast):
        await write(cast, "and tea", "/new")
    assert "nuts" not in " ".join(await cast.known(ZOE))


@pytest.mark.parametrize("quiet", [0.0, 9 * 86_400.0])
async def test_after_a_clock_that_was_ahead_what_is_said_is_remembered(
    quiet: float, autojump_clock: Clock
) -> None:
    cast = make_cast()
    async with open_company(autojump_clock, cast):
        cast.clock.ahead = 40 * 86_400.0
        await write(cast, "I may eat no nuts", "/forget facts")
        cast.clock.ahead = 0.0
    for words, known in (("I have cats", {"cats"}), ("and tea", {"cats", "tea"})):
        await trio.sleep(quiet)  # by then the keeper has forgotten settled messages
        await cast.store.prune(cast.clock.wall() - quiet)
        cast.restart()
        cast.ids = IdSource(cast.clock, after=await newest_id(cast.store))
        cast.platform.new_id = cast.ids.new
        async with open_company(autojump_clock, cast):
            await write(cast, words, "/new")
        found = {*await cast.known(ZOE)}
        assert known <= found
        assert "nuts" not in " ".join(found)


async def test_what_was_never_noted_is_not_noted_after_it_was_to_be_forgotten(
    autojump_clock: Clock,
) -> None:
    cast = make_cast()
    async with open_company(autojump_clock, cast):
        await write(cast, "I may eat no nuts", "/forget facts", "/new")
    assert await cast.known(ZOE) == []


async def test_a_compaction_finds_only_what_was_said_since(
    autojump_clock: Clock,
) -> None:
    cast = make_cast()
    cast.compaction = CompactionConfig(flush_after=0, max_chars=1_000, keep_lines=2)
    long = "x " * 200
    async with open_company(autojump_clock, cast):
        await write(
            cast, f"nuts {long}", "/forget facts", f"cats {long}", f"tea {long}"
        )
        await write(cast, "so?")
    asked = [x for x in cast.model.requests if task_of(x) == "summary"]
    assert "nuts" in asked[0].lines[-1].text  # the conversation itself goes on
    assert await cast.known(ZOE) == ["cats"]


async def test_what_was_summed_up_stands_once_in_the_next_prompt(
    autojump_clock: Clock,
) -> None:
    cast = make_cast()
    cast.compaction = CompactionConfig(flush_after=0, max_chars=1_000, keep_lines=2)
    long = "x " * 200
    async with open_company(autojump_clock, cast):
        await write(cast, *(f"{word} {long}" for word in WORDS), "what was said?")
        before = cast.model.requests[-1].system
        await write(cast, "/new", "what was said earlier?")
    assert before.count("They spoke of") == 1
    assert "[Earlier in this conversation]" in before
    ended = cast.model.requests[-1].system
    assert ended.count("They spoke of nuts") == 1
    assert "[What was said earlier]" in ended


async def test_what_is_being_noted_meanwhile_is_not_kept(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(2, model=Diligent(after=60.0))
    async with open_company(autojump_clock, cast):
        cast.platform.write("nuts")
        await trio.sleep(20.0)
        cast.platform.write("/forget facts")
        await at_rest(cast)
        await trio.sleep(100.0)
        assert any(task_of(each) == "facts" for each in cast.model.requests)
        assert await cast.known(ZOE) == []


async def test_what_one_account_has_forgotten_the_other_does_not_bring_back(
    autojump_clock: Clock,
) -> None:
    other = Platform("other")
    cast = make_cast(others=(other,), owners=("fake/zoe",), approvers=("fake/zoe",))
    async with open_company(autojump_clock, cast):
        await write(cast, "nuts", platform=other)
        await write(cast, "hello", "/link fake/zoe other/zoe", "/forget facts")
        await write(cast, "/new", platform=other)
        assert await cast.known(ZOE, "person:other/zoe") == []
        await write(cast, "cats", "/new", platform=other)
        found = await cast.known(ZOE, "person:other/zoe")
        assert "cats" in found
        assert not any("nuts" in each for each in found)


async def test_words_that_ask_to_forget_are_not_kept_themselves(
    autojump_clock: Clock,
) -> None:
    memory = MemoryConfig(auto_save=True, auto_save_chars=5)
    cast = make_cast(memory=memory)
    async with open_company(autojump_clock, cast):
        await write(cast, "I may eat no nuts", "purge the nuts")
    assert await cast.known(ZOE) == []
