"""A model that keeps the conversation itself goes on with it, while that is whole."""

from __future__ import annotations

import trio
import trio.testing

from actors.config.sessions import SessionConfig
from actors.errors import ModelRefusedError
from actors.messages.inbound import ModelRequest
from actors.turn.stream import resume_of, resume_token_of
from tests.fakes.company.company import (
    Cast,
    FakeModel,
    Says,
    at_rest,
    heard,
    open_company,
)

Clock = trio.testing.MockClock


def keeping(request: ModelRequest) -> Says:
    """Answer as a program with sessions does; `break` is an error of its."""
    if "break" in heard(request):
        return Says(error=ModelRefusedError("broken"))
    return Says("yes", resume=f"{request.resume or 'session'}+")


async def talk(clock: Clock, cast: Cast, *words: str) -> list[str]:
    """Write one message after the other; give what each request was to go on from."""
    async with open_company(clock, cast):
        for word in words:
            cast.platform.write(word)
            await at_rest(cast)
    return [request.resume for request in cast.model.requests]


async def test_each_message_goes_on_where_the_last_ended(autojump_clock: Clock) -> None:
    cast = Cast(model=FakeModel(keeping))
    resumed = await talk(autojump_clock, cast, "one", "two", "three")
    assert resumed == ["", "session+", "session++"]
    assert {request.conversation for request in cast.model.requests} != {""}


async def test_also_after_a_restart(autojump_clock: Clock) -> None:
    cast = Cast(model=FakeModel(keeping))
    await talk(autojump_clock, cast, "one")
    assert await talk(autojump_clock, cast, "two") == ["", "session+"]


async def test_also_where_a_snapshot_was_taken(autojump_clock: Clock) -> None:
    cast = Cast(model=FakeModel(keeping))
    await talk(autojump_clock, cast, *("word",) * 60)
    resumed = await talk(autojump_clock, cast, "one more")
    assert resumed[-1].count("+") == 60


async def test_after_a_failure_it_is_told_all_anew(autojump_clock: Clock) -> None:
    cast = Cast(model=FakeModel(keeping))
    resumed = await talk(autojump_clock, cast, "one", "break", "three")
    assert resumed == ["", "session+", ""]


async def test_after_a_long_silence_too(autojump_clock: Clock) -> None:
    sessions = SessionConfig(resume_within=3_600.0)
    cast = Cast(model=FakeModel(keeping), sessions=sessions)
    async with open_company(autojump_clock, cast):
        cast.platform.write("one")
        await at_rest(cast)
        await trio.sleep(3_700.0)
        cast.platform.write("two")
        await at_rest(cast)
    assert [request.resume for request in cast.model.requests] == ["", ""]


def test_only_who_gave_it_is_given_it_again() -> None:
    given = resume_token_of("work", "session 1")
    assert resume_of("work", given) == "session 1"
    assert resume_of("home", given) == ""
    assert resume_of("work", resume_token_of("work", "")) == ""
