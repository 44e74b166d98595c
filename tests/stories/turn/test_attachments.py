"""What comes with a message reaches the model, and the history keeps what it said."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import trio
import trio.testing

from actors.config.limits import LimitsConfig
from actors.errors import ModelRefusedError
from actors.messages.inbound import Attachment, Media, ModelRequest
from actors.turn.turn import TIMED_OUT
from connectors.config.tools import MediaConfig
from connectors.media.reader import Reader
from tests.fakes.company.company import (
    Cast,
    FakeModel,
    Says,
    at_rest,
    echo,
    open_company,
)
from tests.fakes.media import OGG, PNG, FakeDocuments, FakeFetches, FakeTranscriber

Clock = trio.testing.MockClock

ALL = (
    Attachment("image", "cat.png", "image/png", content=PNG),
    Attachment("audio", "note.ogg", "audio/ogg", content=OGG),
    Attachment("document", "plan.txt", "text/plain", content=b"x" * 9_000),
)


def reader() -> Reader:
    transcriber = FakeTranscriber("good morning")
    return Reader(MediaConfig(), FakeFetches({}).fetch, FakeDocuments(), transcriber)


async def talk(clock: Clock, cast: Cast, attachments: tuple[Attachment, ...]) -> None:
    """Write a message with attachments, and one after it."""
    async with open_company(clock, cast):
        cast.platform.write("look", attachments=attachments)
        await at_rest(cast)
        cast.platform.write("and now?")
        await at_rest(cast)


def last(request: ModelRequest) -> str:
    return request.lines[-1].text


async def test_pictures_words_and_documents_reach_the_model(
    autojump_clock: Clock,
) -> None:
    cast = Cast(model=FakeModel(echo), media=reader())
    await talk(autojump_clock, cast, ALL)
    first, second = cast.model.requests
    assert [image.content for image in first.lines[-1].images] == [PNG]
    assert last(first).startswith("look\n\n[Image: cat.png]\n\n[Voice]: good morning")
    assert "x" * 9_000 in last(first)
    kept = second.lines[0]
    assert "[Voice]: good morning" in kept.text
    assert "x" * 4_000 in kept.text
    assert "x" * 4_001 not in kept.text
    assert not kept.images


async def test_where_nobody_reads_attachments_the_agent_knows(
    autojump_clock: Clock,
) -> None:
    cast = Cast(model=FakeModel(echo))
    await talk(autojump_clock, cast, ALL)
    first, second = cast.model.requests
    assert "this company reads no attachments" in last(first)
    assert not first.lines[-1].images
    assert "this company reads no attachments" in second.lines[0].text


async def test_a_message_without_words_is_still_one(autojump_clock: Clock) -> None:
    cast = Cast(model=FakeModel(echo), media=reader())
    async with open_company(autojump_clock, cast):
        cast.platform.write("", attachments=ALL[1:2])
        await at_rest(cast)
    assert cast.platform.said() == ["anna: anna heard [Voice]: good morning"]


async def test_an_attachment_is_read_again_after_a_restart(
    autojump_clock: Clock,
) -> None:
    cast = Cast(model=FakeModel(echo), media=reader())
    async with open_company(autojump_clock, cast):
        cast.platform.write("look", attachments=ALL[:1])
    async with open_company(autojump_clock, cast):
        await at_rest(cast)
    assert cast.platform.said()[-1].startswith("anna: anna heard look")


class SlowReader:
    """Reads nothing, for a while."""

    async def read(self, attachments: Sequence[Attachment], owner: str = "") -> Media:
        await trio.sleep(50)
        return Media(f"{len(attachments)} read for {owner}")


@pytest.mark.parametrize("seconds", [10.0, 60.0])
async def test_reading_what_came_along_is_part_of_the_turns_time(
    seconds: float, autojump_clock: trio.testing.MockClock
) -> None:
    model = FakeModel(lambda _: Says("late", after=1000))
    limits = LimitsConfig(turn_timeout=seconds)
    cast = Cast(model=model, media=SlowReader(), limits=limits)
    async with open_company(autojump_clock, cast):
        cast.platform.write("look", attachments=ALL)
        begin = trio.current_time()
        await at_rest(cast)
        assert trio.current_time() - begin < seconds + 1
    assert cast.platform.said() == [f": {TIMED_OUT}"]


async def test_a_picture_that_the_model_cannot_see_is_not_kept(
    autojump_clock: Clock,
) -> None:
    def blind(request: ModelRequest) -> str | Says:
        if any(line.images for line in request.lines):
            return Says(error=ModelRefusedError("no pictures", kind="vision"))
        return f"{len(request.lines)} lines"

    cast = Cast(model=FakeModel(blind), media=reader())
    await talk(autojump_clock, cast, ALL[:1])
    first, second = cast.platform.said()
    assert "cannot see pictures" in first
    assert second == "anna: 1 lines"
    audit = await cast.store.records("audit")
    assert any(b"look" in row.body for row in audit)
